// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/helm"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/fleet"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

const fleetRemoveLong = `Remove a cluster, or all clusters, from the fleet and wait until they are removed.

The offboarding policy of the cluster decides what happens to its operators: with
Orphan they stay installed, with Uninstall they are removed (their CRDs and custom
resources stay), and with Restore they stay installed, and those that were adopted get
their Subscription back as it was before. Nothing is changed on a cluster that is paused.
With --cluster-kubeconfig the agent is uninstalled last.

A removal cannot be taken back. The command says what is lost and asks for a
confirmation; without a terminal it needs --yes. You need the ClusterRole
bellwether-remove.

A cluster that does not answer is removed without its agent when its offboarding
timeout is over, 24 hours after the deletion unless you set another one. Its operators
then stay installed. The hub lists them in a ConfigMap, which this command prints.
Cancel the command at any time: the hub goes on with the removal.

--all removes every cluster. --dry-run shows what happens to each; the removal itself must be
confirmed with --clusters, the number of clusters, as well. With --cluster-kubeconfigs the agents are
uninstalled too.`

// removeOptions are the flags of fleet remove.
type removeOptions struct {
	name string
	allOptions
	offboarding string
	// offboardingTimeout is nil if the flag is not set.
	offboardingTimeout *time.Duration
	namespace          string
	target             hub.ClusterFlags
	timeout            time.Duration
	confirmation       command.Confirmation
}

const flagOffboardingTimeout = "offboarding-timeout"

func (a *app) newRemoveCommand() *cobra.Command {
	var o removeOptions
	var offboardingTimeout time.Duration
	c := &cobra.Command{
		Use: "remove [NAME]", Aliases: []string{"rm"}, Short: "Remove a cluster from the fleet", Long: fleetRemoveLong,
		Args: func(c *cobra.Command, args []string) error {
			if o.all {
				return o.checkAll(args, o.target.IsSet())
			}
			if flag := o.findAllOnlyFlag(); flag != "" {
				return exit.Hintf("set --all too, and name no cluster", "--%s has no effect without --all", flag)
			}
			return command.OneArg("the cluster's name")(c, args)
		},
		ValidArgsFunction: a.CompleteFirst(command.ListClusterNames),
		Example: "  bellwether fleet remove prod-1 --offboarding Uninstall --cluster-kubeconfig prod-1.kubeconfig\n" +
			"  bellwether fleet remove lost-1 --offboarding-timeout 0s\n" +
			"  bellwether fleet remove --all --dry-run\n" +
			"  bellwether fleet remove --all --clusters 12 --yes --cluster-kubeconfigs ./kubeconfigs",
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed(flagOffboardingTimeout) {
				o.offboardingTimeout = &offboardingTimeout
			}
			if offboardingTimeout < 0 {
				return exit.Hintf("0s removes the cluster without waiting for its agent",
					"invalid value %s of --%s", offboardingTimeout, flagOffboardingTimeout)
			}
			if o.all {
				return a.removeAll(c.Context(), &o)
			}
			o.name = args[0]
			return a.remove(c.Context(), &o)
		},
	}
	o.addFlags(c)
	o.confirmation.Add(c)
	policies := []string{string(v1alpha1.RemovalOrphan), string(v1alpha1.RemovalUninstall),
		string(v1alpha1.RemovalRestore)}
	c.Flags().StringVar(&o.offboarding, "offboarding", "",
		"The offboarding policy: Orphan, Uninstall or Restore. Default: spec.offboarding of the FleetCluster.")
	_ = c.RegisterFlagCompletionFunc("offboarding",
		cobra.FixedCompletions(policies, cobra.ShellCompDirectiveNoFileComp))
	c.Flags().DurationVar(&offboardingTimeout, flagOffboardingTimeout, 0,
		"How long the hub waits for the agent, since the "+
			"removal began. 0s: the cluster is removed at once. Default: spec.offboardingTimeout of the FleetCluster.")
	command.AddTimeout(c, &o.timeout, 10*time.Minute, "The timeout of the wait of this command.")
	helm.AddSystemNamespace(c, &o.namespace)
	o.target.Add(c)
	return c
}

