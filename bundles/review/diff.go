// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package review shows a bundle to a reviewer. Its inputs are parsed bundles.
//
// Compare compares two versions of an operator: changes of the APIs, the permissions, the images and the settings, not
// lines of YAML. It marks changes that may break users. It must not forbid changes; package lint does this.
//
// Score compares the capability level that an operator claims with the evidence in its bundle. The levels are defined
// by the Operator Framework, https://sdk.operatorframework.io/docs/overview/operator-capabilities/. A card has the
// evidence for each level, which comes only from CRDs, permissions and manifests. An operator can have features that
// its bundle does not show, and features that do not work well.
package review

import (
	"cmp"
	"slices"

	"github.com/bellwether-dev/bellwether/bundles"
)

// Area is the part of a bundle that has changed.
type Area string

// The areas, in the order in which a report shows them.
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

// Areas returns all areas, in order.
func Areas() []Area {
	return []Area{AreaVersion, AreaCRDs, AreaRBAC, AreaImages, AreaDeployments, AreaWebhooks, AreaDependencies,
		AreaManifests}
}

// Title returns the name of the area for people.
func (a Area) Title() string {
	return map[Area]string{
		AreaVersion: "Version", AreaCRDs: "CRDs", AreaRBAC: "Permissions", AreaImages: "Images",
		AreaDeployments: "Deployments",
		AreaWebhooks:    "Webhooks", AreaDependencies: "Dependencies", AreaManifests: "Other manifests",
	}[a]
}

// Kind is the kind of a change.
type Kind string

// The kinds of changes.
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
)

// Weight says how much attention a change needs.
type Weight string

// The weights. Most changes have an empty weight.
const (
	// Breaking changes can lose data, or make valid objects invalid.
	Breaking Weight = "breaking"
	// Attention changes grant permissions, or change behaviour without a user's action.
	Attention Weight = "attention"
)

// Change is one difference between two bundles.
type Change struct {
	Area   Area   `json:"area"`
	Kind   Kind   `json:"kind"`
	Weight Weight `json:"weight,omitempty"`
	// Subject is the changed object, such as a CRD and its version, or a service account.
	Subject string `json:"subject"`
	// Path is the field within the subject, or the resources of a permission; empty for the subject itself.
	Path string `json:"path,omitempty"`
	// From and To are the values, as plain text or compact JSON; empty if there is no value.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Note is the reason for the weight.
	Note string `json:"note,omitempty"`
}

// Side is one of the two bundles.
type Side struct {
	Name    string `json:"name"`
	Package string `json:"package,omitempty"`
	Version string `json:"version"`
}

// Report contains the changes between two bundles, ordered by area, subject and path.
type Report struct {
	From    Side     `json:"from"`
	To      Side     `json:"to"`
	Changes []Change `json:"changes"`
}

// ListChanges returns the changes in an area.
func (r Report) ListChanges(a Area) []Change {
	return slices.DeleteFunc(slices.Clone(r.Changes), func(c Change) bool { return c.Area != a })
}

// Count returns the number of changes with a weight.
func (r Report) Count(w Weight) int {
	n := 0
	for _, c := range r.Changes {
		if c.Weight == w {
			n++
		}
	}
	return n
}

// Compare returns the changes for a user who upgrades from one bundle to the other.
func Compare(from, to *bundles.Bundle) Report {
	r := Report{From: newSide(from), To: newSide(to), Changes: []Change{}}
	for area, changes := range map[Area][]Change{
		AreaVersion: compareVersions(from, to), AreaCRDs: compareCRDs(from, to), AreaRBAC: comparePermissions(from, to),
		AreaImages:      compareImages(from, to),
		AreaDeployments: compareDeployments(from, to), AreaWebhooks: compareWebhooks(from, to),
		AreaDependencies: compareDependencies(from, to),
		AreaManifests:    compareManifests(from, to),
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

// newSide returns the name, package and version of a bundle.
func newSide(b *bundles.Bundle) Side {
	return Side{Name: b.Name, Package: b.Package, Version: b.Version.String()}
}
