// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
)

const releaseHoldLong = `Release a version that is held because it was rolled back. If the operator follows the
channel and the version is its head, or if spec.version asks for it, it is rolled out
again. The command removes the version from spec.holds of the ManagedOperator.`

func (a *app) operatorReleaseHoldCommand() *cobra.Command {
	return &cobra.Command{
		Use: "release-hold OPERATOR VERSION", Short: "Allow a version again that was rolled back",
		Long:    releaseHoldLong,
		Example: "  bellwether operator release-hold echo 1.2.0",
		Args:    command.ExactArgs("the operator's name", "the version"),

		ValidArgsFunction: a.CompleteFirst(command.OperatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.Hub()
			if err != nil {
				return err
			}
			return a.releaseHold(c.Context(), h, args[0], args[1])
		},
	}
}

func (a *app) releaseHold(ctx context.Context, h *hub.Client, name, version string) error {
	o, err := h.Operator(ctx, name)
	if err != nil {
		return err
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return fmt.Errorf("get operator: %w", err)
		}
		before := o.DeepCopy()
		if err := removeHold(o, version); err != nil {
			return err
		}
		return h.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return fmt.Errorf("release %s of operator %s: %w", version, o.Name, err)
	}
	a.Say("Operator %s: %s is no longer held.\n", o.Name, version)
	return nil
}

// removeHold removes the holds of a version, with whatever settings.
func removeHold(o *v1alpha1.ManagedOperator, version string) error {
	var held []string
	for _, h := range o.Spec.Holds {
		held = append(held, h.Version)
	}
	if !slices.Contains(held, version) {
		return exit.Hintf(hub.Offer(held, "no version is held"), "the version is not held")
	}
	o.Spec.Holds = slices.DeleteFunc(o.Spec.Holds, func(h v1alpha1.VersionHold) bool { return h.Version == version })
	return nil
}
