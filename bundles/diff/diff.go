// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diff compares two versions of an operator for the review of an upgrade: what the APIs gain and lose, which
// rights grow, which images and settings change; not which lines of YAML.
//
// Its input is two bundles as read; its output is a list of changes in a fixed order. It judges what a change may
// break, and leaves it to package lint to forbid anything.
package diff

import (
	"cmp"
	"slices"

	"github.com/bellwether-dev/bellwether/bundles"
)

// Area is the part of a bundle that a change is in.
type Area string

// The areas, in the order in which a reviewer wants them.
const (
	AreaVersion      Area = "version"
	AreaCRDs         Area = "crds"
	AreaRBAC         Area = "rbac"
	AreaImages       Area = "images"
	AreaDeployments  Area = "deployments"
	AreaWebhooks     Area = "webhooks"
	AreaDependencies Area = "dependencies"
	AreaManifests    Area = "manifests"
)

// Areas are all areas, in order.
func Areas() []Area {
	return []Area{AreaVersion, AreaCRDs, AreaRBAC, AreaImages, AreaDeployments, AreaWebhooks, AreaDependencies,
		AreaManifests}
}

// Title names the area for people.
func (a Area) Title() string {
	return map[Area]string{
		AreaVersion: "Version", AreaCRDs: "CRDs", AreaRBAC: "Permissions", AreaImages: "Images",
		AreaDeployments: "Deployments",
		AreaWebhooks:    "Webhooks", AreaDependencies: "Dependencies", AreaManifests: "Other manifests",
	}[a]
}

// Kind tells what happened to the thing at a path.
type Kind string

// The kinds of changes.
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
)

// Weight tells how closely to look.
type Weight string

// The weights. Most changes have none.
const (
	// Breaking may lose data, or refuse what was accepted.
	Breaking Weight = "breaking"
	// Attention grants permissions, or changes behaviour without a user's action.
	Attention Weight = "attention"
)

// Change is one difference.
type Change struct {
	Area   Area   `json:"area"`
	Kind   Kind   `json:"kind"`
	Weight Weight `json:"weight,omitempty"`
	// Subject is the thing that changed, such as a CRD and its version, or a service account.
	Subject string `json:"subject"`
	// Path is the field within the subject, or the resources of a permission; empty for the subject itself.
	Path string `json:"path,omitempty"`
	// From and To are the values, as compact JSON unless they are plain text; empty where there is none.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Note is why the change has its weight.
	Note string `json:"note,omitempty"`
}

// Side is one of the two bundles.
type Side struct {
	Name    string `json:"name"`
	Package string `json:"package,omitempty"`
	Version string `json:"version"`
}

// Report is what changed between two bundles: by area, then by subject, then in the order of paths.
type Report struct {
	From    Side     `json:"from"`
	To      Side     `json:"to"`
	Changes []Change `json:"changes"`
}

// In returns the changes in an area.
func (r Report) In(a Area) []Change {
	return slices.DeleteFunc(slices.Clone(r.Changes), func(c Change) bool { return c.Area != a })
}

// Count returns how many changes have a weight.
func (r Report) Count(w Weight) int {
	n := 0
	for _, c := range r.Changes {
		if c.Weight == w {
			n++
		}
	}
	return n
}

// Compare lists what changes for who upgrades from one bundle to the other.
func Compare(from, to *bundles.Bundle) Report {
	r := Report{From: side(from), To: side(to), Changes: []Change{}}
	for area, changes := range map[Area][]Change{
		AreaVersion: versions(from, to), AreaCRDs: crds(from, to), AreaRBAC: permissions(from, to),
		AreaImages:      images(from, to),
		AreaDeployments: deployments(from, to), AreaWebhooks: webhooks(from, to),
		AreaDependencies: dependencies(from, to),
		AreaManifests:    manifests(from, to),
	} {
		for _, c := range changes {
			c.Area = area
			r.Changes = append(r.Changes, c)
		}
	}
	order := Areas()
	slices.SortStableFunc(r.Changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Area), slices.Index(order, b.Area)),
			cmp.Compare(a.Subject, b.Subject),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.From+"\x00"+a.To, b.From+"\x00"+b.To))
	})
	return r
}

func side(b *bundles.Bundle) Side {
	return Side{Name: b.Name, Package: b.Package, Version: b.Version.String()}
}
