// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// tone is the severity of a note. Pictures show it as a colour, in addition to the text.
type tone string

const (
	toneGood  tone = "good"
	toneWarn  tone = "warn"
	toneBad   tone = "bad"
	toneQuiet tone = "quiet"
	toneOther tone = "other"
)

// note is a remark on a version: a short text for the picture, and the full text.
type note struct {
	tone        tone
	short, long string
}

// listNotes returns all notes on a row; none for folded versions.
func (g *Graph) listNotes(r Row) []note {
	if r.Folded > 1 {
		return nil
	}
	var out []note
	if heads := g.HeadOf(r); len(heads) > 0 {
		text := "head of " + strings.Join(heads, ", ")
		out = append(out, note{tone: toneGood, short: text, long: text})
	}
	switch {
	case r.Block != nil:
		out = append(out, note{tone: toneBad, short: "blocked", long: describeBlock(*r.Block)})
	case r.Deprecation != "":
		out = append(out, note{tone: toneWarn, short: "deprecated",
			long: "deprecated: " + phrase.OneLine(r.Deprecation)})
	}
	out = append(out, g.listDeadEndNotes(r)...)
	if skipped := g.listSkippingLanes(r); r.Block == nil && len(skipped) > 0 {
		text := "skipped"
		if len(g.Lanes) > 1 {
			text += " in " + strings.Join(skipped, ", ")
		}
		out = append(out, note{tone: toneQuiet, short: text, long: text + ": no cluster is upgraded to it"})
	}
	if !r.Listed {
		out = append(out, note{tone: toneQuiet, short: "not in the catalog", long: "not in the catalog"})
	}
	for _, d := range r.Differences {
		out = append(out, note{tone: toneOther, short: "v0 ≠ v1",
			long: fmt.Sprintf("OLM v0 and v1 differ in channel %s: %s", d.Channel, phrase.OneLine(d.Text))})
	}
	for _, rollback := range r.Back {
		if n, ok := g.newRollbackNote(rollback); ok {
			out = append(out, n)
		}
	}
	return out
}

// listDeadEndNotes returns a note for each channel in which no upgrade leads from a version to the head. A version that
// is stranded gets a single note about all channels instead.
func (g *Graph) listDeadEndNotes(r Row) []note {
	if r.Stranded {
		return []note{{tone: toneBad, short: "stranded",
			long: "clusters run it, and no channel has an upgrade from it"}}
	}
	var out []note
	for l, lane := range g.Lanes {
		if r.DeadEnd(l) {
			out = append(out, note{tone: toneBad, short: "dead end in " + lane.Name,
				long: "the head of channel " + lane.Name + " cannot be reached from here"})
		}
	}
	return out
}

func describeBlock(b catalogs.Block) string {
	text := "blocked: " + phrase.OneLine(b.Reason)
	if b.Instead != "" {
		text += "; use " + b.Instead + " instead"
	}
	if b.Expires != "" {
		text += "; to be reviewed by " + b.Expires
	}
	return text
}

// newRollbackNote returns a note about a rollback that needs a backup or is impossible; false for other rollbacks.
func (g *Graph) newRollbackNote(rollback bundles.Rollback) (note, bool) {
	from := g.formatVersion(rollback.From)
	switch rollback.Class {
	case bundles.RollbackNeedsBackup:
		return note{tone: toneWarn, short: "back to " + from + ": needs backup",
			long: "a rollback to " + from + " needs a backup: " + phrase.OneLine(rollback.Reason)}, true
	case bundles.RollbackOneWay:
		return note{tone: toneBad, short: "no rollback to " + from,
			long: "a rollback to " + from + " is impossible: " + phrase.OneLine(rollback.Reason)}, true
	}
	return note{}, false
}

// listSkippingLanes returns the names of the channels in which a version is skipped.
func (g *Graph) listSkippingLanes(r Row) []string {
	var out []string
	for l, lane := range g.Lanes {
		if r.Places[l].Role == Skipped {
			out = append(out, lane.Name)
		}
	}
	return out
}

// formatTitle returns the version of a row, or the range of its folded versions.
func (r Row) formatTitle() string {
	if r.Folded > 1 {
		return fmt.Sprintf("%d versions, %s to %s", r.Folded, r.Lowest, r.Version)
	}
	return r.Version
}

// Summary describes the graph in one sentence.
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
		fmt.Fprintf(&out, " The head of channel %s is %s.", lane.Name, g.formatVersion(lane.Head))
	}
	for _, r := range g.Rows {
		notes := g.listNotes(r)
		// The text above already has the heads.
		notes = slices.DeleteFunc(notes, func(n note) bool { return n.tone == toneGood })
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
