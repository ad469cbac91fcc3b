// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"strings"

	"github.com/bellwether-dev/bellwether/catalogs/diff"
)

// CatalogDiff shows what changes between two catalogs, package by package. Versions of which only the path gets longer
// or shorter are counted, unless every one is wanted.
func CatalogDiff(d diff.Diff, s Style, every bool) string {
	var out strings.Builder
	for i, p := range d.Packages {
		if i > 0 {
			out.WriteString("\n")
		}
		out.WriteString(s.Paint(Strong, p.Name) + "\n")
		for _, h := range p.Headlines() {
			out.WriteString("  " + h + "\n")
		}
		lines, left := p.Lines(!every)
		if len(lines) > 0 {
			out.WriteString("\n" + diffTable(lines).Render(s))
		}
		if left > 0 {
			out.WriteString(diff.Left(left) + "\n")
		}
	}
	if n := d.Stuck(); n > 0 {
		fmt.Fprintf(&out, "\n%s\n", s.Paint(Bad, fmt.Sprintf("Clusters without a way forward: %d", n)))
	}
	return out.String()
}

func diffTable(lines []diff.Line) *Table {
	t := &Table{Header: []string{"VERSION", "CLUSTERS", "CHANNEL", "BEFORE", "AFTER", "WHAT"}, Wrap: true}
	for _, l := range lines {
		what := Cell{Text: l.What}
		if l.Bad {
			what.Tone = Bad
		}
		t.Add(Cell{Text: l.Version}, Cell{Text: l.Clusters}, Cell{Text: l.Channel}, Cell{Text: l.Before},
			Cell{Text: l.After}, what)
	}
	return t
}
