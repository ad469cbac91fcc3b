// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command podrunner is the testbed's node: it runs pods as processes, and brings connections to Services to them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/bellwether-dev/bellwether/testbed/podrunner"
	"github.com/bellwether-dev/bellwether/testbed/services"
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
	var kubeconfig, images, server, ca, serviceRange string
	var opts podrunner.Options
	flag.StringVar(&kubeconfig, "kubeconfig", "", "required: kubeconfig with the rights of a node and a scheduler")
	flag.StringVar(&opts.Node, "node", "", "required: name of the node to register")
	flag.StringVar(&images, "images", "", `required: JSON file: {"image[:tag]": {"path": "binary"}}`)
	flag.StringVar(&opts.Dir, "dir", "", "required: folder for logs and volumes, for this runner only")
	flag.StringVar(&opts.IPRange, "ip-range", "",
		"required: loopback addresses for pods, for this runner only, as 127.1.2.0/24")
	flag.StringVar(&serviceRange, "service-range", "",
		"loopback addresses that the API server gives to Services; those are served here")
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
	node, ctx := errgroup.WithContext(ctx)
	node.Go(func() error { return podrunner.Run(ctx, opts) })
	if serviceRange != "" {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return fmt.Errorf("build client: %w", err)
		}
		node.Go(func() error { return services.Run(ctx, client, serviceRange) })
	}
	return node.Wait()
}
