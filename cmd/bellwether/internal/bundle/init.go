// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/bundles/build"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

const bundleInitLong = `Write a first bundle of an operator: a folder with a ClusterServiceVersion, one
CustomResourceDefinition, the permissions that a controller needs, and an example.
bundle lint finds no errors in it, and OLM installs it. Change it to what your
operator is, or use it to see what a bundle consists of.

If you have manifests already, use bundle build instead. The command asks nothing
and replaces nothing.`

// initFlags are the flags of bundle init.
type initFlags struct {
	options build.StarterOptions
	about   build.About
}

func (a *app) newInitCommand() *cobra.Command {
	f := &initFlags{}
	c := &cobra.Command{
		Use: "init DIR", Short: "Write a first bundle of an operator", Long: bundleInitLong,
		Example: "  bellwether bundle init ./bundle --package snack-operator --group snacks.example.com --kind Snack",
		Args:    command.OneArg("the folder for the bundle"), ValidArgsFunction: command.CompleteDir,
		RunE: func(_ *cobra.Command, args []string) error { return a.initBundle(f, args[0]) },
	}
	flags, o := c.Flags(), &f.options
	flags.StringVar(&o.Package, "package", "", "The package name of the operator. Default: the name of the folder.")
	flags.StringVar(&o.Version, "version", "0.1.0", "The version of the operator, X.Y.Z.")
	flags.StringVar(&o.Group, "group", "example.com", "The API group of its kind.")
	flags.StringVar(&o.Kind, "kind", "Example", "The kind that it manages.")
	flags.StringVar(&o.Plural, "plural", "", "The plural of the kind. Default: the kind in small letters, with an s.")
	flags.StringVar(&o.Image, "image", "", "The image of the operator. Default: a name that does not exist.")
	flags.StringVar(&f.about.DisplayName, "display-name", "", "The display name of the operator.")
	flags.StringVar(&f.about.Description, "description", "", "The description of the operator, in Markdown.")
	flags.StringVar(&f.about.Provider, "provider", "", "The name of the provider of the operator.")
	return c
}

// initBundle writes a first bundle into dir, which must be empty or must not exist.
func (a *app) initBundle(f *initFlags, dir string) error {
	o := f.options
	if o.Package == "" {
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		o.Package = filepath.Base(absolute)
	}
	// If the folder does not exist, build.Write creates it.
	switch entries, err := os.ReadDir(dir); {
	case errors.Is(err, syscall.ENOTDIR):
		return exit.Hintf("choose another folder", "%s is a file", dir)
	case len(entries) > 0:
		return exit.Hintf("choose another folder", "folder %s is not empty", dir)
	}
	o.About = build.StarterAbout(o)
	o.About.DisplayName = cmp.Or(f.about.DisplayName, o.About.DisplayName)
	o.About.Description = cmp.Or(f.about.Description, o.About.Description)
	o.About.Provider = cmp.Or(f.about.Provider, o.About.Provider)
	r, err := build.StarterBundle(o)
	switch {
	case errors.Is(err, build.ErrStarterOptions):
		return exit.Hint(err, "see `"+a.Self+" bundle init --help`")
	case err != nil:
		return err
	}
	if err := build.Write(dir, r.Files); err != nil {
		return err
	}
	a.Say("Wrote %s to %s.\n", r.Name, dir)
	if f.options.Image == "" {
		a.Say("Its image does not exist yet. Set it in the ClusterServiceVersion, by digest.\n")
	}
	a.Say("Check it with `%s bundle lint %s`.\n", a.Self, dir)
	return nil
}
