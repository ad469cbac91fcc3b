// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain/marks"
)

func TestLists(t *testing.T) {
	old := *fixture.RolloutAt()
	old.Name, old.Spec.Revision, old.Spec.Release = "echo-1", 1, fixture.Release("1.0.0")
	old.Status = v1alpha1.OperatorRolloutStatus{
		Phase: v1alpha1.RolloutSucceeded, StartedAt: fixture.AgoPtr(48 * time.Hour),
		EndedAt:  fixture.AgoPtr(47 * time.Hour),
		Clusters: v1alpha1.WaveCounts{Total: 5, Succeeded: 5},
	}
	rollouts := []v1alpha1.OperatorRollout{old, *fixture.RolloutAt()}
	away := *old.DeepCopy()
	away.Status.Clusters = v1alpha1.WaveCounts{Total: 5, Deferred: 5}
	recorded := []v1alpha1.RolloutOutcome{{Name: old.Name, Phase: old.Status.Phase, EndedAt: old.Status.EndedAt,
		Clusters: old.Status.Clusters}}
	brief, wide := term.Listing{Now: fixture.Noon}, term.Listing{Now: fixture.Noon, Wide: true, Namespaces: true}
	known := marks.Group(fixture.FleetOfFour(), fixture.Installs())
	agentsAway := []v1alpha1.OperatorRollout{away, *fixture.RolloutAt()}
	for name, table := range map[string]*term.Table{
		"rollouts":      Rollouts(rollouts, known, brief),
		"rollouts-wide": Rollouts(rollouts, known, wide),
		"history":       History(rollouts, nil, brief),
	} {
		t.Run(name, func(t *testing.T) { fixture.Golden(t, name, table.Render(term.Style{})) })
	}
	t.Run("history while agents are away", func(t *testing.T) {
		fixture.Golden(t, "history", History(agentsAway, recorded, brief).Render(term.Style{}))
	})
}
