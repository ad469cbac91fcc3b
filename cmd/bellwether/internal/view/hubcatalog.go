// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// defaultPoll is how often the hub looks at a tag or a directory where the
// OperatorCatalog does not say.
const defaultPoll = time.Minute

// HubCatalog is the details of a catalog as the hub reads it: the versions that
// clusters run, what is blocked, and how one gets back.
func HubCatalog(c *v1alpha1.OperatorCatalog, now time.Time, s Style) string {
	var out strings.Builder
	facts := &Table{}
	facts.Add(Cell{Text: "Catalog:"}, Cell{c.Name, Strong})
	facts.Add(Cell{Text: "State:"}, health(c.Status.Conditions))
	facts.Add(plain("Source:", sourceOf(c.Spec.Source)+", "+lookedAt(c.Spec))...)
	facts.Add(plain("In use:", inUseText(c, now))...)
	facts.Add(plain("Signature:", signatureText(c.Spec.Verification))...)
	facts.Add(plain("Packages:", count(c.Status.PackageCount))...)
	out.WriteString(facts.Render(Style{Colour: s.Colour}))
	writeConditions(&out, c.Status.Conditions, now, s)
	writeBlocked(&out, c.Status.BlockedVersions, s)
	writeVersions(&out, c.Status.Packages, s)
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
	return "looked at every " + span(every)
}

func inUseText(c *v1alpha1.OperatorCatalog, now time.Time) string {
	if c.Status.Digest == "" {
		return "nothing yet"
	}
	text := c.Status.Digest
	if c.Status.LastReadTime != nil {
		text += ", read " + age(now, *c.Status.LastReadTime) + " ago"
	}
	if from := c.Status.Source; from != nil && *from != c.Spec.Source {
		text += " from " + sourceOf(*from)
	}
	return text
}

func signatureText(v *v1alpha1.CatalogVerification) string {
	switch {
	case v == nil:
		return "not asked for"
	case len(v.PublicKeys) == 1:
		return "by the trusted key"
	default:
		return fmt.Sprintf("by one of %d trusted keys", len(v.PublicKeys))
	}
}

func writeBlocked(out *strings.Builder, list []v1alpha1.BlockedVersion, s Style) {
	if len(list) == 0 {
		return
	}
	t := &Table{Header: []string{"BLOCKED", "VERSION", "CLUSTERS", "BY", "UNTIL", "REASON", "PROPOSAL"}, Wrap: true}
	for _, b := range list {
		running, until := Cell{Text: count(b.Clusters)}, Cell{Text: orDash(b.Expires)}
		if b.Clusters > 0 {
			running.Tone = Warn
		}
		if b.Expired {
			until = Cell{b.Expires + " (due)", Warn}
		}
		t.Add(Cell{Text: b.Package}, Cell{Text: b.Version}, running, Cell{Text: strings.ToLower(string(b.Origin))},
			until,
			Cell{Text: oneLine(b.Reason)}, Cell{Text: orDash(oneLine(b.Proposal))})
	}
	out.WriteByte('\n')
	out.WriteString(t.Render(s))
}

func writeVersions(out *strings.Builder, packages []v1alpha1.CatalogPackage, s Style) {
	t := &Table{Header: []string{"PACKAGE", "VERSION", "CLUSTERS", "CHANNELS", "STATE", "WAY BACK TO"}, Wrap: true}
	for _, p := range packages {
		name := p.Name
		for _, v := range p.Versions {
			t.Add(Cell{Text: name}, Cell{Text: cmp.Or(v.Version, v.Bundle)}, Cell{Text: count(v.Clusters)},
				Cell{Text: headOf(p, v.Version)}, versionState(v), Cell{Text: waysBack(v.Rollbacks)})
			name = ""
		}
		if p.OmittedVersions > 0 {
			t.Add(Cell{Text: name}, Cell{Text: fmt.Sprintf("and %d older", p.OmittedVersions)}, Cell{}, Cell{}, Cell{},
				Cell{})
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

func versionState(v v1alpha1.CatalogVersion) Cell {
	switch {
	case v.Blocked != "":
		return Cell{"blocked: " + oneLine(v.Blocked), Bad}
	case v.Absent:
		return Cell{"not in the catalog", Warn}
	case v.Deprecated != "":
		return Cell{"deprecated: " + oneLine(v.Deprecated), Warn}
	default:
		return Cell{}
	}
}

func waysBack(ways []v1alpha1.CatalogRollback) string {
	var out []string
	for _, w := range ways {
		out = append(out, fmt.Sprintf("%s: %s", w.From, w.Class))
	}
	return strings.Join(out, ", ")
}

// blockedText sums up the blocks of a catalog for a list.
func blockedText(list []v1alpha1.BlockedVersion) Cell {
	var clusters int32
	for _, b := range list {
		clusters += b.Clusters
	}
	switch {
	case len(list) == 0:
		return Cell{Text: "-"}
	case clusters == 0:
		return Cell{Text: count(int32(len(list)))}
	case clusters == 1:
		return Cell{fmt.Sprintf("%d (on 1 cluster)", len(list)), Warn}
	default:
		return Cell{fmt.Sprintf("%d (on %d clusters)", len(list), clusters), Warn}
	}
}
