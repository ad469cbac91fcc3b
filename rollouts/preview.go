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

// WavePreview is a wave of a rollout that is not started.
type WavePreview struct {
	Name string
	// Clusters are the names of the clusters in the order of admission.
	Clusters       []string
	MaxConcurrency int
	MaxFailures    int
	Deadline, Soak time.Duration
	// UnreadyGrace is how long an updated cluster can be not Ready before it counts as failed.
	UnreadyGrace time.Duration
	// Gates are the gates of the wave. Approvals are the gates that are approvals.
	Gates, Approvals []string
}

// Preview returns the waves with their clusters as if the rollout were planned now, and the effect of RolloutPolicies
// on the waves. The waves already have the soaks, limits and gates of the policies. It fails only on a selector that is
// not valid.
func Preview(selector metav1.LabelSelector, strategy v1alpha1.RolloutStrategy, clusters []Cluster,
	policies *policy.Set) ([]WavePreview, policy.Outcome, error) {
	waves, err := parseWaves(strategy)
	if err != nil {
		return nil, policy.Outcome{}, err
	}
	clusterSelector, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return nil, policy.Outcome{}, fmt.Errorf("parse cluster selector: %w", err)
	}
	assigned := assignClusters(waves, selectClusters(clusterSelector, clusters))
	outcome := bindWaves(policies, waves, toPolicyWaves(assigned, clusters), false)
	previews := make([]WavePreview, 0, len(waves))
	for i, w := range waves {
		total := len(assigned[i])
		preview := WavePreview{
			Name: w.Name, Clusters: assigned[i],
			MaxConcurrency: w.computeConcurrency(total), MaxFailures: w.computeMaxFailures(total),
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

// toPolicyWaves returns the clusters of each wave in the form that policies are evaluated with.
func toPolicyWaves(assigned [][]string, clusters []Cluster) []policy.Wave {
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

// selectClusters returns the clusters that a rollout takes: enrolled, not being deleted, and matched by the selector.
func selectClusters(selector labels.Selector, clusters []Cluster) []Cluster {
	var result []Cluster
	for _, c := range clusters {
		if c.Enrolled && !c.Deleting && selector.Matches(labels.Set(c.Labels)) {
			result = append(result, c)
		}
	}
	return result
}
