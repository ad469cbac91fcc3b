// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator holds the commands for managed operators.
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
	"github.com/bellwether-dev/bellwether/explain/marks"
)

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command with everything below it.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	return command.Parent("operator", "Show the managed operators, adopt others, approve versions, confirm removals, "+
		"release holds, resume and repair; write a new operator",
		[]string{"operators", "op"}, a.OnHub(a.operatorListCommand()), a.OnHub(a.operatorGetCommand()),
		a.OnHub(a.adoptCommand()), a.OnHub(a.approveCommand()), a.OnHub(a.confirmRemovalCommand()),
		a.OnHub(a.operatorReleaseHoldCommand()), a.OnHub(a.resumeCommand()), a.OnHub(a.repairCommand()),
		a.initCommand())
}

func (a *app) operatorListCommand() *cobra.Command {
	var states command.States
	c := command.ListCommand(a.Env, command.Listing[*v1alpha1.ManagedOperatorList]{
		What: "operators", Short: "List the managed operators and their progress",
		Example: "  bellwether operator list -A -o wide\n  bellwether operator list --state stale,drifted",
		Check:   states.Check,
		Empty:   func() *v1alpha1.ManagedOperatorList { return &v1alpha1.ManagedOperatorList{} },
		Table: func(ctx context.Context, h *hub.Client, l *v1alpha1.ManagedOperatorList, o term.Listing) (*term.Table,
			error) {
			known, err := a.Marks(ctx, h, nil, &states, o.Data)
			if err != nil {
				return nil, err
			}
			l.Items = slices.DeleteFunc(l.Items, func(o v1alpha1.ManagedOperator) bool {
				return !known.Operator(&o).HasAny(states.Wanted)
			})
			return Operators(l.Items, known, o), nil
		},
	})
	states.Add(c, "operators", marks.All())
	return c
}

func (a *app) operatorGetCommand() *cobra.Command {
	var out command.Output
	c := &cobra.Command{
		Use: "get NAME", Short: "Show an operator with its versions, its rollouts and the clusters that are not ready",
		Example: "  bellwether operator get echo",
		Args:    command.OneArg("the operator's name"), ValidArgsFunction: a.CompleteFirst(command.OperatorNames),
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

func (a *app) getOperator(ctx context.Context, out *command.Output, name string) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	operator, err := h.Operator(ctx, name)
	if err != nil {
		return err
	}
	a.TellOfFreezes(ctx, h)
	in := OperatorInput{Now: a.Now(), Operator: operator}
	if in.Rollouts, err = h.RolloutsOf(ctx, client.ObjectKeyFromObject(operator)); err != nil {
		return err
	}
	if in.Installs, err = hub.InstallsOf(ctx, h, client.ObjectKeyFromObject(operator)); err != nil {
		return err
	}
	catalogs := &v1alpha1.OperatorCatalogList{}
	if err := h.List(ctx, catalogs, client.InNamespace(operator.Namespace)); err != nil {
		return fmt.Errorf("list catalogs: %w", err)
	}
	in.Catalogs = catalogs.Items
	if in.Clusters, err = hub.Clusters(ctx, h); err != nil {
		return err
	}
	whole := explain.OperatorInput{Now: in.Now, Operator: operator, Installs: in.Installs, Clusters: in.Clusters,
		Program: a.Self}
	if len(in.Rollouts) > 0 {
		whole.Rollout = &in.Rollouts[0]
	}
	return a.Explained(out, operator, explain.Operator(whole), func(s term.Style) string { return Operator(in, s) })
}
