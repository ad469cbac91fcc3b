// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/view"
)

const rolloutLong = `A rollout brings one version of an operator to the clusters in waves.

Wherever a command takes NAME, it is the name of a rollout, or that of an
operator, which stands for its newest rollout.`

func (a *app) rolloutCommand() *cobra.Command {
	c := parent("rollout", "Follow and steer rollouts", []string{"rollouts", "ro"},
		a.rolloutGetCommand(), a.rolloutPlanCommand(), a.rolloutHistoryCommand(), a.rolloutStatusCommand(),
		a.rolloutPauseCommand(), a.rolloutResumeCommand(), a.rolloutAbortCommand(), a.rolloutApproveCommand())
	c.Long = rolloutLong
	return c
}

const rolloutGetLong = `Show a rollout: a line for each wave with its progress, soak and gates, then
the clusters that need attention. Without NAME, list the rollouts.

With --watch the picture stays up to date until the rollout has ended; for the
name of an operator, until you interrupt it. Where the output is no terminal, a
line is printed for each change instead.`

func (a *app) rolloutGetCommand() *cobra.Command {
	var out output
	var in scope
	var watch bool
	c := &cobra.Command{
		Use: "get [NAME]", Aliases: []string{"list", "ls"}, Short: "Show a rollout, or list them", Long: rolloutGetLong,
		Example: "  bellwether rollout get echo -w\n  bellwether rollout get -A",
		Args:    atMostOne, ValidArgsFunction: a.completeFirst(rolloutNames),
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			h, err := a.hub()
			switch {
			case err != nil:
				return err
			case len(args) == 0 && watch:
				return hintf("usage: "+c.UseLine(), "give the name of the rollout to watch")
			case len(args) == 0:
				return a.listRollouts(c.Context(), h, &out, &in)
			case watch:
				return a.followRollout(c.Context(), h, args[0])
			default:
				return a.getRollout(c.Context(), h, &out, args[0])
			}
		},
	}
	c.Flags().BoolVarP(&watch, "watch", "w", false, "Keep the picture up to date.")
	in.add(c)
	out.add(c, outputWide, outputJSON, outputYAML, outputName)
	return c
}

func (a *app) listRollouts(ctx context.Context, h *hub, out *output, in *scope) error {
	list := &v1alpha1.OperatorRolloutList{}
	if err := h.List(ctx, list, in.options(h)...); err != nil {
		return fmt.Errorf("list rollouts: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.OperatorRollout) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Spec.Operator.Name, b.Spec.Operator.Name),
			cmp.Compare(b.Spec.Revision, a.Spec.Revision))
	})
	table := view.Rollouts(list.Items, view.Listing{Now: a.now(), Wide: out.wide(), Namespaces: in.all})
	return a.list(out, list, table, in.none(h, "rollouts"))
}

func (a *app) getRollout(ctx context.Context, h *hub, out *output, name string) error {
	r, err := h.rollout(ctx, name)
	if err != nil {
		return err
	}
	if !out.table() {
		return out.object(a.streams.Out, r)
	}
	in, err := a.rolloutInput(ctx, h, r)
	if err != nil {
		return err
	}
	style := a.style()
	if out.wide() {
		style.Width = 0
	}
	a.say("%s", view.Rollout(in, style))
	return nil
}

func (a *app) rolloutInput(ctx context.Context, reader client.Reader, r *v1alpha1.OperatorRollout) (view.RolloutInput,
	error) {
	in := view.RolloutInput{Now: a.now(), Rollout: r}
	var err error
	if in.Installs, err = members(ctx, reader, r); err != nil {
		return in, err
	}
	in.Clusters, err = clusters(ctx, reader)
	return in, err
}

func (a *app) rolloutHistoryCommand() *cobra.Command {
	var out output
	c := &cobra.Command{
		Use: "history OPERATOR", Short: "List the rollouts of an operator, the newest first",
		Args:              oneArg("the operator's name"),
		ValidArgsFunction: a.completeFirst(operatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			h, err := a.hub()
			if err != nil {
				return err
			}
			return a.history(c.Context(), h, &out, args[0])
		},
	}
	out.add(c, outputJSON, outputYAML, outputName)
	return c
}

func (a *app) history(ctx context.Context, h *hub, out *output, operator string) error {
	items, err := h.rolloutsOf(ctx, operator)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		if _, err := h.operator(ctx, operator); err != nil {
			return err
		}
	}
	list := &v1alpha1.OperatorRolloutList{Items: items}
	return a.list(out, list, view.History(items, view.Listing{Now: a.now()}),
		fmt.Sprintf("Operator %q has no rollout yet.", operator))
}
