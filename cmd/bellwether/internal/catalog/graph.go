// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/agree"
	"github.com/bellwether-dev/bellwether/catalogs/draw"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
	"github.com/bellwether-dev/bellwether/untrusted"
)

const catalogGraphLong = `Draw the upgrade graph of a package, with a row for each version and a lane for
each channel. It shows the upgrade edges and the heads; versions that are
deprecated, blocked or skipped; versions without an upgrade path; rollbacks that
need more than an installation; and differences between OLM v0 and OLM v1.

--installed adds the number of clusters that run each version: "hub" reads it from
the hub; any other value is a file that maps bundle names or versions to numbers:

  echo-operator.v1.0.0: 12
  1.1.0: 3

In a long graph, versions without a note are folded. Use --all to show them.`

// pictures are the formats, with the endings of their files.
var pictures = map[string]struct {
	ending string
	draw   func(*draw.Graph) string
}{
	command.OutputText:    {".txt", draw.Text},
	command.OutputSVG:     {".svg", func(g *draw.Graph) string { return string(draw.SVG(g)) }},
	command.OutputMermaid: {".mmd", draw.Mermaid},
	command.OutputDOT:     {".dot", draw.DOT},
}

type graphOptions struct {
	channel, installed, file string
	all                      bool
	out                      command.Output
	access                   registry.Flags
}

func (a *app) catalogGraphCommand() *cobra.Command {
	var o graphOptions
	c := &cobra.Command{
		Use: "graph REF|DIR PACKAGE", Short: "Draw the upgrade graph of a package", Long: catalogGraphLong,
		Example: "  bellwether catalog graph ./catalog echo-operator\n" +
			"  bellwether catalog graph registry.example.com/catalogs/main:latest echo-operator --installed hub " +
			"--file echo.svg",
		Args:              command.ExactArgs("the catalog's folder or reference", "the package's name"),
		ValidArgsFunction: completePackage(&o.access),
		RunE: func(c *cobra.Command,
			args []string) error {
			return a.graph(c.Context(), o, args[0], args[1])
		},
	}
	o.access.Add(c)
	o.out.Add(c, command.OutputText, command.OutputSVG, command.OutputMermaid, command.OutputDOT)
	c.Flags().StringVar(&o.channel, "channel", "", "Draw only this channel.")
	c.Flags().StringVar(&o.installed, "installed", "",
		"Show how many clusters run each version. Use \"hub\" or a `FILE`.")
	c.Flags().StringVar(&o.file, "file", "",
		"Write to this `FILE`. The ending selects the format: .svg, .mmd, .dot or .txt.")
	c.Flags().BoolVar(&o.all, "all", false, "Show all versions of a long graph.")
	_ = c.RegisterFlagCompletionFunc("installed",
		func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"hub\tthe clusters of the fleet"}, cobra.ShellCompDirectiveDefault
		})
	_ = c.MarkFlagFilename("file", "svg", "mmd", "dot", "txt")
	return c
}

// completePackage completes a folder, and then the packages in it.
func completePackage(access *registry.Flags) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return command.CompleteDir(c, args, text)
		}
		ctx, cancel := context.WithTimeout(context.Background(), command.CompletionTimeout)
		defer cancel()
		return packageNames(ctx, access, args[0]), cobra.ShellCompDirectiveNoFileComp
	}
}

// packageNames lists the packages of a catalog. Completion cannot show an error, so there is none to return.
func packageNames(ctx context.Context, access *registry.Flags, text string) []string {
	files, err := access.Open(ctx, text)
	if err != nil {
		return nil
	}
	summary, err := catalogs.ReadSummary(files)
	if err != nil {
		return nil
	}
	var out []string
	for _, p := range summary.Packages {
		out = append(out, p.Name)
	}
	return out
}

// format follows from -o, or else from the file's ending.
func (o graphOptions) format() (string, error) {
	if err := o.out.Check(); err != nil || o.out.Format != "" {
		return o.out.Format, err
	}
	if o.file == "" {
		return command.OutputText, nil
	}
	for name, p := range pictures {
		if filepath.Ext(o.file) == p.ending {
			return name, nil
		}
	}
	return "", exit.Hintf("use a name that ends in .svg, .mmd, .dot or .txt, or set -o",
		"the ending of %s is not a known format", o.file)
}

func (a *app) graph(ctx context.Context, o graphOptions, ref, name string) error {
	format, err := o.format()
	if err != nil {
		return err
	}
	files, err := o.access.Open(ctx, ref)
	if err != nil {
		return err
	}
	p, err := catalogs.ReadPackageWith(files, name)
	if err != nil {
		return registry.WithHint(err)
	}
	fleet, err := a.fleetVersions(ctx, o.installed, p)
	if err != nil {
		return err
	}
	differences, err := differences(p, fleet)
	if err != nil {
		return err
	}
	options := draw.Options{Channel: o.channel, Differences: differences, Whole: o.all}
	if o.installed != "" {
		options.Installed = []draw.Installed{}
	}
	for _, i := range fleet {
		options.Installed = append(options.Installed, draw.Installed(i))
	}
	g, err := draw.Build(p, options)
	if err != nil {
		return err
	}
	if format == command.OutputMermaid && g.Edges() >= mermaidEdges {
		a.Warn("Most Mermaid viewers reject %d or more edges, and this graph has %d. Use -o svg, or "+
			"--channel to draw one channel.\n", mermaidEdges, g.Edges())
	}
	if format == command.OutputText && o.file == "" {
		return a.Deliver(draw.TextWithin(g, a.Style().Width), "")
	}
	return a.Deliver(pictures[format].draw(g), o.file)
}

