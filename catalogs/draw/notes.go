// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/phrase"
)

// tone is the severity of a note; renderers show it as a colour, in addition to
// the text.
type tone string

const (
	good  tone = "good"
	warn  tone = "warn"
	bad   tone = "bad"
	quiet tone = "quiet"
	other tone = "other"
)

// note is a remark on a version: a short text for the picture, and the full
// text.
type note struct {
	tone        tone
	short, long string
}

func (g *Graph) notes(r Row) []note {
	if r.Folded > 1 {
		return nil
	}
	var out []note
	if heads := g.HeadOf(r); len(heads) > 0 {
		text := "head of " + strings.Join(heads, ", ")
		out = append(out, note{good, text, text})
	}
	switch {
	case r.Block != nil:
		out = append(out, note{bad, "blocked", blocked(*r.Block)})
	case r.Deprecation != "":
		out = append(out, note{warn, "deprecated", "deprecated: " + phrase.OneLine(r.Deprecation)})
	}
	out = append(out, g.ends(r)...)
	if skipped := g.skippedIn(r); r.Block == nil && len(skipped) > 0 {
		text := "skipped"
		if len(g.Lanes) > 1 {
			text += " in " + strings.Join(skipped, ", ")
		}
		out = append(out, note{quiet, text, text + ": no cluster is upgraded to it"})
	}
	if !r.Listed {
		out = append(out, note{quiet, "not in the catalog", "not in the catalog"})
	}
	for _, d := range r.Differences {
		out = append(out, note{other, "v0 ≠ v1",
			fmt.Sprintf("OLM v0 and v1 differ in channel %s: %s", d.Channel, phrase.OneLine(d.Text))})
	}
	for _, way := range r.Back {
		if n, ok := g.back(way); ok {
			out = append(out, n)
		}
	}
	return out
}

// ends tell that there is no way on from a version.
func (g *Graph) ends(r Row) []note {
	if r.Stranded {
		return []note{{bad, "stranded", "clusters run it, and no channel has an upgrade from it"}}
	}
	var out []note
	for l, lane := range g.Lanes {
		if r.DeadEnd(l) {
			out = append(out, note{bad, "dead end in " + lane.Name, "the head of channel " + lane.Name +
				" cannot be reached from here"})
		}
	}
	return out
}

func blocked(b catalogs.Block) string {
	text := "blocked: " + phrase.OneLine(b.Reason)
	if b.Instead != "" {
		text += "; use " + b.Instead + " instead"
	}
	if b.Expires != "" {
		text += "; to be reviewed by " + b.Expires
	}
	return text
}

// back returns a note about a rollback that is not simple.
func (g *Graph) back(way registryv1.Rollback) (note, bool) {
	from := g.version(way.From)
	switch way.Class {
	case registryv1.RollbackNeedsBackup:
		return note{warn, "back to " + from + ": needs backup", "a rollback to " + from + " needs a backup: " +
			phrase.OneLine(way.Reason)}, true
	case registryv1.RollbackOneWay:
		return note{bad, "no rollback to " + from, "a rollback to " + from + " is impossible: " +
			phrase.OneLine(way.Reason)}, true
	}
	return note{}, false
}

func (g *Graph) skippedIn(r Row) []string {
	var out []string
	for l, lane := range g.Lanes {
		if r.Places[l].Role == Skipped {
			out = append(out, lane.Name)
		}
	}
	return out
}

// title names a row.
func (r Row) title() string {
	if r.Folded > 1 {
		return fmt.Sprintf("%d versions, %s to %s", r.Folded, r.Lowest, r.Version)
	}
	return r.Version
}

// Summary says in one sentence what the picture shows.
func (g *Graph) Summary() string {
	text := phrase.Count(g.Versions, "version") + " in " + phrase.Count(len(g.Lanes), "channel")
	if len(g.Lanes) == 1 {
		text = phrase.Count(g.Versions, "version") + " in channel " + g.Lanes[0].Name
	}
	if g.Clusters >= 0 {
		text += ", " + phrase.Count(g.Clusters, "cluster")
	}
	stranded := 0
	for _, r := range g.Rows {
		if r.Stranded {
			stranded += r.Clusters
		}
	}
	if stranded > 0 {
		text += ", " + phrase.Count(stranded, "cluster") + " without an upgrade path"
	}
	return text
}

// Describe describes the picture as text, for screen readers.
func (g *Graph) Describe() string {
	var out strings.Builder
	fmt.Fprintf(&out, "Upgrade graph of %s: %s.", g.Package, g.Summary())
	for _, lane := range g.Lanes {
		fmt.Fprintf(&out, " The head of channel %s is %s.", lane.Name, g.version(lane.Head))
	}
	for _, r := range g.Rows {
		notes := g.notes(r)
		// The heads were named already.
		notes = slices.DeleteFunc(notes, func(n note) bool { return n.tone == good })
		if len(notes) == 0 {
			continue
		}
		var texts []string
		for _, n := range notes {
			texts = append(texts, n.long)
		}
		fmt.Fprintf(&out, " %s: %s.", r.Version, strings.Join(texts, "; "))
	}
	return out.String()
}
