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

func (a *app) listCommand() *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use: "list [NAME]", Short: "List conventions, and the parameters of one", Args: command.AtMostOne,
		Long: `List the conventions of this program, and those of --source. With a NAME, show the
parameters and the files of that convention, as YAML or JSON.`,
		Example: "  bellwether boilerplate list\n  bellwether boilerplate list go",
		RunE:    a.run(f, a.list),
	}
	f.access.Add(c)
	c.Flags().StringArrayVar(&f.more, "source", nil, "A convention elsewhere, `NAME=SOURCE`. Can be repeated.")
	f.out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML)
	return c
}

// listed is a convention as list -o json prints it.
type listed struct {
	*convention.Convention
	Source string `json:"source"`
}

func (a *app) list(ctx context.Context, f *flags, args []string) error {
	entries, err := conventions.Files.ReadDir(".")
	if err != nil {
		return fmt.Errorf("read conventions: %w", err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	loader, found := sources(&f.access), []listed{}
	for _, use := range uses(append(names, f.more...)) {
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
		if f.out.Table() {
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

// uses are conventions as they are named on a command line: NAME for one of this program, or NAME=SOURCE.
func uses(texts []string) []subscription.Use {
	var out []subscription.Use
	for _, text := range texts {
		name, from, isGiven := strings.Cut(text, "=")
		if !isGiven {
			from = subscription.Builtin
		}
		out = append(out, subscription.Use{Name: name, Source: from})
	}
	return out
}
