// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo shows Bellwether's main job on a fleet of real clusters on this
// machine. It leaves nothing running.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/testbed/demo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := demo.Options{Out: os.Stdout}
	c := &cobra.Command{
		Use:           "demo",
		Short:         "Install an operator on three clusters and roll its next version out in waves",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(c *cobra.Command, _ []string) error { return demo.Run(c.Context(), o) },
	}
	c.Flags().BoolVar(&o.Keep, "keep", false, "leave the fleet up until Ctrl-C and print the kubeconfigs")
	c.Flags().BoolVar(&o.Brownfield, "brownfield", false,
		"have one of the clusters run the operator already, installed by an ordinary Subscription, and take it over")
	c.Flags().BoolVar(&o.Images, "images", false,
		"make container images of hub and agent, push them to a registry, and install the chart from there")
	c.Flags().StringVar(&o.Name, "name", fmt.Sprintf("demo-%d", os.Getpid()), "name of the fleet on this machine")
	if err := c.ExecuteContext(ctx); err != nil {
		if ctx.Err() != nil {
			fmt.Fprintln(os.Stderr, "demo: interrupted; everything was stopped")
			os.Exit(130) //nolint:gocritic // stop only restores the signals
		}
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}
