// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package boilerplate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/boilerplate/run"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
	"github.com/bellwether-dev/bellwether/boilerplate/update"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

const initLong = `Subscribe a repository to conventions: write .boilerplate.yaml, then the files, as one
commit. The differences are shown first.

--convention takes NAME for a convention of this program (see boilerplate list), or
NAME=SOURCE. A source is a folder, or oci://REGISTRY/PATH:TAG.

What is there already: a file that a convention would own is refused, unless --adopt
overwrites it (git has the old one). A shared file gets the convention's regions at
its end. A file that is written once is kept.`

const updateLong = `Update a repository to its conventions, as one commit. The differences are shown first.

Without flags, each convention is updated to what its source has now. The update is
refused before anything is written in what is no git repository, if anything is staged,
or if a file that it would write has changes that are not committed; .boilerplate.yaml
may have some.

A file that a convention owns and that was edited by hand is not overwritten. Keep the
edit with an exception in .boilerplate.yaml, give it up with --overwrite, or move it
elsewhere. Files that are shared or merged keep your edits. Where both sides changed
the same lines, the file gets the markers of git merge-file, and nothing is committed:
resolve them, and run the command with --continue or --abort.

Exit codes:
  0  the repository is up to date
  1  an error, or the update is refused and nothing was changed
  2  there are conflicts to resolve`

// addUpdateFlags adds the flags that init and update have in common.
func (f *flags) addUpdateFlags(c *cobra.Command) {
	f.addWriteFlags(c)
	flags := c.Flags()
	flags.StringArrayVar(&f.set, "set", nil, "A parameter's value, `NAME=VALUE`. The items of a list are separated "+
		"by commas. Can be repeated.")
	flags.StringArrayVar(&f.options.Overwrite, "overwrite", nil, "Give up the edits of a file, named by its `PATH`. "+
		"Can be repeated.")
	flags.BoolVar(&f.options.Adopt, "adopt", false, "Overwrite all files that were there before the convention.")
	f.access.Add(c)
}

// addWriteFlags adds the flags of all commands that write.
func (f *flags) addWriteFlags(c *cobra.Command) {
	f.addDirFlag(c)
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "Show the differences and change nothing.")
	c.Flags().BoolVar(&f.noCommit, "no-commit", false, "Write the files and make no commit.")
	f.confirm.Add(c)
}

func (a *app) newInitCommand() *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use: "init", Short: "Subscribe a repository to conventions", Long: initLong, Args: command.NoArgs,
		Example: "  bellwether boilerplate init --convention go --convention docs --set module=example.org/echo\n" +
			"  bellwether boilerplate init --convention acme=oci://registry.example.com/conventions/acme:1.0.0 " +
			"--key cosign.pub",
		RunE: a.newRunE(f, a.initRepository),
	}
	f.addUpdateFlags(c)
	c.Flags().StringArrayVar(&f.conventions, "convention", nil, "A convention, `NAME[=SOURCE]`. Can be repeated.")
	c.Flags().StringArrayVar(&f.keys, "key", nil, "A public key in the repository, one of which must have signed "+
		"the conventions of registries: its `FILE`. Can be repeated.")
	command.RequireFlags(c, "convention")
	return c
}

func (a *app) newUpdateCommand() *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use: "update", Short: "Update a repository to its conventions", Long: updateLong, Args: command.NoArgs,
		Example: "  bellwether boilerplate update --dry-run\n" +
			"  bellwether boilerplate update --convention go --to 0.2.0",
		RunE: a.newRunE(f, a.updateRepository),
	}
	f.addUpdateFlags(c)
	flags := c.Flags()
	flags.StringVar(&f.options.Convention, "convention", "", "The convention that --to and --source are for.")
	flags.StringVar(&f.options.To, "to", "", "Another version.")
	flags.StringVar(&f.options.Source, "source", "", "Another source.")
	flags.BoolVar(&f.continueUpdate, "continue", false, "Commit an update whose conflicts are resolved.")
	flags.BoolVar(&f.abort, "abort", false, "Take an update in progress back.")
	command.ExcludeFlags(c, "continue", "abort", "dry-run")
	return c
}

// initRepository subscribes the repository to conventions. The repository must not have a subscription.
func (a *app) initRepository(ctx context.Context, f *flags, _ []string) error {
	r, err := f.openRepository() // without a subscription, it returns the repository and ErrNotSubscribed
	switch {
	case err == nil:
		return exit.Hintf("edit it, and run `"+a.Self+" boilerplate update`", "the repository has a %s already",
			subscription.File)
	case r == nil:
		return err
	case r.Journal != nil:
		return run.ErrInProgress
	}
	r.Subscription.Conventions, r.Subscription.Keys = parseUses(f.conventions), f.keys
	return a.planAndApply(ctx, f, r)
}

// updateRepository updates the repository, or continues or aborts an update that is in progress.
func (a *app) updateRepository(ctx context.Context, f *flags, _ []string) error {
	r, err := f.openRepository()
	switch {
	case r != nil && r.Journal != nil:
		return a.resumeUpdate(ctx, f, r)
	case err != nil:
		return err
	case f.continueUpdate || f.abort:
		return errors.New("no update is in progress")
	}
	return a.planAndApply(ctx, f, r)
}

