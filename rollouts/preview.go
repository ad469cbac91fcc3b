// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
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
	// Gates that would have to be passed before the first admission.
	Gates []string
}

// Preview tells which wave each selected cluster would be in if the rollout
// were planned now. It fails only on a malformed selector.
func Preview(selector metav1.LabelSelector, strategy v1alpha1.RolloutStrategy, clusters []Cluster) ([]WavePreview,
	error) {
	waves, err := parseWaves(strategy)
	if err != nil {
		return nil, err
	}
	selects, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return nil, fmt.Errorf("parse cluster selector: %w", err)
	}
	assigned := assign(waves, selected(selects, clusters))
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
			preview.Gates = append(preview.Gates, g.Name)
		}
		previews = append(previews, preview)
	}
	return previews, nil
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