// remove removes a cluster from the fleet after a confirmation, and then uninstalls its agent.
func (a *app) remove(ctx context.Context, o *removeOptions) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	cluster := &v1alpha1.FleetCluster{}
	err = h.Get(ctx, client.ObjectKey{Name: o.name}, cluster)
	switch {
	case apierrors.IsNotFound(err) && o.target.IsSet(): // an earlier run might not have uninstalled the agent
		a.Step("cluster %s is not in the fleet", o.name)
		return a.uninstallAgent(ctx, o)
	case apierrors.IsNotFound(err):
		_, err = h.Cluster(ctx, o.name) // the same error, but with the names of existing clusters
		return err
	case err != nil:
		return fmt.Errorf("get FleetCluster %s: %w", o.name, err)
	}
	if err := a.confirmRemoval(ctx, h, cluster, o); err != nil {
		return err
	}
	if err := a.offboardClusters(ctx, h, []v1alpha1.FleetCluster{*cluster}, o); err != nil {
		return err
	}
	return a.uninstallAgent(ctx, o)
}

// confirmRemoval checks that the user has the right to remove a cluster, and then requests a confirmation.
func (a *app) confirmRemoval(ctx context.Context, h *hub.Client, cluster *v1alpha1.FleetCluster,
	o *removeOptions) error {
	err := a.Require(ctx, h, fmt.Sprintf("remove cluster %s from the fleet", cluster.Name),
		command.NewRemovePermission("fleetclusters", "", cluster.Name))
	if err != nil {
		return err
	}
	removals, err := readRemovals(ctx, h, []v1alpha1.FleetCluster{*cluster}, o)
	if err != nil {
		return err
	}
	return a.Confirm(o.confirmation, describeRemovals(removals))
}

