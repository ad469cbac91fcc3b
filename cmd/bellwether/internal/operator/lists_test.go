// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

func TestLists(t *testing.T) {
	operators := []v1alpha1.ManagedOperator{*fixture.Operator()}
	brief, wide := term.Listing{Now: fixture.Noon}, term.Listing{Now: fixture.Noon, Wide: true, Namespaces: true}
	for name, table := range map[string]*term.Table{
		"operators":      Operators(operators, brief),
		"operators-wide": Operators(operators, wide),
		"versions":       Versions(VersionRows(operators, fixture.Installs()), brief),
		"versions-wide":  Versions(VersionRows(operators, fixture.Installs()), wide),
	} {
		t.Run(name, func(t *testing.T) { fixture.Golden(t, name, table.Render(term.Style{})) })
	}
}

func TestDetails(t *testing.T) {
	fixture.Golden(t, "operator", Operator(OperatorInput{
		Now: fixture.Noon, Operator: fixture.Operator(),
		Rollouts: []v1alpha1.OperatorRollout{*fixture.RolloutAt()}, Installs: fixture.Installs(),
	}, term.Style{}))
}
