// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout holds the commands that show and control rollouts.
package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain"
)

const rolloutLong = `A rollout installs one version of an operator on the clusters, in waves.

NAME is the name of a rollout, or the name of an operator for its newest rollout.`

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command rollout with its subcommands.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	c := command.NewParent("rollout", "Show and control rollouts", []string{"rollouts", "ro"},
		a.newGetCommand(), a.newPlanCommand(), a.newHistoryCommand(), a.newStatusCommand(),
		a.newPauseCommand(), a.newResumeCommand(), a.newAbortCommand(), a.newApproveCommand(),
		a.newOverrideCommand(), a.newOverrideWindowsCommand(), a.newRetryCommand(),
		a.newRestartCommand(), a.newRollbackCommand())
	c.Long = rolloutLong
	return c
}

const rolloutGetLong = `Show a rollout: a line for each wave with its progress, soak and gates; the health
of each cluster in a wave that soaks; and the clusters that need attention. Without
NAME, list the rollouts.

With --watch the output is updated until the rollout has ended or, if NAME is an
operator, until you interrupt the command. If the output is not a terminal, each
change is printed as a line.`

func (a *app) newGetCommand() *cobra.Command {
	var out command.Output
	var scope command.Scope
	var states command.States
	var watch bool
	c := &cobra.Command{
		Use: "get [NAME]", Aliases: []string{"list", "ls"}, Short: "Show a rollout, or list all rollouts",
		Long:    rolloutGetLong,
		Example: "  bellwether rollout get echo -w\n  bellwether rollout get -A",
		Args:    command.AtMostOne, ValidArgsFunction: a.CompleteFirst(command.ListRolloutNames),
		RunE: func(c *cobra.Command, args []string) error {
			if err := errors.Join(out.Check(), states.Check()); err != nil {
				return err
			}
			if len(args) > 0 && len(states.Wanted) > 0 {
				return exit.Hintf("name no rollout", "--state is for lists")
			}
			h, err := a.Hub()
			switch {
			case err != nil:
				return err
			case len(args) == 0 && watch:
				return exit.Hintf("usage: "+c.UseLine(), "missing argument: the name of the rollout to watch")
			case len(args) == 0:
				return a.printRollouts(c.Context(), h, &out, &scope, &states)
			case watch:
				return a.followRollout(c.Context(), h, args[0])
			default:
				return a.printRollout(c.Context(), h, &out, args[0])
			}
		},
	}
	c.Flags().BoolVarP(&watch, "watch", "w", false, "Update the output until the rollout has ended.")
	scope.Add(c)
	states.Add(c, "rollouts", explain.ClusterMarks())
	out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML, command.OutputName)
	return c
}

// printRollouts prints the list of rollouts, ordered by operator, the newest rollout first.
func (a *app) printRollouts(ctx context.Context, h *hub.Client, out *command.Output, scope *command.Scope,
	states *command.States) error {
	list := &v1alpha1.OperatorRolloutList{}
	if err := h.List(ctx, list, scope.Options(h)...); err != nil {
		return fmt.Errorf("list rollouts: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.OperatorRollout) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Spec.Operator.Name, b.Spec.Operator.Name),
			cmp.Compare(b.Spec.Revision, a.Spec.Revision))
	})
	a.WarnOfFreezes(ctx, h)
	fleet, err := a.ReadMarks(ctx, h, nil, states, !out.Table())
	if err != nil {
		return err
	}
	list.Items = slices.DeleteFunc(list.Items, func(r v1alpha1.OperatorRollout) bool {
		return !fleet.Rollout(&r).HasAny(states.Wanted)
	})
	table := BuildRolloutTable(list.Items, fleet, term.Listing{Now: a.Now(), Wide: out.Wide(), Namespaces: scope.All})
	return a.List(out, list, table, scope.EmptyMessage(h, "rollouts"))
}

// printRollout prints one rollout and its explanation.
func (a *app) printRollout(ctx context.Context, h *hub.Client, out *command.Output, name string) error {
	r, err := h.Rollout(ctx, name)
	if err != nil {
		return err
	}
	in, err := a.readRolloutInput(ctx, h, r)
	if err != nil {
		return err
	}
	a.WarnOfFreezes(ctx, h)
	e := explain.Rollout(explain.RolloutInput{Now: in.Now, Rollout: r, Clusters: in.Clusters, Installs: in.Installs,
		Program: a.Self})
	return a.PrintExplained(out, r, e, func(s term.Style) string { return RenderRollout(in, s) })
}

// readRolloutInput reads the installs, the clusters and the ManagedOperator of a rollout. Operator is empty if
// the ManagedOperator was deleted.
func (a *app) readRolloutInput(ctx context.Context, reader client.Reader, r *v1alpha1.OperatorRollout) (RolloutInput,
	error) {
	in := RolloutInput{Now: a.Now(), Rollout: r}
	var err error
	if in.Installs, err = hub.ListMembers(ctx, reader, r); err != nil {
		return in, err
	}
	if in.Clusters, err = hub.ListClusters(ctx, reader); err != nil {
		return in, err
	}
	in.Operator = &v1alpha1.ManagedOperator{}
	err = reader.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Spec.Operator.Name}, in.Operator)
	if client.IgnoreNotFound(err) != nil {
		return in, fmt.Errorf("get ManagedOperator: %w", err)
	}
	return in, nil
}

func (a *app) newHistoryCommand() *cobra.Command {
	var out command.Output
	c := &cobra.Command{
		Use: "history OPERATOR", Short: "List the rollouts of an operator, the newest first",
		Example:           "  bellwether rollout history echo",
		Args:              command.OneArg("the operator's name"),
		ValidArgsFunction: a.CompleteFirst(command.ListOperatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			h, err := a.Hub()
			if err != nil {
				return err
			}
			return a.printHistory(c.Context(), h, &out, args[0])
		},
	}
	out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML, command.OutputName)
	return c
}

// printHistory prints the rollouts of an operator. The operator may be deleted, because its rollouts can remain.
func (a *app) printHistory(ctx context.Context, h *hub.Client, out *command.Output, operator string) error {
	key := h.Key(operator) // for an operator that was deleted
	o, notFound := h.Operator(ctx, operator)
	var recorded []v1alpha1.RolloutOutcome
	if notFound == nil {
		key, recorded = client.ObjectKeyFromObject(o), o.Status.History
	}
	items, err := h.ListRollouts(ctx, key)
	if err != nil {
		return err
	}
	if len(items) == 0 && notFound != nil {
		return notFound
	}
	list := &v1alpha1.OperatorRolloutList{Items: items}
	return a.List(out, list, BuildHistoryTable(items, recorded, term.Listing{Now: a.Now(), Wide: out.Wide()}),
		fmt.Sprintf("Operator %q has no rollout yet.", operator))
}
