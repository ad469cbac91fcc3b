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

// addFleetFlags adds the flags of the commands for many repositories.
func (f *flags) addFleetFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.reposFile, "repos", "", "The `FILE` of the repositories.")
	flags.StringVar(&f.fleet.Work, "work", "", "The `FOLDER` for clones. Default: below the user's cache folder.")
	flags.IntVar(&f.fleet.Parallel, "parallel", 8, "How many repositories to work on at the same time.")
	command.RequireFlags(c, "repos")
	f.access.Add(c)
	f.out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML, command.OutputMarkdown)
}

// openFleet reads the list of repositories in --repos, and completes f.fleet.
func (a *app) openFleet(f *flags) ([]fleet.Repository, error) {
	f.fleet.Sources, f.fleet.Now = newLoader(&f.access), a.Now()
	repositories, err := fleet.Read(f.reposFile)
	if err == nil && f.fleet.Work == "" {
		f.fleet.Work, err = os.UserCacheDir()
		f.fleet.Work = filepath.Join(f.fleet.Work, "bellwether", "fleet")
	}
	if err == nil {
		f.fleet.Work, err = filepath.Abs(f.fleet.Work)
	}
	return repositories, err
}

// runFleet calls work for all repositories and prints the results: a row for each repository, and the
// number of repositories with each outcome. buildRow returns the cells of a result, with the outcome
// in the second cell, and an exit code. The command ends with exit.Error if a row has this code, else
// with the first other code that is not exit.OK.
func runFleet[T any](ctx context.Context, a *app, f *flags, repositories []fleet.Repository,
	work func(context.Context, []fleet.Repository) []T, header string, buildRow func(T) ([]term.Cell, int)) error {
	progress, done := a.Progress("working on repositories"), 0
	f.fleet.Done = func(result any) {
		done++
		progress.Count(done, len(repositories), "repositories")
		if u, ok := result.(fleet.Update); ok {
			progress.Print(func() { a.Warn("%s\n", u) })
		}
	}
	results := work(ctx, repositories)
	progress.Stop()
	table := &term.Table{Header: strings.Split(header, ","), Wrap: true}
	counts, code := map[string]int{}, exit.OK
	for _, result := range results {
		cells, rowCode := buildRow(result)
		table.Add(cells...)
		counts[cells[1].Text]++
		if rowCode == exit.Error || code == exit.OK {
			code = rowCode
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

func (a *app) newFleetCommand() *cobra.Command {
	c := command.NewParent("fleet", "Check and update many repositories", nil, a.newFleetStatusCommand(),
		a.newFleetUpdateCommand())
	c.Long = fleetLong
	return c
}

func (a *app) newFleetStatusCommand() *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use: "status", Args: command.NoArgs, Short: "Show which repositories are behind, and which exceptions expire",
		Long: `Show the conventions of many repositories with the versions that were rendered and those
that their sources have, what has drifted, and when the next exception expires. Local
clones are read as they are, remotes as they are there.`,
		Example: "  bellwether boilerplate fleet status --repos repositories.yaml -o markdown",
		RunE:    a.newRunE(f, a.showFleetStatus),
	}
	f.addFleetFlags(c)
	return c
}

// showFleetStatus prints the status of all repositories.
func (a *app) showFleetStatus(ctx context.Context, f *flags, _ []string) error {
	repositories, err := a.openFleet(f)
	if err != nil {
		return err
	}
	return runFleet(ctx, a, f, repositories, f.fleet.Status,
		"REPOSITORY,STATE,CONVENTIONS,FINDINGS,EXCEPTIONS UNTIL,PROBLEM", buildStatusRow)
}

// buildStatusRow returns the cells for a repository's status in the order of the header of showFleetStatus. The exit
// code is exit.Error if the status or the newest version of a convention could not be determined.
func buildStatusRow(s fleet.Status) ([]term.Cell, int) {
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
		nextExpiring := slices.MinFunc(s.Exceptions,
			func(a, b run.ExceptionStatus) int { return a.DaysLeft - b.DaysLeft })
		row[4].Text = nextExpiring.Expires
		if nextExpiring.DaysLeft < 0 {
			row[4].Tone = term.Bad
		}
	}
	return row, code
}

func (a *app) newFleetUpdateCommand() *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use: "update", Args: command.NoArgs, Short: "Update many repositories by pull requests", Long: fleetUpdateLong,
		Example: "  bellwether boilerplate fleet update --repos repositories.yaml --dry-run\n" +
			`  bellwether boilerplate fleet update --repos repositories.yaml --yes --open-with 'glab mr create ` +
			`--source-branch "$BOILERPLATE_BRANCH" --title "$BOILERPLATE_TITLE" --yes'`,
		RunE: a.newRunE(f, a.updateFleet),
	}
	f.addFleetFlags(c)
	flags := c.Flags()
	flags.BoolVar(&f.fleet.DryRun, "dry-run", false, "Push nothing and open nothing.")
	flags.StringVar(&f.githubURL, "github-url", "", "The `URL` of a GitHub Enterprise Server. Default: github.com.")
	flags.StringVar(&f.fleet.Command, "open-with", "",
		"The `COMMAND` that opens a pull request, instead of GitHub's API.")
	f.confirm.Add(c)
	command.ExcludeFlags(c, "open-with", "github-url")
	return c
}

// updateFleet updates all repositories by pull requests after a confirmation.
func (a *app) updateFleet(ctx context.Context, f *flags, _ []string) error {
	repositories, err := a.openFleet(f)
	if err != nil {
		return err
	}
	if token := strings.TrimSpace(a.Getenv("GITHUB_TOKEN")); !f.fleet.DryRun && f.fleet.Command == "" {
		if token == "" {
			return exit.Hintf("set GITHUB_TOKEN, or name the command of another forge with --open-with",
				"there is no token for GitHub")
		}
		f.fleet.GitHub, err = fleet.NewGitHub(f.githubURL, token)
	}
	if err == nil && !f.fleet.DryRun {
		err = a.Confirm(f.confirm, fmt.Sprintf("This opens pull requests. Repositories: %d\n", len(repositories)))
	}
	if err != nil {
		return err
	}
	return runFleet(ctx, a, f, repositories, f.fleet.Update, "REPOSITORY,OUTCOME,PULL REQUEST,DETAIL", buildUpdateRow)
}

// buildUpdateRow returns the cells for a repository's update. The exit code is exit.Error if the update failed or was
// refused, and exit.Failed if it has conflicts.
func buildUpdateRow(u fleet.Update) ([]term.Cell, int) {
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
