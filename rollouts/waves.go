// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/policy"
)

// Defaults of a strategy, as its API documents them.
const (
	// DefaultMaxConcurrency is a share of the wave.
	DefaultMaxConcurrency = "25%"
	// DefaultDeadline is the maximum time for the change of one cluster.
	DefaultDeadline = 30 * time.Minute
	// DefaultUnreadyGrace is how long an updated cluster can be not Ready before it counts as failed.
	DefaultUnreadyGrace = time.Minute
	// DefaultMaxDeferred is a share of the wave.
	DefaultMaxDeferred = "100%"
	// RestWave is the name of the last wave, which is added if no wave takes all remaining clusters.
	RestWave = "rest"

	maxDeclaredWaves = 20
)

// Defaulted returns the strategy with every default made explicit, including the implied last wave. It does not change
// its argument. A strategy that is already explicit is returned unchanged.
//
// The API permits 20 waves, so a strategy of 20 waves is returned without the implied wave. Next and Preview add it.
func Defaulted(strategy v1alpha1.RolloutStrategy) v1alpha1.RolloutStrategy {
	s := *strategy.DeepCopy()
	s.OnFailure = cmp.Or(s.OnFailure, v1alpha1.FailurePause)
	s.Offline = cmp.Or(s.Offline, v1alpha1.OfflineDefer)
	s.LateJoiners = cmp.Or(s.LateJoiners, v1alpha1.LateJoin)
	s.NewTarget = cmp.Or(s.NewTarget, v1alpha1.NewTargetSupersede)
	s.MaxDeferred = fillDefault(s.MaxDeferred, intstr.FromString(DefaultMaxDeferred))
	if s.ErrorBudgetPace != nil {
		s.ErrorBudgetPace.FullAbovePercent = fillDefault(s.ErrorBudgetPace.FullAbovePercent, DefaultFullAbovePercent)
	}
	if s.Preflight != nil && s.Preflight.Job != nil {
		s.Preflight.Job.Timeout = fillDefault(s.Preflight.Job.Timeout, metav1.Duration{Duration: DefaultJobTimeout})
	}
	if waves := listAllWaves(s); len(waves) <= maxDeclaredWaves {
		s.Waves = waves
	} else {
		s.Waves = waves[:maxDeclaredWaves]
	}
	return s
}

// listAllWaves returns the strategy's waves with their defaults, and the implied last wave if no wave takes all
// remaining clusters.
func listAllWaves(strategy v1alpha1.RolloutStrategy) []v1alpha1.Wave {
	waves := slices.Clone(strategy.Waves)
	if len(waves) == 0 {
		waves = buildDefaultWaves()
	}
	if last := waves[len(waves)-1]; !isCatchAll(last) {
		waves = append(waves, v1alpha1.Wave{Name: findFreeName(waves)})
	}
	for i := range waves {
		w := &waves[i]
		w.MaxConcurrency = fillDefault(w.MaxConcurrency, intstr.FromString(DefaultMaxConcurrency))
		w.MaxFailures = fillDefault(w.MaxFailures, intstr.FromInt32(0))
		w.Deadline = fillDefault(w.Deadline, metav1.Duration{Duration: DefaultDeadline})
		w.Soak = fillDefault(w.Soak, metav1.Duration{})
		w.UnreadyGrace = fillDefault(w.UnreadyGrace, metav1.Duration{Duration: DefaultUnreadyGrace})
		w.Gates = fillGateDefaults(w.Gates, w.Soak.Duration)
	}
	return waves
}

// buildDefaultWaves returns the waves of a strategy that declares none.
func buildDefaultWaves() []v1alpha1.Wave {
	oneCluster, tenPercent := intstr.FromInt32(1), intstr.FromString("10%")
	return []v1alpha1.Wave{
		{Name: "canary", Size: &oneCluster},
		{Name: "early", Size: &tenPercent},
		{Name: RestWave},
	}
}

// isCatchAll reports whether the wave takes all remaining clusters.
func isCatchAll(w v1alpha1.Wave) bool {
	noSelector := w.Selector == nil || len(w.Selector.MatchLabels) == 0 && len(w.Selector.MatchExpressions) == 0
	return noSelector && w.Size == nil
}

// findFreeName returns RestWave, or RestWave with a number if another wave already has that name.
func findFreeName(waves []v1alpha1.Wave) string {
	isTaken := func(name string) bool {
		return slices.ContainsFunc(waves, func(w v1alpha1.Wave) bool { return w.Name == name })
	}
	name := RestWave
	for i := 2; isTaken(name); i++ {
		name = fmt.Sprintf("%s-%d", RestWave, i)
	}
	return name
}

