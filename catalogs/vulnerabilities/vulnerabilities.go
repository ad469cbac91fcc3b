// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package vulnerabilities says which versions of a catalog have known vulnerabilities: it compares what is in their
// images, by SBOMs, with a database. It is pure. What is not known is never reported as clean: an image without an
// SBOM is unknown, and a package that cannot be compared is listed.
package vulnerabilities

import (
	"cmp"
	"maps"
	"slices"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/vulnerabilities/inventory"
	"github.com/bellwether-dev/bellwether/catalogs/vulnerabilities/osv"
)

// Contents is what is known of an image.
type Contents struct {
	// Inventories are its SBOMs.
	Inventories []inventory.Inventory
	// Problem is why there are none, where it is not simply that nobody made any.
	Problem string
}

// Input is everything that a report depends on.
type Input struct {
	Packages []*catalogs.Package
	// Contents by image reference.
	Contents map[string]Contents
	Database *osv.Database
	// Installed are the clusters that run a bundle; nil where no hub was asked.
	Installed []Installed
}

// Installed is a bundle on a cluster.
type Installed struct {
	Package string
	catalogs.Installed
	Cluster string
}

// Report is what a catalog's versions are affected by.
type Report struct {
	// Versions are those of the catalog, and those that clusters run although the catalog does not have them, by
	// package, the newest first.
	Versions []Version `json:"versions"`
	// Images are those of the versions, by reference.
	Images []Image `json:"images"`
	// Database says what was compared with.
	Database Coverage `json:"database"`
}

// Coverage says what a database has.
type Coverage struct {
	Records    int            `json:"records"`
	Ecosystems map[string]int `json:"ecosystems"`
	Unread     int            `json:"unread,omitempty"`
}

// Version is a bundle with what its images are affected by.
type Version struct {
	Package string `json:"package"`
	Version string `json:"version,omitempty"`
	Bundle  string `json:"bundle"`
	// Counts of different vulnerabilities, by severity.
	Counts map[osv.Severity]int `json:"vulnerabilities"`
	// Images are the references of its images. Unknown are those of them without an SBOM.
	Images  []string `json:"images"`
	Unknown []string `json:"unknownImages,omitempty"`
	// Problem is why nothing is known of the version; empty where its images are known.
	Problem string `json:"problem,omitempty"`
	// NotCompared counts packages that could not be compared with the database.
	NotCompared int `json:"notCompared,omitempty"`
	// Clusters run the version. Absent where no hub was asked.
	Clusters []string `json:"clusters,omitempty"`
}

// IsUnknown reports whether some of the version is not known, so that it may have vulnerabilities which are not
// counted.
func (v Version) IsUnknown() bool { return v.Problem != "" || len(v.Unknown) > 0 || v.NotCompared > 0 }

// Image is an image with what it is affected by.
type Image struct {
	Image string `json:"image"`
	// Unknown is why nothing is known of what is in it; empty where there is an SBOM.
	Unknown string `json:"unknown,omitempty"`
	// Packages counts what the SBOM lists.
	Packages        int           `json:"packages"`
	Vulnerabilities []Affected    `json:"vulnerabilities,omitempty"`
	NotCompared     []NotCompared `json:"notCompared,omitempty"`
}

// Affected is a vulnerability of a package in an image.
type Affected struct {
	osv.Vulnerability
	Package   string `json:"package"`
	Installed string `json:"installed"`
	PURL      string `json:"purl"`
}

// NotCompared are packages that could not be compared, for the same reason.
type NotCompared struct {
	Reason   string   `json:"reason"`
	Packages []string `json:"packages"`
}

// Reasons why nothing is known.
const (
	noSBOM     = "no SBOM"
	emptySBOM  = "the SBOM lists no packages"
	noImages   = "the catalog lists no images of the version"
	notOffered = "the version is not in the catalog"
)

// ImagesOf are the images that a bundle runs. Its own image is not among them: it has manifests only.
func ImagesOf(b *catalogs.Bundle) []string {
	var out []string
	for _, r := range b.RelatedImages {
		if r.Image != "" && r.Image != b.Image {
			out = append(out, r.Image)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Targets are the packages to look for in the database.
func Targets(contents map[string]Contents) []osv.Target {
	found := map[osv.Target]bool{}
	for _, c := range contents {
		for _, component := range components(c) {
			if t, err := osv.TargetOf(component.PURL); err == nil {
				found[t] = true
			}
		}
	}
	return slices.Collect(maps.Keys(found))
}

func components(c Contents) []inventory.Component {
	seen := map[inventory.Component]bool{}
	for _, i := range c.Inventories {
		for _, component := range i.Components {
			seen[component] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b inventory.Component) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version), cmp.Compare(a.PURL, b.PURL))
	})
}

