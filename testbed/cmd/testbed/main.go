// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command testbed runs a fleet of real Kubernetes clusters on this machine: a hub and members with OLM, as processes on
// loopback.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

const defaultName = "default"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// After the first signal the clean-up runs; a second one ends the program at once, and its children with it.
	context.AfterFunc(ctx, stop)
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "testbed:", err)
		os.Exit(1)
	}
}

// say writes to a person. That nobody can read it is no reason to stop.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

func newRoot() *cobra.Command {
	var name string
	root := &cobra.Command{
		Use:   "testbed",
		Short: "Run a fleet of real Kubernetes clusters on this machine",
		Long: `Run a fleet of real Kubernetes clusters on this machine, without containers.

Every component (etcd, kube-apiserver, kube-controller-manager, OLM) is upstream's own code, built from
pinned Go modules into your cache folder on first use (about 8 minutes on 2 cores) and run as a process on
loopback. Pods run as processes too.

  testbed up                     a hub and three clusters, until Ctrl-C
  testbed up --detach            the same in the background
  testbed status                 what runs, and how much memory it takes
  kubectl --kubeconfig "$(testbed kubeconfig canary)" get csv -A
  testbed down                   stop and remove it`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&name, "name", defaultName,
		"name of the fleet; fleets of different names do not meet")
	root.AddCommand(newUp(&name), newDown(&name), newStatus(&name), newKubeconfig(&name))
	return root
}
