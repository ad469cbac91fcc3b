// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain"
)

func TestLists(t *testing.T) {
	operators := []v1alpha1.ManagedOperator{*fixture.Operator()}
	rows := BuildVersionRows(operators, fixture.Installs())
	addSupport(rows, operators, []v1alpha1.OperatorCatalog{supporting(&operators[0])})
	brief, wide := term.Listing{Now: fixture.Noon}, term.Listing{Now: fixture.Noon, Wide: true, Namespaces: true}
	known := explain.NewFleetMarks(fixture.FleetOfFour(), fixture.Installs())
	for name, table := range map[string]*term.Table{
		"operators":      BuildOperatorTable(operators, known, brief),
		"operators-wide": BuildOperatorTable(operators, known, wide),
		"versions":       BuildVersionsTable(rows, brief),
		"versions-wide":  BuildVersionsTable(rows, wide),
	} {
		t.Run(name, func(t *testing.T) { fixture.AssertGolden(t, name, table.Render(term.Style{})) })
	}
}

// supporting is the operator's catalog, with versions whose support ends.
func supporting(o *v1alpha1.ManagedOperator) v1alpha1.OperatorCatalog {
	c := v1alpha1.OperatorCatalog{}
	c.Namespace, c.Name = o.Namespace, o.Spec.Catalog.Name
	c.Status.Packages = []v1alpha1.CatalogPackage{{Name: o.Spec.Package, Versions: []v1alpha1.CatalogVersion{
		{Version: "1.1.0", EndOfSupport: "2027-06-30", SupportedKubernetes: &v1alpha1.KubernetesRange{Max: "1.37"}},
		{Version: "1.0.0", EndOfSupport: "2026-06-30"},
	}}}
	return c
}

func TestDetails(t *testing.T) {
	fixture.AssertGolden(t, "operator", RenderOperator(OperatorInput{
		Now: fixture.Noon, Operator: fixture.Operator(),
		Rollouts: []v1alpha1.OperatorRollout{*fixture.HaltedRollout()}, Installs: fixture.Installs(),
		Clusters: fixture.FleetOfFour(), Catalogs: []v1alpha1.OperatorCatalog{supporting(fixture.Operator())},
	}, term.Style{}))
}