// Compare makes a report.
func Compare(in Input) Report {
	out := Report{Versions: []Version{}, Images: []Image{}, Database: Coverage{Records: in.Database.Records,
		Ecosystems: in.Database.Ecosystems, Unread: in.Database.UnreadCount}}
	judged := map[string]Image{}
	for _, p := range in.Packages {
		for _, b := range p.Bundles {
			for _, ref := range ImagesOf(b) {
				if _, known := judged[ref]; !known {
					judged[ref] = judge(ref, in.Contents[ref], in.Database)
				}
			}
			out.Versions = append(out.Versions, version(p.Name, b, judged))
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(judged)) {
		out.Images = append(out.Images, judged[ref])
	}
	out.place(in.Installed)
	slices.SortFunc(out.Versions, func(a, b Version) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), catalogs.CompareVersions(b.Version, a.Version),
			cmp.Compare(a.Bundle, b.Bundle))
	})
	return out
}

// place adds the clusters, and the versions that only clusters have.
func (r *Report) place(installed []Installed) {
	at := map[[2]string]int{}
	for i, v := range r.Versions {
		at[[2]string{v.Package, v.Bundle}] = i
	}
	for _, i := range installed {
		k := [2]string{i.Package, i.Name}
		if _, known := at[k]; !known {
			at[k] = len(r.Versions)
			r.Versions = append(r.Versions, Version{Package: i.Package, Version: i.Version, Bundle: i.Name,
				Counts: map[osv.Severity]int{}, Images: []string{}, Problem: notOffered})
		}
		v := &r.Versions[at[k]]
		v.Clusters = append(v.Clusters, i.Cluster)
	}
	for i := range r.Versions {
		slices.Sort(r.Versions[i].Clusters)
		r.Versions[i].Clusters = slices.Compact(r.Versions[i].Clusters)
	}
}

func version(pkg string, b *catalogs.Bundle, judged map[string]Image) Version {
	v := Version{Package: pkg, Version: b.VersionString(), Bundle: b.Name, Counts: map[osv.Severity]int{},
		Images: ImagesOf(b)}
	worst := map[string]osv.Severity{}
	for _, ref := range v.Images {
		i := judged[ref]
		if i.Unknown != "" {
			v.Unknown = append(v.Unknown, ref)
		}
		for _, n := range i.NotCompared {
			v.NotCompared += len(n.Packages)
		}
		for _, a := range i.Vulnerabilities {
			if s, known := worst[a.ID]; !known || a.Severity.Compare(s) < 0 {
				worst[a.ID] = a.Severity
			}
		}
	}
	for _, severity := range worst {
		v.Counts[severity]++
	}
	if len(v.Images) == 0 {
		v.Images, v.Problem = []string{}, noImages
	}
	return v
}

func judge(ref string, c Contents, database *osv.Database) Image {
	out := Image{Image: ref}
	if len(c.Inventories) == 0 {
		out.Unknown = cmp.Or(c.Problem, noSBOM)
		return out
	}
	found := components(c)
	out.Packages = len(found)
	if out.Packages == 0 {
		out.Unknown = emptySBOM
		return out
	}
	skipped := map[string][]string{}
	for _, component := range found {
		vulnerabilities, err := find(component, database)
		if err != nil {
			skipped[err.Error()] = append(skipped[err.Error()], named(component))
		}
		for _, v := range vulnerabilities {
			out.Vulnerabilities = append(out.Vulnerabilities, Affected{Vulnerability: v, Package: component.Name,
				Installed: component.Version, PURL: component.PURL})
		}
	}
	slices.SortStableFunc(out.Vulnerabilities, func(a, b Affected) int {
		return cmp.Or(a.Severity.Compare(b.Severity), cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	for _, reason := range slices.Sorted(maps.Keys(skipped)) {
		out.NotCompared = append(out.NotCompared, NotCompared{Reason: reason, Packages: skipped[reason]})
	}
	return out
}

func find(c inventory.Component, database *osv.Database) ([]osv.Vulnerability, error) {
	target, err := osv.TargetOf(c.PURL)
	if err != nil {
		return nil, err
	}
	return database.Find(target)
}

func named(c inventory.Component) string {
	if c.Version == "" {
		return c.Name
	}
	return c.Name + " " + c.Version
}

// Reaches reports whether some version has a vulnerability that is at least as bad. One that nobody has rated counts
// as high.
func (r Report) Reaches(severity osv.Severity) bool {
	return slices.ContainsFunc(r.Versions, func(v Version) bool {
		for s, n := range v.Counts {
			if s == osv.Unknown {
				s = osv.High
			}
			if n > 0 && s.Compare(severity) <= 0 {
				return true
			}
		}
		return false
	})
}

// IsUnknown reports whether some version is not known in full.
func (r Report) IsUnknown() bool { return slices.ContainsFunc(r.Versions, Version.IsUnknown) }
