// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/phrase"
)

const confirmRemovalLong = `Agree to the removal of an operator from clusters.

Where an operator is to be uninstalled from more clusters at once than spec.removal.confirmAbove
of the ManagedOperator (5 unless set), nothing is uninstalled before somebody agrees. The number
of clusters is given as a flag, so that nobody agrees to more than they know of: operator get
shows it. A confirmation is for exactly the clusters that wait for it. The clusters are then
taken wave by wave, as in a rollout.`

func (a *app) confirmRemovalCommand() *cobra.Command {
	var clusters int32
	c := &cobra.Command{
		Use: "confirm-removal NAME --clusters N", Short: "Agree to the removal of an operator from many clusters",
		Long:    confirmRemovalLong,
		Example: "  bellwether operator confirm-removal echo --clusters 40",
		Args:    command.OneArg("the operator's name"), ValidArgsFunction: a.CompleteFirst(command.OperatorNames),
		RunE: func(c *cobra.Command, args []string) error { return a.confirmRemoval(c.Context(), args[0], clusters) },
	}
	c.Flags().Int32Var(&clusters, "clusters", 0, "The number `N` of clusters that it is to be removed from. Required.")
	command.Required(c, "clusters")
	return c
}

func (a *app) confirmRemoval(ctx context.Context, name string, clusters int32) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	operator, err := h.Operator(ctx, name)
	if err != nil {
		return err
	}
	asked := operator.Status.Removal
	switch {
	case asked == nil || asked.Request == "":
		return fmt.Errorf("no removal of operator %s waits for a confirmation", name)
	case asked.Unconfirmed != clusters:
		return exit.Hintf("look at the clusters with: bellwether operator get "+name,
			"operator %s is to be removed from %s, not from %d", name, phrase.Count(asked.Unconfirmed, "cluster"),
			clusters)
	}
	before := operator.DeepCopy()
	if operator.Spec.Removal == nil {
		operator.Spec.Removal = &v1alpha1.OperatorRemoval{}
	}
	operator.Spec.Removal.Confirm = asked.Request
	if err := h.Patch(ctx, operator, client.MergeFrom(before), hub.FieldOwner); err != nil {
		return fmt.Errorf("confirm the removal of operator %s: %w", name, err)
	}
	a.Step("operator %s will be removed from %s", name, phrase.Count(clusters, "cluster"))
	return nil
}