// offboardClusters deletes the FleetClusters, waits until they are removed, and prints the progress.
func (a *app) offboardClusters(ctx context.Context, h *hub.Client, clusters []v1alpha1.FleetCluster,
	o *removeOptions) error {
	for i := range clusters {
		if err := beginOffboarding(ctx, h, &clusters[i], o); err != nil {
			return err
		}
	}
	leaving, printed := map[types.UID]*v1alpha1.FleetCluster{}, map[string]string{}
	for i := range clusters {
		leaving[clusters[i].UID] = &clusters[i]
	}
	err := hub.Poll(ctx, o.timeout, func() (bool, error) {
		existing, err := a.printProgress(ctx, h, leaving, printed)
		if err != nil {
			return false, err
		}
		return len(leaving) == 0, a.dropRemoved(ctx, h, leaving, existing)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		var names []string
		for _, cluster := range leaving {
			names = append(names, cluster.Name)
		}
		slices.Sort(names)
		return exit.Hintf("the hub goes on with the removal. Start the agent of the cluster, use --offboarding Orphan "+
			"to keep its operators, or --offboarding-timeout 0s to remove the cluster without its agent",
			"not removed within %s: cluster %s", o.timeout, phrase.First(names, 10))
	}
	return err
}

// printProgress prints why the deletion of each cluster in leaving is not complete, unless that message is already in
// printed. It returns the UIDs of all clusters of the fleet.
func (a *app) printProgress(ctx context.Context, h *hub.Client, leaving map[types.UID]*v1alpha1.FleetCluster,
	printed map[string]string) (map[types.UID]bool, error) {
	list := &v1alpha1.FleetClusterList{}
	if err := h.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	existing := map[types.UID]bool{}
	for i := range list.Items {
		cluster := &list.Items[i]
		existing[cluster.UID] = true
		if leaving[cluster.UID] == nil {
			continue
		}
		if message := fleet.ReadDeletionMessage(cluster); message != "" && message != printed[cluster.Name] {
			a.Say("… %s: %s\n", cluster.Name, message)
			printed[cluster.Name] = message
		}
	}
	return existing, nil
}

// setOffboarding sets the offboarding policy and timeout from the flags that are set.
func (o *removeOptions) setOffboarding(cluster *v1alpha1.FleetCluster) {
	if o.offboarding != "" {
		cluster.Spec.Offboarding = v1alpha1.RemovalPolicy(o.offboarding)
	}
	if o.offboardingTimeout != nil {
		cluster.Spec.OffboardingTimeout = &metav1.Duration{Duration: *o.offboardingTimeout}
	}
}

// beginOffboarding sets the offboarding policy and timeout from the flags, and deletes the FleetCluster.
func beginOffboarding(ctx context.Context, h *hub.Client, cluster *v1alpha1.FleetCluster, o *removeOptions) error {
	before := cluster.DeepCopy()
	o.setOffboarding(cluster)
	if !equality.Semantic.DeepEqual(before.Spec, cluster.Spec) {
		if err := h.Patch(ctx, cluster, client.MergeFrom(before), hub.FieldOwner); err != nil {
			return fmt.Errorf("set the offboarding of cluster %s: %w", cluster.Name, err)
		}
	}
	// The UID protects a new cluster of the same name that a user has added in the meantime.
	if err := h.Delete(ctx, cluster, client.Preconditions{UID: &cluster.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete FleetCluster %s: %w", cluster.Name, err)
	}
	return nil
}

// dropRemoved deletes from leaving the clusters that are not in existing, and prints that they are removed.
func (a *app) dropRemoved(ctx context.Context, h *hub.Client, leaving map[types.UID]*v1alpha1.FleetCluster,
	existing map[types.UID]bool) error {
	for uid, cluster := range leaving {
		if existing[uid] {
			continue
		}
		delete(leaving, uid)
		a.Step("cluster %s is removed from the fleet", cluster.Name)
		if err := a.printRemainingOperators(ctx, h, cluster); err != nil {
			return err
		}
	}
	return nil
}

// printRemainingOperators prints the operators that stay on a cluster that the hub removed without its agent. The hub
// stores them in a ConfigMap. If the user is not permitted to list ConfigMaps, it prints a warning.
func (a *app) printRemainingOperators(ctx context.Context, h *hub.Client, cluster *v1alpha1.FleetCluster) error {
	var records corev1.ConfigMapList
	err := h.List(ctx, &records, client.MatchingLabels{v1alpha1.LabelLeftBehind: cluster.Name})
	if apierrors.IsForbidden(err) {
		a.Warn("You may not list ConfigMaps of the hub. If operators were left on the cluster, one with the label "+
			"%s=%s lists them.\n", v1alpha1.LabelLeftBehind, cluster.Name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for what was left on the cluster: %w", err)
	}
	for i := range records.Items {
		record := &records.Items[i]
		if record.Labels[v1alpha1.LabelClusterUID] != string(cluster.UID) {
			continue // an earlier cluster of the same name
		}
		a.Say("Operators stay on the cluster, because %s. Last reported (%s):\n  %s\nThe list is kept in ConfigMap "+
			"%s/%s; delete it when you have dealt with them.\n", record.Data["why"], record.Data["lastReport"],
			strings.ReplaceAll(record.Data["operators"], "\n", "\n  "), record.Namespace, record.Name)
	}
	return nil
}

// uninstallAgent removes the agent and its credentials from the cluster. Without a kubeconfig for the cluster it
// prints how to uninstall the agent.
func (a *app) uninstallAgent(ctx context.Context, o *removeOptions) error {
	if !o.target.IsSet() {
		a.Say("The agent is still installed on the cluster. Uninstall it with helm -n %s uninstall %s, or run this "+
			"command with --cluster-kubeconfig.\n", o.namespace, agentRelease)
		return nil
	}
	r := helm.Release{Name: agentRelease, Namespace: o.namespace, Cluster: o.target.Flags(o.namespace)}
	removed, err := r.Remove(o.timeout)
	if err != nil {
		return err
	}
	c, err := o.target.Connect()
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: hubKubeconfigSecret}}
	if err := client.IgnoreNotFound(c.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("delete the agent's credentials on the cluster: %w", err)
	}
	if removed {
		a.Step("uninstalled the agent")
	} else {
		a.Step("no agent is installed on the cluster")
	}
	return nil
}
