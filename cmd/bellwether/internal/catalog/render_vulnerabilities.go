// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bellwether-dev/bellwether/catalogs/scan"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// maxNames limits lists of names in the tables; -o wide shows all names.
const maxNames = 5

// RenderVulnerabilities returns the report as text: tables of the versions,
// of their vulnerabilities, and of unknown images.
func RenderVulnerabilities(r scan.Report, s term.Style, clusters, wide bool) string {
	limit := maxNames
	if wide {
		s.Width, limit = 0, 1<<30
	}
	var out strings.Builder
	out.WriteString(buildVersionTable(r, clusters, limit).Render(s))
	if t := buildVulnerabilityTable(r, limit, wide); len(t.Rows) > 0 {
		out.WriteString("\n" + t.Render(s))
	}
	if t := buildUnknownTable(r, limit); len(t.Rows) > 0 {
		out.WriteString("\n" + s.Paint(term.Warn, "not known") + "\n" + t.Render(s))
	}
	return out.String()
}

// buildVersionTable counts the vulnerabilities of each version by severity. A version with unknown images must not
// look free of vulnerabilities.
func buildVersionTable(r scan.Report, clusters bool, limit int) *term.Table {
	t := &term.Table{Header: []string{"PACKAGE", "VERSION"}}
	for _, severity := range scan.Severities() {
		if severity != scan.None {
			t.Header = append(t.Header, formatSeverity(severity))
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
		for _, severity := range scan.Severities() {
			if severity != scan.None {
				row = append(row, formatCount(v, severity))
			}
		}
		row = append(row, formatKnown(v))
		if clusters {
			row = append(row, term.Cell{Text: term.Count(len(v.Clusters))},
				term.Cell{Text: phrase.First(v.Clusters, limit)})
		}
		t.Add(row...)
	}
	return t
}

// formatSeverity returns a heading for a severity. Vulnerabilities without a rating are called UNRATED, because
// "unknown" already describes images without an SBOM.
func formatSeverity(s scan.Severity) string {
	if s == scan.Unknown {
		return "UNRATED"
	}
	return strings.ToUpper(string(s))
}

// formatCount returns the number of vulnerabilities of a severity, or "?" if it is 0 because the content is unknown.
func formatCount(v scan.Version, severity scan.Severity) term.Cell {
	n := v.Counts[severity]
	isUnknown := v.Problem != "" || len(v.Unknown) == len(v.Images)
	switch {
	case n == 0 && isUnknown:
		return term.Warn.Cell("?")
	case n == 0:
		return term.Cell{Text: "0"}
	}
	return term.Cell{Text: strconv.Itoa(n), Tone: chooseTone(severity)}
}

// chooseTone returns the tone for a severity.
func chooseTone(s scan.Severity) term.Tone {
	switch s {
	case scan.Critical, scan.High:
		return term.Bad
	case scan.Medium, scan.Unknown:
		return term.Warn
	default:
		return term.Plain
	}
}

// formatKnown returns how much of a version's content the report covers.
func formatKnown(v scan.Version) term.Cell {
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

// foundVulnerability is a vulnerability of a package, with all images and versions that have it.
type foundVulnerability struct {
	scan.Affected
	images, versions []string
}

// buildVulnerabilityTable lists each vulnerability with the package, and the versions that have it.
func buildVulnerabilityTable(r scan.Report, limit int, wide bool) *term.Table {
	t := &term.Table{Wrap: true,
		Header: []string{"VULNERABILITY", "SEVERITY", "CVSS", "PACKAGE", "INSTALLED", "FIXED IN"}}
	if wide {
		t.Header = append(t.Header, "IMAGE")
	}
	t.Header = append(t.Header, "VERSIONS")
	for _, f := range mergeVulnerabilities(r) {
		score := "-"
		if f.Score > 0 {
			score = strconv.FormatFloat(f.Score, 'f', 1, 64)
		}
		row := []term.Cell{term.Strong.Cell(f.ID),
			{Text: strings.ToLower(formatSeverity(f.Severity)), Tone: chooseTone(f.Severity)},
			{Text: score}, {Text: f.Package}, {Text: f.Installed}, {Text: term.DashIfEmpty(f.Fixed)}}
		if wide {
			row = append(row, term.Cell{Text: phrase.First(f.images, limit)})
		}
		t.Add(append(row, term.Cell{Text: phrase.First(f.versions, limit)})...)
	}
	return t
}

// mergeVulnerabilities merges equal vulnerabilities of the same package in several images, the worst first.
func mergeVulnerabilities(r scan.Report) []*foundVulnerability {
	bundlesByImage := map[string][]string{}
	for _, v := range r.Versions {
		for _, image := range v.Images {
			bundlesByImage[image] = append(bundlesByImage[image], v.Bundle)
		}
	}
	type key struct{ id, purl, name, version string }
	byKey := map[key]*foundVulnerability{}
	var out []*foundVulnerability
	for _, image := range r.Images {
		for _, a := range image.Vulnerabilities {
			k := key{a.ID, a.PURL, a.Package, a.Installed}
			if byKey[k] == nil {
				byKey[k] = &foundVulnerability{Affected: a}
				out = append(out, byKey[k])
			}
			byKey[k].images = append(byKey[k].images, shortenImage(image.Image))
			byKey[k].versions = append(byKey[k].versions, bundlesByImage[image.Image]...)
		}
	}
	for _, f := range out {
		slices.Sort(f.versions)
		f.versions = slices.Compact(f.versions)
	}
	slices.SortStableFunc(out, func(a, b *foundVulnerability) int {
		return cmp.Or(a.Severity.Compare(b.Severity), cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID),
			cmp.Compare(a.Package, b.Package), cmp.Compare(a.Installed, b.Installed))
	})
	return out
}

// shortenImage shortens the digest of a reference.
func shortenImage(image string) string {
	repository, digest, ok := strings.Cut(image, "@")
	if !ok {
		return image
	}
	return repository + "@" + phrase.ShortDigest(digest)
}

// buildUnknownTable lists the images without an SBOM, and the packages that were not compared.
func buildUnknownTable(r scan.Report, limit int) *term.Table {
	t := &term.Table{Header: []string{"IMAGE", "NOT KNOWN"}, Wrap: true}
	for _, image := range r.Images {
		if image.Unknown != "" {
			t.Add(term.Cell{Text: shortenImage(image.Image)}, term.Cell{Text: "all packages: " + image.Unknown})
		}
		for _, n := range image.NotCompared {
			t.Add(term.Cell{Text: shortenImage(image.Image)},
				term.Cell{Text: phrase.First(n.Packages, limit) + ": " + n.Reason})
		}
	}
	return t
}
