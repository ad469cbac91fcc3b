// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"strings"

	"github.com/bellwether-dev/bellwether/catalogs/diff"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

// CatalogDiff shows what changes between two catalogs, package by package. Versions of which only the path gets longer
// or shorter are counted, unless every one is wanted.
func CatalogDiff(d diff.Diff, s term.Style, every bool) string {
	var out strings.Builder
	for i, p := range d.Packages {
		if i > 0 {
			out.WriteString("\n")
		}
		out.WriteString(s.Paint(term.Strong, p.Name) + "\n")
		for _, h := range p.Headlines() {
			out.WriteString("  " + h + "\n")
		}
		lines, left := p.Lines(!every)
		if len(lines) > 0 {
			out.WriteString("\n" + diffTable(lines).Render(s))
		}
		if left > 0 {
			out.WriteString(diff.OmittedText(left) + "\n")
		}
	}
	if n := d.Stuck(); n > 0 {
		fmt.Fprintf(&out, "\n%s\n", s.Paint(term.Bad, fmt.Sprintf("Clusters without an upgrade path: %d", n)))
	}
	return out.String()
}

func diffTable(lines []diff.Line) *term.Table {
	t := &term.Table{Header: []string{"VERSION", "CLUSTERS", "CHANNEL", "BEFORE", "AFTER", "WHAT"}, Wrap: true}
	for _, l := range lines {
		what := term.Cell{Text: l.What}
		if l.Bad {
			what.Tone = term.Bad
		}
		t.Add(term.Cell{Text: l.Version}, term.Cell{Text: l.Clusters}, term.Cell{Text: l.Channel},
			term.Cell{Text: l.Before},
			term.Cell{Text: l.After}, what)
	}
	return t
}
