// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/phrase"
)

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// defaultPoll is how often the hub looks at a tag or a directory where the
// OperatorCatalog does not say.
const defaultPoll = time.Minute

// HubCatalog is the details of a catalog as the hub reads it: the versions that
// clusters run, what is blocked, and how one gets back.
func HubCatalog(c *v1alpha1.OperatorCatalog, now time.Time, s term.Style) string {
	var out strings.Builder
	facts := &term.Table{Wrap: true}
	facts.Add(term.Cell{Text: "Catalog:"}, term.Strong.Cell(c.Name))
	facts.Add(term.Cell{Text: "State:"}, term.Health(c.Status.Conditions))
	facts.Add(term.PlainCells("Source:", sourceOf(c.Spec.Source)+", "+lookedAt(c.Spec))...)
	facts.Add(term.PlainCells("In use:", inUseText(c, now))...)
	facts.Add(term.PlainCells("Signature:", signatureText(c.Spec.Verification))...)
	facts.Add(term.PlainCells("Packages:", term.Count(c.Status.PackageCount))...)
	out.WriteString(facts.Render(s))
	term.WriteConditions(&out, c.Status.Conditions, now, s)
	writeBlocked(&out, c.Status.BlockedVersions, s)
	writeVersions(&out, c.Status.Packages, now, s)
	return out.String()
}

func lookedAt(spec v1alpha1.OperatorCatalogSpec) string {
	if strings.Contains(spec.Source.Image, "@sha256:") {
		return "pinned by digest"
	}
	every := defaultPoll
	if spec.PollInterval != nil {
		every = spec.PollInterval.Duration
	}
	return "read every " + term.Span(every)
}

func inUseText(c *v1alpha1.OperatorCatalog, now time.Time) string {
	if c.Status.Digest == "" {
		return "none yet"
	}
	text := c.Status.Digest
	if c.Status.LastReadTime != nil {
		text += ", unchanged for " + term.Age(now, *c.Status.LastReadTime)
	}
	if from := c.Status.Source; from != nil && *from != c.Spec.Source {
		text += " from " + sourceOf(*from)
	}
	return text
}

func signatureText(v *v1alpha1.CatalogVerification) string {
	switch {
	case v == nil:
		return "not required"
	case len(v.PublicKeys) == 1:
		return "by the trusted key"
	default:
		return fmt.Sprintf("by one of %d trusted keys", len(v.PublicKeys))
	}
}

func writeBlocked(out *strings.Builder, list []v1alpha1.BlockedVersion, s term.Style) {
	if len(list) == 0 {
		return
	}
	t := &term.Table{Header: []string{"BLOCKED", "VERSION", "CLUSTERS", "BY", "UNTIL", "REASON"}, Wrap: true}
	for _, b := range list {
		running, until := term.Cell{Text: term.Count(b.Clusters)}, term.Cell{Text: term.OrDash(b.Expires)}
		if b.Clusters > 0 {
			running.Tone = term.Warn
		}
		if b.Expired {
			until = term.Warn.Cell(b.Expires + " (due)")
		}
		t.Add(term.Cell{Text: b.Package}, term.Cell{Text: b.Version}, running,
			term.Cell{Text: strings.ToLower(string(b.Origin))},
			until, term.Cell{Text: withProposal(b)})
	}
	out.WriteByte('\n')
	out.WriteString(t.Render(s))
}

// withProposal is why a version is blocked, and what is proposed for the clusters that run it.
func withProposal(b v1alpha1.BlockedVersion) string {
	text := phrase.OneLine(b.Reason)
	if b.Proposal != "" {
		text = strings.TrimSuffix(text, ".") + "; proposal: " + phrase.OneLine(b.Proposal)
	}
	return text
}

func writeVersions(out *strings.Builder, packages []v1alpha1.CatalogPackage, now time.Time, s term.Style) {
	t := &term.Table{Header: []string{"PACKAGE", "VERSION", "CLUSTERS", "STATE"}, Wrap: true}
	for _, p := range packages {
		name := p.Name
		for _, v := range p.Versions {
			t.Add(term.Cell{Text: name}, term.Cell{Text: cmp.Or(v.Version, v.Bundle)},
				term.Cell{Text: term.Count(v.Clusters)},
				versionState(p, v, now))
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

// headOf names the channels that a version is the head of.
func headOf(p v1alpha1.CatalogPackage, version string) string {
	var heads []string
	for _, c := range p.Channels {
		if c.Head == version {
			heads = append(heads, "head of "+c.Name)
		}
	}
	return strings.Join(heads, ", ")
}

// versionState is what a person should know of a version: whether it may be used, the channels that it is the head of,
// and the versions to which one gets back from it.
func versionState(p v1alpha1.CatalogPackage, v v1alpha1.CatalogVersion, now time.Time) term.Cell {
	use := useOf(v, now)
	var parts []string
	for _, text := range []string{use.Text, headOf(p, v.Version), waysBack(v.Rollbacks)} {
		if text != "" {
			parts = append(parts, text)
		}
	}
	return use.Tone.Cell(strings.Join(parts, "; "))
}

func useOf(v v1alpha1.CatalogVersion, now time.Time) term.Cell {
	switch {
	case v.Blocked != "":
		return term.Bad.Cell("blocked: " + phrase.OneLine(v.Blocked))
	case v.Absent:
		return term.Warn.Cell("not in the catalog")
	case v.Deprecated != "":
		return term.Warn.Cell("deprecated: " + phrase.OneLine(v.Deprecated))
	case registryv1.SupportEnded(v.EndOfSupport, now):
		return term.Warn.Cell("not supported since " + v.EndOfSupport)
	case v.EndOfSupport != "":
		return term.Dim.Cell("supported until " + v.EndOfSupport)
	default:
		return term.Cell{}
	}
}

func waysBack(ways []v1alpha1.CatalogRollback) string {
	var out []string
	for _, w := range ways {
		out = append(out, fmt.Sprintf("%s (%s)", w.From, w.Class))
	}
	if len(out) == 0 {
		return ""
	}
	return "rollback to " + strings.Join(out, ", ")
}

// blockedText sums up the blocks of a catalog for a list.
func blockedText(list []v1alpha1.BlockedVersion) term.Cell {
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

// Catalogs is the table of catalogs.
func Catalogs(list []v1alpha1.OperatorCatalog, l term.Listing) *term.Table {
	t := &term.Table{Header: []string{"NAME", "STATE", "PACKAGES", "BLOCKED", "CHANGED", "SOURCE"}}
	if l.Wide {
		t.Header = append(t.Header, "DIGEST", "MESSAGE")
	}
	for i := range list {
		c := &list[i]
		changed := "-" // a digest that is read again leaves the time as it is
		if c.Status.LastReadTime != nil {
			changed = term.Age(l.Now, *c.Status.LastReadTime) + " ago"
		}
		row := []term.Cell{{Text: c.Name}, term.Health(c.Status.Conditions), {Text: term.Count(c.Status.PackageCount)},
			blockedText(c.Status.BlockedVersions), {Text: changed}, {Text: sourceOf(c.Spec.Source)}}
		if l.Wide {
			row = append(row, term.Cell{Text: term.OrDash(phrase.ShortDigest(c.Status.Digest))},
				term.Cell{Text: term.Headline(c.Status.Conditions)})
		}
		t.Add(l.Row(c.Namespace, row)...)
	}
	return l.Table(t)
}

func sourceOf(s v1alpha1.CatalogSource) string { return cmp.Or(s.Image, s.Directory) }
