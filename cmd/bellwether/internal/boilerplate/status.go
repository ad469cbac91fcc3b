// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package boilerplate

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/boilerplate/run"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/phrase"
)

func (a *app) statusCommand() *cobra.Command {
	p, out, remote := &place{}, &command.Output{}, false
	c := &cobra.Command{
		Use: "status", Short: "Show the conventions of a repository, and its exceptions",
		Long: `Show the conventions of a repository with the versions that were rendered and those
that their sources have, its exceptions, and whether an update is in progress. Only
with --remote are registries asked.`,
		Args:    command.NoArgs,
		Example: "  bellwether boilerplate status --remote",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			return a.explain(a.status(c.Context(), p, out, remote))
		},
	}
	p.add(c)
	p.access.Add(c)
	c.Flags().BoolVar(&remote, "remote", false, "Ask registries for what their tags hold now.")
	out.Add(c, command.OutputJSON, command.OutputYAML)
	return c
}

func (a *app) status(ctx context.Context, p *place, out *command.Output, remote bool) error {
	r, err := p.open()
	if err != nil {
		return err
	}
	defer func() { _ = r.Tree.Close() }()
	s, err := r.Status(ctx, remote, a.Now())
	if err != nil {
		return err
	}
	if !out.Table() {
		return out.Value(a.Streams.Out, s)
	}
	a.printStatus(out, s)
	return nil
}

// cells are those of a row.
func cells(texts ...string) []term.Cell {
	var out []term.Cell
	for _, text := range texts {
		out = append(out, term.Cell{Text: text})
	}
	return out
}

func (a *app) printStatus(out *command.Output, s *run.Status) {
	table := &term.Table{Header: []string{"CONVENTION", "RENDERED", "SOURCE HAS", "SOURCE"}}
	for _, c := range s.Conventions {
		row := cells(c.Name, cmp.Or(c.Version, "none"), cmp.Or(c.Newest, "unknown"), c.Source)
		if c.IsBehind() {
			row[2].Tone = term.Warn
		}
		table.Add(row...)
	}
	a.Table(out, table)
	for _, c := range s.Conventions {
		if c.Problem != "" {
			a.Say("%s\n", c.Problem)
		}
	}
	a.Say("\n")
	for _, e := range s.Exceptions {
		left := "expired"
		if e.DaysLeft >= 0 {
			left = phrase.Count(e.DaysLeft, "day") + " left"
		}
		a.Say("Exception for %s: %s: %s\n", strings.TrimSpace(e.Path+" "+e.Region), left, e.Reason)
	}
	if len(s.InProgress) > 0 {
		a.Say("An update of %s is in progress.\n", phrase.Count(len(s.InProgress), "file"))
	}
	if s.Findings == 0 {
		a.Say("Nothing has drifted.\n")
		return
	}
	a.Say("%s: see `%s boilerplate check`.\n", phrase.Count(s.Findings, "finding"), a.Self)
}
