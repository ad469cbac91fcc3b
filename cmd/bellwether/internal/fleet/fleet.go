// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet holds the commands for the clusters of the fleet.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain"
	"github.com/bellwether-dev/bellwether/explain/marks"
)

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command with everything below it.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	return command.Parent("fleet", "Manage the clusters of the fleet", []string{"cluster", "clusters"},
		a.fleetListCommand(), a.fleetGetCommand(), a.fleetJoinCommand(), a.fleetJoinDiscoveredCommand(),
		a.fleetRevokeCommand(), a.fleetFreezeCommand(), a.fleetUnfreezeCommand(), a.fleetRemoveCommand(),
		a.fleetCompatibilityCommand(), a.fleetScanCommand())
}

func (a *app) fleetListCommand() *cobra.Command {
	var out command.Output
	var selector string
	var states command.States
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the clusters of the fleet", Args: command.NoArgs,
		Example: "  bellwether fleet list -o wide\n  bellwether fleet list -l env=prod\n" +
			"  bellwether fleet list --state stale,drifted",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := errors.Join(out.Check(), states.Check()); err != nil {
				return err
			}
			return a.listClusters(c.Context(), &out, selector, &states)
		},
	}
	states.Add(c, "clusters", marks.OfClusters())
	c.Flags().StringVarP(&selector, "selector", "l", "",
		"List only the clusters with these labels, for example env=prod,region!=eu.")
	out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML, command.OutputName)
	return c
}

func (a *app) listClusters(ctx context.Context, out *command.Output, selector string, states *command.States) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	parsed, err := command.ParseSelector(selector)
	if err != nil {
		return err
	}
	list := &v1alpha1.FleetClusterList{}
	if err := h.List(ctx, list, client.MatchingLabelsSelector{Selector: parsed}); err != nil {
		return fmt.Errorf("list clusters: %w", err)
	}
	a.TellOfFreezes(ctx, h)
	known, err := a.Marks(ctx, h, list.Items, states, !out.Table())
	if err != nil {
		return err
	}
	list.Items = slices.DeleteFunc(list.Items, func(c v1alpha1.FleetCluster) bool {
		return !known.Cluster(&c).HasAny(states.Wanted)
	})
	table := Clusters(list.Items, known, term.Listing{Now: a.Now(), Wide: out.Wide()})
	if len(states.Wanted) > 0 {
		return a.List(out, list, table, "No clusters in these states.")
	}
	return a.List(out, list, table, "No clusters found. Add one with `"+a.Self+" fleet join`.")
}

func (a *app) fleetGetCommand() *cobra.Command {
	var out command.Output
	c := &cobra.Command{
		Use: "get NAME", Short: "Show a cluster and its operators", Args: command.OneArg("the cluster's name"),
		Example:           "  bellwether fleet get prod-1",
		ValidArgsFunction: a.CompleteFirst(command.ClusterNames),
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			return a.getCluster(c.Context(), &out, args[0])
		},
	}
	out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML, command.OutputName)
	return c
}

func (a *app) getCluster(ctx context.Context, out *command.Output, name string) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	cluster, err := h.Cluster(ctx, name)
	if err != nil {
		return err
	}
	installs := &v1alpha1.OperatorInstallList{}
	if err := h.List(ctx, installs, client.InNamespace(v1alpha1.ClusterNamespace(name))); err != nil {
		return fmt.Errorf("list installs: %w", err)
	}
	in := explain.ClusterInput{Now: a.Now(), Cluster: cluster, Installs: installs.Items, Program: a.Self}
	if len(explain.Refusals(cluster)) > 0 { // only then it matters which changes are pending
		list := &v1alpha1.OperatorRolloutList{}
		if err := h.List(ctx, list); err != nil && !apierrors.IsForbidden(err) {
			return fmt.Errorf("list rollouts: %w", err)
		}
		in.Rollouts = list.Items
	}
	a.TellOfFreezes(ctx, h)
	e := explain.Cluster(in)
	return a.Explained(out, cluster, e, func(s term.Style) string {
		return Cluster(cluster, installs.Items, a.Now(), s)
	})
}