// assignClusters distributes the clusters over the waves in order. The result has one list of names per wave, each in
// the order of admission. Every cluster is in exactly one list, because the last wave takes all remaining clusters.
func assignClusters(waves []wave, clusters []Cluster) [][]string {
	remaining := slices.Clone(clusters)
	assigned := make([][]string, len(waves))
	for i, w := range waves {
		var matched, unmatched []Cluster
		for _, c := range remaining {
			if w.matches(c) {
				matched = append(matched, c)
			} else {
				unmatched = append(unmatched, c)
			}
		}
		slices.SortFunc(matched, func(a, b Cluster) int { return w.compareClusters(&a, &b) })
		size := w.computeSize(len(matched))
		for _, c := range matched[:size] {
			assigned[i] = append(assigned[i], c.Name)
		}
		remaining = append(unmatched, matched[size:]...)
	}
	return assigned
}

// wave is a wave of the strategy with its selector parsed.
type wave struct {
	v1alpha1.Wave
	selector labels.Selector
	// caps are the limits of the concurrency that RolloutPolicies set.
	caps []intstr.IntOrString
}

// parseWaves returns all waves with their selectors parsed. It fails only on a selector that an API server
// would refuse.
func parseWaves(strategy v1alpha1.RolloutStrategy) ([]wave, error) {
	declared := listAllWaves(strategy)
	waves := make([]wave, 0, len(declared))
	for _, w := range declared {
		selector := labels.Everything()
		if w.Selector != nil {
			parsed, err := metav1.LabelSelectorAsSelector(w.Selector)
			if err != nil {
				return nil, fmt.Errorf("parse selector of wave %s: %w", w.Name, err)
			}
			selector = parsed
		}
		waves = append(waves, wave{Wave: w, selector: selector})
	}
	return waves, nil
}

// matches reports whether the wave's selector matches the cluster.
func (w wave) matches(c Cluster) bool { return w.selector.Matches(labels.Set(c.Labels)) }

// compareClusters orders clusters for admission: clusters with the label SortBy first, by the label's value, and then
// by name.
func (w *wave) compareClusters(a, b *Cluster) int {
	if w.SortBy != "" {
		valueA, okA := a.Labels[w.SortBy]
		valueB, okB := b.Labels[w.SortBy]
		if okA != okB {
			if okA {
				return -1
			}
			return 1
		}
		if valueA != valueB {
			return cmp.Compare(valueA, valueB)
		}
	}
	return cmp.Compare(a.Name, b.Name)
}

// computeSize returns how many of the matched clusters belong to the wave: all of them if the wave has no size.
func (w wave) computeSize(matched int) int {
	if w.Size == nil {
		return matched
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(w.Size, matched, true)
	if err != nil || n > matched {
		return matched
	}
	return max(n, 0)
}

// Limits returns how many clusters of a wave may change at the same time, and how many may fail, if the wave has this
// number of clusters. The wave must have its defaults.
func Limits(w v1alpha1.Wave, clusters int) (concurrency, failures int) {
	limited := wave{Wave: w}
	return limited.computeConcurrency(clusters), limited.computeMaxFailures(clusters)
}

// computeConcurrency returns the MaxConcurrency of a wave with this number of clusters: at least 1.
func (w wave) computeConcurrency(total int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(w.MaxConcurrency, total, false)
	if err != nil {
		return 1
	}
	return policy.Concurrency(intstr.FromInt32(int32(max(n, 1))), w.caps, total)
}

// computeMaxFailures returns the MaxFailures of a wave with this number of clusters: at most all clusters.
func (w wave) computeMaxFailures(total int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(w.MaxFailures, total, false)
	if err != nil {
		return 0
	}
	return min(max(n, 0), total)
}

// canJoin reports whether a late joiner can be added to this wave, which has present clusters. A wave with a size in
// percent takes no late joiners, because it got its share when the rollout was planned.
func (w wave) canJoin(c Cluster, present int) bool {
	switch {
	case !w.matches(c):
		return false
	case w.Size == nil:
		return true
	case w.Size.Type == intstr.Int:
		return present < w.Size.IntValue()
	}
	return false
}

// findMovedTo returns the wave that the labels of a cluster select now. The cluster is a member of the wave at place.
// It returns "" if the labels select the same wave, or might select it: clusters that do not fit into a wave with a
// size go to later waves.
func findMovedTo(waves []wave, place int, c Cluster) string {
	for _, w := range waves[:place] {
		if w.Size == nil && !isCatchAll(w.Wave) && w.matches(c) {
			return w.Name
		}
	}
	if waves[place].matches(c) {
		return ""
	}
	for _, w := range waves {
		if w.Size == nil && w.matches(c) {
			return w.Name
		}
	}
	return ""
}

// hashPlan returns the SHA-256 of the frozen membership in hex. assigned has the names of the clusters of each wave, in
// the order of the waves.
func hashPlan(waves []wave, assigned [][]string) string {
	sum := sha256.New()
	for i, names := range assigned {
		sorted := slices.Sorted(slices.Values(names))
		for _, name := range sorted {
			fmt.Fprintf(sum, "%s %s\n", waves[i].Name, name)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// fillDefault returns p, or a pointer to value if p is nil.
func fillDefault[T any](p *T, value T) *T {
	if p == nil {
		return &value
	}
	return p
}