// mermaidEdges is the number of edges that Mermaid refuses by its defaults; no diagram can set it for itself.
const mermaidEdges = 500

// differences are where OLM v0 and v1 part ways within a channel.
func differences(p *catalogs.Package, fleet []fleetVersion) ([]draw.Difference, error) {
	var installed []catalogs.Installed
	for _, i := range fleet {
		installed = append(installed, i.Installed)
	}
	report, err := agree.Check(p, installed...)
	if err != nil {
		return nil, fmt.Errorf("run the resolvers: %w", err)
	}
	var out []draw.Difference
	for _, d := range report.Disagreements() {
		// The picture has a lane for each channel, and none for a ClusterExtension that names no channel.
		if d.Channel == "" {
			continue
		}
		version := d.Installed.Name
		if b := p.Bundles[version]; b != nil {
			version = b.VersionString()
		}
		// The note stands beside the version.
		text := strings.TrimPrefix(d.Text, fmt.Sprintf("channel %s, from %s: ", d.Channel, version))
		out = append(out, draw.Difference{Channel: d.Channel, From: d.Installed.Name, Text: text})
	}
	return out, nil
}

// fleetVersion is how many clusters run a bundle.
type fleetVersion struct {
	catalogs.Installed
	Clusters int
}

// fleetVersions finds out what clusters run of the packages: from the hub, or from a file; nothing if neither is given.
func (a *app) fleetVersions(ctx context.Context, source string, packages ...*catalogs.Package) ([]fleetVersion, error) {
	switch source {
	case "":
		return nil, nil
	case "hub":
		return a.hubVersions(ctx, packages)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		return nil, exit.Hint(fmt.Errorf("read what is installed: %w", err),
			"use \"hub\", or a file that maps bundles or versions to numbers of clusters")
	}
	return parseVersions(text, packages)
}

func (a *app) hubVersions(ctx context.Context, packages []*catalogs.Package) ([]fleetVersion, error) {
	h, err := a.Hub()
	if err != nil {
		return nil, err
	}
	list := &v1alpha1.OperatorInstallList{}
	if err := h.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list installs: %w", err)
	}
	counts := map[catalogs.Installed]int{}
	for _, i := range list.Items {
		admitted, installed := i.Spec.Admission, i.Status.Installed
		if admitted == nil || installed == nil || installed.Bundle == "" {
			continue
		}
		if slices.ContainsFunc(packages, func(p *catalogs.Package) bool { return p.Name == admitted.Release.Package }) {
			counts[catalogs.Installed{Name: installed.Bundle, Version: installed.Version}]++
		}
	}
	return sortVersions(counts), nil
}

var errNotCounts = errors.New("not a map of bundles or versions to numbers of clusters")

func parseVersions(text []byte, packages []*catalogs.Package) ([]fleetVersion, error) {
	var in map[string]int
	if err := untrusted.UnmarshalStrict(text, &in); err != nil {
		return nil, exit.Hint(fmt.Errorf("read what is installed: %w: %w", errNotCounts, err),
			"write lines such as \"echo-operator.v1.0.0: 12\"")
	}
	counts := map[catalogs.Installed]int{}
	for _, key := range slices.Sorted(maps.Keys(in)) {
		if in[key] < 0 {
			return nil, exit.Hintf("use 0 or a positive number", "the number of clusters of %s is %d", key,
				in[key])
		}
		counts[bundleOf(packages, key)] += in[key]
	}
	return sortVersions(counts), nil
}

// bundleOf finds the bundle of a name or, as long as there is one package only, of a version. A version that the
// package does not have is one that left the catalog; its bundle had a conventional name.
func bundleOf(packages []*catalogs.Package, key string) catalogs.Installed {
	one := len(packages) > 0 && !slices.ContainsFunc(packages,
		func(p *catalogs.Package) bool { return p.Name != packages[0].Name })
	for _, p := range packages {
		versions := bundleVersions(p)
		for _, name := range slices.Sorted(maps.Keys(versions)) {
			if name == key || (one && versions[name] == key) {
				return catalogs.Installed{Name: name, Version: versions[name]}
			}
		}
	}
	if v, err := semver.Parse(key); err == nil && one {
		return catalogs.Installed{Name: packages[0].Name + ".v" + v.String(), Version: v.String()}
	}
	return catalogs.Installed{Name: key}
}

// bundleVersions are the versions of a package's bundles, and of those that it blocks, by the bundle's name.
func bundleVersions(p *catalogs.Package) map[string]string {
	versions := map[string]string{}
	for name, b := range p.Blocks {
		versions[name] = b.Version
	}
	for name, b := range p.Bundles {
		versions[name] = b.VersionString()
	}
	return versions
}

func sortVersions(counts map[catalogs.Installed]int) []fleetVersion {
	var out []fleetVersion
	for i, n := range counts {
		out = append(out, fleetVersion{i, n})
	}
	slices.SortFunc(out, func(a, b fleetVersion) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	return out
}
