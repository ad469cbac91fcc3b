// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

// VersionsCommand returns the command that shows which clusters run which versions.
func VersionsCommand(env *command.Env) *cobra.Command {
	a := &app{env}
	var out command.Output
	var scope command.Scope
	c := &cobra.Command{
		Use: "versions [OPERATOR]", Short: "Show which versions of operators the clusters run",
		Args:              command.AtMostOne,
		Example:           "  bellwether versions -A\n  bellwether versions echo -o wide",
		ValidArgsFunction: a.CompleteFirst(command.ListOperatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			return a.showVersions(c.Context(), &out, &scope, args)
		},
	}
	scope.Add(c)
	out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML)
	return c
}

// showVersions prints the versions of the operators in args, or of all operators in scope.
func (a *app) showVersions(ctx context.Context, out *command.Output, scope *command.Scope, args []string) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	operators := &v1alpha1.ManagedOperatorList{}
	if err := h.List(ctx, operators, scope.Options(h)...); err != nil {
		return fmt.Errorf("list operators: %w", err)
	}
	match := client.MatchingLabels{}
	if !scope.All {
		match[v1alpha1.LabelOperatorNamespace] = h.Namespace
	}
	if len(args) == 1 {
		match[v1alpha1.LabelOperator] = args[0]
	}
	installs := &v1alpha1.OperatorInstallList{}
	if err := h.List(ctx, installs, match); err != nil {
		return fmt.Errorf("list installs: %w", err)
	}
	rows := BuildVersionRows(operators.Items, installs.Items)
	catalogs := &v1alpha1.OperatorCatalogList{}
	if err := h.List(ctx, catalogs, scope.Options(h)...); err != nil {
		return fmt.Errorf("list catalogs: %w", err)
	}
	addSupport(rows, operators.Items, catalogs.Items)
	if !out.Table() {
		return out.Value(a.Streams.Out, rows)
	}
	if len(rows) == 0 {
		a.Warn("%s\n", scope.EmptyMessage(h, "installed operators"))
		return nil
	}
	a.Table(out, BuildVersionsTable(rows, term.Listing{Now: a.Now(), Wide: out.Wide(), Namespaces: scope.All}))
	return nil
}
