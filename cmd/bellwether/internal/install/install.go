// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install has the commands that install parts of Bellwether.
package install

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/helm"
)

const hubRelease = "bellwether"

const installHubLong = `Install or upgrade the hub on the cluster of your current context, with the built-in Helm chart:
first the CRDs, then the hub.

You can run it again at any time. Existing chart values are kept. CRDs that were installed in another way become part
of the release, unless you set crds.enabled=false.`

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command install with its subcommands.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	return command.NewParent("install", "Install Bellwether", nil, a.newHubCommand())
}

func (a *app) newHubCommand() *cobra.Command {
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
	command.AddTimeout(c, &timeout, 5*time.Minute, "The timeout of the wait.")
	return c
}

// installHub installs or upgrades the hub, and waits until its CRDs are served and, if
// wait is set, until the hub runs.
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
	r := helm.Release{Name: hubRelease, Namespace: namespace, Cluster: a.Flags}
	crds, err := takeCRDs(ctx, c, r, given)
	if err != nil {
		return err
	}
	values := chartutil.MergeTables(given, map[string]any{"hub": map[string]any{"enabled": true}})
	message, applyTimeout := "hub %s runs in namespace %s", timeout
	if !wait {
		message, applyTimeout = "hub %s is installed in namespace %s", 0
	}
	if err := r.Apply(ctx, ch, values, applyTimeout); err != nil {
		return exit.Hint(err, fmt.Sprintf("check the hub with kubectl -n %s get pods, then run this again",
			r.Namespace))
	}
	if err := helm.WaitForCRDs(ctx, c, timeout, crds...); err != nil {
		return err
	}
	if len(crds) > 0 {
		a.Step("installed CRDs %s", ch.AppVersion())
	}
	a.Step(message, ch.AppVersion(), r.Namespace)
	a.Say("Add a cluster with `%s fleet join NAME --cluster-kubeconfig FILE`.\n", a.Self)
	return nil
}

// takeCRDs makes the existing CRDs part of the release, and returns the names of all CRDs that the release
// installs; nil if it installs none.
func takeCRDs(ctx context.Context, c client.Client, r helm.Release, given map[string]any) ([]string, error) {
	included, err := r.InstallsCRDs(given)
	if err != nil || !included {
		return nil, err
	}
	definitions, err := charts.Definitions()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, crd := range definitions {
		names = append(names, crd.GetName())
	}
	return names, r.TakeCRDs(ctx, c, names...)
}
