// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// defaultPoll is how often the hub reads a tag or a directory if the OperatorCatalog sets no interval.
const defaultPoll = time.Minute

// RenderHubCatalog returns the details of a catalog on the hub: the versions that clusters run,
// the blocked versions, and the possible rollbacks.
func RenderHubCatalog(c *v1alpha1.OperatorCatalog, now time.Time, s term.Style) string {
	var out strings.Builder
	facts := &term.Table{Wrap: true}
	facts.Add(term.Cell{Text: "Catalog:"}, term.Strong.Cell(c.Name))
	facts.Add(term.Cell{Text: "State:"}, term.Health(c.Status.Conditions))
	facts.Add(term.PlainCells("Source:", formatSource(c.Spec.Source)+", "+describePolling(c.Spec))...)
	facts.Add(term.PlainCells("In use:", describeDigest(c, now))...)
	facts.Add(term.PlainCells("Signature:", describeVerification(c.Spec.Verification))...)
	facts.Add(term.PlainCells("Packages:", term.Count(c.Status.PackageCount))...)
	out.WriteString(facts.Render(s))
	term.WriteConditions(&out, c.Status.Conditions, now, s)
	writeBlocked(&out, c.Status.BlockedVersions, s)
	writeVersions(&out, c.Status.Packages, now, s)
	return out.String()
}

// describePolling returns how often the hub reads the catalog's source.
func describePolling(spec v1alpha1.OperatorCatalogSpec) string {
	if strings.Contains(spec.Source.Image, "@sha256:") {
		return "pinned by digest"
	}
	interval := defaultPoll
	if spec.PollInterval != nil {
		interval = spec.PollInterval.Duration
	}
	return "read every " + term.Span(interval)
}

// describeDigest returns the digest in use, its age, and its source if that is not the source in the spec.
func describeDigest(c *v1alpha1.OperatorCatalog, now time.Time) string {
	if c.Status.Digest == "" {
		return "none yet"
	}
	text := c.Status.Digest
	if c.Status.LastReadTime != nil {
		text += ", unchanged for " + term.Age(now, *c.Status.LastReadTime)
	}
	if source := c.Status.Source; source != nil && *source != c.Spec.Source {
		text += " from " + formatSource(*source)
	}
	return text
}

// describeVerification returns which signature a catalog needs.
func describeVerification(v *v1alpha1.CatalogVerification) string {
	switch {
	case v == nil:
		return "not required"
	case len(v.PublicKeys) == 1:
		return "by the trusted key"
	default:
		return fmt.Sprintf("by one of %d trusted keys", len(v.PublicKeys))
	}
}

// writeBlocked writes a table of the blocked versions, unless there are none.
func writeBlocked(out *strings.Builder, list []v1alpha1.BlockedVersion, s term.Style) {
	if len(list) == 0 {
		return
	}
	t := &term.Table{Header: []string{"BLOCKED", "VERSION", "CLUSTERS", "BY", "UNTIL", "REASON"}, Wrap: true}
	for _, b := range list {
		running, until := term.Cell{Text: term.Count(b.Clusters)}, term.Cell{Text: term.DashIfEmpty(b.Expires)}
		if b.Clusters > 0 {
			running.Tone = term.Warn
		}
		if b.Expired {
			until = term.Warn.Cell(b.Expires + " (due)")
		}
		t.Add(term.Cell{Text: b.Package}, term.Cell{Text: b.Version}, running,
			term.Cell{Text: strings.ToLower(string(b.Origin))},
			until, term.Cell{Text: describeBlock(b)})
	}
	out.WriteByte('\n')
	out.WriteString(t.Render(s))
}

// describeBlock returns why a version is blocked, and the proposal for the clusters that run it.
func describeBlock(b v1alpha1.BlockedVersion) string {
	text := phrase.OneLine(b.Reason)
	if b.Proposal != "" {
		text = strings.TrimSuffix(text, ".") + "; proposal: " + phrase.OneLine(b.Proposal)
	}
	return text
}

// writeVersions writes the table of the versions of all packages.
func writeVersions(out *strings.Builder, packages []v1alpha1.CatalogPackage, now time.Time, s term.Style) {
	t := &term.Table{Header: []string{"PACKAGE", "VERSION", "CLUSTERS", "STATE"}, Wrap: true}
	for _, p := range packages {
		name := p.Name
		for _, v := range p.Versions {
			t.Add(term.Cell{Text: name}, term.Cell{Text: cmp.Or(v.Version, v.Bundle)},
				term.Cell{Text: term.Count(v.Clusters)},
				formatVersionState(p, v, now))
			name = ""
		}
		if p.OmittedVersions > 0 {
			t.Add(term.Cell{Text: name}, term.Cell{Text: fmt.Sprintf("and %d older", p.OmittedVersions)}, term.Cell{},
				term.Cell{})
		}
	}
	if len(t.Rows) == 0 {
		out.WriteString("\nNo operator uses this catalog yet.\n")
		return
	}
	out.WriteByte('\n')
	out.WriteString(t.Render(s))
}

