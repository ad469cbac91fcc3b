// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/fleet"
)

const fleetRevokeLong = `Revoke an agent's access to the hub, for example because its credentials were stolen.

The command deletes the agent's ServiceAccount on the hub, which ends all of its
tokens. API servers remember a valid token for some seconds. The hub creates a new
ServiceAccount, which accepts none of the old tokens, only 30 seconds later: until
then there is nothing that the agent could request a new token of.

The operators on the cluster stay as they are. The tokens cannot be restored: join the
cluster again with fleet join, for which you need its kubeconfig. The command asks for
a confirmation; without a terminal it needs --yes. You need the ClusterRole
bellwether-join.`

func (a *app) newRevokeCommand() *cobra.Command {
	var confirmation command.Confirmation
	c := &cobra.Command{
		Use: "revoke NAME", Short: "Revoke an agent's access to the hub", Long: fleetRevokeLong,
		Args: command.OneArg("the cluster's name"), ValidArgsFunction: a.CompleteFirst(command.ListClusterNames),
		Example: "  bellwether fleet revoke prod-1",
		RunE: func(c *cobra.Command, args []string) error {
			return a.revoke(c.Context(), args[0], confirmation)
		},
	}
	confirmation.Add(c)
	return c
}

// revoke deletes the ServiceAccount of a cluster's agent on the hub after a confirmation.
func (a *app) revoke(ctx context.Context, name string, confirmation command.Confirmation) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	if _, err := h.Cluster(ctx, name); err != nil {
		return err
	}
	account := fleet.NewAgentAccount(name)
	if err := a.Require(ctx, h, "revoke the access of cluster "+name, command.Permission{
		Verb: "delete", Resource: "serviceaccounts", Namespace: account.Namespace, Name: account.Name,
		Role: "bellwether-join",
	}); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(account)
	switch err := h.Get(ctx, key, account); {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("cluster %s has no access to the hub: there is no ServiceAccount %s", name, key)
	case err != nil:
		return fmt.Errorf("look up the access of cluster %s: %w", name, err)
	}
	if err := a.Confirm(confirmation, fmt.Sprintf("This ends all tokens of the agent of cluster %s, and cannot be "+
		"taken back: nothing is changed on the cluster or reported from it until it is joined again, for which its "+
		"kubeconfig is needed. Operators stay as they are.\n", name)); err != nil {
		return err
	}
	if err := h.Delete(ctx, account); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("revoke the access of cluster %s: %w", name, err)
	}
	a.Step("revoked the access of cluster %s: all tokens of its agent have ended", name)
	a.Say("The operators on the cluster stay as they are. To let the agent connect again, run `%s fleet join %s "+
		"--cluster-kubeconfig FILE`; it waits for up to 30 seconds after the revocation.\n", a.Self, name)
	return nil
}
