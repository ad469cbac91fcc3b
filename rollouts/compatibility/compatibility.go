// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compatibility says which installed operators a version of Kubernetes breaks, and which upgrade would do. It
// is pure. Whether a bundle suits a version of Kubernetes is decided where rollouts decide it, in package holds; what
// is not known is never reported as OK.
package compatibility

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/lint"
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/bundles/requirements"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/preflight"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// Verdict is what a version of Kubernetes does to a bundle.
type Verdict string

// Verdicts, the worst first.
const (
	Breaks  Verdict = "breaks"
	Unknown Verdict = "unknown"
	OK      Verdict = "OK"
)

// rank orders verdicts, the worst first.
func (v Verdict) rank() int { return slices.Index([]Verdict{Breaks, Unknown, OK}, v) }

// Facts are what is known of a bundle.
type Facts struct {
	Requirements v1alpha1.ReleaseRequirements
	// Read says that the manifests of the bundle are known.
	Read bool
	// RemovedRights are rights to resources that some version of Kubernetes does not have any more.
	RemovedRights []requirements.RemovedResource
}

// FactsOf gathers what is known of a bundle. The package has its manifests, as far as they could be read.
func FactsOf(p *catalogs.Package, channel, bundle string) Facts {
	f := Facts{Requirements: *preflight.Requirements(p, v1alpha1.Release{Channel: channel, Bundle: bundle}, nil)}
	described, ok := p.Bundles[bundle]
	if !ok || len(described.Objects) == 0 {
		return f
	}
	b, err := bundles.FromManifests(described.Objects, nil)
	if err != nil {
		return f // the requirements say it
	}
	f.Read = true
	for _, rule := range lint.Rights(b) {
		f.RemovedRights = append(f.RemovedRights, requirements.RemovedResources(rule)...)
	}
	return f
}

// Judge decides whether a bundle runs on a version of Kubernetes, and says why.
func Judge(f Facts, bundle string, kubernetes semver.Version) (Verdict, string) {
	if problem, _ := holds.KubernetesProblem(&f.Requirements, bundle, kubernetes); problem != "" {
		return Breaks, problem
	}
	// A range that is open upwards says nothing of versions that did not exist when it was written.
	if r := f.Requirements.SupportedKubernetes; r != nil && r.Max != "" {
		return OK, fmt.Sprintf("supported on Kubernetes %s (%s)", registryv1.KubernetesRange{Min: r.Min, Max: r.Max},
			registryv1.PropertySupport)
	}
	version := kubernetes.String()
	switch gone := removedRights(f.RemovedRights, version); {
	case !f.Read:
		return Unknown, cmp.Or(f.Requirements.NotRead, "the manifests of the bundle are not known")
	case len(gone) > 0:
		return Unknown, fmt.Sprintf("the operator has rights to %s, and may use it", strings.Join(gone, ", "))
	case registryv1.CompareKubernetes(version, requirements.Kubernetes) > 0:
		return Unknown, fmt.Sprintf("which APIs Kubernetes removes is known up to %s, and the bundle does not say "+
			"what it is supported on", requirements.Kubernetes)
	}
	return OK, "the bundle uses no removed API"
}

