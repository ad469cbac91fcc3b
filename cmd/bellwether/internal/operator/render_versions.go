// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/phrase"
)

// VersionRow says which clusters run one version of one operator.
type VersionRow struct {
	Namespace string `json:"namespace"`
	Operator  string `json:"operator"`
	// Version is empty for clusters that run none.
	Version string `json:"version,omitempty"`
	// Target is true for the version that the operator's newest rollout goes to.
	Target   bool     `json:"target"`
	Ready    int      `json:"ready"`
	Clusters []string `json:"clusters"`
	// EndOfSupport is the last day on which the version is supported, and SupportedKubernetes where it runs, as the
	// catalog says.
	EndOfSupport        string                    `json:"endOfSupport,omitempty"`
	SupportedKubernetes *v1alpha1.KubernetesRange `json:"supportedKubernetes,omitempty"`
}

// addSupport adds what the catalogs say of the versions.
func addSupport(rows []VersionRow, operators []v1alpha1.ManagedOperator, catalogs []v1alpha1.OperatorCatalog) {
	said := map[[4]string]v1alpha1.CatalogVersion{}
	for _, c := range catalogs {
		for _, p := range c.Status.Packages {
			for _, v := range p.Versions {
				said[[4]string{c.Namespace, c.Name, p.Name, v.Version}] = v
			}
		}
	}
	for _, o := range operators {
		for i, r := range rows {
			if r.Namespace == o.Namespace && r.Operator == o.Name && r.Version != "" {
				v := said[[4]string{o.Namespace, o.Spec.Catalog.Name, o.Spec.Package, r.Version}]
				rows[i].EndOfSupport, rows[i].SupportedKubernetes = v.EndOfSupport, v.SupportedKubernetes
			}
		}
	}
}

func supportCell(day string, now time.Time) term.Cell {
	if registryv1.SupportEnded(day, now) {
		return term.Warn.Cell(day + " (ended)")
	}
	return term.Cell{Text: term.OrDash(day)}
}

func supportedOn(r *v1alpha1.KubernetesRange) term.Cell {
	if r == nil {
		return term.Cell{Text: "-"}
	}
	return term.Cell{Text: registryv1.KubernetesRange{Min: r.Min, Max: r.Max}.String()}
}

// VersionRows sorts the installs by operator and version: the newest version
// first, and the clusters that run none last.
func VersionRows(operators []v1alpha1.ManagedOperator, installs []v1alpha1.OperatorInstall) []VersionRow {
	type key struct{ namespace, operator, version string }
	rows := map[key]*VersionRow{}
	targets := map[key]bool{}
	for i := range operators {
		if t := operators[i].Status.Target; t != nil {
			targets[key{operators[i].Namespace, operators[i].Name, t.Version}] = true
		}
	}
	for i := range installs {
		in := &installs[i]
		k := key{in.Spec.Operator.Namespace, in.Spec.Operator.Name, hub.InstalledVersion(in)}
		row, ok := rows[k]
		if !ok {
			row = &VersionRow{Namespace: k.namespace, Operator: k.operator, Version: k.version, Target: targets[k]}
			rows[k] = row
		}
		row.Clusters = append(row.Clusters, in.Spec.Cluster)
		if term.Condition(in.Status.Conditions, v1alpha1.ConditionReady).Status == "True" {
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

// Versions is the table of who runs what.
func Versions(rows []VersionRow, l term.Listing) *term.Table {
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
		row := append([]term.Cell{term.Strong.Cell(name)}, versionCells(r, l.Now)...)
		if l.Wide {
			row = append(row, supportedOn(r.SupportedKubernetes), term.Cell{Text: strings.Join(r.Clusters, ",")})
		}
		t.Add(l.Row(r.Namespace, row)...)
	}
	return l.Table(t)
}

// versionCells are the cells that every table of versions has.
func versionCells(r VersionRow, now time.Time) []term.Cell {
	target := term.Cell{}
	if r.Target {
		target = term.Good.Cell("✓")
	}
	version := term.Cell{Text: r.Version}
	if r.Version == "" {
		version = term.Dim.Cell("(none)")
	}
	return []term.Cell{version, target, partCell(int32(r.Ready), int32(len(r.Clusters))),
		supportCell(r.EndOfSupport, now)}
}

// maxRunning is how many clusters are named that run one version; -o wide names all.
const maxRunning = 5

// versionsOfOne is the table of which clusters run what of one operator.
func versionsOfOne(rows []VersionRow, now time.Time, wide bool) *term.Table {
	t := &term.Table{Wrap: true,
		Header: []string{"VERSION", "TARGET", "READY", "SUPPORTED UNTIL", "KUBERNETES", "NAMES"}}
	for _, r := range rows {
		names := phrase.First(r.Clusters, maxRunning)
		if wide {
			names = strings.Join(r.Clusters, ", ")
		}
		t.Add(append(versionCells(r, now), supportedOn(r.SupportedKubernetes), term.Cell{Text: names})...)
	}
	return t
}
