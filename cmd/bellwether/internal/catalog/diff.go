// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/diff"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
)

const catalogDiffLong = `Show what changes for clusters if catalog NEW replaces catalog OLD: new heads,
blocked versions and missing versions, and for each version the next version of an
upgrade before and after. Versions that lose their upgrade path are marked.

--installed adds the number of clusters that run each version: "hub" reads it from
the hub; any other value is a file that maps bundle names to numbers.

Exit codes:
  0  the catalogs offer the same
  1  the catalogs differ
  2  the catalogs cannot be compared`

// Exit codes of catalog diff, the same as those of the program diff.
const (
	ExitDifferent = 1
	ExitTrouble   = 2
)

type diffOptions struct {
	installed string
	out       command.Output
	access    registry.Flags
}

func (a *app) newDiffCommand() *cobra.Command {
	var o diffOptions
	c := &cobra.Command{
		Use: "diff OLD NEW [PACKAGE]", Short: "Show what changes for each installed version between two catalogs",
		Long: catalogDiffLong,
		Example: "  bellwether catalog diff registry.example.com/catalogs/main:latest ./catalog\n" +
			"  bellwether catalog diff ./old ./new echo-operator --installed hub -o markdown",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 2 || len(args) == 3 {
				return nil
			}
			return exit.Hintf("usage: "+c.UseLine(),
				"missing argument: two catalogs (folders or references), and optionally a package")
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return completePackage(&o.access)(c, args[min(len(args), 1):], text)
		},
		RunE: func(c *cobra.Command, args []string) error {
			d, err := a.compareCatalogs(c.Context(), o, args)
			if err != nil {
				return err
			}
			return a.showDiff(&o.out, d)
		},
	}
	o.access.Add(c)
	o.out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML, command.OutputMarkdown)
	c.Flags().StringVar(&o.installed, "installed", "",
		"Show how many clusters run each version. Use \"hub\" or a `FILE`.")
	return a.SetErrorCode(ExitTrouble, c)
}

// compareCatalogs compares the catalogs args[0] and args[1], or only the package args[2] if it is given.
func (a *app) compareCatalogs(ctx context.Context, o diffOptions, args []string) (diff.Diff, error) {
	if err := o.out.Check(); err != nil {
		return diff.Diff{}, err
	}
	name := ""
	if len(args) == 3 {
		name = args[2]
	}
	before, err := o.readGraphs(ctx, args[0], name)
	if err != nil {
		return diff.Diff{}, err
	}
	after, err := o.readGraphs(ctx, args[1], name)
	if err != nil {
		return diff.Diff{}, err
	}
	if name != "" && len(before)+len(after) == 0 {
		return diff.Diff{}, exit.Hintf("see `"+a.Self+" catalog show`", "package %q is in neither catalog", name)
	}
	counts, err := a.readInstalledCounts(ctx, o.installed, append(before, after...)...)
	if err != nil {
		return diff.Diff{}, err
	}
	var installed []diff.Installed
	for _, c := range counts {
		installed = append(installed, diff.Installed(c))
	}
	if name == "" {
		return diff.CompareCatalogs(before, after, installed...)
	}
	return comparePackage(before, after, installed)
}

// readGraphs reads the upgrade graphs of a catalog; if name is not empty, only of this
// package, and nothing if the catalog does not have it.
func (o diffOptions) readGraphs(ctx context.Context, ref, name string) ([]*catalogs.Package, error) {
	files, err := o.access.Open(ctx, ref)
	if err != nil {
		return nil, err
	}
	packages, err := catalogs.ReadGraphs(files)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref, registry.AddHint(err))
	}
	if name == "" {
		return packages, nil
	}
	for _, p := range packages {
		if p.Name == name {
			return []*catalogs.Package{p}, nil
		}
	}
	return nil, nil
}

// comparePackage compares one package. Each slice has at most one package. The result also
// counts installed versions that neither catalog has.
func comparePackage(before, after []*catalogs.Package, installed []diff.Installed) (diff.Diff, error) {
	firstOrNil := func(packages []*catalogs.Package) *catalogs.Package {
		if len(packages) == 0 {
			return nil
		}
		return packages[0]
	}
	d := diff.Diff{Packages: []diff.Package{}}
	p, changed, err := diff.ComparePackages(firstOrNil(before), firstOrNil(after), installed...)
	if changed {
		d.Packages = append(d.Packages, p)
	}
	return d, err
}

// showDiff prints the differences, and returns an error with ExitDifferent if there are any.
func (a *app) showDiff(out *command.Output, d diff.Diff) error {
	switch {
	case out.Format == command.OutputMarkdown:
		a.Say("%s", diff.Markdown(d))
	case !out.Table():
		if err := out.Value(a.Streams.Out, d); err != nil {
			return err
		}
	case d.IsEmpty():
		a.Warn("The catalogs do not differ.\n")
	default:
		a.Say("%s", RenderDiff(d, a.Style(), out.Wide()))
	}
	if d.IsEmpty() {
		return nil
	}
	return &exit.CodeError{Code: ExitDifferent}
}
