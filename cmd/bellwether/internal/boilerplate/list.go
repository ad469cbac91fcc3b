// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package boilerplate

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/conventions"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

func (a *app) newListCommand() *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use: "list [NAME]", Short: "List conventions, and the parameters of one", Args: command.AtMostOne,
		Long: `List the conventions of this program, and those of --source. With a NAME, show the
parameters and the files of that convention, as YAML or JSON.`,
		Example: "  bellwether boilerplate list\n  bellwether boilerplate list go",
		RunE:    a.newRunE(f, a.listConventions),
	}
	f.access.Add(c)
	c.Flags().StringArrayVar(&f.sources, "source", nil, "A convention elsewhere, `NAME=SOURCE`. Can be repeated.")
	f.out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML)
	return c
}

// listedConvention is a convention as list -o json prints it.
type listedConvention struct {
	*convention.Convention
	Source string `json:"source"`
}

// listConventions prints all conventions, or the details of the convention in args.
func (a *app) listConventions(ctx context.Context, f *flags, args []string) error {
	entries, err := conventions.Files.ReadDir(".")
	if err != nil {
		return fmt.Errorf("read conventions: %w", err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	loader, found := newLoader(&f.access), []listedConvention{}
	for _, use := range parseUses(append(names, f.sources...)) {
		if len(args) > 0 && args[0] != use.Name {
			continue
		}
		c, err := loader.Load(ctx, use, nil)
		if err != nil {
			return err
		}
		found = append(found, listedConvention{Convention: c.Convention, Source: use.Source})
	}
	switch {
	case len(args) > 0 && len(found) == 0:
		return exit.Hintf("see `"+a.Self+" boilerplate list`", "there is no convention %q", args[0])
	case len(args) > 0:
		if f.out.Table() { // the details have no table
			f.out.Format = command.OutputYAML
		}
		return f.out.Value(a.Streams.Out, found[0])
	case !f.out.Table():
		return f.out.Value(a.Streams.Out, map[string]any{"conventions": found})
	}
	table := &term.Table{Header: []string{"CONVENTION", "VERSION", "SOURCE", "DESCRIPTION"}, Wrap: true}
	for _, c := range found {
		table.Add(term.PlainCells(c.Name, c.Version, c.Source, c.Description)...)
	}
	a.Table(&f.out, table)
	return nil
}

// parseUses parses conventions from a command line: NAME for a convention of this program, or NAME=SOURCE.
func parseUses(texts []string) []subscription.Use {
	var out []subscription.Use
	for _, text := range texts {
		name, source, isGiven := strings.Cut(text, "=")
		if !isGiven {
			source = subscription.Builtin
		}
		out = append(out, subscription.Use{Name: name, Source: source})
	}
	return out
}
