// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bellwether-dev/bellwether/catalogs/vulnerabilities"
	"github.com/bellwether-dev/bellwether/catalogs/vulnerabilities/osv"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/phrase"
)

// maxShown bounds lists of names in the tables; -o wide shows all.
const maxShown = 5

// Vulnerabilities is the report as text: the versions, what they have, and what is not known.
func Vulnerabilities(r vulnerabilities.Report, s term.Style, clusters, wide bool) string {
	most := maxShown
	if wide {
		s.Width, most = 0, 1<<30
	}
	var out strings.Builder
	out.WriteString(versionsTable(r, clusters, most).Render(s))
	if t := vulnerabilityTable(r, most, wide); len(t.Rows) > 0 {
		out.WriteString("\n" + t.Render(s))
	}
	if t := unknownTable(r, most); len(t.Rows) > 0 {
		out.WriteString("\n" + s.Paint(term.Warn, "not known") + "\n" + t.Render(s))
	}
	return out.String()
}

// versionsTable counts by severity. A version of which not all is known never looks clean.
func versionsTable(r vulnerabilities.Report, clusters bool, most int) *term.Table {
	t := &term.Table{Header: []string{"PACKAGE", "VERSION"}}
	for _, severity := range osv.Severities() {
		if severity != osv.None {
			t.Header = append(t.Header, heading(severity))
		}
	}
	t.Header = append(t.Header, "KNOWN")
	if clusters {
		t.Header = append(t.Header, "CLUSTERS", "NAMES")
	}
	previous := ""
	for _, v := range r.Versions {
		name := v.Package
		if name == previous {
			name = ""
		}
		previous = v.Package
		row := []term.Cell{term.Strong.Cell(name), {Text: cmp.Or(v.Version, v.Bundle)}}
		for _, severity := range osv.Severities() {
			if severity != osv.None {
				row = append(row, countCell(v, severity))
			}
		}
		row = append(row, knownCell(v))
		if clusters {
			row = append(row, term.Cell{Text: term.Count(len(v.Clusters))},
				term.Cell{Text: phrase.First(v.Clusters, most)})
		}
		t.Add(row...)
	}
	return t
}

// heading calls those that nobody has rated so: "unknown" is for what is in an image.
func heading(s osv.Severity) string {
	if s == osv.Unknown {
		return "UNRATED"
	}
	return strings.ToUpper(string(s))
}

func countCell(v vulnerabilities.Version, severity osv.Severity) term.Cell {
	n := v.Counts[severity]
	switch {
	case n == 0 && (v.Problem != "" || len(v.Unknown) == len(v.Images)):
		return term.Warn.Cell("?")
	case n == 0:
		return term.Cell{Text: "0"}
	}
	return term.Cell{Text: strconv.Itoa(n), Tone: severityTone(severity)}
}

func severityTone(s osv.Severity) term.Tone {
	switch s {
	case osv.Critical, osv.High:
		return term.Bad
	case osv.Medium, osv.Unknown:
		return term.Warn
	default:
		return term.Plain
	}
}

func knownCell(v vulnerabilities.Version) term.Cell {
	var parts []string
	switch {
	case v.Problem != "":
		return term.Warn.Cell("unknown: " + v.Problem)
	case len(v.Unknown) > 0:
		parts = append(parts, fmt.Sprintf("%d of %d images", len(v.Images)-len(v.Unknown), len(v.Images)))
	}
	if v.NotCompared > 0 {
		parts = append(parts, phrase.Count(v.NotCompared, "package")+" not compared")
	}
	if len(parts) == 0 {
		return term.Cell{Text: "all"}
	}
	return term.Warn.Cell(strings.Join(parts, ", "))
}

// found is a vulnerability of a package, wherever it is.
type found struct {
	vulnerabilities.Affected
	images, versions []string
}

func vulnerabilityTable(r vulnerabilities.Report, most int, wide bool) *term.Table {
	t := &term.Table{Wrap: true,
		Header: []string{"VULNERABILITY", "SEVERITY", "CVSS", "PACKAGE", "INSTALLED", "FIXED IN"}}
	if wide {
		t.Header = append(t.Header, "IMAGE")
	}
	t.Header = append(t.Header, "VERSIONS")
	for _, f := range gather(r) {
		score := "-"
		if f.Score > 0 {
			score = strconv.FormatFloat(f.Score, 'f', 1, 64)
		}
		row := []term.Cell{term.Strong.Cell(f.ID),
			{Text: strings.ToLower(heading(f.Severity)), Tone: severityTone(f.Severity)},
			{Text: score}, {Text: f.Package}, {Text: f.Installed}, {Text: term.OrDash(f.Fixed)}}
		if wide {
			row = append(row, term.Cell{Text: phrase.First(f.images, most)})
		}
		t.Add(append(row, term.Cell{Text: phrase.First(f.versions, most)})...)
	}
	return t
}

// gather joins what several images have of the same package, the worst first.
func gather(r vulnerabilities.Report) []*found {
	used := map[string][]string{}
	for _, v := range r.Versions {
		for _, image := range v.Images {
			used[image] = append(used[image], v.Bundle)
		}
	}
	type key struct{ id, purl, name, version string }
	known := map[key]*found{}
	var out []*found
	for _, image := range r.Images {
		for _, a := range image.Vulnerabilities {
			k := key{a.ID, a.PURL, a.Package, a.Installed}
			if known[k] == nil {
				known[k] = &found{Affected: a}
				out = append(out, known[k])
			}
			known[k].images = append(known[k].images, shortImage(image.Image))
			known[k].versions = append(known[k].versions, used[image.Image]...)
		}
	}
	for _, f := range out {
		slices.Sort(f.versions)
		f.versions = slices.Compact(f.versions)
	}
	slices.SortStableFunc(out, func(a, b *found) int {
		return cmp.Or(a.Severity.Compare(b.Severity), cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID),
			cmp.Compare(a.Package, b.Package), cmp.Compare(a.Installed, b.Installed))
	})
	return out
}

// shortImage shortens the digest of a reference.
func shortImage(image string) string {
	repository, digest, ok := strings.Cut(image, "@")
	if !ok {
		return image
	}
	return repository + "@" + phrase.ShortDigest(digest)
}

func unknownTable(r vulnerabilities.Report, most int) *term.Table {
	t := &term.Table{Header: []string{"IMAGE", "NOT KNOWN"}, Wrap: true}
	for _, image := range r.Images {
		if image.Unknown != "" {
			t.Add(term.Cell{Text: shortImage(image.Image)}, term.Cell{Text: "all packages: " + image.Unknown})
		}
		for _, n := range image.NotCompared {
			t.Add(term.Cell{Text: shortImage(image.Image)},
				term.Cell{Text: phrase.First(n.Packages, most) + ": " + n.Reason})
		}
	}
	return t
}