func removedRights(all []requirements.RemovedResource, version string) []string {
	var out []string
	for _, r := range all {
		if registryv1.CompareKubernetes(r.In, version) <= 0 {
			out = append(out, fmt.Sprintf("%s (removed in Kubernetes %s)", r, r.In))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Install is a bundle on a cluster.
type Install struct {
	Cluster string
	// Kubernetes is the version that the cluster has now.
	Kubernetes string
	// Operator is the namespace and name of the ManagedOperator.
	Operator string
	Package  string
	Channel  string
	Bundle   catalogs.Installed
}

// Catalog is where the package of an operator is read.
type Catalog struct {
	// Package is its upgrade graph; nil where it cannot be read, and Problem is why.
	Package *catalogs.Package
	Problem string
	// Facts returns what is known of a bundle in the package.
	Facts func(bundle string) Facts
}

// Row is one version of one operator, and what becomes of it.
type Row struct {
	Operator string  `json:"operator"`
	Package  string  `json:"package"`
	Version  string  `json:"version"`
	Bundle   string  `json:"bundle"`
	Verdict  Verdict `json:"verdict"`
	Reason   string  `json:"reason"`
	// Upgrade is the nearest version on the upgrade path that is OK; empty where there is none, and where none is
	// needed. UpgradeReason says why there is none.
	Upgrade       string    `json:"upgrade,omitempty"`
	UpgradeReason string    `json:"upgradeReason,omitempty"`
	Clusters      []Cluster `json:"clusters"`
}

// Cluster is one that runs the version.
type Cluster struct {
	Name string `json:"name"`
	// Kubernetes is the version that it has now; empty where it does not report one.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// Report says what a version of Kubernetes does to a fleet.
type Report struct {
	Kubernetes string `json:"kubernetes"`
	// Rows are the worst first.
	Rows []Row `json:"operators"`
}

// Has reports whether some operator has the verdict.
func (r Report) Has(v Verdict) bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Verdict == v })
}

// Compare makes a report. catalog returns where the package of an operator is; it is called once for each operator.
func Compare(kubernetes semver.Version, installs []Install, catalog func(operator string) Catalog) Report {
	out := Report{Kubernetes: fmt.Sprintf("%d.%d", kubernetes.Major, kubernetes.Minor), Rows: []Row{}}
	type key struct{ operator, bundle string }
	rows, known := map[key]*Row{}, map[string]Catalog{}
	for _, i := range installs {
		k := key{i.Operator, i.Bundle.Name}
		if rows[k] == nil {
			c, read := known[i.Operator]
			if !read {
				c = catalog(i.Operator)
				known[i.Operator] = c
			}
			row := judgeInstalled(c, i, kubernetes)
			rows[k] = &row
		}
		rows[k].Clusters = append(rows[k].Clusters, Cluster{Name: i.Cluster, Kubernetes: i.Kubernetes})
	}
	for _, row := range rows {
		slices.SortFunc(row.Clusters, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
		out.Rows = append(out.Rows, *row)
	}
	slices.SortFunc(out.Rows, func(a, b Row) int {
		return cmp.Or(a.Verdict.rank()-b.Verdict.rank(), cmp.Compare(a.Operator, b.Operator),
			catalogs.CompareVersions(b.Version, a.Version), cmp.Compare(a.Bundle, b.Bundle))
	})
	return out
}

func judgeInstalled(c Catalog, i Install, kubernetes semver.Version) Row {
	row := Row{Operator: i.Operator, Package: i.Package, Version: i.Bundle.Version, Bundle: i.Bundle.Name}
	if c.Package == nil {
		row.Verdict, row.Reason = Unknown, c.Problem
		return row
	}
	row.Verdict, row.Reason = Judge(c.Facts(i.Bundle.Name), i.Bundle.Name, kubernetes)
	if row.Verdict != OK {
		row.Upgrade, row.UpgradeReason = nearest(c, i, kubernetes)
	}
	return row
}

// nearest returns the first version of the upgrade path that is OK, or why there is none.
func nearest(c Catalog, i Install, kubernetes semver.Version) (version, reason string) {
	head, err := c.Package.Target(i.Channel, "")
	if err != nil {
		return "", err.Error()
	}
	path, err := c.Package.PathFrom(i.Channel, i.Bundle, head.Name)
	switch {
	case err != nil:
		return "", err.Error()
	case len(path) == 0:
		return "", "there is no newer version in channel " + cmp.Or(i.Channel, c.Package.DefaultChannel)
	}
	for _, name := range path {
		verdict, why := Judge(c.Facts(name), name, kubernetes)
		if verdict == OK {
			return c.Package.Bundles[name].VersionString(), ""
		}
		reason = why
	}
	return "", "no newer version is known to be OK: " + reason
}
