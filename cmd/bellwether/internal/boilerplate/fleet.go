// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package boilerplate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/boilerplate/fleet"
	"github.com/bellwether-dev/bellwether/boilerplate/run"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/phrase"
)

const fleetLong = `Work on the repositories in a file:

  apiVersion: boilerplate.bellwether.dev/v1alpha1
  kind: Repositories
  repositories:
    - source: https://github.com/acme/echo-operator.git
      branch: main              # default: the default branch
      labels: [team-a]          # of its pull requests
    - source: ../cache-operator # a local clone, relative to the file`

const fleetUpdateLong = `Update many repositories to their conventions, each by a pull request. A repository is
cloned into a folder of the command's own; local clones are not changed, and nothing of a
repository is run. Git uses your credentials.

The branch is boilerplate/DIGEST, with one commit. A pull request whose branch somebody
else has pushed to, or that somebody has closed, is left alone. One with conflicts has
the markers in its files, is a draft, and has the label boilerplate-conflict.

Pull requests are opened by GitHub's API, with the token in GITHUB_TOKEN, or by the
command of --open-with. It is run in the clone, with BOILERPLATE_BRANCH, _BASE, _TITLE,
_BODY_FILE, _LABELS, _URL and _OUTCOME (opened, refreshed or unchanged) in its environment.

Exit codes:
  0  all repositories are up to date, or have a pull request without conflicts
  1  an update failed or was refused
  2  there are conflicts to resolve`

// fleetFlags are those of both commands.
type fleetFlags struct {
	file, work string
	parallel   int
	access     registry.Flags
	out        command.Output

	// Of update alone.
	address, tokenFile, openWith string
	dryRun                       bool
	confirm                      command.Confirmation
}

func (f *fleetFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.file, "repos", "", "The `FILE` of the repositories.")
	flags.StringVar(&f.work, "work", "", "The `FOLDER` for clones. Default: below the user's cache folder.")
	flags.IntVar(&f.parallel, "parallel", 8, "How many repositories to work on at the same time.")
	command.Required(c, "repos")
	f.access.Add(c)
	f.out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML, command.OutputMarkdown)
}

// openFleet reads the repositories that are asked for.
func (a *app) openFleet(f *fleetFlags) (*fleet.Fleet, []fleet.Repository, error) {
	if err := f.out.Check(); err != nil {
		return nil, nil, err
	}
	all, err := fleet.Read(f.file)
	if err == nil && f.work == "" {
		f.work, err = os.UserCacheDir()
		f.work = filepath.Join(f.work, "bellwether", "fleet")
	}
	if err == nil {
		f.work, err = filepath.Abs(f.work)
	}
	return &fleet.Fleet{Sources: sources(&f.access), Work: f.work, Parallel: f.parallel, Now: a.Now()}, all, err
}

func (a *app) fleetCommand() *cobra.Command {
	c := command.Parent("fleet", "Check and update many repositories", nil, a.fleetStatusCommand(),
		a.fleetUpdateCommand())
	c.Long = fleetLong
	return c
}

func (a *app) fleetStatusCommand() *cobra.Command {
	f := &fleetFlags{}
	c := &cobra.Command{
		Use: "status", Args: command.NoArgs, Short: "Show which repositories are behind, and which exceptions expire",
		Long: `Show the conventions of many repositories with the versions that were rendered and those
that their sources have, what has drifted, and when the next exception expires. Local
clones are read as they are, remotes as they are there.`,
		Example: "  bellwether boilerplate fleet status --repos repositories.yaml -o markdown",
		RunE: func(c *cobra.Command, _ []string) error {
			fl, all, err := a.openFleet(f)
			if err != nil {
				return a.explain(err)
			}
			stop := a.watch(fl, len(all), func(string) {})
			found := fl.Status(c.Context(), all)
			stop()
			code, rows := exit.OK, [][]term.Cell{}
			for _, s := range found {
				row := statusRow(s)
				if row[5].Text != "" {
					code = exit.Error
				}
				rows = append(rows, row)
			}
			return a.report(f, found, "REPOSITORY,STATE,CONVENTIONS,FINDINGS,EXCEPTIONS UNTIL,PROBLEM", rows, code)
		},
	}
	f.add(c)
	return c
}

func statusRow(s fleet.Status) []term.Cell {
	if s.Status == nil {
		return append(cells(s.Name, "not readable", "", "", ""), term.Bad.Cell(s.Error))
	}
	row := cells(s.Name, "up to date", "", strconv.Itoa(s.Findings), "", "")
	if s.Findings > 0 {
		row[1] = term.Warn.Cell("drifted")
	}
	for _, c := range s.Conventions {
		text := c.Name + " " + cmp.Or(c.Version, "none")
		switch {
		case c.Problem != "":
			row[1], row[5].Text = term.Bad.Cell("unknown"), c.Problem
		case c.IsBehind():
			text += " of " + c.Newest
			row[1] = term.Warn.Cell("behind")
		}
		row[2].Text = strings.TrimPrefix(row[2].Text+", "+text, ", ")
	}
	if len(s.Exceptions) > 0 {
		first := slices.MinFunc(s.Exceptions, func(a, b run.ExceptionStatus) int { return a.DaysLeft - b.DaysLeft })
		row[4].Text = first.Expires
		if first.DaysLeft < 0 {
			row[4].Tone = term.Bad
		}
	}
	return row
}

