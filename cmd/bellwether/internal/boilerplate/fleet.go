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
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

const fleetLong = `Work on the repositories in a file:

  apiVersion: boilerplate.bellwether.dev/v1alpha1
  kind: Repositories
  repositories:
    - source: https://github.com/acme/echo-operator.git
      branch: main              # default: the default branch
      labels: [team-a]          # of its pull requests
    - source: ./cache-operator # a local clone, relative to the file`

const fleetUpdateLong = `Update many repositories to their conventions, each by a pull request. A repository is
cloned into a folder of the command's own; local clones are not changed, and nothing of a
repository is run. Git uses your credentials.

The branch is boilerplate/BRANCH, with one commit; a newer version goes to the same
pull request. One whose branch somebody else has pushed to, or that somebody has closed,
is left alone. One with conflicts has the markers in its files, and the label
boilerplate-conflict.

Pull requests are opened by GitHub's API, with the token in GITHUB_TOKEN, or by the
command of --open-with. It is run in the clone, with BOILERPLATE_BRANCH, _BASE, _TITLE,
_BODY_FILE, _LABELS, _URL and _OUTCOME (opened, refreshed or unchanged) in its environment.

Exit codes:
  0  all repositories are up to date, or have a pull request without conflicts
  1  an update failed or was refused
  2  there are conflicts to resolve`

// addFleet adds the flags that the commands on many repositories have.
func (f *flags) addFleet(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.repos, "repos", "", "The `FILE` of the repositories.")
	flags.StringVar(&f.fleet.Work, "work", "", "The `FOLDER` for clones. Default: below the user's cache folder.")
	flags.IntVar(&f.fleet.Parallel, "parallel", 8, "How many repositories to work on at the same time.")
	command.Required(c, "repos")
	f.access.Add(c)
	f.out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML, command.OutputMarkdown)
}

// openFleet reads the repositories that are asked for.
func (a *app) openFleet(f *flags) ([]fleet.Repository, error) {
	f.fleet.Sources, f.fleet.Now = sources(&f.access), a.Now()
	all, err := fleet.Read(f.repos)
	if err == nil && f.fleet.Work == "" {
		f.fleet.Work, err = os.UserCacheDir()
		f.fleet.Work = filepath.Join(f.fleet.Work, "bellwether", "fleet")
	}
	if err == nil {
		f.fleet.Work, err = filepath.Abs(f.fleet.Work)
	}
	return all, err
}

// runFleet has work done on all repositories, and prints the results: a row for each, with its outcome in the second
// cell, and how many have each outcome. A row comes with the exit code that it asks for.
func runFleet[T any](ctx context.Context, a *app, f *flags, all []fleet.Repository,
	work func(context.Context, []fleet.Repository) []T, header string, row func(T) ([]term.Cell, int)) error {
	progress, done := a.Progress("working on repositories"), 0
	f.fleet.Done = func(result any) {
		done++
		progress.Count(done, len(all), "repositories")
		if u, ok := result.(fleet.Update); ok {
			progress.Print(func() { a.Warn("%s\n", u) })
		}
	}
	results := work(ctx, all)
	progress.Stop()
	table := &term.Table{Header: strings.Split(header, ","), Wrap: true}
	counts, code := map[string]int{}, exit.OK
	for _, result := range results {
		cells, status := row(result)
		table.Add(cells...)
		counts[cells[1].Text]++
		if status == exit.Error || code == exit.OK {
			code = status
		}
	}
	summary := "Repositories: " + strconv.Itoa(len(results))
	for _, outcome := range slices.Sorted(maps.Keys(counts)) {
		summary += fmt.Sprintf(", %d %s", counts[outcome], outcome)
	}
	switch {
	case f.out.Format == command.OutputMarkdown:
		a.Say("%s\n%s\n", table.Markdown(), summary)
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

func (a *app) fleetCommand() *cobra.Command {
	c := command.Parent("fleet", "Check and update many repositories", nil, a.fleetStatusCommand(),
		a.fleetUpdateCommand())
	c.Long = fleetLong
	return c
}

func (a *app) fleetStatusCommand() *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use: "status", Args: command.NoArgs, Short: "Show which repositories are behind, and which exceptions expire",
		Long: `Show the conventions of many repositories with the versions that were rendered and those
that their sources have, what has drifted, and when the next exception expires. Local
clones are read as they are, remotes as they are there.`,
		Example: "  bellwether boilerplate fleet status --repos repositories.yaml -o markdown",
		RunE:    a.run(f, a.fleetStatus),
	}
	f.addFleet(c)
	return c
}

