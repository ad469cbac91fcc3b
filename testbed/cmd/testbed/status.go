// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/testbed/fleet"
	"github.com/bellwether-dev/bellwether/testbed/process"
)

func newStatus(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the processes of a fleet with their memory",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			state, err := fleet.Read(*name)
			if errors.Is(err, os.ErrNotExist) {
				return notUp(*name)
			}
			if err != nil {
				return err
			}
			return printStatus(cmd.OutOrStdout(), state)
		},
	}
}

// notUp says which fleets there are instead.
func notUp(name string) error {
	names, err := fleet.Names()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("no fleet %s is up; start one with \"testbed up\"", name)
	}
	return fmt.Errorf("no fleet %s is up; there are: %q (choose with --name)", name, names)
}

func printStatus(out io.Writer, state fleet.State) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	say(table, "CLUSTER\tCOMPONENT\tSTATE\tPID\tRESIDENT\tLOG\n")
	shared := fleet.Member{Name: "(shared)", Dir: state.EtcdDir}
	var total int64
	for _, member := range append([]fleet.Member{shared}, state.Clusters...) {
		records, err := process.Records(filepath.Join(member.Dir, "run"))
		if err != nil {
			return err
		}
		for _, r := range records {
			total += printProcess(table, member, r)
		}
	}
	say(table, "total\t\t\t\t%d MiB\t\n", total>>20)
	return table.Flush()
}

// printProcess writes one row and returns the resident memory.
func printProcess(table io.Writer, member fleet.Member, r process.Record) int64 {
	state, resident := "stopped", int64(0)
	if r.Alive() {
		state = "running"
		if bytes, err := process.ResidentBytes(r.PID); err == nil {
			resident = bytes
		}
	}
	say(table, "%s\t%s\t%s\t%d\t%d MiB\t%s\n", member.Name, r.Name, state, r.PID, resident>>20,
		process.LogPath(member.Dir, r.Name))
	return resident
}

// ready reports whether the fleet of that name is up and belongs to the given process.
func ready(name string, pid int) bool {
	state, err := fleet.Read(name)
	return err == nil && state.Owner.PID == pid
}

func newKubeconfig(name *string) *cobra.Command {
	return &cobra.Command{
		Use:     "kubeconfig CLUSTER",
		Short:   "Print the path of a cluster's kubeconfig",
		Example: `  kubectl --kubeconfig "$(testbed kubeconfig hub)" get managedoperators -A`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			state, err := fleet.Read(*name)
			if errors.Is(err, os.ErrNotExist) {
				return notUp(*name)
			}
			if err != nil {
				return err
			}
			var names []string
			for _, member := range state.Clusters {
				if member.Name == args[0] {
					say(cmd.OutOrStdout(), "%v\n", member.Kubeconfig)
					return nil
				}
				names = append(names, member.Name)
			}
			return fmt.Errorf("fleet %s has no cluster %q; it has %q", *name, args[0], names)
		},
	}
}