// watch shows how far the work on repositories is, until what it returns is called.
func (a *app) watch(fl *fleet.Fleet, total int, show func(line string)) func() {
	progress, done := a.Progress("working on repositories"), 0
	fl.Done = func(line string) {
		done++
		progress.Count(done, total, "repositories")
		progress.Print(func() { show(line) })
	}
	return progress.Stop
}

// report prints results: a row for each, with its outcome in the second cell, and how many have each outcome.
func (a *app) report(f *fleetFlags, results any, header string, rows [][]term.Cell, code int) error {
	table := &term.Table{Header: strings.Split(header, ","), Rows: rows, Wrap: true}
	counts := map[string]int{}
	for _, row := range rows {
		counts[row[1].Text]++
	}
	summary := "Repositories: " + strconv.Itoa(len(rows))
	for _, outcome := range slices.Sorted(maps.Keys(counts)) {
		summary += fmt.Sprintf(", %d %s", counts[outcome], outcome)
	}
	switch {
	case f.out.Format == command.OutputMarkdown:
		a.Say("%s\n%s\n", markdown(table), summary)
	case f.out.Table():
		a.Table(&f.out, table)
		a.Say("\n%s\n", summary)
	default:
		if err := f.out.Value(a.Streams.Out, map[string]any{"repositories": results}); err != nil {
			return err
		}
	}
	if code == exit.OK {
		return nil
	}
	return &exit.CodeError{Code: code}
}

// markdown is a table of GitHub's Markdown.
func markdown(t *term.Table) string {
	out := "| " + strings.Join(t.Header, " | ") + " |\n" + strings.Repeat("| --- ", len(t.Header)) + "|\n"
	for _, row := range t.Rows {
		for _, c := range row {
			out += "| " + strings.ReplaceAll(phrase.Markdown(c.Text), "|", `\|`) + " "
		}
		out += "|\n"
	}
	return out
}

func (a *app) fleetUpdateCommand() *cobra.Command {
	f := &fleetFlags{}
	c := &cobra.Command{
		Use: "update", Args: command.NoArgs, Short: "Update many repositories by pull requests", Long: fleetUpdateLong,
		Example: "  bellwether boilerplate fleet update --repos repositories.yaml --dry-run\n" +
			`  bellwether boilerplate fleet update --repos repositories.yaml --yes --open-with 'glab mr create ` +
			`--source-branch "$BOILERPLATE_BRANCH" --title "$BOILERPLATE_TITLE" --yes'`,
		RunE: func(c *cobra.Command, _ []string) error { return a.explain(a.fleetUpdate(c.Context(), f)) },
	}
	f.add(c)
	flags := c.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "Push nothing and open nothing.")
	flags.StringVar(&f.address, "github-url", "", "The `URL` of a GitHub Enterprise Server. Default: github.com.")
	flags.StringVar(&f.tokenFile, "token-file", "", "A `FILE` with the token for GitHub. Default: $GITHUB_TOKEN.")
	flags.StringVar(&f.openWith, "open-with", "", "The `COMMAND` that opens a pull request, instead of GitHub's API.")
	f.confirm.Add(c)
	command.Exclusive(c, "open-with", "github-url")
	return c
}

func (a *app) fleetUpdate(ctx context.Context, f *fleetFlags) error {
	fl, all, err := a.openFleet(f)
	if err != nil {
		return err
	}
	fl.DryRun, fl.Command = f.dryRun, f.openWith
	if !f.dryRun && f.openWith == "" {
		if fl.GitHub, err = a.gitHub(f); err != nil {
			return err
		}
	}
	if !f.dryRun {
		loss := fmt.Sprintf("This opens pull requests. Repositories: %d\n", len(all))
		if err := a.Confirm(f.confirm, loss); err != nil {
			return err
		}
	}
	stop := a.watch(fl, len(all), func(line string) { a.Warn("%s\n", line) })
	found := fl.Update(ctx, all)
	stop()
	code, rows := exit.OK, [][]term.Cell{}
	for _, u := range found {
		row := cells(u.Name, u.Outcome, u.PullRequest, cmp.Or(u.Detail, strings.Join(u.Versions, ", ")))
		switch {
		case u.Outcome == fleet.Failed, u.Outcome == fleet.Refused:
			row[1].Tone, code = term.Bad, exit.Error
		case len(u.Conflicts) > 0:
			row[1] = term.Warn.Cell(u.Outcome + " with conflicts")
			row[3].Text = cmp.Or(u.Detail, strings.Join(u.Conflicts, ", "))
			code = cmp.Or(code, exit.Failed)
		}
		rows = append(rows, row)
	}
	return a.report(f, found, "REPOSITORY,OUTCOME,PULL REQUEST,DETAIL", rows, code)
}

func (a *app) gitHub(f *fleetFlags) (*fleet.GitHub, error) {
	token := a.Getenv("GITHUB_TOKEN")
	if f.tokenFile != "" {
		text, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("read token: %w", err)
		}
		token = string(text)
	}
	if token = strings.TrimSpace(token); token == "" {
		return nil, exit.Hintf("set GITHUB_TOKEN or --token-file, or the command of another forge with --open-with",
			"there is no token for GitHub")
	}
	return fleet.NewGitHub(f.address, token)
}
