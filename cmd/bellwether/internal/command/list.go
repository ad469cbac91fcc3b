// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

// Scope selects the user's namespace or all namespaces.
type Scope struct{ All bool }

// Add adds the flag --all-namespaces to a command. In all commands, it selects all namespaces on the hub.
func (s *Scope) Add(c *cobra.Command) {
	c.Flags().BoolVarP(&s.All, "all-namespaces", "A", false, "Use the objects of all namespaces on the hub.")
}

// ReadNamespace returns the namespace of -n, for a command that shows all namespaces by default; empty if -n is not
// set. It returns an error if both -n and -A are set.
func (s *Scope) ReadNamespace(a *Env) (string, error) {
	namespace := ""
	if a.Flags.Namespace != nil {
		namespace = *a.Flags.Namespace
	}
	if s.All && namespace != "" {
		return "", exit.Hintf("set only one of them", "--namespace and --all-namespaces exclude each other")
	}
	return namespace, nil
}

// Options returns the options of a list request.
func (s *Scope) Options(h *hub.Client) []client.ListOption {
	if s.All {
		return nil
	}
	return []client.ListOption{client.InNamespace(h.Namespace)}
}

// EmptyMessage returns the message for an empty list. nouns is the plural of what is listed.
func (s *Scope) EmptyMessage(h *hub.Client, nouns string) string {
	if s.All {
		return "There are no " + nouns + "."
	}
	return fmt.Sprintf("There are no %s in namespace %q. Use -A to list all namespaces.", nouns, h.Namespace)
}

// Listing describes a command that lists one kind of namespaced object.
type Listing[L client.ObjectList] struct {
	Nouns   string
	Short   string
	Example string
	// Check checks the additional flags of the list; nil if there are none.
	Check func() error
	Empty func() L
	// Table returns the table of the list, and may remove items from the list.
	Table func(context.Context, *hub.Client, L, term.Listing) (*term.Table, error)
}

// ListCommand returns the command list for one kind of object, in the user's namespace or with -A in all namespaces.
func ListCommand[L client.ObjectList](a *Env, l Listing[L]) *cobra.Command {
	var out Output
	var scope Scope
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: l.Short, Example: l.Example, Args: NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			if l.Check != nil {
				if err := l.Check(); err != nil {
					return err
				}
			}
			h, err := a.Hub()
			if err != nil {
				return err
			}
			a.WarnOfFreezes(c.Context(), h)
			list := l.Empty()
			if err := h.List(c.Context(), list, scope.Options(h)...); err != nil {
				return fmt.Errorf("list %s: %w", l.Nouns, err)
			}
			table, err := l.Table(c.Context(), h, list,
				term.Listing{Now: a.Now(), Wide: out.Wide(), Namespaces: scope.All, Data: !out.Table()})
			if err != nil {
				return err
			}
			return a.List(&out, list, table, scope.EmptyMessage(h, l.Nouns))
		},
	}
	scope.Add(c)
	out.Add(c, OutputWide, OutputJSON, OutputYAML, OutputName)
	return c
}
