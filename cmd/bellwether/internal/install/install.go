// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install holds the commands that install parts of Bellwether.
package install

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/helm"
)

const hubRelease = "bellwether"

const installHubLong = `Install or upgrade the hub on the cluster of your current context: first the CRDs,
then the hub with the built-in Helm chart.

You can run it again at any time. Existing chart values are kept.`

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command with everything below it.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	return command.Parent("install", "Install Bellwether", nil, a.installHubCommand())
}

func (a *app) installHubCommand() *cobra.Command {
	var v helm.ValueFlags
	var namespace string
	var wait bool
	var timeout time.Duration
	c := &cobra.Command{
		Use: "hub", Short: "Install or upgrade the hub on the current cluster", Long: installHubLong,
		Args:    command.NoArgs,
		Example: "  bellwether install hub --set hub.replicas=1",
		RunE: func(c *cobra.Command, _ []string) error {
			given, err := v.Merge()
			if err != nil {
				return err
			}
			return a.installHub(c.Context(), namespace, given, wait, timeout)
		},
	}
	v.Add(c)
	helm.AddSystemNamespace(c, &namespace)
	c.Flags().BoolVar(&wait, "wait", true, "Wait until the hub is running.")
	c.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "The timeout of the wait.")
	return c
}

func (a *app) installHub(ctx context.Context, namespace string, given map[string]any, wait bool,
	timeout time.Duration) error {
	ch, err := charts.Load()
	if err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	if err := helm.ApplyCRDs(ctx, c, ch, timeout); err != nil {
		return err
	}
	a.Step("installed CRDs %s", ch.AppVersion())
	r := helm.Release{Name: hubRelease, Namespace: namespace, Cluster: a.Flags}
	values := chartutil.MergeTables(given, map[string]any{"hub": map[string]any{"enabled": true}})
	done := "hub %s runs in namespace %s"
	if !wait {
		done, timeout = "hub %s is installed in namespace %s", 0
	}
	if err := r.Apply(ctx, ch, values, timeout); err != nil {
		return exit.Hint(err, fmt.Sprintf("check the hub with kubectl -n %s get pods, then run this again",
			r.Namespace))
	}
	a.Step(done, ch.AppVersion(), r.Namespace)
	a.Say("Add a cluster with `%s fleet join NAME --cluster-kubeconfig FILE`.\n", a.Self)
	return nil
}
