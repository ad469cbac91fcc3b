// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// CatalogSummary is the table of a catalog's packages.
func CatalogSummary(s catalogs.Summary) *Table {
	t := &Table{Header: []string{"PACKAGE", "VERSIONS", "DEFAULT", "CHANNELS"}, Wrap: true}
	for _, p := range s.Packages {
		if p.Problem != "" {
			t.Add(Cell{p.Name, Strong}, Cell{Text: "-"}, Cell{Text: "-"}, Cell{oneLine(p.Problem), Bad})
			continue
		}
		var channels []string
		for _, c := range p.Channels {
			channels = append(channels, fmt.Sprintf("%s (%s)", c.Name, c.HeadVersion))
		}
		t.Add(Cell{p.Name, Strong}, Cell{Text: count(len(p.Versions))}, Cell{Text: p.DefaultChannel},
			Cell{Text: strings.Join(channels, ", ")})
	}
	return t
}

// CatalogPackage is the upgrade graph of a package, channel by channel, the
// newest version first.
func CatalogPackage(p *catalogs.Package, s Style) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s  default channel %s\n", s.Paint(Strong, p.Name), p.DefaultChannel)
	if p.Deprecation != "" {
		out.WriteString(s.Paint(Warn, "deprecated: "+oneLine(p.Deprecation)) + "\n")
	}
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		c := p.Channels[name]
		fmt.Fprintf(&out, "\nchannel %s", s.Paint(Strong, name))
		if c.Deprecation != "" {
			out.WriteString("  " + s.Paint(Warn, "deprecated: "+oneLine(c.Deprecation)))
		}
		out.WriteString("\n" + channelTable(p, c).Render(s))
	}
	return out.String()
}

func channelTable(p *catalogs.Package, c *catalogs.Channel) *Table {
	t := &Table{Header: []string{"VERSION", "BUNDLE", "CONTENT", "UPGRADES FROM"}, Wrap: true}
	head, _ := c.Head() // a package that could be read has one
	entries := slices.Clone(c.Entries)
	slices.SortStableFunc(entries, func(a, b catalogs.Entry) int {
		return cmp.Or(compareVersions(versionOf(p, b.Name), versionOf(p, a.Name)), cmp.Compare(a.Name, b.Name))
	})
	for _, e := range entries {
		version := Cell{Text: versionOf(p, e.Name)}
		if e.Name == head {
			version = Cell{version.Text + " (head)", Good}
		}
		content, note := "-", ""
		if b := p.Bundles[e.Name]; b != nil {
			content = "inline"
			if b.Image != "" {
				content = "image"
			}
			if b.Deprecation != "" {
				note = "; deprecated: " + oneLine(b.Deprecation)
			}
		}
		t.Add(version, Cell{Text: e.Name}, Cell{Text: content}, Cell{Text: edges(p, e) + note})
	}
	return t
}

func versionOf(p *catalogs.Package, bundle string) string {
	if b := p.Bundles[bundle]; b != nil {
		return b.VersionString()
	}
	return bundle
}

// edges says what an entry can directly replace.
func edges(p *catalogs.Package, e catalogs.Entry) string {
	var parts []string
	if e.Replaces != "" {
		parts = append(parts, versionOf(p, e.Replaces))
	}
	for _, skipped := range e.Skips {
		parts = append(parts, versionOf(p, skipped)+" (skipped)")
	}
	if e.SkipRange != "" {
		parts = append(parts, "any in "+e.SkipRange)
	}
	return orDash(strings.Join(parts, ", "))
}
