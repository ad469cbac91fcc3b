// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/agree"
	"github.com/bellwether-dev/bellwether/catalogs/draw"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
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

// graphFormats are the output formats, with the extensions of their files.
var graphFormats = map[string]struct {
	extension string
	render    func(*draw.Graph) string
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

func (a *app) newGraphCommand() *cobra.Command {
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
			return a.drawGraph(c.Context(), o, args[0], args[1])
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

// completePackage completes first a folder, and then the packages in it.
func completePackage(access *registry.Flags) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return command.CompleteDir(c, args, text)
		}
		ctx, cancel := context.WithTimeout(context.Background(), command.CompletionTimeout)
		defer cancel()
		return completePackageNames(ctx, access, args[0]), cobra.ShellCompDirectiveNoFileComp
	}
}

// completePackageNames returns the packages of a catalog; none if it cannot be
// read, because completion cannot show an error.
func completePackageNames(ctx context.Context, access *registry.Flags, text string) []string {
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

// chooseFormat returns the format in -o, else the format for the file's extension, else text.
func (o graphOptions) chooseFormat() (string, error) {
	if err := o.out.Check(); err != nil || o.out.Format != "" {
		return o.out.Format, err
	}
	if o.file == "" {
		return command.OutputText, nil
	}
	for name, p := range graphFormats {
		if filepath.Ext(o.file) == p.extension {
			return name, nil
		}
	}
	return "", exit.Hintf("use a name that ends in .svg, .mmd, .dot or .txt, or set -o",
		"the ending of %s is not a known format", o.file)
}

// drawGraph draws the upgrade graph of a package, with the number of clusters that run each version if requested.
func (a *app) drawGraph(ctx context.Context, o graphOptions, ref, name string) error {
	format, err := o.chooseFormat()
	if err != nil {
		return err
	}
	files, err := o.access.Open(ctx, ref)
	if err != nil {
		return err
	}
	p, err := catalogs.ReadPackageWithManifests(files, name)
	if err != nil {
		return registry.AddHint(err)
	}
	installed, err := a.readInstalledCounts(ctx, o.installed, p)
	if err != nil {
		return err
	}
	differences, err := listDifferences(p, installed)
	if err != nil {
		return err
	}
	options := draw.Options{Channel: o.channel, Differences: differences, Whole: o.all}
	if o.installed != "" { // nil would mean that the numbers are unknown
		options.Installed = []draw.Installed{}
	}
	for _, i := range installed {
		options.Installed = append(options.Installed, draw.Installed(i))
	}
	g, err := draw.Build(p, options)
	if err != nil {
		return err
	}
	if format == command.OutputMermaid && g.Edges() >= maxMermaidEdges {
		a.Warn("Most Mermaid viewers reject %d or more edges, and this graph has %d. Use -o svg, or "+
			"--channel to draw one channel.\n", maxMermaidEdges, g.Edges())
	}
	if format == command.OutputText && o.file == "" {
		return a.WriteOutput(draw.TextWithin(g, a.Style().Width), "")
	}
	return a.WriteOutput(graphFormats[format].render(g), o.file)
}

// maxMermaidEdges is the number of edges from which Mermaid refuses a diagram by
// default. A diagram cannot change this setting itself.
const maxMermaidEdges = 500

// listDifferences returns where OLM v0 and v1 choose different upgrades in the same channel.
func listDifferences(p *catalogs.Package, counts []catalogs.InstalledCount) ([]draw.Difference, error) {
	var installed []catalogs.Installed
	for _, i := range counts {
		installed = append(installed, i.Installed)
	}
	report, err := agree.Check(p, installed...)
	if err != nil {
		return nil, fmt.Errorf("run the resolvers: %w", err)
	}
	var out []draw.Difference
	for _, d := range report.Disagreements() {
		// The drawing has a lane for each channel, and no lane for a ClusterExtension without a channel.
		if d.Channel == "" {
			continue
		}
		version := d.Installed.Name
		if b := p.Bundles[version]; b != nil {
			version = b.VersionString()
		}
		// The drawing shows the note next to the version, so the note need not repeat channel and version.
		text := strings.TrimPrefix(d.Text, fmt.Sprintf("channel %s, from %s: ", d.Channel, version))
		out = append(out, draw.Difference{Channel: d.Channel, From: d.Installed.Name, Text: text})
	}
	return out, nil
}

// readInstalledCounts returns which bundles of the packages run on how many clusters. source is "hub" or a file; the
// result is nil if source is empty.
func (a *app) readInstalledCounts(ctx context.Context, source string,
	packages ...*catalogs.Package) ([]catalogs.InstalledCount, error) {
	switch source {
	case "":
		return nil, nil
	case "hub":
		list, err := a.listInstalled(ctx)
		if err != nil {
			return nil, err
		}
		return catalogs.CountInstalled(list, packages), nil
	}
	text, err := os.ReadFile(source)
	if err != nil {
		return nil, exit.Hint(fmt.Errorf("read what is installed: %w", err),
			"use \"hub\", or a file that maps bundles or versions to numbers of clusters")
	}
	counts, err := catalogs.ParseInstalledCounts(text, packages)
	switch {
	case errors.Is(err, catalogs.ErrNotCounts):
		return nil, exit.Hint(fmt.Errorf("read what is installed: %w", err),
			"write lines such as \"echo-operator.v1.0.0: 12\"")
	case err != nil:
		return nil, exit.Hint(err, "use 0 or a positive number")
	}
	return counts, nil
}

// listInstalled returns the bundles that the clusters of the fleet run.
func (a *app) listInstalled(ctx context.Context) ([]catalogs.ClusterBundle, error) {
	h, err := a.Hub()
	if err != nil {
		return nil, err
	}
	list := &v1alpha1.OperatorInstallList{}
	if err := h.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list installs: %w", err)
	}
	return catalogs.ListInstalled(list.Items), nil
}
