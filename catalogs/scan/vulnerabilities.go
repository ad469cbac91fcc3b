// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scan reports which versions of a catalog have known vulnerabilities: it compares the packages in their
// images, listed by SBOMs, with a database. It is pure. Unknown content is never reported as clean: an image without
// an SBOM is unknown, and a package that cannot be compared is listed.
//
// SBOMs are documents of CycloneDX or SPDX as JSON, or in-toto statements with such a predicate. Signatures of
// statements are not verified. A database is in the format of https://ossf.github.io/osv-schema: a folder with a JSON
// file for each record, or with the archives (all.zip) that osv.dev publishes for each ecosystem. It is read once,
// record by record; only records about the wanted packages are kept.
package scan

import (
	"cmp"
	"maps"
	"slices"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// Input is everything that a report depends on.
type Input struct {
	Packages []*catalogs.Package
	// Contents by image reference.
	Contents map[string]Contents
	Database *Database
	// Installed are the bundles on clusters; nil if no hub was queried. Bundles of packages that are not in Packages
	// are ignored.
	Installed []catalogs.ClusterBundle
}

// Report lists the vulnerabilities of a catalog's versions.
type Report struct {
	// Versions are the versions of the catalog, and versions that clusters run although the catalog does not have
	// them, by package, the newest first.
	Versions []Version `json:"versions"`
	// Images are the images of the versions, by reference.
	Images []Image `json:"images"`
	// Database describes the database of the comparison.
	Database Coverage `json:"database"`
}

// Coverage is the extent of a database.
type Coverage struct {
	Records    int            `json:"records"`
	Ecosystems map[string]int `json:"ecosystems"`
	Unread     int            `json:"unread,omitempty"`
}

// Version is a bundle with the vulnerabilities of its images.
type Version struct {
	Package string `json:"package"`
	Version string `json:"version,omitempty"`
	Bundle  string `json:"bundle"`
	// Counts are the numbers of different vulnerabilities, by severity.
	Counts map[Severity]int `json:"vulnerabilities"`
	// Images are the references of its images. Unknown are the references of images without an SBOM.
	Images  []string `json:"images"`
	Unknown []string `json:"unknownImages,omitempty"`
	// Problem is why nothing is known of the version; empty if its images are known.
	Problem string `json:"problem,omitempty"`
	// NotCompared counts packages that could not be compared with the database.
	NotCompared int `json:"notCompared,omitempty"`
	// Clusters run the version. It is absent if no hub was queried.
	Clusters []string `json:"clusters,omitempty"`
}

// IsUnknown reports whether a part of the version is unknown, so that it can have vulnerabilities that are
// not counted.
func (v Version) IsUnknown() bool { return v.Problem != "" || len(v.Unknown) > 0 || v.NotCompared > 0 }

// Image is an image with its vulnerabilities.
type Image struct {
	Image string `json:"image"`
	// Unknown is why the content of the image is unknown; empty if there is an SBOM.
	Unknown string `json:"unknown,omitempty"`
	// Packages is the number of packages in the SBOM.
	Packages        int           `json:"packages"`
	Vulnerabilities []Affected    `json:"vulnerabilities,omitempty"`
	NotCompared     []NotCompared `json:"notCompared,omitempty"`
}

// Affected is a vulnerability of a package in an image.
type Affected struct {
	Vulnerability
	Package   string `json:"package"`
	Installed string `json:"installed"`
	PURL      string `json:"purl"`
}

// NotCompared are packages that could not be compared for the same reason.
type NotCompared struct {
	Reason   string   `json:"reason"`
	Packages []string `json:"packages"`
}

// Reasons why a version or an image is unknown.
const (
	noSBOM     = "no SBOM"
	emptySBOM  = "the SBOM lists no packages"
	noImages   = "the catalog lists no images of the version"
	notOffered = "the version is not in the catalog"
)

// Targets returns the packages to look up in the database.
func Targets(contents map[string]Contents) []Target {
	found := map[Target]bool{}
	for _, c := range contents {
		for _, component := range listComponents(c) {
			if t, err := ParseTarget(component.PURL); err == nil {
				found[t] = true
			}
		}
	}
	return slices.Collect(maps.Keys(found))
}

// listComponents returns the components of all SBOMs of an image, sorted, without duplicates.
func listComponents(c Contents) []Component {
	isListed := map[Component]bool{}
	for _, i := range c.Inventories {
		for _, component := range i.Components {
			isListed[component] = true
		}
	}
	return slices.SortedFunc(maps.Keys(isListed), func(a, b Component) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version), cmp.Compare(a.PURL, b.PURL))
	})
}

