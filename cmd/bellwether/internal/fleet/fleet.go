// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet provides the commands for the clusters of the fleet: `bellwether fleet`.
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
)

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command fleet with its subcommands.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	return command.NewParent("fleet", "Manage the clusters of the fleet", []string{"cluster", "clusters"},
		a.newListCommand(), a.newGetCommand(), a.newJoinCommand(), a.newJoinDiscoveredCommand(),
		a.newRevokeCommand(), a.newFreezeCommand(), a.newUnfreezeCommand(), a.newRemoveCommand(),
		a.newCompatibilityCommand(), a.newScanCommand())
}

func (a *app) newListCommand() *cobra.Command {
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
	states.Add(c, "clusters", explain.ClusterMarks())
	c.Flags().StringVarP(&selector, "selector", "l", "",
		"List only the clusters with these labels, for example env=prod,region!=eu.")
	out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML, command.OutputName)
	return c
}

// listClusters prints the clusters with the labels and in one of the states.
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
	a.WarnOfFreezes(ctx, h)
	fleetMarks, err := a.ReadMarks(ctx, h, list.Items, states, !out.Table())
	if err != nil {
		return err
	}
	list.Items = slices.DeleteFunc(list.Items, func(c v1alpha1.FleetCluster) bool {
		return !fleetMarks.Cluster(&c).HasAny(states.Wanted)
	})
	table := BuildClusterTable(list.Items, fleetMarks, term.Listing{Now: a.Now(), Wide: out.Wide()})
	if len(states.Wanted) > 0 {
		return a.List(out, list, table, "No clusters in these states.")
	}
	return a.List(out, list, table, "No clusters found. Add one with `"+a.Self+" fleet join`.")
}

func (a *app) newGetCommand() *cobra.Command {
	var out command.Output
	c := &cobra.Command{
		Use: "get NAME", Short: "Show a cluster and its operators", Args: command.OneArg("the cluster's name"),
		Example:           "  bellwether fleet get prod-1",
		ValidArgsFunction: a.CompleteFirst(command.ListClusterNames),
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

// getCluster prints a cluster, the operators on it, and an explanation of its state.
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
	input := explain.ClusterInput{Now: a.Now(), Cluster: cluster, Installs: installs.Items, Program: a.Self}
	if len(explain.ListRefusals(cluster)) > 0 { // pending rollouts matter only for a cluster that refuses changes
		list := &v1alpha1.OperatorRolloutList{}
		if err := h.List(ctx, list); err != nil && !apierrors.IsForbidden(err) {
			return fmt.Errorf("list rollouts: %w", err)
		}
		input.Rollouts = list.Items
	}
	a.WarnOfFreezes(ctx, h)
	explanation := explain.Cluster(input)
	return a.PrintExplained(out, cluster, explanation, func(s term.Style) string {
		return RenderCluster(cluster, installs.Items, a.Now(), s)
	})
}
