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
	"github.com/bellwether-dev/bellwether/phrase"
)

// CatalogSummary is the table of a catalog's packages.
func CatalogSummary(s catalogs.Summary) *term.Table {
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

// CatalogPackage is the upgrade graph of a package, channel by channel, the
// newest version first.
func CatalogPackage(p *catalogs.Package, s term.Style) string {
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
		out.WriteString("\n" + channelTable(p, c).Render(s))
	}
	return out.String()
}

func channelTable(p *catalogs.Package, c *catalogs.Channel) *term.Table {
	t := &term.Table{Header: []string{"VERSION", "BUNDLE", "CONTENT", "UPGRADES FROM"}, Wrap: true}
	head, _ := c.Head() // a package that could be read has one
	entries := slices.Clone(c.Entries)
	slices.SortStableFunc(entries, func(a, b catalogs.Entry) int {
		return cmp.Or(catalogs.CompareVersions(versionOf(p, b.Name), versionOf(p, a.Name)), cmp.Compare(a.Name, b.Name))
	})
	for _, e := range entries {
		version := term.Cell{Text: versionOf(p, e.Name)}
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
			note += supportNote(b)
		}
		t.Add(version, term.Cell{Text: e.Name}, term.Cell{Text: content}, term.Cell{Text: edges(p, e) + note})
	}
	return t
}

// supportNote says what the catalog says of a version's support.
func supportNote(b *catalogs.Bundle) string {
	support, err := b.Support()
	if err != nil {
		return "; " + phrase.OneLine(err.Error())
	}
	note := ""
	if support.EndOfSupport != "" {
		note = "; supported until " + support.EndOfSupport
	}
	if on := support.Kubernetes.String(); on != "" {
		note += "; supported on Kubernetes " + on
	}
	return note
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
	return term.OrDash(strings.Join(parts, ", "))
}
