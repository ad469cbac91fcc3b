// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package boilerplate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/conventions"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

func (a *app) listCommand() *cobra.Command {
	p, out := &place{}, &command.Output{}
	var more []string
	c := &cobra.Command{
		Use: "list [NAME]", Short: "List conventions, and the parameters of one", Args: command.AtMostOne,
		Long: `List the conventions of this program, and those of --source. With a NAME, show the
parameters and the files of that convention, as YAML or JSON.`,
		Example: "  bellwether boilerplate list\n  bellwether boilerplate list go",
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			return a.explain(a.list(c.Context(), p, out, more, args))
		},
	}
	p.access.Add(c)
	c.Flags().StringArrayVar(&more, "source", nil, "A convention elsewhere, `NAME=SOURCE`. Can be repeated.")
	out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML)
	return c
}

// listed is a convention as list -o json prints it.
type listed struct {
	*convention.Convention
	Source string `json:"source"`
}

func (a *app) list(ctx context.Context, p *place, out *command.Output, more, args []string) error {
	uses, err := availableUses(more)
	if err != nil {
		return err
	}
	loader, found := sources(&p.access), []listed{}
	for _, use := range uses {
		if len(args) > 0 && args[0] != use.Name {
			continue
		}
		c, err := loader.Load(ctx, use, nil)
		if err != nil {
			return err
		}
		found = append(found, listed{c.Convention, use.Source})
	}
	switch {
	case len(args) > 0 && len(found) == 0:
		return exit.Hintf("see `"+a.Self+" boilerplate list`", "there is no convention %q", args[0])
	case len(args) > 0:
		if out.Table() {
			out.Format = command.OutputYAML
		}
		return out.Value(a.Streams.Out, found[0])
	case !out.Table():
		return out.Value(a.Streams.Out, map[string]any{"conventions": found})
	}
	table := &term.Table{Header: []string{"CONVENTION", "VERSION", "SOURCE", "DESCRIPTION"}, Wrap: true}
	for _, c := range found {
		table.Add(cells(c.Name, c.Version, c.Source, c.Description)...)
	}
	a.Table(out, table)
	return nil
}

// availableUses are the conventions of this program, and those elsewhere, which are NAME=SOURCE.
func availableUses(more []string) ([]subscription.Use, error) {
	entries, err := conventions.Files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("read conventions: %w", err)
	}
	for i, e := range entries {
		more = slices.Insert(more, i, e.Name()+"="+subscription.Builtin)
	}
	var uses []subscription.Use
	for _, text := range more {
		name, from, ok := strings.Cut(text, "=")
		if !ok {
			return nil, exit.Hintf("use NAME=SOURCE", "invalid value %q of --source", text)
		}
		uses = append(uses, subscription.Use{Name: name, Source: from})
	}
	return uses, nil
}
