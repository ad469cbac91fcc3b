// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain"
)

func TestLists(t *testing.T) {
	brief, wide := term.Listing{Now: fixture.Noon}, term.Listing{Now: fixture.Noon, Wide: true, Namespaces: true}
	known := explain.NewFleetMarks(nil, fixture.Installs())
	for name, table := range map[string]*term.Table{
		"clusters":      BuildClusterTable(fixture.FleetOfFour(), known, brief),
		"clusters-wide": BuildClusterTable(fixture.FleetOfFour(), known, wide),
	} {
		t.Run(name, func(t *testing.T) { fixture.AssertGolden(t, name, table.Render(term.Style{})) })
	}
}

func TestDetails(t *testing.T) {
	cluster := fixture.FleetOfFour()[2]
	fixture.AssertGolden(t, "cluster", RenderCluster(&cluster, fixture.Installs()[2:3], fixture.Noon, term.Style{}))
	cluster.Status.Conditions = append(cluster.Status.Conditions, fixture.Condition(v1alpha1.ConditionVersionSupported,
		false, v1alpha1.ReasonAgentTooOld, "the agent is version 0.1.0 and the hub 0.3.0"))
	fixture.AssertGolden(t, "cluster-old-agent", RenderCluster(&cluster, nil, fixture.Noon, term.Style{}))
}