func (a *app) fleetStatus(ctx context.Context, f *flags, _ []string) error {
	all, err := a.openFleet(f)
	if err != nil {
		return err
	}
	return runFleet(ctx, a, f, all, f.fleet.Status,
		"REPOSITORY,STATE,CONVENTIONS,FINDINGS,EXCEPTIONS UNTIL,PROBLEM", statusRow)
}

func statusRow(s fleet.Status) ([]term.Cell, int) {
	if s.Status == nil {
		return append(term.PlainCells(s.Name, "not readable", "", "", ""), term.Bad.Cell(s.Error)), exit.Error
	}
	row, code := term.PlainCells(s.Name, "up to date", "", strconv.Itoa(s.Findings), "", ""), exit.OK
	if s.Findings > 0 {
		row[1] = term.Warn.Cell("drifted")
	}
	for _, c := range s.Conventions {
		text := c.Name + " " + cmp.Or(c.Version, "none")
		switch {
		case c.Problem != "":
			row[1], row[5].Text, code = term.Bad.Cell("unknown"), c.Problem, exit.Error
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
	return row, code
}

func (a *app) fleetUpdateCommand() *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use: "update", Args: command.NoArgs, Short: "Update many repositories by pull requests", Long: fleetUpdateLong,
		Example: "  bellwether boilerplate fleet update --repos repositories.yaml --dry-run\n" +
			`  bellwether boilerplate fleet update --repos repositories.yaml --yes --open-with 'glab mr create ` +
			`--source-branch "$BOILERPLATE_BRANCH" --title "$BOILERPLATE_TITLE" --yes'`,
		RunE: a.run(f, a.fleetUpdate),
	}
	f.addFleet(c)
	flags := c.Flags()
	flags.BoolVar(&f.fleet.DryRun, "dry-run", false, "Push nothing and open nothing.")
	flags.StringVar(&f.address, "github-url", "", "The `URL` of a GitHub Enterprise Server. Default: github.com.")
	flags.StringVar(&f.fleet.Command, "open-with", "",
		"The `COMMAND` that opens a pull request, instead of GitHub's API.")
	f.confirm.Add(c)
	command.Exclusive(c, "open-with", "github-url")
	return c
}

func (a *app) fleetUpdate(ctx context.Context, f *flags, _ []string) error {
	all, err := a.openFleet(f)
	if err != nil {
		return err
	}
	if token := strings.TrimSpace(a.Getenv("GITHUB_TOKEN")); !f.fleet.DryRun && f.fleet.Command == "" {
		if token == "" {
			return exit.Hintf("set GITHUB_TOKEN, or name the command of another forge with --open-with",
				"there is no token for GitHub")
		}
		f.fleet.GitHub, err = fleet.NewGitHub(f.address, token)
	}
	if err == nil && !f.fleet.DryRun {
		err = a.Confirm(f.confirm, fmt.Sprintf("This opens pull requests. Repositories: %d\n", len(all)))
	}
	if err != nil {
		return err
	}
	return runFleet(ctx, a, f, all, f.fleet.Update, "REPOSITORY,OUTCOME,PULL REQUEST,DETAIL", updateRow)
}

func updateRow(u fleet.Update) ([]term.Cell, int) {
	row := term.PlainCells(u.Name, u.Outcome, u.PullRequest, cmp.Or(u.Detail, strings.Join(u.Versions, ", ")))
	switch {
	case u.Outcome == fleet.Failed, u.Outcome == fleet.Refused:
		row[1].Tone = term.Bad
		return row, exit.Error
	case len(u.Conflicts) > 0:
		row[1] = term.Warn.Cell(u.Outcome + " with conflicts")
		row[3].Text = cmp.Or(u.Detail, strings.Join(u.Conflicts, ", "))
		return row, exit.Failed
	}
	return row, exit.OK
}
