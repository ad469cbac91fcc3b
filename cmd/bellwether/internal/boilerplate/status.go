// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package boilerplate

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

func (a *app) newStatusCommand() *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use: "status", Short: "Show the conventions of a repository, and its exceptions",
		Long: `Show the conventions of a repository with the versions that were rendered and those
that their sources have, its exceptions, and whether an update is in progress. Only
with --remote are registries asked.`,
		Args:    command.NoArgs,
		Example: "  bellwether boilerplate status --remote",
		RunE:    a.newRunE(f, a.showStatus),
	}
	f.addDirFlag(c)
	f.access.Add(c)
	c.Flags().BoolVar(&f.remote, "remote", false, "Ask registries for what their tags hold now.")
	f.out.Add(c, command.OutputJSON, command.OutputYAML)
	return c
}

// showStatus prints the conventions of the repository, its exceptions, and the number of findings.
func (a *app) showStatus(ctx context.Context, f *flags, _ []string) error {
	r, err := f.openRepository()
	if err != nil {
		return err
	}
	s, err := r.Status(ctx, f.remote, a.Now())
	if err != nil {
		return err
	}
	if !f.out.Table() {
		return f.out.Value(a.Streams.Out, s)
	}
	table := &term.Table{Header: []string{"CONVENTION", "RENDERED", "SOURCE", "SOURCE HAS"}, Wrap: true}
	for _, c := range s.Conventions {
		row := term.PlainCells(c.Name, cmp.Or(c.Version, "none"), c.Source, cmp.Or(c.Newest, c.Problem, "unknown"))
		if c.IsBehind() {
			row[3].Tone = term.Warn
		}
		table.Add(row...)
	}
	a.Table(&f.out, table)
	a.Say("\n")
	for _, e := range s.Exceptions {
		remaining := "expired"
		if e.DaysLeft >= 0 {
			remaining = phrase.Count(e.DaysLeft, "day") + " left"
		}
		a.Say("Exception for %s: %s: %s\n", strings.TrimSpace(e.Path+" "+e.Region), remaining, e.Reason)
	}
	if len(s.InProgress) > 0 {
		a.Say("An update of %s is in progress.\n", phrase.Count(len(s.InProgress), "file"))
	}
	if s.Findings == 0 {
		a.Say("Nothing has drifted.\n")
		return nil
	}
	a.Say("%s: see `%s boilerplate check`.\n", phrase.Count(s.Findings, "finding"), a.Self)
	return nil
}
