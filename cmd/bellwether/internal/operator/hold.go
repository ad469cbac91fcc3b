// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/phrase"
)

const releaseHoldLong = `Release a version, or settings of a version, that are held because they were rolled
back. If the operator follows the channel and the version is its head, or if spec.version
asks for it or has it in its range, it is rolled out again. The command removes one hold from spec.holds of the
ManagedOperator, which is shown by operator get.

If a version has several holds, name the rollout that was rolled back with --rollout. A
hold that a person made has no rollout: release it with --rollout "".`

func (a *app) operatorReleaseHoldCommand() *cobra.Command {
	var rollout string
	c := &cobra.Command{
		Use: "release-hold OPERATOR VERSION", Short: "Allow a version or settings again that were rolled back",
		Long: releaseHoldLong,
		Example: "  bellwether operator release-hold echo 1.2.0\n" +
			"  bellwether operator release-hold echo 1.2.0 --rollout echo-7",
		Args: command.ExactArgs("the operator's name", "the version"),

		ValidArgsFunction: a.CompleteFirst(command.OperatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.Hub()
			if err != nil {
				return err
			}
			wanted := heldBy{version: args[1], rollout: rollout, anyRollout: !c.Flags().Changed("rollout")}
			return a.releaseHold(c.Context(), h, args[0], wanted)
		},
	}
	c.Flags().StringVar(&rollout, "rollout", "", "The rollout that was rolled back, where a version has several holds.")
	return c
}

// heldBy selects the holds of a version, those of one rollout only unless it may be any.
type heldBy struct {
	version, rollout string
	anyRollout       bool
}

func (w heldBy) selects(h v1alpha1.VersionHold) bool {
	return h.Version == w.version && (w.anyRollout || h.Rollout == w.rollout)
}

func (a *app) releaseHold(ctx context.Context, h *hub.Client, name string, wanted heldBy) error {
	o, err := h.Operator(ctx, name)
	if err != nil {
		return err
	}
	var released v1alpha1.VersionHold
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return fmt.Errorf("get operator: %w", err)
		}
		before := o.DeepCopy()
		if released, err = removeHold(o, wanted); err != nil {
			return err
		}
		return h.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return fmt.Errorf("release %s of operator %s: %w", wanted.version, o.Name, err)
	}
	a.Say("Operator %s: the hold of %s is released.\n", o.Name, released.Subject())
	for _, h := range o.Spec.Holds {
		if h.Version == wanted.version {
			a.Say("Operator %s: %s%s.\n", o.Name, h, brought(h))
		}
	}
	return nil
}

// removeHold removes the one hold that is wanted, and returns it.
func removeHold(o *v1alpha1.ManagedOperator, wanted heldBy) (v1alpha1.VersionHold, error) {
	var held, found []string
	place := -1
	for i, h := range o.Spec.Holds {
		held = append(held, h.Version)
		if !wanted.selects(h) {
			continue
		}
		if place < 0 || !slices.Equal(h.Keys(), o.Spec.Holds[place].Keys()) {
			found = append(found, fmt.Sprintf("--rollout %q for %s", h.Rollout, h.Subject()))
		}
		place = i
	}
	switch {
	case !slices.Contains(held, wanted.version):
		return v1alpha1.VersionHold{}, exit.Hintf(hub.Offer(held, "no version is held"), "the version is not held")
	case place < 0:
		return v1alpha1.VersionHold{}, exit.Hintf(hub.Offer(rolloutsOf(o, wanted.version), ""),
			"no hold of this version was made by the rollback of %s", cmp.Or(wanted.rollout, "no rollout"))
	case len(found) > 1:
		return v1alpha1.VersionHold{}, exit.Hintf(hub.Offer(found, ""), "the version has several holds")
	}
	h := o.Spec.Holds[place]
	o.Spec.Holds = slices.Delete(o.Spec.Holds, place, place+1)
	return h, nil
}

func rolloutsOf(o *v1alpha1.ManagedOperator, version string) []string {
	var names []string
	for _, h := range o.Spec.Holds {
		if h.Version == version {
			names = append(names, fmt.Sprintf("--rollout %q", h.Rollout))
		}
	}
	return names
}

// brought says which rollout had brought what is held.
func brought(h v1alpha1.VersionHold) string {
	if h.IsByPerson() {
		return ", by a person"
	}
	return ", brought by " + h.Rollout
}

// heldText is a hold in the details of an operator.
func heldText(h v1alpha1.VersionHold) string {
	text := h.Subject() + brought(h)
	if len(h.Changes) > 0 {
		text += ": " + strings.Join(h.Changes, "; ")
	}
	return phrase.OneLine(text)
}
