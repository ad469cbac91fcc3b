// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
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
	t := &term.Table{Header: []string{"OPERATOR", "VERSION", "TARGET", "CLUSTERS", "READY"}}
	if l.Wide {
		t.Header = append(t.Header, "NAMES")
	}
	previous := ""
	for _, r := range rows {
		name := r.Operator
		if key := r.Namespace + "/" + r.Operator; key == previous {
			name = ""
		} else {
			previous = key
		}
		target := term.Cell{}
		if r.Target {
			target = term.Good.Cell("✓")
		}
		version := term.Cell{Text: r.Version}
		if r.Version == "" {
			version = term.Dim.Cell("(none)")
		}
		row := []term.Cell{term.Strong.Cell(name), version, target, {Text: term.Count(len(r.Clusters))},
			shareCell(r.Ready, len(r.Clusters))}
		if l.Wide {
			row = append(row, term.Cell{Text: strings.Join(r.Clusters, ",")})
		}
		t.Add(l.Row(r.Namespace, row)...)
	}
	return l.Table(t)
}
