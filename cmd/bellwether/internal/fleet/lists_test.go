// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain/marks"
)

func TestLists(t *testing.T) {
	brief, wide := term.Listing{Now: fixture.Noon}, term.Listing{Now: fixture.Noon, Wide: true, Namespaces: true}
	known := marks.Group(nil, fixture.Installs())
	for name, table := range map[string]*term.Table{
		"clusters":      Clusters(fixture.FleetOfFour(), known, brief),
		"clusters-wide": Clusters(fixture.FleetOfFour(), known, wide),
	} {
		t.Run(name, func(t *testing.T) { fixture.Golden(t, name, table.Render(term.Style{})) })
	}
}

func TestDetails(t *testing.T) {
	cluster := fixture.FleetOfFour()[2]
	fixture.Golden(t, "cluster", Cluster(&cluster, fixture.Installs()[2:3], fixture.Noon, term.Style{}))
	cluster.Status.Conditions = append(cluster.Status.Conditions, fixture.Condition(v1alpha1.ConditionVersionSupported,
		false, v1alpha1.ReasonAgentTooOld, "the agent is version 0.1.0 and the hub 0.3.0"))
	fixture.Golden(t, "cluster-old-agent", Cluster(&cluster, nil, fixture.Noon, term.Style{}))
}
