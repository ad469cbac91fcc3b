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
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

const releaseHoldLong = `Release a version, or settings of a version, that are held because they were rolled
back. If the operator follows the channel and the version is its head, or if spec.version
asks for it or has it in its range, it is rolled out again. The command removes one hold from spec.holds of the
ManagedOperator, which is shown by operator get.

If a version has several holds, name the rollout that was rolled back with --rollout. A
hold that a person made has no rollout: release it with --rollout "".`

func (a *app) newReleaseHoldCommand() *cobra.Command {
	var rollout string
	c := &cobra.Command{
		Use: "release-hold OPERATOR VERSION", Short: "Allow a version or settings again that were rolled back",
		Long: releaseHoldLong,
		Example: "  bellwether operator release-hold echo 1.2.0\n" +
			"  bellwether operator release-hold echo 1.2.0 --rollout echo-7",
		Args: command.ExactArgs("the operator's name", "the version"),

		ValidArgsFunction: a.CompleteFirst(command.ListOperatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.Hub()
			if err != nil {
				return err
			}
			selector := holdSelector{version: args[1], rollout: rollout, anyRollout: !c.Flags().Changed("rollout")}
			return a.releaseHold(c.Context(), h, args[0], selector)
		},
	}
	c.Flags().StringVar(&rollout, "rollout", "", "The rollout that was rolled back, where a version has several holds.")
	return c
}

// holdSelector selects the holds of a version: of one rollout, or of any rollout if anyRollout is true. An empty
// rollout selects holds that a person made.
type holdSelector struct {
	version, rollout string
	anyRollout       bool
}

// matches reports whether the selector selects a hold.
func (s holdSelector) matches(h v1alpha1.VersionHold) bool {
	return h.Version == s.version && (s.anyRollout || h.Rollout == s.rollout)
}

// releaseHold removes one hold from spec.holds of an operator, and prints the remaining holds of the version.
func (a *app) releaseHold(ctx context.Context, h *hub.Client, name string, selector holdSelector) error {
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
		if released, err = removeHold(o, selector); err != nil {
			return err
		}
		return h.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return fmt.Errorf("release %s of operator %s: %w", selector.version, o.Name, err)
	}
	a.Say("Operator %s: the hold of %s is released.\n", o.Name, released.Subject())
	for _, h := range o.Spec.Holds {
		if h.Version == selector.version {
			a.Say("Operator %s: %s%s.\n", o.Name, h, describeHoldOrigin(h))
		}
	}
	return nil
}

// removeHold removes the selected hold from o, and returns it. It returns an error if the selector matches no hold or
// holds of different settings. If the selector matches several equal holds, it removes the last hold.
func removeHold(o *v1alpha1.ManagedOperator, selector holdSelector) (v1alpha1.VersionHold, error) {
	var heldVersions, candidates []string
	index := -1
	for i, h := range o.Spec.Holds {
		heldVersions = append(heldVersions, h.Version)
		if !selector.matches(h) {
			continue
		}
		isDifferent := index < 0 || !slices.Equal(h.Keys(), o.Spec.Holds[index].Keys())
		if isDifferent {
			candidates = append(candidates, fmt.Sprintf("--rollout %q for %s", h.Rollout, h.Subject()))
		}
		index = i
	}
	switch {
	case !slices.Contains(heldVersions, selector.version):
		return v1alpha1.VersionHold{}, exit.Hintf(hub.FormatAvailable(heldVersions, "no version is held"),
			"the version is not held")
	case index < 0:
		return v1alpha1.VersionHold{}, exit.Hintf(hub.FormatAvailable(listRolloutFlags(o, selector.version), ""),
			"no hold of this version was made by the rollback of %s", cmp.Or(selector.rollout, "no rollout"))
	case len(candidates) > 1:
		return v1alpha1.VersionHold{}, exit.Hintf(hub.FormatAvailable(candidates, ""), "the version has several holds")
	}
	h := o.Spec.Holds[index]
	o.Spec.Holds = slices.Delete(o.Spec.Holds, index, index+1)
	return h, nil
}

// listRolloutFlags returns the flag --rollout for each hold of a version, as suggestions.
func listRolloutFlags(o *v1alpha1.ManagedOperator, version string) []string {
	var names []string
	for _, h := range o.Spec.Holds {
		if h.Version == version {
			names = append(names, fmt.Sprintf("--rollout %q", h.Rollout))
		}
	}
	return names
}

// describeHoldOrigin returns the rollout that introduced the held changes, or that a person made the hold.
func describeHoldOrigin(h v1alpha1.VersionHold) string {
	if h.IsByPerson() {
		return ", by a person"
	}
	return ", brought by " + h.Rollout
}

// formatHold returns a hold in one line, for the details of an operator.
func formatHold(h v1alpha1.VersionHold) string {
	text := h.Subject() + describeHoldOrigin(h)
	if len(h.Changes) > 0 {
		text += ": " + strings.Join(h.Changes, "; ")
	}
	return phrase.OneLine(text)
}
