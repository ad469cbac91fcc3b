// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/bellwether-dev/bellwether/phrase"
)

// Line is a row of a package's table, as all renderers show it.
type Line struct {
	Version, Clusters, Channel, Before, After, What string
	// Bad says that clusters lose an upgrade path.
	Bad bool
}

// Lines are a package's changed versions. brief leaves out versions that no
// known cluster runs and whose path only changes its length, and returns how
// many those are.
func (p Package) Lines(brief bool) (lines []Line, left int) {
	for _, v := range p.Versions {
		if brief && v.isMinor() {
			left++
			continue
		}
		lines = append(lines, v.lines()...)
	}
	return lines, left
}

// isMinor reports whether only the length of the path changes, for a version
// that no cluster runs.
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

func (v Version) lines() []Line {
	first := Line{Version: v.Version, What: join(v.Changes), Bad: v.Stuck}
	if v.Clusters > 0 {
		first.Clusters = fmt.Sprint(v.Clusters)
	}
	if v.Reason != "" {
		first.What += ": " + strings.Join(strings.Fields(v.Reason), " ")
	}
	if v.Stuck {
		first.What = joinNonEmpty(first.What, "no upgrade path in any channel")
	}
	if len(v.Steps) == 0 {
		return []Line{first}
	}
	var out []Line
	for i, s := range v.Steps {
		line := Line{Channel: s.Channel, Before: s.Before.String(), After: s.After.String(), What: join(s.Changes)}
		for _, c := range s.Changes {
			line.Bad = line.Bad || c == Stranded
		}
		if i == 0 {
			line.Version, line.Clusters, line.Bad = first.Version, first.Clusters, first.Bad || line.Bad
			line.What = joinNonEmpty(first.What, line.What)
		}
		out = append(out, line)
	}
	return out
}

func join(changes []Change) string {
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

// Headlines describe the changes of a package and its channels.
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

// Markdown shows the diff as a comment on a change of a catalog.
func Markdown(d Diff) string {
	if d.Same() {
		return "The catalogs do not differ.\n"
	}
	var out strings.Builder
	for i, p := range d.Packages {
		if i > 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "### %s\n\n", cell(p.Name))
		for _, h := range p.Headlines() {
			fmt.Fprintf(&out, "- %s\n", cell(h))
		}
		lines, left := p.Lines(true)
		if len(lines) > 0 {
			out.WriteString("\n| version | clusters | channel | before | after | what |\n|---|---:|---|---|---|---|\n")
		}
		for _, l := range lines {
			what := cell(l.What)
			if l.Bad {
				what = "**" + what + "**"
			}
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s |\n", cell(l.Version), l.Clusters, cell(l.Channel),
				cell(l.Before), cell(l.After), what)
		}
		if left > 0 {
			fmt.Fprintf(&out, "\n%s\n", OmittedText(left))
		}
	}
	return out.String()
}

// OmittedText describes how many versions Lines left out.
func OmittedText(n int) string {
	return phrase.Word(n, "The upgrade path of 1 more version only changes its length.",
		fmt.Sprintf("The upgrade paths of %d more versions only change their length.", n))
}

// cell makes a text fit for a Markdown table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`").Replace(s)
}
