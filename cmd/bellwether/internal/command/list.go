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

// Scope is the choice between the user's namespace and all of them.
type Scope struct{ All bool }

// Add adds the flag to a command. It means the same everywhere: all namespaces on the hub.
func (s *Scope) Add(c *cobra.Command) {
	c.Flags().BoolVarP(&s.All, "all-namespaces", "A", false, "Use the objects of all namespaces on the hub.")
}

// Given returns the namespace of -n, for a command that shows all namespaces unless it is set. -n and -A exclude each
// other there.
func (s *Scope) Given(a *Env) (string, error) {
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

// None returns the message for an empty list.
func (s *Scope) None(h *hub.Client, what string) string {
	if s.All {
		return "There are no " + what + "."
	}
	return fmt.Sprintf("There are no %s in namespace %q. Use -A to list all namespaces.", what, h.Namespace)
}

// Listing is a command that lists one kind of object of a namespace.
type Listing[L client.ObjectList] struct {
	What    string
	Short   string
	Example string
	// Check checks flags that the list has besides; nil if there are none.
	Check func() error
	Empty func() L
	// Table renders the list, and may take items out of it.
	Table func(context.Context, *hub.Client, L, term.Listing) (*term.Table, error)
}

// ListCommand returns a command that lists objects of one kind.
func ListCommand[L client.ObjectList](a *Env, l Listing[L]) *cobra.Command {
	var out Output
	var in Scope
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
			a.TellOfFreezes(c.Context(), h)
			list := l.Empty()
			if err := h.List(c.Context(), list, in.Options(h)...); err != nil {
				return fmt.Errorf("list %s: %w", l.What, err)
			}
			table, err := l.Table(c.Context(), h, list,
				term.Listing{Now: a.Now(), Wide: out.Wide(), Namespaces: in.All, Data: !out.Table()})
			if err != nil {
				return err
			}
			return a.List(&out, list, table, in.None(h, l.What))
		},
	}
	in.Add(c)
	out.Add(c, OutputWide, OutputJSON, OutputYAML, OutputName)
	return c
}
