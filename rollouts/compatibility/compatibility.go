// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compatibility decides which installed operators do not run on a version of Kubernetes, and which upgrade
// would help. It is pure. Package holds decides whether a bundle suits a version of Kubernetes, as for rollouts. An
// unknown result is never reported as OK.
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
	"github.com/bellwether-dev/bellwether/bundles/requirements"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/preflight"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// Verdict says whether a bundle runs on a version of Kubernetes.
type Verdict string

// Verdicts, the worst first.
const (
	Breaks  Verdict = "breaks"
	Unknown Verdict = "unknown"
	OK      Verdict = "OK"
)

// computeRank returns the order of the verdict, the worst verdict first.
func (v Verdict) computeRank() int { return slices.Index([]Verdict{Breaks, Unknown, OK}, v) }

// Facts are the known data about a bundle.
type Facts struct {
	Requirements v1alpha1.ReleaseRequirements
	// Read is true if the manifests of the bundle are known.
	Read bool
	// RemovedRights are rights to resources that a version of Kubernetes has removed.
	RemovedRights []requirements.RemovedResource
}

// FactsOf collects the known data about a bundle. The package has the bundle's manifests if they could be read. Without
// readable manifests, Read is false.
func FactsOf(p *catalogs.Package, channel, bundle string) Facts {
	f := Facts{Requirements: *preflight.Requirements(p, v1alpha1.Release{Channel: channel, Bundle: bundle}, nil)}
	described, ok := p.Bundles[bundle]
	if !ok || len(described.Objects) == 0 {
		return f
	}
	b, err := bundles.FromManifests(described.Objects, nil)
	if err != nil {
		return f // the requirements have the error
	}
	f.Read = true
	for _, rule := range lint.ListRights(b) {
		f.RemovedRights = append(f.RemovedRights, requirements.RemovedResources(rule)...)
	}
	return f
}

// Judge decides whether a bundle runs on a version of Kubernetes, and says why. A problem of the bundle's requirements
// is Breaks. Missing data, and rights to a removed resource, are Unknown.
func Judge(f Facts, bundle string, kubernetes semver.Version) (Verdict, string) {
	if problem, _ := holds.ExplainKubernetesProblem(&f.Requirements, bundle, kubernetes); problem != "" {
		return Breaks, problem
	}
	// A range without a maximum does not cover versions that did not exist when the range was written.
	if r := f.Requirements.SupportedKubernetes; r != nil && r.Max != "" {
		return OK, fmt.Sprintf("supported on Kubernetes %s (%s)", bundles.KubernetesRange{Min: r.Min, Max: r.Max},
			bundles.PropertySupport)
	}
	version := kubernetes.String()
	switch removed := listRemovedRights(f.RemovedRights, version); {
	case !f.Read:
		return Unknown, cmp.Or(f.Requirements.NotRead, "the manifests of the bundle are not known")
	case len(removed) > 0:
		return Unknown, fmt.Sprintf("the operator has rights to %s, and may use it", strings.Join(removed, ", "))
	case bundles.CompareKubernetes(version, requirements.Kubernetes) > 0:
		return Unknown, fmt.Sprintf("which APIs Kubernetes removes is known up to %s, and the bundle does not say "+
			"what it is supported on", requirements.Kubernetes)
	}
	return OK, "the bundle uses no removed API"
}

