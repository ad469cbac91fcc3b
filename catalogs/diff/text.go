// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Line is a row of a package's table, for all output formats.
type Line struct {
	Version, Clusters, Channel, Before, After, Changes string
	// Bad is true if clusters lose an upgrade path.
	Bad bool
}

// Lines returns the changed versions of a package. brief leaves out versions that no known cluster runs and whose
// path only changes its length; omitted is the number of these versions.
func (p Package) Lines(brief bool) (lines []Line, omitted int) {
	for _, v := range p.Versions {
		if brief && v.isMinor() {
			omitted++
			continue
		}
		lines = append(lines, v.toLines()...)
	}
	return lines, omitted
}

// isMinor reports whether only the length of the path changes, for a version that no cluster runs.
func (v Version) isMinor() bool {
	if v.Clusters > 0 || len(v.Changes) > 0 {
		return false
	}
	for _, s := range v.Steps {
		if len(s.Changes) != 1 || s.Changes[0] != PathLength {
			return false
		}
	}
	return true
}

// toLines returns a line for each channel in which the path changes, or a single line without a channel. The first line
// also has the version, its clusters and its own changes.
func (v Version) toLines() []Line {
	summary := Line{Version: v.Version, Changes: joinChanges(v.Changes), Bad: v.Stuck}
	if v.Clusters > 0 {
		summary.Clusters = fmt.Sprint(v.Clusters)
	}
	if v.Reason != "" {
		summary.Changes += ": " + strings.Join(strings.Fields(v.Reason), " ")
	}
	if v.Stuck {
		summary.Changes = joinNonEmpty(summary.Changes, "no upgrade path in any channel")
	}
	if len(v.Steps) == 0 {
		return []Line{summary}
	}
	var out []Line
	for i, s := range v.Steps {
		line := Line{Channel: s.Channel, Before: s.Before.String(), After: s.After.String(),
			Changes: joinChanges(s.Changes)}
		for _, c := range s.Changes {
			line.Bad = line.Bad || c == Stranded
		}
		if i == 0 {
			line.Version, line.Clusters, line.Bad = summary.Version, summary.Clusters, summary.Bad || line.Bad
			line.Changes = joinNonEmpty(summary.Changes, line.Changes)
		}
		out = append(out, line)
	}
	return out
}

func joinChanges(changes []Change) string {
	text := make([]string, len(changes))
	for i, c := range changes {
		text[i] = string(c)
	}
	return strings.Join(text, ", ")
}

func joinNonEmpty(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// String returns the next version and the number of hops, "head" at the head, and "-" without a path.
func (w Path) String() string {
	switch {
	case w.Hops < 0:
		return "-"
	case w.Hops == 0:
		return "head"
	case w.Hops == 1:
		return w.Next
	}
	return fmt.Sprintf("%s, %d hops", w.Next, w.Hops)
}

// Headlines returns lines that describe the changes of a package and its channels.
func (p Package) Headlines() []string {
	var out []string
	switch p.Change {
	case Added, Removed:
		out = append(out, "package "+string(p.Change))
	}
	if p.DefaultAfter != "" {
		out = append(out, fmt.Sprintf("default channel %s → %s", cmp.Or(p.DefaultBefore, "none"), p.DefaultAfter))
	}
	for _, c := range p.Channels {
		switch c.Change {
		case Added:
			out = append(out, fmt.Sprintf("channel %s added, head %s", c.Name, c.After))
		case Removed:
			out = append(out, fmt.Sprintf("channel %s removed, its head was %s", c.Name, c.Before))
		default:
			out = append(out, fmt.Sprintf("channel %s: head %s → %s", c.Name, c.Before, c.After))
		}
	}
	return out
}

// Markdown returns the diff as a comment for a change of a catalog.
func Markdown(d Diff) string {
	if d.IsEmpty() {
		return "The catalogs do not differ.\n"
	}
	var out strings.Builder
	for i, p := range d.Packages {
		if i > 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "### %s\n\n", escapeCell(p.Name))
		for _, h := range p.Headlines() {
			fmt.Fprintf(&out, "- %s\n", escapeCell(h))
		}
		lines, omitted := p.Lines(true)
		if len(lines) > 0 {
			out.WriteString("\n| version | clusters | channel | before | after | what |\n|---|---:|---|---|---|---|\n")
		}
		for _, l := range lines {
			text := escapeCell(l.Changes)
			if l.Bad {
				text = "**" + text + "**"
			}
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s |\n", escapeCell(l.Version), l.Clusters,
				escapeCell(l.Channel), escapeCell(l.Before), escapeCell(l.After), text)
		}
		if omitted > 0 {
			fmt.Fprintf(&out, "\n%s\n", OmittedText(omitted))
		}
	}
	return out.String()
}

// OmittedText describes the number of versions that Lines left out.
func OmittedText(n int) string {
	return phrase.Word(n, "The upgrade path of 1 more version only changes its length.",
		fmt.Sprintf("The upgrade paths of %d more versions only change their length.", n))
}

// escapeCell escapes a text for a cell of a Markdown table.
func escapeCell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`").Replace(s)
}
