// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/view"
)

func (a *app) operatorCommand() *cobra.Command {
	return parent("operator", "The operators that are managed across the fleet", []string{"operators", "op"},
		a.operatorListCommand(), a.operatorGetCommand())
}

// scope is the choice between the user's namespace and all of them.
type scope struct{ all bool }

func (s *scope) add(c *cobra.Command) {
	c.Flags().BoolVarP(&s.all, "all-namespaces", "A", false, "All namespaces of the hub.")
}

func (s *scope) options(h *hub) []client.ListOption {
	if s.all {
		return nil
	}
	return []client.ListOption{client.InNamespace(h.namespace)}
}

func (s *scope) none(h *hub, what string) string {
	if s.all {
		return "There are no " + what + "."
	}
	return fmt.Sprintf("There are no %s in namespace %q; look at all namespaces with -A.", what, h.namespace)
}

// listing is a command that lists one kind of object of a namespace.
type listing[L client.ObjectList] struct {
	what    string
	short   string
	example string
	empty   func() L
	table   func(L, view.Listing) *view.Table
}

func listCommand[L client.ObjectList](a *app, l listing[L]) *cobra.Command {
	var out output
	var in scope
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: l.short, Example: l.example, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			h, err := a.hub()
			if err != nil {
				return err
			}
			list := l.empty()
			if err := h.List(c.Context(), list, in.options(h)...); err != nil {
				return fmt.Errorf("list %s: %w", l.what, err)
			}
			table := l.table(list, view.Listing{Now: a.now(), Wide: out.wide(), Namespaces: in.all})
			return a.list(&out, list, table, in.none(h, l.what))
		},
	}
	in.add(c)
	out.add(c, outputWide, outputJSON, outputYAML, outputName)
	return c
}

func (a *app) operatorListCommand() *cobra.Command {
	return listCommand(a, listing[*v1alpha1.ManagedOperatorList]{
		what: "operators", short: "List the managed operators and how far their clusters are",
		example: "  bellwether operator list -A -o wide",
		empty:   func() *v1alpha1.ManagedOperatorList { return &v1alpha1.ManagedOperatorList{} },
		table: func(l *v1alpha1.ManagedOperatorList, o view.Listing) *view.Table {
			return view.Operators(l.Items, o)
		},
	})
}

func (a *app) operatorGetCommand() *cobra.Command {
	var out output
	c := &cobra.Command{
		Use: "get NAME", Short: "Show an operator, its versions, its rollouts and the clusters that are not ready",
		Args: oneArg("the operator's name"), ValidArgsFunction: a.completeFirst(operatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			return a.getOperator(c.Context(), &out, args[0])
		},
	}
	out.add(c, outputJSON, outputYAML, outputName)
	return c
}

func (a *app) getOperator(ctx context.Context, out *output, name string) error {
	h, err := a.hub()
	if err != nil {
		return err
	}
	operator, err := h.operator(ctx, name)
	if err != nil {
		return err
	}
	if !out.table() {
		return out.object(a.streams.Out, operator)
	}
	in := view.OperatorInput{Now: a.now(), Operator: operator}
	if in.Rollouts, err = h.rolloutsOf(ctx, name); err != nil {
		return err
	}
	if in.Installs, err = installsOf(ctx, h, client.ObjectKeyFromObject(operator)); err != nil {
		return err
	}
	a.say("%s", view.Operator(in, a.style()))
	return nil
}

func (a *app) versionsCommand() *cobra.Command {
	var out output
	var in scope
	c := &cobra.Command{
		Use: "versions [OPERATOR]", Short: "Show which clusters run which version of which operator", Args: atMostOne,
		Example:           "  bellwether versions -A\n  bellwether versions echo -o wide",
		ValidArgsFunction: a.completeFirst(operatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			return a.versions(c.Context(), &out, &in, args)
		},
	}
	in.add(c)
	out.add(c, outputWide, outputJSON, outputYAML)
	return c
}

func (a *app) versions(ctx context.Context, out *output, in *scope, args []string) error {
	h, err := a.hub()
	if err != nil {
		return err
	}
	operators := &v1alpha1.ManagedOperatorList{}
	if err := h.List(ctx, operators, in.options(h)...); err != nil {
		return fmt.Errorf("list operators: %w", err)
	}
	match := client.MatchingLabels{}
	if !in.all {
		match[v1alpha1.LabelOperatorNamespace] = h.namespace
	}
	if len(args) == 1 {
		match[v1alpha1.LabelOperator] = args[0]
	}
	installs := &v1alpha1.OperatorInstallList{}
	if err := h.List(ctx, installs, match); err != nil {
		return fmt.Errorf("list installs: %w", err)
	}
	rows := view.VersionRows(operators.Items, installs.Items)
	if !out.table() {
		return out.value(a.streams.Out, rows)
	}
	if len(rows) == 0 {
		a.warn("%s\n", in.none(h, "operators on any cluster"))
		return nil
	}
	a.table(out, view.Versions(rows, view.Listing{Now: a.now(), Wide: out.wide(), Namespaces: in.all}))
	return nil
}