// resumeUpdate continues an update in progress, or takes it back with --abort. After an interrupted update it then
// performs the update that the user requested.
func (a *app) resumeUpdate(ctx context.Context, f *flags, r *run.Repository) error {
	wasInterrupted := !r.Journal.Applied
	switch {
	case f.abort:
		err := r.Tree.Abort(r.Journal)
		if err == nil {
			a.Step("The update is taken back, and the files are as they were.")
		}
		return err
	case f.dryRun:
		return run.ErrInProgress
	case !wasInterrupted && !f.continueUpdate:
		return fmt.Errorf("%w: %w: %s", run.ErrInProgress, run.ErrConflicts,
			strings.Join(update.ListConflicts(r.Journal.Changes), ", "))
	}
	result, err := r.Continue(ctx)
	if err != nil {
		return err
	}
	if wasInterrupted {
		a.Step("Went on with an update that was interrupted.")
	}
	if err := a.reportResult(result); err != nil || f.continueUpdate {
		return err
	}
	err = a.updateRepository(ctx, f, nil)
	if errors.Is(err, run.ErrNotSubscribed) { // the interrupted command was eject, which removed the subscription
		return nil
	}
	return err
}

// planAndApply plans an update, and applies it unless a file refuses it.
func (a *app) planAndApply(ctx context.Context, f *flags, r *run.Repository) error {
	f.options.Set, f.options.Now = map[string]string{}, a.Now()
	for _, text := range f.set {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return exit.Hintf("use NAME=VALUE", "invalid value %q of --set", text)
		}
		f.options.Set[name] = value
	}
	progress := a.Progress("reading conventions")
	p, err := r.Plan(ctx, f.options)
	progress.Stop()
	if err != nil {
		return err
	}
	if len(p.Plan.Refusals) > 0 {
		return a.reportRefusals(p.Plan.Refusals)
	}
	return a.confirmAndApply(ctx, f, r, p)
}

// reportRefusals prints the refusals with their remedies, and returns an error.
func (a *app) reportRefusals(refusals []update.Refusal) error {
	for _, refusal := range refusals {
		a.Warn("%s: %s\n", refusal.Path, refusal.Reason)
		for _, remedy := range refusal.Remedies {
			a.Warn("  - %s\n", remedy)
		}
	}
	return fmt.Errorf("the update is refused because of %s, and nothing was changed",
		phrase.Count(len(refusals), "file"))
}

// confirmAndApply shows a plan, requests a confirmation, and applies the plan.
func (a *app) confirmAndApply(ctx context.Context, f *flags, r *run.Repository, p *run.Proposal) error {
	a.printProposal(p)
	switch {
	case len(p.Changes) == 0:
		a.Say("The repository is up to date.\n")
		return nil
	case f.dryRun:
		return nil
	}
	effects := "This writes " + phrase.Count(len(p.Changes), "file")
	if !f.noCommit {
		effects += " and makes a commit"
	}
	if err := a.Confirm(f.confirm, effects+".\n"); err != nil {
		return err
	}
	result, err := r.Apply(ctx, p, !f.noCommit)
	if err != nil {
		return err
	}
	return a.reportResult(result)
}

// printProposal prints the differences of the repository's files, the versions, the changed files and the notes.
func (a *app) printProposal(p *run.Proposal) {
	if diff := update.Diff(p.Plan.Changes); diff != "" {
		a.Say("%s\n", diff)
	}
	for _, version := range p.Versions {
		a.Say("Convention %s\n", version)
	}
	for _, c := range p.Plan.Changes {
		a.Say("%s\n", c)
	}
	for _, note := range p.Plan.Notes {
		a.Say("Note: %s\n", note)
	}
}

// reportResult prints the result of an update, and returns an error with exit.Failed if there are conflicts.
func (a *app) reportResult(result run.Result) error {
	switch {
	case len(result.Conflicts) > 0:
		for _, name := range result.Conflicts {
			a.Warn("conflict: %s\n", name)
		}
		return &exit.CodeError{Code: exit.Failed, Text: fmt.Sprintf("%s to resolve, and nothing is committed. Resolve "+
			"what is between the markers, then run `%s boilerplate update --continue`; or take the update back with "+
			"--abort.", phrase.Count(len(result.Conflicts), "file"), a.Self)}
	case result.Commit != "":
		a.Step("Committed %s.", result.Commit)
	default:
		a.Step("Wrote the files, and made no commit.")
	}
	return nil
}

func (a *app) newEjectCommand() *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use: "eject [CONVENTION]", Short: "End the subscription to conventions, and keep the files",
		Long: `End the subscription of a repository to one convention, or to all of them. Its files
stay, without the headers and the markers of regions, and are the repository's own from
then on. It is one commit, and refused where an update would be.`,
		Args: command.AtMostOne, Example: "  bellwether boilerplate eject docs", RunE: a.newRunE(f, a.eject),
	}
	f.addWriteFlags(c)
	return c
}

// eject ends the subscription to one convention, or to all conventions if args is empty.
func (a *app) eject(ctx context.Context, f *flags, args []string) error {
	r, err := f.openRepository()
	if err != nil {
		return err
	}
	if r.Journal != nil {
		return run.ErrInProgress
	}
	p, err := r.Eject(strings.Join(args, ""))
	if err != nil {
		return err
	}
	return a.confirmAndApply(ctx, f, r, p)
}
