// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"strings"

	"github.com/bellwether-dev/bellwether/catalogs/diff"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

// RenderDiff describes the changes between two catalogs, package by package. Unless showAll is true, versions whose
// upgrade path only gets longer or shorter are counted and not listed.
func RenderDiff(d diff.Diff, s term.Style, showAll bool) string {
	var out strings.Builder
	for i, p := range d.Packages {
		if i > 0 {
			out.WriteString("\n")
		}
		out.WriteString(s.Paint(term.Strong, p.Name) + "\n")
		for _, h := range p.Headlines() {
			out.WriteString("  " + h + "\n")
		}
		lines, omitted := p.Lines(!showAll)
		if len(lines) > 0 {
			out.WriteString("\n" + buildDiffTable(lines).Render(s))
		}
		if omitted > 0 {
			out.WriteString(diff.OmittedText(omitted) + "\n")
		}
	}
	if n := d.Stuck(); n > 0 {
		fmt.Fprintf(&out, "\n%s\n", s.Paint(term.Bad, fmt.Sprintf("Clusters without an upgrade path: %d", n)))
	}
	return out.String()
}

// buildDiffTable returns the table of the upgrades of each version before and after the change.
func buildDiffTable(lines []diff.Line) *term.Table {
	t := &term.Table{Header: []string{"VERSION", "CLUSTERS", "CHANNEL", "BEFORE", "AFTER", "WHAT"}, Wrap: true}
	for _, l := range lines {
		effect := term.Cell{Text: l.Changes}
		if l.Bad {
			effect.Tone = term.Bad
		}
		t.Add(term.Cell{Text: l.Version}, term.Cell{Text: l.Clusters}, term.Cell{Text: l.Channel},
			term.Cell{Text: l.Before},
			term.Cell{Text: l.After}, effect)
	}
	return t
}
