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
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

const fleetRevokeLong = `Revoke an agent's access to the hub, for example because its credentials were stolen.

The command deletes the agent's ServiceAccount on the hub, which ends all of its
tokens. API servers remember a valid token for some seconds. The hub creates a new
ServiceAccount, which accepts none of the old tokens.

The operators on the cluster stay as they are. Join the cluster again with
fleet join.`

func (a *app) fleetRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", Short: "Revoke an agent's access to the hub", Long: fleetRevokeLong,
		Args: command.OneArg("the cluster's name"), ValidArgsFunction: a.CompleteFirst(command.ClusterNames),
		Example: "  bellwether fleet revoke prod-1",
		RunE:    func(c *cobra.Command, args []string) error { return a.revoke(c.Context(), args[0]) },
	}
}

func (a *app) revoke(ctx context.Context, name string) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	if _, err := h.Cluster(ctx, name); err != nil {
		return err
	}
	account := agentAccount(name)
	switch err := h.Delete(ctx, account); {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("cluster %s has no access to the hub: there is no ServiceAccount %s", name,
			client.ObjectKeyFromObject(account))
	case apierrors.IsForbidden(err):
		return exit.Hint(fmt.Errorf("revoke the access of cluster %s: %w", name, err),
			"the ClusterRole bellwether-join of the hub's chart has the permission")
	case err != nil:
		return fmt.Errorf("revoke the access of cluster %s: %w", name, err)
	}
	a.Step("revoked the access of cluster %s: all tokens of its agent have ended", name)
	a.Say("The operators on the cluster stay as they are. To let the agent connect again, run `%s fleet join %s "+
		"--cluster-kubeconfig FILE`.\n", a.Self, name)
	return nil
}
