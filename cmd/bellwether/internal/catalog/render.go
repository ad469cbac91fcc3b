// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// BuildSummaryTable returns the table of a catalog's packages.
func BuildSummaryTable(s catalogs.Summary) *term.Table {
	t := &term.Table{Header: []string{"PACKAGE", "VERSIONS", "DEFAULT", "CHANNELS"}, Wrap: true}
	for _, p := range s.Packages {
		if p.Problem != "" {
			t.Add(term.Strong.Cell(p.Name), term.Cell{Text: "-"}, term.Cell{Text: "-"},
				term.Bad.Cell(phrase.OneLine(p.Problem)))
			continue
		}
		var channels []string
		for _, c := range p.Channels {
			channels = append(channels, fmt.Sprintf("%s (%s)", c.Name, c.HeadVersion))
		}
		t.Add(term.Strong.Cell(p.Name), term.Cell{Text: term.Count(len(p.Versions))}, term.Cell{Text: p.DefaultChannel},
			term.Cell{Text: strings.Join(channels, ", ")})
	}
	return t
}

// RenderPackage returns the upgrade graph of a package as text: channel by channel, and the newest version first.
func RenderPackage(p *catalogs.Package, s term.Style) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s  default channel %s\n", s.Paint(term.Strong, p.Name), p.DefaultChannel)
	if p.Deprecation != "" {
		out.WriteString(s.Paint(term.Warn, "deprecated: "+phrase.OneLine(p.Deprecation)) + "\n")
	}
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		c := p.Channels[name]
		fmt.Fprintf(&out, "\nchannel %s", s.Paint(term.Strong, name))
		if c.Deprecation != "" {
			out.WriteString("  " + s.Paint(term.Warn, "deprecated: "+phrase.OneLine(c.Deprecation)))
		}
		out.WriteString("\n" + buildChannelTable(p, c).Render(s))
	}
	return out.String()
}

// buildChannelTable returns the entries of a channel, the newest version first.
func buildChannelTable(p *catalogs.Package, c *catalogs.Channel) *term.Table {
	t := &term.Table{Header: []string{"VERSION", "BUNDLE", "CONTENT", "UPGRADES FROM"}, Wrap: true}
	head, _ := c.Head() // no error: a package that could be read has a head in each channel
	entries := slices.Clone(c.Entries)
	slices.SortStableFunc(entries, func(a, b catalogs.Entry) int {
		return cmp.Or(catalogs.CompareVersions(formatVersion(p, b.Name), formatVersion(p, a.Name)),
			cmp.Compare(a.Name, b.Name))
	})
	for _, e := range entries {
		version := term.Cell{Text: formatVersion(p, e.Name)}
		if e.Name == head {
			version = term.Good.Cell(version.Text + " (head)")
		}
		content, note := "-", ""
		if b := p.Bundles[e.Name]; b != nil {
			content = "inline"
			if b.Image != "" {
				content = "image"
			}
			if b.Deprecation != "" {
				note = "; deprecated: " + phrase.OneLine(b.Deprecation)
			}
			note += describeSupport(b)
		}
		t.Add(version, term.Cell{Text: e.Name}, term.Cell{Text: content}, term.Cell{Text: describeEdges(p, e) + note})
	}
	return t
}

// describeSupport returns how long and on which versions of Kubernetes a version is
// supported; empty if the bundle does not specify it.
func describeSupport(b *catalogs.Bundle) string {
	support, err := b.Support()
	if err != nil {
		return "; " + phrase.OneLine(err.Error())
	}
	note := ""
	if support.EndOfSupport != "" {
		note = "; supported until " + support.EndOfSupport
	}
	if kubernetes := support.Kubernetes.String(); kubernetes != "" {
		note += "; supported on Kubernetes " + kubernetes
	}
	return note
}

// formatVersion returns the version of a bundle, or the bundle's name if the package does not have it.
func formatVersion(p *catalogs.Package, bundle string) string {
	if b := p.Bundles[bundle]; b != nil {
		return b.VersionString()
	}
	return bundle
}

// describeEdges lists the versions from which an entry is a direct upgrade.
func describeEdges(p *catalogs.Package, e catalogs.Entry) string {
	var parts []string
	if e.Replaces != "" {
		parts = append(parts, formatVersion(p, e.Replaces))
	}
	for _, skipped := range e.Skips {
		parts = append(parts, formatVersion(p, skipped)+" (skipped)")
	}
	if e.SkipRange != "" {
		parts = append(parts, "any in "+e.SkipRange)
	}
	return term.DashIfEmpty(strings.Join(parts, ", "))
}
