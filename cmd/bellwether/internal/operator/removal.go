// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

const confirmRemovalLong = `Agree to the removal of an operator from clusters.

Where an operator is to be uninstalled from more clusters at once than spec.removal.confirmAbove
of the ManagedOperator (5 unless set), nothing is uninstalled before somebody agrees. The number
of clusters is given as a flag, so that nobody agrees to more than they know of: operator get
shows it. A confirmation is for exactly the clusters that wait for it. The clusters are then
taken wave by wave, as in a rollout. Nothing is uninstalled from a cluster that is paused.

What is uninstalled comes back only with another rollout. The command says what is lost and
asks for a confirmation; without a terminal it needs --yes. You need the ClusterRole
bellwether-remove.`

func (a *app) newConfirmRemovalCommand() *cobra.Command {
	var clusters int32
	var confirmation command.Confirmation
	c := &cobra.Command{
		Use: "confirm-removal NAME --clusters N", Short: "Agree to the removal of an operator from many clusters",
		Long:    confirmRemovalLong,
		Example: "  bellwether operator confirm-removal echo --clusters 40",
		Args:    command.OneArg("the operator's name"), ValidArgsFunction: a.CompleteFirst(command.ListOperatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			return a.confirmRemoval(c.Context(), args[0], clusters, confirmation)
		},
	}
	confirmation.Add(c)
	c.Flags().Int32Var(&clusters, "clusters", 0, "The number `N` of clusters that it is to be removed from. Required.")
	command.RequireFlags(c, "clusters")
	return c
}

// confirmRemoval confirms the uninstallation that waits in the operator's status.
// clusters must equal the number of clusters in it.
func (a *app) confirmRemoval(ctx context.Context, name string, clusters int32,
	confirmation command.Confirmation) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	operator, err := h.Operator(ctx, name)
	if err != nil {
		return err
	}
	removal := operator.Status.Removal
	switch {
	case removal == nil || removal.Request == "":
		return fmt.Errorf("no removal of operator %s waits for a confirmation", name)
	case removal.Unconfirmed != clusters:
		return exit.Hintf("look at the clusters with: bellwether operator get "+name,
			"operator %s is to be removed from %s, not from %d", name, phrase.Count(removal.Unconfirmed, "cluster"),
			clusters)
	}
	if err := a.Require(ctx, h, "agree to the removal of operator "+operator.Name,
		command.NewRemovePermission("managedoperators", operator.Namespace, operator.Name)); err != nil {
		return err
	}
	effects, err := describeRemoval(ctx, h, operator)
	if err != nil {
		return err
	}
	if err := a.Confirm(confirmation, effects); err != nil {
		return err
	}
	before := operator.DeepCopy()
	if operator.Spec.Removal == nil {
		operator.Spec.Removal = &v1alpha1.OperatorRemoval{}
	}
	operator.Spec.Removal.Confirm = removal.Request
	if err := h.Patch(ctx, operator, client.MergeFrom(before), hub.FieldOwner); err != nil {
		return fmt.Errorf("confirm the removal of operator %s: %w", name, err)
	}
	a.Step("operator %s will be removed from %s", name, phrase.Count(clusters, "cluster"))
	return nil
}

// describeRemoval returns the text of the confirmation. It names the clusters if their number is the number that the
// hub has reported; otherwise the clusters have changed since then.
func describeRemoval(ctx context.Context, h *hub.Client, o *v1alpha1.ManagedOperator) (string, error) {
	installs, err := hub.ListInstalls(ctx, h, client.ObjectKeyFromObject(o))
	if err != nil {
		return "", err
	}
	clusters, err := hub.ListClusters(ctx, h)
	if err != nil {
		return "", err
	}
	subject := phrase.Count(o.Status.Removal.Unconfirmed, "cluster")
	if names := listUnconfirmedClusters(o, clusters, installs); len(names) == int(o.Status.Removal.Unconfirmed) {
		subject += ": " + phrase.First(names, maxConfirmedNames)
	}
	return fmt.Sprintf("This uninstalls operator %s from %s.\nIts pods and permissions are deleted there, and nobody "+
		"acts on its custom resources any more; these and their definitions stay. It cannot be taken back: the "+
		"operator comes back only with another rollout.\n", o.Name, subject), nil
}

// maxConfirmedNames is the number of clusters that a confirmation names.
const maxConfirmedNames = 40

// listUnconfirmedClusters returns the clusters from which an operator is to be
// uninstalled without a confirmation yet, sorted.
func listUnconfirmedClusters(o *v1alpha1.ManagedOperator, clusters []v1alpha1.FleetCluster,
	installs []v1alpha1.OperatorInstall) []string {
	selector, err := metav1.LabelSelectorAsSelector(&o.Spec.ClusterSelector)
	if err != nil {
		return nil // the hub reports it in the operator's status
	}
	excluded := map[string]bool{}
	for i := range clusters {
		c := &clusters[i]
		staysSelected := o.DeletionTimestamp == nil && selector.Matches(labels.Set(c.Labels))
		// A cluster that leaves the fleet follows its own offboarding policy, which needs no confirmation here.
		excluded[c.Name] = c.DeletionTimestamp != nil || staysSelected
	}
	var out []string
	for i := range installs {
		install := &installs[i]
		// An install with the policy Uninstall is already confirmed.
		if !excluded[install.Spec.Cluster] && install.DeletionTimestamp == nil &&
			install.Spec.RemovalPolicy != v1alpha1.RemovalUninstall {
			out = append(out, install.Spec.Cluster)
		}
	}
	slices.Sort(out)
	return out
}
