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
	"github.com/bellwether-dev/bellwether/phrase"
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

// add adds the flags of init and of update.
func (f *flags) add(c *cobra.Command) {
	f.addWriting(c)
	flags := c.Flags()
	flags.StringArrayVar(&f.set, "set", nil, "A parameter's value, `NAME=VALUE`. The items of a list are separated "+
		"by commas. Can be repeated.")
	flags.StringArrayVar(&f.options.Overwrite, "overwrite", nil, "Give up the edits of a file, named by its `PATH`. "+
		"Can be repeated.")
	flags.BoolVar(&f.options.Adopt, "adopt", false, "Overwrite all files that were there before the convention.")
	f.access.Add(c)
}

// addWriting adds the flags of all commands that write.
func (f *flags) addWriting(c *cobra.Command) {
	f.addDir(c)
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "Show the differences and change nothing.")
	c.Flags().BoolVar(&f.noCommit, "no-commit", false, "Write the files and make no commit.")
	f.confirm.Add(c)
}

func (a *app) initCommand() *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use: "init", Short: "Subscribe a repository to conventions", Long: initLong, Args: command.NoArgs,
		Example: "  bellwether boilerplate init --convention go --convention docs --set module=example.org/echo\n" +
			"  bellwether boilerplate init --convention acme=oci://registry.example.com/conventions/acme:1.0.0 " +
			"--key cosign.pub",
		RunE: a.run(f, a.init),
	}
	f.add(c)
	c.Flags().StringArrayVar(&f.conventions, "convention", nil, "A convention, `NAME[=SOURCE]`. Can be repeated.")
	c.Flags().StringArrayVar(&f.keys, "key", nil, "A public key in the repository, one of which has to have signed "+
		"the conventions of registries: its `FILE`. Can be repeated.")
	command.Required(c, "convention")
	return c
}

func (a *app) updateCommand() *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use: "update", Short: "Update a repository to its conventions", Long: updateLong, Args: command.NoArgs,
		Example: "  bellwether boilerplate update --dry-run\n" +
			"  bellwether boilerplate update --convention go --to 0.2.0",
		RunE: a.run(f, a.update),
	}
	f.add(c)
	flags := c.Flags()
	flags.StringVar(&f.options.Convention, "convention", "", "The convention that --to and --source are for.")
	flags.StringVar(&f.options.To, "to", "", "Another version.")
	flags.StringVar(&f.options.Source, "source", "", "Another source.")
	flags.BoolVar(&f.goOn, "continue", false, "Commit an update whose conflicts are resolved.")
	flags.BoolVar(&f.abort, "abort", false, "Take an update in progress back.")
	command.Exclusive(c, "continue", "abort", "dry-run")
	return c
}

func (a *app) init(ctx context.Context, f *flags, _ []string) error {
	r, err := f.open()
	switch {
	case err == nil:
		return exit.Hintf("edit it, and run `"+a.Self+" boilerplate update`", "the repository has a %s already",
			subscription.File)
	case r == nil:
		return err
	case r.Journal != nil:
		return run.ErrInProgress
	}
	r.Subscription.Conventions, r.Subscription.Keys = uses(f.conventions), f.keys
	return a.propose(ctx, f, r)
}

func (a *app) update(ctx context.Context, f *flags, _ []string) error {
	r, err := f.open()
	switch {
	case r != nil && r.Journal != nil:
		return a.resume(ctx, f, r)
	case err != nil:
		return err
	case f.goOn || f.abort:
		return errors.New("no update is in progress")
	}
	return a.propose(ctx, f, r)
}

// resume goes on with an update in progress, or takes it back. After one that was interrupted comes what was asked for.
func (a *app) resume(ctx context.Context, f *flags, r *run.Repository) error {
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
	case !wasInterrupted && !f.goOn:
		return fmt.Errorf("%w: %w: %s", run.ErrInProgress, run.ErrConflicts,
			strings.Join(update.Conflicts(r.Journal.Changes), ", "))
	}
	result, err := r.Continue(ctx)
	if err != nil {
		return err
	}
	if wasInterrupted {
		a.Step("Went on with an update that was interrupted.")
	}
	if err := a.finish(result); err != nil || f.goOn {
		return err
	}
	err = a.update(ctx, f, nil)
	if errors.Is(err, run.ErrNotSubscribed) { // The end of a subscription was interrupted.
		return nil
	}
	return err
}

// propose plans an update, shows it, and applies it.
func (a *app) propose(ctx context.Context, f *flags, r *run.Repository) error {
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
		return a.refuse(p.Plan.Refusals)
	}
	return a.apply(ctx, f, r, p)
}

func (a *app) refuse(refusals []update.Refusal) error {
	for _, refusal := range refusals {
		a.Warn("%s: %s\n", refusal.Path, refusal.Reason)
		for _, remedy := range refusal.Remedies {
			a.Warn("  - %s\n", remedy)
		}
	}
	return fmt.Errorf("the update is refused because of %s, and nothing was changed",
		phrase.Count(len(refusals), "file"))
}

// apply shows a plan, and applies it.
func (a *app) apply(ctx context.Context, f *flags, r *run.Repository, p *run.Proposal) error {
	a.show(p)
	switch {
	case len(p.Changes) == 0:
		a.Say("The repository is up to date.\n")
		return nil
	case f.dryRun:
		return nil
	}
	loss := "This writes " + phrase.Count(len(p.Changes), "file")
	if !f.noCommit {
		loss += " and makes a commit"
	}
	if err := a.Confirm(f.confirm, loss+".\n"); err != nil {
		return err
	}
	result, err := r.Apply(ctx, p, !f.noCommit)
	if err != nil {
		return err
	}
	return a.finish(result)
}

// show prints the differences of the repository's files, and how many there are.
func (a *app) show(p *run.Proposal) {
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

func (a *app) finish(result run.Result) error {
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

func (a *app) ejectCommand() *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use: "eject [CONVENTION]", Short: "End the subscription to conventions, and keep the files",
		Long: `End the subscription of a repository to one convention, or to all of them. Its files
stay, without the headers and the markers of regions, and are the repository's own from
then on. It is one commit, and refused where an update would be.`,
		Args: command.AtMostOne, Example: "  bellwether boilerplate eject docs", RunE: a.run(f, a.eject),
	}
	f.addWriting(c)
	return c
}

func (a *app) eject(ctx context.Context, f *flags, args []string) error {
	r, err := f.open()
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
	return a.apply(ctx, f, r, p)
}