// Compare returns the vulnerabilities of all versions in the packages, and the clusters that run each version.
func Compare(in Input) Report {
	out := Report{Versions: []Version{}, Images: []Image{}, Database: Coverage{Records: in.Database.Records,
		Ecosystems: in.Database.Ecosystems, Unread: in.Database.UnreadCount}}
	images := map[string]Image{}
	for _, p := range in.Packages {
		for _, b := range p.Bundles {
			for _, ref := range listBundleImages(b) {
				if _, isJudged := images[ref]; !isJudged {
					images[ref] = judgeImage(ref, in.Contents[ref], in.Database)
				}
			}
			out.Versions = append(out.Versions, buildVersion(p.Name, b, images))
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(images)) {
		out.Images = append(out.Images, images[ref])
	}
	out.addClusters(slices.DeleteFunc(slices.Clone(in.Installed), func(i catalogs.ClusterBundle) bool {
		return !slices.ContainsFunc(in.Packages, func(p *catalogs.Package) bool { return p.Name == i.Package })
	}))
	slices.SortFunc(out.Versions, func(a, b Version) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), catalogs.CompareVersions(b.Version, a.Version),
			cmp.Compare(a.Bundle, b.Bundle))
	})
	return out
}

// addClusters adds the clusters to the versions, and adds versions that only clusters have.
func (r *Report) addClusters(installed []catalogs.ClusterBundle) {
	index := map[[2]string]int{}
	for i, v := range r.Versions {
		index[[2]string{v.Package, v.Bundle}] = i
	}
	for _, i := range installed {
		k := [2]string{i.Package, i.Name}
		if _, isListed := index[k]; !isListed {
			index[k] = len(r.Versions)
			r.Versions = append(r.Versions, Version{Package: i.Package, Version: i.Version, Bundle: i.Name,
				Counts: map[Severity]int{}, Images: []string{}, Problem: notOffered})
		}
		v := &r.Versions[index[k]]
		v.Clusters = append(v.Clusters, i.Cluster)
	}
	for i := range r.Versions {
		slices.Sort(r.Versions[i].Clusters)
		r.Versions[i].Clusters = slices.Compact(r.Versions[i].Clusters)
	}
}

// buildVersion returns a bundle with the counts of the vulnerabilities of its images. A vulnerability in several images
// is counted once, with its worst severity.
func buildVersion(pkg string, b *catalogs.Bundle, images map[string]Image) Version {
	v := Version{Package: pkg, Version: b.VersionString(), Bundle: b.Name, Counts: map[Severity]int{},
		Images: listBundleImages(b)}
	worst := map[string]Severity{}
	for _, ref := range v.Images {
		i := images[ref]
		if i.Unknown != "" {
			v.Unknown = append(v.Unknown, ref)
		}
		for _, n := range i.NotCompared {
			v.NotCompared += len(n.Packages)
		}
		for _, a := range i.Vulnerabilities {
			if s, isCounted := worst[a.ID]; !isCounted || a.Severity.Compare(s) < 0 {
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

// judgeImage returns an image with the vulnerabilities of its components, the worst first, and with the components that
// cannot be compared. Without components, it returns an image with a reason in Unknown.
func judgeImage(ref string, c Contents, database *Database) Image {
	out := Image{Image: ref}
	if len(c.Inventories) == 0 {
		out.Unknown = cmp.Or(c.Problem, noSBOM)
		return out
	}
	found := listComponents(c)
	out.Packages = len(found)
	if out.Packages == 0 {
		out.Unknown = emptySBOM
		return out
	}
	skipped := map[string][]string{}
	for _, component := range found {
		vulnerabilities, err := findVulnerabilities(component, database)
		if err != nil {
			skipped[err.Error()] = append(skipped[err.Error()], formatComponent(component))
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

func findVulnerabilities(c Component, database *Database) ([]Vulnerability, error) {
	target, err := ParseTarget(c.PURL)
	if err != nil {
		return nil, err
	}
	return database.Find(target)
}

func formatComponent(c Component) string {
	if c.Version == "" {
		return c.Name
	}
	return c.Name + " " + c.Version
}

// HasSeverity reports whether a version has a vulnerability that is at least as bad as severity. A vulnerability
// without a rating counts as high.
func (r Report) HasSeverity(severity Severity) bool {
	return slices.ContainsFunc(r.Versions, func(v Version) bool {
		for s, n := range v.Counts {
			if s == Unknown {
				s = High
			}
			if n > 0 && s.Compare(severity) <= 0 {
				return true
			}
		}
		return false
	})
}

// IsUnknown reports whether a part of any version is unknown.
func (r Report) IsUnknown() bool { return slices.ContainsFunc(r.Versions, Version.IsUnknown) }
