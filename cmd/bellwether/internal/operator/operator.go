// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator provides the commands for managed operators: `bellwether operator` and `bellwether versions`.
package operator

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain"
)

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command operator with its subcommands.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	return command.NewParent("operator", "Show the managed operators, adopt others, approve versions, confirm "+
		"removals, release holds, resume and repair; write a new operator",
		[]string{"operators", "op"}, a.AddHubFlags(a.newListCommand()), a.AddHubFlags(a.newGetCommand()),
		a.AddHubFlags(a.newAdoptCommand()), a.AddHubFlags(a.newApproveCommand()),
		a.AddHubFlags(a.newConfirmRemovalCommand()), a.AddHubFlags(a.newReleaseHoldCommand()),
		a.AddHubFlags(a.newResumeCommand()), a.AddHubFlags(a.newRepairCommand()), a.newInitCommand())
}

func (a *app) newListCommand() *cobra.Command {
	var states command.States
	c := command.ListCommand(a.Env, command.Listing[*v1alpha1.ManagedOperatorList]{
		Nouns: "operators", Short: "List the managed operators and their progress",
		Example: "  bellwether operator list -A -o wide\n  bellwether operator list --state stale,drifted",
		Check:   states.Check,
		Empty:   func() *v1alpha1.ManagedOperatorList { return &v1alpha1.ManagedOperatorList{} },
		Table: func(ctx context.Context, h *hub.Client, l *v1alpha1.ManagedOperatorList, o term.Listing) (*term.Table,
			error) {
			fleetMarks, err := a.ReadMarks(ctx, h, nil, &states, o.Data)
			if err != nil {
				return nil, err
			}
			l.Items = slices.DeleteFunc(l.Items, func(o v1alpha1.ManagedOperator) bool {
				return !fleetMarks.Operator(&o).HasAny(states.Wanted)
			})
			return BuildOperatorTable(l.Items, fleetMarks, o), nil
		},
	})
	states.Add(c, "operators", explain.AllMarks())
	return c
}

func (a *app) newGetCommand() *cobra.Command {
	var out command.Output
	c := &cobra.Command{
		Use: "get NAME", Short: "Show an operator with its versions, its rollouts and the clusters that are not ready",
		Example: "  bellwether operator get echo",
		Args:    command.OneArg("the operator's name"), ValidArgsFunction: a.CompleteFirst(command.ListOperatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			return a.getOperator(c.Context(), &out, args[0])
		},
	}
	out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML, command.OutputName)
	return c
}

// getOperator prints an operator with its versions, rollouts and clusters, and an explanation of its state.
func (a *app) getOperator(ctx context.Context, out *command.Output, name string) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	operator, err := h.Operator(ctx, name)
	if err != nil {
		return err
	}
	a.WarnOfFreezes(ctx, h)
	in := OperatorInput{Now: a.Now(), Operator: operator}
	if in.Rollouts, err = h.ListRollouts(ctx, client.ObjectKeyFromObject(operator)); err != nil {
		return err
	}
	if in.Installs, err = hub.ListInstalls(ctx, h, client.ObjectKeyFromObject(operator)); err != nil {
		return err
	}
	catalogs := &v1alpha1.OperatorCatalogList{}
	if err := h.List(ctx, catalogs, client.InNamespace(operator.Namespace)); err != nil {
		return fmt.Errorf("list catalogs: %w", err)
	}
	in.Catalogs = catalogs.Items
	if in.Clusters, err = hub.ListClusters(ctx, h); err != nil {
		return err
	}
	explainInput := explain.OperatorInput{Now: in.Now, Operator: operator, Installs: in.Installs, Clusters: in.Clusters,
		Program: a.Self}
	if len(in.Rollouts) > 0 {
		explainInput.Rollout = &in.Rollouts[0]
	}
	return a.PrintExplained(out, operator, explain.Operator(explainInput), func(s term.Style) string {
		return RenderOperator(in, s)
	})
}
