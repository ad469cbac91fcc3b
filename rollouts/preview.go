// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/policy"
)

// WavePreview is a wave of a rollout that was not started.
type WavePreview struct {
	Name string
	// Clusters in the order in which they would be admitted.
	Clusters       []string
	MaxConcurrency int
	MaxFailures    int
	Deadline, Soak time.Duration
	// UnreadyGrace is how long an updated cluster may be not Ready before it counts
	// as failed.
	UnreadyGrace time.Duration
	// Gates of the wave, and those of them that are approvals.
	Gates, Approvals []string
}

// Preview tells which wave each selected cluster would be in if the rollout
// were planned now, and what RolloutPolicies make of the waves. It fails only on a
// malformed selector.
func Preview(selector metav1.LabelSelector, strategy v1alpha1.RolloutStrategy, clusters []Cluster,
	policies *policy.Set) ([]WavePreview, policy.Outcome, error) {
	waves, err := parseWaves(strategy)
	if err != nil {
		return nil, policy.Outcome{}, err
	}
	selects, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return nil, policy.Outcome{}, fmt.Errorf("parse cluster selector: %w", err)
	}
	assigned := assign(waves, selected(selects, clusters))
	outcome := bindWaves(policies, waves, assignedMembers(assigned, clusters), false)
	previews := make([]WavePreview, 0, len(waves))
	for i, w := range waves {
		total := len(assigned[i])
		preview := WavePreview{
			Name: w.Name, Clusters: assigned[i],
			MaxConcurrency: w.concurrency(total), MaxFailures: w.failures(total),
			Deadline: w.Deadline.Duration, Soak: w.Soak.Duration,
			UnreadyGrace: w.UnreadyGrace.Duration,
		}
		for _, g := range w.Gates {
			if preview.Gates = append(preview.Gates, g.Name); g.Approval != nil {
				preview.Approvals = append(preview.Approvals, g.Name)
			}
		}
		previews = append(previews, preview)
	}
	return previews, outcome, nil
}

// assignedMembers are the clusters of each wave, as policies see them.
func assignedMembers(assigned [][]string, clusters []Cluster) []policy.Wave {
	labels := map[string]map[string]string{}
	for _, c := range clusters {
		labels[c.Name] = c.Labels
	}
	members := make([]policy.Wave, len(assigned))
	for i, names := range assigned {
		members[i].Total = len(names)
		for _, name := range names {
			members[i].Clusters = append(members[i].Clusters, labels[name])
		}
	}
	return members
}

// selected are the clusters that a rollout takes in: enrolled, staying, and
// matched.
func selected(selector labels.Selector, clusters []Cluster) []Cluster {
	var result []Cluster
	for _, c := range clusters {
		if c.Enrolled && !c.Deleting && selector.Matches(labels.Set(c.Labels)) {
			result = append(result, c)
		}
	}
	return result
}
