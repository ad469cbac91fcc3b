// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package boilerplate provides the commands that apply conventions to repositories and update them.
package boilerplate

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/boilerplate/conventions"
	"github.com/bellwether-dev/bellwether/boilerplate/fleet"
	"github.com/bellwether-dev/bellwether/boilerplate/repository"
	"github.com/bellwether-dev/bellwether/boilerplate/run"
	"github.com/bellwether-dev/bellwether/boilerplate/source"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
)

// app is the environment of the commands in this package.
type app struct{ *command.Env }

const parentLong = `Bring conventions to a repository, and keep it at them.

A convention is a versioned folder of files with parameters: Makefile targets,
linters, workflows, documents. A repository subscribes to conventions in
.boilerplate.yaml. Its files are owned (rewritten by each update), shared (only
marked regions are of the convention), merged three ways, or written once.

Nothing of the repository is run, and nothing that you wrote is lost: an update is
refused where it would be.`

// Command returns the command boilerplate with its subcommands.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	c := command.NewParent("boilerplate", "Bring conventions to repositories of operators", nil, a.newInitCommand(),
		a.newUpdateCommand(), a.newCheckCommand(), a.newStatusCommand(), a.newListCommand(), a.newEjectCommand(),
		a.newPushCommand(), a.newFleetCommand())
	c.Long = parentLong
	return c
}

// flags are the flags of all commands in this package; each command adds some of them.
type flags struct {
	dir     string
	access  registry.Flags
	out     command.Output
	remote  bool
	sources []string // of list: additional conventions

	// The flags of the commands that write.
	options                                 run.Options
	set, conventions, keys                  []string
	dryRun, noCommit, continueUpdate, abort bool
	confirm                                 command.Confirmation

	// The flags of the commands for many repositories.
	fleet                fleet.Fleet
	reposFile, githubURL string
}

// addDirFlag adds the flag for the folder of the repository.
func (f *flags) addDirFlag(c *cobra.Command) {
	c.Flags().StringVar(&f.dir, "dir", ".", "The `FOLDER` of the repository.")
	_ = c.MarkFlagDirname("dir")
}

// openRepository opens the repository. It stays open until the program ends.
func (f *flags) openRepository() (*run.Repository, error) {
	return run.Open(f.dir, newLoader(&f.access))
}

// newRunE returns the RunE of a command: it checks the output flags, calls execute, and adds a hint to its error.
func (a *app) newRunE(f *flags, execute func(context.Context, *flags, []string) error,
) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		err := f.out.Check()
		if err == nil {
			err = execute(c.Context(), f, args)
		}
		return a.addHint(err)
	}
}

// newLoader returns a loader of conventions, with a cache in the user's cache folder.
func newLoader(access *registry.Flags) source.Loader {
	var options oci.Options
	if cache, err := os.UserCacheDir(); err == nil {
		options.CacheDir = filepath.Join(cache, "bellwether", "boilerplate")
	}
	return source.Loader{Builtin: conventions.Files, Dir: ".", Access: access.Access(), Client: oci.NewClient(options)}
}

// addHint adds to an error the hint for the first sentinel error that it wraps, or else the hint of the registry.
func (a *app) addHint(err error) error {
	hints := []struct {
		err  error
		hint string
	}{
		{run.ErrNotSubscribed, "subscribe with `" + a.Self + " boilerplate init --convention NAME`"},
		{repository.ErrNotRepository, "run it in a git repository (`git init`): an update is one commit, and " +
			"git keeps what it replaces"},
		{repository.ErrDirty, "commit, stash or remove these changes, so that the update is a commit of its own"},
		{repository.ErrChanged, "restore the file with git, or move it away, and run `" + a.Self +
			" boilerplate update --continue` or --abort"},
		{run.ErrParameters, "set each with --set NAME=VALUE"},
		{run.ErrConflicts, "resolve what is between the markers in these files, and run `" + a.Self +
			" boilerplate update --continue`; or take the update back with --abort"},
		{run.ErrInProgress, "end it with `" + a.Self + " boilerplate update --continue` or --abort"},
		{run.ErrNotNewer, "set --to to go back to it on purpose"},
		{source.ErrMoved, "a version never changes: find out who published it again, and publish a new version"},
		{source.ErrNotFound, "see `" + a.Self + " boilerplate list`"},
		{oci.ErrUnsigned, "sign it with one of the keys of the subscription, for example `cosign sign --key`"},
		{oci.ErrBadSignature, "check who published it; the keys of the subscription are those to trust"},
	}
	for _, h := range hints {
		if errors.Is(err, h.err) {
			return exit.Hint(err, h.hint)
		}
	}
	return registry.AddHint(err)
}

func (a *app) newPushCommand() *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use: "push DIR REF", Short: "Push a convention to a registry and print its digest",
		Long: `Push the convention in a folder to a registry as an OCI image, and print the digest
of its manifest. Sign it by that digest, for example with cosign sign --key, and
subscribe to it as oci://REF.`,
		Args:              command.ExactArgs("the convention's folder", "the reference to push it to"),
		ValidArgsFunction: command.CompleteDir,
		Example: "  bellwether boilerplate push ./conventions/acme " +
			"registry.example.com/conventions/acme:1.0.0",
		RunE: a.newRunE(f, func(ctx context.Context, f *flags, args []string) error {
			if err := registry.CheckTarget(args[1]); err != nil {
				return err
			}
			digest, err := source.Push(ctx, args[0], args[1], f.access.Access())
			return registry.PrintDigest(a.Env, digest, err)
		}),
	}
	f.access.Add(c)
	return c
}
