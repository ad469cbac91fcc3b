// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/fleet"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// allOptions are the flags of fleet remove --all.
type allOptions struct {
	all         bool
	dryRun      bool
	clusters    int
	kubeconfigs string
}

func (o *allOptions) addFlags(c *cobra.Command) {
	c.Flags().BoolVar(&o.all, "all", false, "Remove all clusters.")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false,
		"With --all: print what would happen to each cluster, and change nothing.")
	c.Flags().IntVar(&o.clusters, "clusters", 0,
		"With --all: the number of clusters that are removed, which confirms the removal.")
	c.Flags().StringVar(&o.kubeconfigs, "cluster-kubeconfigs", "",
		"With --all: the folder with a file NAME.kubeconfig for each cluster, to uninstall its agent.")
	_ = c.MarkFlagDirname("cluster-kubeconfigs")
}

// findAllOnlyFlag returns the name of a flag that is set and needs --all; empty if no such flag is set.
func (o *allOptions) findAllOnlyFlag() string {
	switch {
	case o.dryRun:
		return "dry-run"
	case o.clusters != 0:
		return "clusters"
	case o.kubeconfigs != "":
		return "cluster-kubeconfigs"
	}
	return ""
}

// checkAll returns an error for arguments that exclude --all.
func (o *allOptions) checkAll(args []string, oneCluster bool) error {
	switch {
	case len(args) > 0:
		return exit.Hintf("name a cluster or set --all", "unexpected argument %q with --all", args[0])
	case oneCluster:
		return exit.Hintf("use --cluster-kubeconfigs",
			"--all removes many clusters, and --cluster-kubeconfig is for one")
	}
	return nil
}

// kubeconfigPath returns the path of the kubeconfig for a cluster.
func (o *allOptions) kubeconfigPath(cluster string) string {
	return filepath.Join(o.kubeconfigs, cluster+".kubeconfig")
}

// checkKubeconfigs returns an error if a cluster lacks a kubeconfig, so
// that the removal fails before it changes anything.
func (o *allOptions) checkKubeconfigs(clusters []v1alpha1.FleetCluster) error {
	if o.kubeconfigs == "" {
		return nil
	}
	var missing []string
	for i := range clusters {
		if _, err := os.Stat(o.kubeconfigPath(clusters[i].Name)); err != nil {
			missing = append(missing, clusters[i].Name+".kubeconfig")
		}
	}
	if len(missing) > 0 {
		return exit.Hintf("add them, or remove these clusters by their names first", "%s lacks %s", o.kubeconfigs,
			phrase.First(missing, 10))
	}
	return nil
}

// removeAll removes all clusters from the fleet after a confirmation, and then uninstalls their agents.
func (a *app) removeAll(ctx context.Context, o *removeOptions) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	list := &v1alpha1.FleetClusterList{}
	if err := h.List(ctx, list); err != nil {
		return fmt.Errorf("list clusters: %w", err)
	}
	if len(list.Items) == 0 {
		a.Say("The fleet has no clusters.\n")
		return nil
	}
	if err := o.checkKubeconfigs(list.Items); err != nil {
		return err
	}
	count := phrase.Count(len(list.Items), "cluster")
	removals, err := readRemovals(ctx, h, list.Items, o)
	switch {
	case err != nil:
		return err
	case o.dryRun:
		a.printRemoval(removals)
		return nil
	case o.clusters != len(list.Items):
		return exit.Hintf(fmt.Sprintf("see what happens to them with --dry-run, and confirm with --clusters %d",
			len(list.Items)), "nothing was removed: the fleet has %s, and --clusters is %d", count, o.clusters)
	}
	if err := a.Require(ctx, h, "remove all clusters from the fleet",
		command.NewRemoveAllPermission("fleetclusters")); err != nil {
		return err
	}
	if err := a.Confirm(o.confirmation, describeRemovals(removals)); err != nil {
		return err
	}
	if err := a.offboardClusters(ctx, h, list.Items, o); err != nil {
		return err
	}
	a.Say("%s removed.\n", count)
	if o.kubeconfigs == "" {
		a.Say("The agents are still installed. Uninstall each with helm -n %s uninstall %s, or run "+
			"`%s fleet remove NAME --cluster-kubeconfig FILE`.\n", o.namespace, agentRelease, a.Self)
		return nil
	}
	return a.uninstallAgents(ctx, list.Items, o)
}

// uninstallAgents uninstalls the agents of all clusters. It continues after
// a failure and returns all failures at the end.
func (a *app) uninstallAgents(ctx context.Context, clusters []v1alpha1.FleetCluster, o *removeOptions) error {
	var failed []string
	for i := range clusters {
		options := *o
		options.name, options.target = clusters[i].Name, hub.NewClusterFlags(o.kubeconfigPath(clusters[i].Name))
		a.Say("%s:\n", options.name)
		if err := a.uninstallAgent(ctx, &options); err != nil {
			a.Say("✗ %s\n", phrase.OneLine(err.Error()))
			failed = append(failed, options.name)
		}
	}
	if len(failed) > 0 {
		return exit.Hintf("run `"+a.Self+" fleet remove NAME --cluster-kubeconfig FILE` for each",
			"the agents of %s were not uninstalled: %s",
			phrase.Part(len(failed), len(clusters), "cluster"), phrase.First(failed, 10))
	}
	return nil
}

// printRemoval prints the effects of each removal, for --dry-run.
func (a *app) printRemoval(removals []fleet.ClusterRemoval) {
	for _, r := range removals {
		a.Say("%s\n", r)
	}
	a.Say("%s would be removed. Nothing was changed.\n", phrase.Count(len(removals), "cluster"))
}