// listRemovedRights describes the rights to resources that the version of Kubernetes does not have.
func listRemovedRights(all []requirements.RemovedResource, version string) []string {
	var out []string
	for _, r := range all {
		if bundles.CompareKubernetes(r.In, version) <= 0 {
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

// ListInstalls returns the installs that have a bundle, on the clusters in kubernetes, in their order. kubernetes has
// the version of Kubernetes by the cluster's name; empty if it is not known. operators has the ManagedOperators by
// namespace/name. An install whose ManagedOperator is missing there has no package and no channel.
func ListInstalls(kubernetes map[string]string, operators map[string]v1alpha1.ManagedOperator,
	list []v1alpha1.OperatorInstall) []Install {
	var installs []Install
	for _, i := range list {
		version, selected := kubernetes[i.Spec.Cluster]
		installed := i.Status.Installed
		if !selected || installed == nil || installed.Bundle == "" {
			continue
		}
		install := Install{Cluster: i.Spec.Cluster, Kubernetes: version,
			Operator: i.Spec.Operator.Namespace + "/" + i.Spec.Operator.Name,
			Bundle:   catalogs.Installed{Name: installed.Bundle, Version: installed.Version}}
		operator := operators[install.Operator]
		install.Package, install.Channel = operator.Spec.Package, operator.Spec.Channel
		installs = append(installs, install)
	}
	return installs
}

// Catalog has the package of an operator.
type Catalog struct {
	// Package is the upgrade graph; nil if it cannot be read. Then Problem is the reason.
	Package *catalogs.Package
	Problem string
	// Facts returns the known data about a bundle in the package.
	Facts func(bundle string) Facts
}

// Row is one version of one operator, with its verdict.
type Row struct {
	Operator string  `json:"operator"`
	Package  string  `json:"package"`
	Version  string  `json:"version"`
	Bundle   string  `json:"bundle"`
	Verdict  Verdict `json:"verdict"`
	Reason   string  `json:"reason"`
	// Upgrade is the nearest version on the upgrade path that is OK. It is empty if there is none, or if none is
	// needed. UpgradeReason says why there is none.
	Upgrade       string    `json:"upgrade,omitempty"`
	UpgradeReason string    `json:"upgradeReason,omitempty"`
	Clusters      []Cluster `json:"clusters"`
}

// Cluster is a cluster that runs the version.
type Cluster struct {
	Name string `json:"name"`
	// Kubernetes is the cluster's current version; empty if the cluster does not report it.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// Report has the verdicts for a fleet on a version of Kubernetes.
type Report struct {
	Kubernetes string `json:"kubernetes"`
	// Rows are the rows, the worst verdict first.
	Rows []Row `json:"operators"`
}

// Has reports whether an operator has the verdict.
func (r Report) Has(v Verdict) bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Verdict == v })
}

// Compare returns a report. catalog returns the package of an operator, and is called once for each operator.
func Compare(kubernetes semver.Version, installs []Install, catalog func(operator string) Catalog) Report {
	out := Report{Kubernetes: fmt.Sprintf("%d.%d", kubernetes.Major, kubernetes.Minor), Rows: []Row{}}
	type key struct{ operator, bundle string }
	rows, catalogByOperator := map[key]*Row{}, map[string]Catalog{}
	for _, i := range installs {
		k := key{i.Operator, i.Bundle.Name}
		if rows[k] == nil {
			c, isRead := catalogByOperator[i.Operator]
			if !isRead {
				c = catalog(i.Operator)
				catalogByOperator[i.Operator] = c
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
		return cmp.Or(a.Verdict.computeRank()-b.Verdict.computeRank(), cmp.Compare(a.Operator, b.Operator),
			catalogs.CompareVersions(b.Version, a.Version), cmp.Compare(a.Bundle, b.Bundle))
	})
	return out
}

// judgeInstalled returns the row for an install, without clusters.
func judgeInstalled(c Catalog, i Install, kubernetes semver.Version) Row {
	row := Row{Operator: i.Operator, Package: i.Package, Version: i.Bundle.Version, Bundle: i.Bundle.Name}
	if c.Package == nil {
		row.Verdict, row.Reason = Unknown, c.Problem
		return row
	}
	row.Verdict, row.Reason = Judge(c.Facts(i.Bundle.Name), i.Bundle.Name, kubernetes)
	if row.Verdict != OK {
		row.Upgrade, row.UpgradeReason = findNearestUpgrade(c, i, kubernetes)
	}
	return row
}

// findNearestUpgrade returns the first version of the upgrade path to the head of the channel that is OK. If there is
// none, version is empty and reason says why.
func findNearestUpgrade(c Catalog, i Install, kubernetes semver.Version) (version, reason string) {
	head, err := c.Package.Head(i.Channel)
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
		verdict, explanation := Judge(c.Facts(name), name, kubernetes)
		if verdict == OK {
			return c.Package.Bundles[name].VersionString(), ""
		}
		reason = explanation
	}
	return "", "no newer version is known to be OK: " + reason
}