// listHeads names the channels whose head is the version.
func listHeads(p v1alpha1.CatalogPackage, version string) string {
	var heads []string
	for _, c := range p.Channels {
		if c.Head == version {
			heads = append(heads, "head of "+c.Name)
		}
	}
	return strings.Join(heads, ", ")
}

// formatVersionState returns the important facts about a version: whether it can be used, the channels whose head it
// is, and the versions to which a cluster can roll back from it.
func formatVersionState(p v1alpha1.CatalogPackage, v v1alpha1.CatalogVersion, now time.Time) term.Cell {
	use := formatUse(v, now)
	var parts []string
	for _, text := range []string{use.Text, listHeads(p, v.Version), describeRollbacks(v.Rollbacks)} {
		if text != "" {
			parts = append(parts, text)
		}
	}
	return use.Tone.Cell(strings.Join(parts, "; "))
}

// formatUse returns whether a version can be used, and how long it is supported; empty if there is no restriction.
func formatUse(v v1alpha1.CatalogVersion, now time.Time) term.Cell {
	switch {
	case v.Blocked != "":
		return term.Bad.Cell("blocked: " + phrase.OneLine(v.Blocked))
	case v.Absent:
		return term.Warn.Cell("not in the catalog")
	case v.Deprecated != "":
		return term.Warn.Cell("deprecated: " + phrase.OneLine(v.Deprecated))
	case bundles.IsSupportEnded(v.EndOfSupport, now):
		return term.Warn.Cell("not supported since " + v.EndOfSupport)
	case v.EndOfSupport != "":
		return term.Dim.Cell("supported until " + v.EndOfSupport)
	default:
		return term.Cell{}
	}
}

// describeRollbacks returns the versions to which a cluster can roll back, with the class of each rollback.
func describeRollbacks(rollbacks []v1alpha1.CatalogRollback) string {
	var out []string
	for _, r := range rollbacks {
		out = append(out, fmt.Sprintf("%s (%s)", r.From, r.Class))
	}
	if len(out) == 0 {
		return ""
	}
	return "rollback to " + strings.Join(out, ", ")
}

// formatBlockCount returns the number of blocked versions, and how many clusters run them.
func formatBlockCount(list []v1alpha1.BlockedVersion) term.Cell {
	var clusters int32
	for _, b := range list {
		clusters += b.Clusters
	}
	switch {
	case len(list) == 0:
		return term.Cell{Text: "-"}
	case clusters == 0:
		return term.Cell{Text: term.Count(int32(len(list)))}
	default:
		return term.Warn.Cell(fmt.Sprintf("%d (on %s)", len(list), phrase.Count(clusters, "cluster")))
	}
}

// BuildCatalogTable returns the table of catalog list.
func BuildCatalogTable(list []v1alpha1.OperatorCatalog, l term.Listing) *term.Table {
	t := &term.Table{Header: []string{"NAME", "STATE", "PACKAGES", "BLOCKED", "CHANGED", "SOURCE"}}
	if l.Wide {
		t.Header = append(t.Header, "DIGEST", "MESSAGE")
	}
	for i := range list {
		c := &list[i]
		changed := "-" // LastReadTime does not change if the hub reads the same digest again
		if c.Status.LastReadTime != nil {
			changed = term.Age(l.Now, *c.Status.LastReadTime) + " ago"
		}
		row := []term.Cell{{Text: c.Name}, term.Health(c.Status.Conditions), {Text: term.Count(c.Status.PackageCount)},
			formatBlockCount(c.Status.BlockedVersions), {Text: changed}, {Text: formatSource(c.Spec.Source)}}
		if l.Wide {
			row = append(row, term.Cell{Text: term.DashIfEmpty(phrase.ShortDigest(c.Status.Digest))},
				term.Cell{Text: term.Headline(c.Status.Conditions)})
		}
		t.Add(l.Row(c.Namespace, row)...)
	}
	return l.Table(t)
}

func formatSource(s v1alpha1.CatalogSource) string { return cmp.Or(s.Image, s.Directory) }
