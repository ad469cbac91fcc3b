// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/boilerplate/scaffold"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

const initLong = `Write a new operator: a Go module with an API and its validation, a controller with
the steps observe, plan, apply and report, unit tests, tests against a real API server,
end-to-end tests, metrics, leader election, and what its bundle, catalog, SLO profile,
alerts and dashboard are made of. It needs no change to build, pass its tests and be
rolled out; then change its API and its plan to what your operator is for.

The new folder subscribes to the conventions go, docs, ci-github and operator: see
boilerplate. It is also a project of kubebuilder, which can add more kinds.

--api-from makes the operator for Go types that exist: a folder, whose Go files are
copied, or a package of another module, PATH or PATH@VERSION, which is imported and for
which Go is needed. The types need +groupName, AddToScheme, and a status with
Conditions []metav1.Condition.

The command asks nothing, runs nothing of what it writes, and replaces nothing. The same
flags give the same files.`

const initExample = `  bellwether operator init snack-operator --module github.com/acme/snack-operator
  bellwether operator init tenant-operator --kind Tenant --scope cluster --webhook
  bellwether operator init snack-operator --api-from ./api/v1 --example ./config/samples/snack.yaml`

// initFlags are the flags of operator init.
type initFlags struct {
	options                      scaffold.Options
	dir, scope, apiFrom, example string
}

func (a *app) newInitCommand() *cobra.Command {
	f := &initFlags{}
	c := &cobra.Command{
		Use: "init NAME", Short: "Write a new operator", Long: initLong, Example: initExample,
		Args: command.OneArg("the name of the operator"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			f.options.Name = args[0]
			return a.initOperator(c.Context(), f)
		},
	}
	flags, o := c.Flags(), &f.options
	flags.StringVar(&f.dir, "dir", "", "The `FOLDER` to write to. It may have a git repository, and nothing else. "+
		"Default: NAME.")
	flags.StringVar(&o.Module, "module", "", "The path of the Go module. Default: example.com/NAME.")
	flags.StringVar(&o.Group, "group", "", "The API group. Default: NAME.example.com.")
	flags.StringVar(&o.Version, "api-version", "", "The version of the API. Default: v1alpha1.")
	flags.StringVar(&o.Kind, "kind", "", "The kind. Default: made of NAME, or the only kind of --api-from.")
	flags.StringVar(&o.Plural, "plural", "", "The plural of the kind. Default: made of the kind.")
	flags.StringVar(&f.scope, "scope", "namespaced", "Whether objects of the kind are in namespaces: namespaced or "+
		"cluster.")
	flags.BoolVar(&o.Webhook, "webhook", false, "Add a webhook that validates objects.")
	flags.StringVar(&f.apiFrom, "api-from", "", "A folder with Go types, or a package with them: `DIR|IMPORT`.")
	flags.StringVar(&f.example, "example", "", "The `FILE` with an object of the kind, for tests and catalogs.")
	flags.StringVar(&o.Image, "image", "", "The repository of the image. Default: the path of the module.")
	flags.StringVar(&o.Team, "team", "", "The user or team (org/team) of GitHub that approves changes. "+
		"Default: maintainers.")
	for _, name := range []string{"group", "api-version", "scope"} { // the Go types define these values
		command.ExcludeFlags(c, "api-from", name)
	}
	_ = c.MarkFlagDirname("dir")
	_ = c.MarkFlagDirname("api-from")
	_ = c.MarkFlagFilename("example", "yaml", "yml")
	_ = c.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions([]string{"namespaced", "cluster"},
		cobra.ShellCompDirectiveNoFileComp))
	return c
}

// initOperator writes the new operator's folder, and prints the next steps.
func (a *app) initOperator(ctx context.Context, f *initFlags) error {
	f.dir = cmp.Or(f.dir, f.options.Name)
	err := f.readOptions(ctx)
	if err == nil {
		err = scaffold.Create(ctx, f.dir, f.options, a.Now())
	}
	switch {
	case errors.Is(err, scaffold.ErrOptions):
		return exit.Hint(err, "see `"+a.Self+" operator init --help`")
	case errors.Is(err, scaffold.ErrNotEmpty):
		return exit.Hint(err, "choose another folder with --dir, or move away what is there")
	case errors.Is(err, scaffold.ErrTypes):
		return exit.Hint(err, "see what types need in `"+a.Self+" operator init --help`")
	case err != nil:
		return err
	}
	a.Say("Wrote the operator %s to %s.\n\nNext, in that folder:\n"+
		"  git init && make generate   # go.sum, deep copies, definitions and roles\n"+
		"  make test lint              # tests against a real API server, and linters\n"+
		"  make bundle                 # the bundle, and its lint\n", f.options.Name, f.dir)
	if f.apiFrom != "" && f.example == "" {
		a.Say("\nBefore the tests, write a valid object to config/samples: without --example its spec is empty.\n")
	}
	return nil
}

// readOptions sets f.options from the other flags: the scope, the example, and the Go types of --api-from, which are in
// a folder if there is such a folder or the value looks like a path, else in a package that is downloaded.
func (f *initFlags) readOptions(ctx context.Context) error {
	f.options.Cluster = f.scope == "cluster"
	if !f.options.Cluster && f.scope != "namespaced" {
		return fmt.Errorf("%w: scope %q is not namespaced or cluster", scaffold.ErrOptions, f.scope)
	}
	if f.example != "" {
		text, err := os.ReadFile(f.example)
		if err != nil {
			return fmt.Errorf("read example: %w", err)
		}
		f.options.Example = string(text)
	}
	if f.apiFrom == "" {
		return nil
	}
	isPath := filepath.IsAbs(f.apiFrom) || strings.HasPrefix(f.apiFrom, ".")
	info, err := os.Stat(f.apiFrom)
	isFolder := err == nil && info.IsDir()
	if isPath || isFolder {
		f.options.Types, err = scaffold.ReadTypes(f.apiFrom, f.options.Kind)
	} else {
		f.options.Types, err = scaffold.FetchTypes(ctx, f.apiFrom, f.options.Kind)
	}
	return err
}
