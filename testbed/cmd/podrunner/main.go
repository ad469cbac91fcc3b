// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command podrunner is the testbed's node: it runs pods as processes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/bellwether-dev/bellwether/testbed/podrunner"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "podrunner:", err)
		os.Exit(1)
	}
	klog.Flush()
}

func run(ctx context.Context) error {
	var kubeconfig, images, server, ca string
	var opts podrunner.Options
	flag.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig with the rights of a node and a scheduler")
	flag.StringVar(&opts.Node, "node", "", "name of the node to register")
	flag.StringVar(&images, "images", "", `JSON file: {"image[:tag]": {"path": "binary"}}`)
	flag.StringVar(&opts.Dir, "dir", "", "folder for logs and volumes, for this runner only")
	flag.StringVar(&opts.IPRange, "ip-range", "", "loopback addresses for pods, for this runner only, as 127.1.2.0/24")
	flag.StringVar(&server, "api-server", "", "URL of the API server, instead of the kubeconfig's")
	flag.StringVar(&ca, "ca", "", "CA file of the API server, instead of the kubeconfig's")
	flag.Parse()
	for _, name := range []string{"kubeconfig", "node", "images", "dir", "ip-range"} {
		if flag.Lookup(name).Value.String() == "" {
			return errors.New("flag --" + name + " is required")
		}
	}
	overrides := &clientcmd.ConfigOverrides{}
	overrides.ClusterInfo.Server, overrides.ClusterInfo.CertificateAuthority = server, ca
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}, overrides).ClientConfig()
	if err != nil {
		return fmt.Errorf("load kubeconfig: %w", err)
	}
	opts.Config = config
	if opts.Images, err = podrunner.ReadImages(images); err != nil {
		return err
	}
	return podrunner.Run(ctx, opts)
}
