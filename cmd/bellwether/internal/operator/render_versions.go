// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// VersionRow is one version of an operator, with the clusters that run it.
type VersionRow struct {
	Namespace string `json:"namespace"`
	Operator  string `json:"operator"`
	// Version is empty for clusters that run no version.
	Version string `json:"version,omitempty"`
	// Target is true for the version that the operator's newest rollout installs.
	Target   bool     `json:"target"`
	Ready    int      `json:"ready"`
	Clusters []string `json:"clusters"`
	// EndOfSupport is the last day on which the version is supported, and SupportedKubernetes the range of Kubernetes
	// versions that it supports, both from the catalog.
	EndOfSupport        string                    `json:"endOfSupport,omitempty"`
	SupportedKubernetes *v1alpha1.KubernetesRange `json:"supportedKubernetes,omitempty"`
}

// addSupport sets the fields about support in the rows from the catalogs of the operators. It changes no row without a
// version or without its operator in operators.
func addSupport(rows []VersionRow, operators []v1alpha1.ManagedOperator, catalogs []v1alpha1.OperatorCatalog) {
	// The keys are the namespace and name of the catalog, the package and the version.
	catalogVersions := map[[4]string]v1alpha1.CatalogVersion{}
	for _, c := range catalogs {
		for _, p := range c.Status.Packages {
			for _, v := range p.Versions {
				catalogVersions[[4]string{c.Namespace, c.Name, p.Name, v.Version}] = v
			}
		}
	}
	for _, o := range operators {
		for i, r := range rows {
			if r.Namespace == o.Namespace && r.Operator == o.Name && r.Version != "" {
				v := catalogVersions[[4]string{o.Namespace, o.Spec.Catalog.Name, o.Spec.Package, r.Version}]
				rows[i].EndOfSupport, rows[i].SupportedKubernetes = v.EndOfSupport, v.SupportedKubernetes
			}
		}
	}
}

func formatSupportEnd(day string, now time.Time) term.Cell {
	if bundles.IsSupportEnded(day, now) {
		return term.Warn.Cell(day + " (ended)")
	}
	return term.Cell{Text: term.DashIfEmpty(day)}
}

func formatKubernetesRange(r *v1alpha1.KubernetesRange) term.Cell {
	if r == nil {
		return term.Cell{Text: "-"}
	}
	return term.Cell{Text: bundles.KubernetesRange{Min: r.Min, Max: r.Max}.String()}
}

// BuildVersionRows groups the installs by operator and version: the newest
// version first, and clusters without a version last.
func BuildVersionRows(operators []v1alpha1.ManagedOperator, installs []v1alpha1.OperatorInstall) []VersionRow {
	type key struct{ namespace, operator, version string }
	rows := map[key]*VersionRow{}
	targets := map[key]bool{}
	for i := range operators {
		if t := operators[i].Status.Target; t != nil {
			targets[key{operators[i].Namespace, operators[i].Name, t.Version}] = true
		}
	}
	for i := range installs {
		install := &installs[i]
		k := key{install.Spec.Operator.Namespace, install.Spec.Operator.Name, hub.InstalledVersion(install)}
		row, ok := rows[k]
		if !ok {
			row = &VersionRow{Namespace: k.namespace, Operator: k.operator, Version: k.version, Target: targets[k]}
			rows[k] = row
		}
		row.Clusters = append(row.Clusters, install.Spec.Cluster)
		if term.Condition(install.Status.Conditions, v1alpha1.ConditionReady).Status == "True" {
			row.Ready++
		}
	}
	out := make([]VersionRow, 0, len(rows))
	for _, row := range rows {
		slices.Sort(row.Clusters)
		out = append(out, *row)
	}
	slices.SortFunc(out, func(a, b VersionRow) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Operator, b.Operator),
			catalogs.CompareVersions(b.Version, a.Version))
	})
	return out
}

// BuildVersionsTable returns the table of bellwether versions.
func BuildVersionsTable(rows []VersionRow, l term.Listing) *term.Table {
	t := &term.Table{Header: []string{"OPERATOR", "VERSION", "TARGET", "READY", "SUPPORTED UNTIL"}}
	if l.Wide {
		t.Header = append(t.Header, "KUBERNETES", "NAMES")
	}
	previous := ""
	for _, r := range rows {
		name := r.Operator
		if key := r.Namespace + "/" + r.Operator; key == previous {
			name = ""
		} else {
			previous = key
		}
		row := append([]term.Cell{term.Strong.Cell(name)}, buildVersionCells(r, l.Now)...)
		if l.Wide {
			row = append(row, formatKubernetesRange(r.SupportedKubernetes),
				term.Cell{Text: strings.Join(r.Clusters, ",")})
		}
		t.Add(l.Row(r.Namespace, row)...)
	}
	return l.Table(t)
}

// buildVersionCells returns the cells that all tables of versions have.
func buildVersionCells(r VersionRow, now time.Time) []term.Cell {
	target := term.Cell{}
	if r.Target {
		target = term.Good.Cell("✓")
	}
	version := term.Cell{Text: r.Version}
	if r.Version == "" {
		version = term.Dim.Cell("(none)")
	}
	return []term.Cell{version, target, formatFraction(int32(r.Ready), int32(len(r.Clusters))),
		formatSupportEnd(r.EndOfSupport, now)}
}

// maxVersionClusters is the number of clusters that are named for a version; -o wide names all.
const maxVersionClusters = 5

// buildVersionTable returns the table of one operator's versions, for its details.
func buildVersionTable(rows []VersionRow, now time.Time, wide bool) *term.Table {
	t := &term.Table{Wrap: true,
		Header: []string{"VERSION", "TARGET", "READY", "SUPPORTED UNTIL", "KUBERNETES", "NAMES"}}
	for _, r := range rows {
		names := phrase.First(r.Clusters, maxVersionClusters)
		if wide {
			names = strings.Join(r.Clusters, ", ")
		}
		t.Add(append(buildVersionCells(r, now), formatKubernetesRange(r.SupportedKubernetes),
			term.Cell{Text: names})...)
	}
	return t
}
