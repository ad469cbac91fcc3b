// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/view"
)

func (a *app) fleetCommand() *cobra.Command {
	return parent("fleet", "The clusters of the fleet", []string{"cluster", "clusters"},
		a.fleetListCommand(), a.fleetGetCommand(), a.fleetJoinCommand(), a.fleetRemoveCommand())
}

func (a *app) fleetListCommand() *cobra.Command {
	var out output
	var selector string
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the clusters of the fleet", Args: cobra.NoArgs,
		Example: "  bellwether fleet list -o wide\n  bellwether fleet list -l env=prod",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			return a.listClusters(c.Context(), &out, selector)
		},
	}
	c.Flags().StringVarP(&selector, "selector", "l", "", "Only clusters with these labels, as in env=prod,region!=eu.")
	out.add(c, outputWide, outputJSON, outputYAML, outputName)
	return c
}

func (a *app) listClusters(ctx context.Context, out *output, selector string) error {
	h, err := a.hub()
	if err != nil {
		return err
	}
	parsed, err := parseSelector(selector)
	if err != nil {
		return err
	}
	list := &v1alpha1.FleetClusterList{}
	if err := h.List(ctx, list, client.MatchingLabelsSelector{Selector: parsed}); err != nil {
		return fmt.Errorf("list clusters: %w", err)
	}
	table := view.Clusters(list.Items, view.Listing{Now: a.now(), Wide: out.wide()})
	return a.list(out, list, table, "The fleet has no such clusters; add one with `"+a.self+" fleet join`.")
}

func (a *app) fleetGetCommand() *cobra.Command {
	var out output
	c := &cobra.Command{
		Use: "get NAME", Short: "Show a cluster and the operators on it", Args: oneArg("the cluster's name"),
		ValidArgsFunction: a.completeFirst(clusterNames),
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			return a.getCluster(c.Context(), &out, args[0])
		},
	}
	out.add(c, outputJSON, outputYAML, outputName)
	return c
}

func (a *app) getCluster(ctx context.Context, out *output, name string) error {
	h, err := a.hub()
	if err != nil {
		return err
	}
	cluster, err := h.cluster(ctx, name)
	if err != nil {
		return err
	}
	if !out.table() {
		return out.object(a.streams.Out, cluster)
	}
	installs := &v1alpha1.OperatorInstallList{}
	if err := h.List(ctx, installs, client.InNamespace(v1alpha1.ClusterNamespace(name))); err != nil {
		return fmt.Errorf("list installs: %w", err)
	}
	a.say("%s", view.Cluster(cluster, installs.Items, a.now(), a.style()))
	return nil
}
