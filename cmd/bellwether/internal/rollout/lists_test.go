// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain"
)

func TestLists(t *testing.T) {
	old := *fixture.HaltedRollout()
	old.Name, old.Spec.Revision, old.Spec.Release = "echo-1", 1, fixture.Release("1.0.0")
	old.Status = v1alpha1.OperatorRolloutStatus{
		Phase: v1alpha1.RolloutSucceeded, StartedAt: fixture.AgoPtr(48 * time.Hour),
		EndedAt:  fixture.AgoPtr(47 * time.Hour),
		Clusters: v1alpha1.WaveCounts{Total: 5, Succeeded: 5},
	}
	rollouts := []v1alpha1.OperatorRollout{old, *fixture.HaltedRollout()}
	away := *old.DeepCopy()
	away.Status.Clusters = v1alpha1.WaveCounts{Total: 5, Deferred: 5}
	recorded := []v1alpha1.RolloutOutcome{{Name: old.Name, Phase: old.Status.Phase, EndedAt: old.Status.EndedAt,
		Clusters: old.Status.Clusters}}
	brief, wide := term.Listing{Now: fixture.Noon}, term.Listing{Now: fixture.Noon, Wide: true, Namespaces: true}
	known := explain.NewFleetMarks(fixture.FleetOfFour(), fixture.Installs())
	agentsAway := []v1alpha1.OperatorRollout{away, *fixture.HaltedRollout()}
	for name, table := range map[string]*term.Table{
		"rollouts":      BuildRolloutTable(rollouts, known, brief),
		"rollouts-wide": BuildRolloutTable(rollouts, known, wide),
		"history":       BuildHistoryTable(rollouts, nil, brief),
	} {
		t.Run(name, func(t *testing.T) { fixture.AssertGolden(t, name, table.Render(term.Style{})) })
	}
	t.Run("history while agents are away", func(t *testing.T) {
		fixture.AssertGolden(t, "history", BuildHistoryTable(agentsAway, recorded, brief).Render(term.Style{}))
	})
}
