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
	// DefaultDeadline is how long one cluster may take.
	DefaultDeadline = 30 * time.Minute
	// DefaultUnreadyGrace is how long an updated cluster may be not Ready.
	DefaultUnreadyGrace = time.Minute
	// DefaultMaxDeferred is a share of the wave.
	DefaultMaxDeferred = "100%"
	// RestWave is the name of the implied last wave.
	RestWave = "rest"

	maxDeclaredWaves = 20
)

// Defaulted returns the strategy with every default made explicit, the implied
// last wave included. It does not change its argument, and a strategy that is
// already explicit comes back equal.
//
// A strategy of 20 waves has no room for the implied one in the API; Next and
// Preview add it all the same.
func Defaulted(strategy v1alpha1.RolloutStrategy) v1alpha1.RolloutStrategy {
	s := *strategy.DeepCopy()
	s.OnFailure = cmp.Or(s.OnFailure, v1alpha1.FailurePause)
	s.Offline = cmp.Or(s.Offline, v1alpha1.OfflineDefer)
	s.LateJoiners = cmp.Or(s.LateJoiners, v1alpha1.LateJoin)
	s.NewTarget = cmp.Or(s.NewTarget, v1alpha1.NewTargetSupersede)
	s.MaxDeferred = orValue(s.MaxDeferred, intstr.FromString(DefaultMaxDeferred))
	if s.ErrorBudgetPace != nil {
		s.ErrorBudgetPace.FullAbovePercent = orValue(s.ErrorBudgetPace.FullAbovePercent, DefaultFullAbovePercent)
	}
	if s.Preflight != nil && s.Preflight.Job != nil {
		s.Preflight.Job.Timeout = orValue(s.Preflight.Job.Timeout, metav1.Duration{Duration: DefaultJobTimeout})
	}
	if waves := allWaves(s); len(waves) <= maxDeclaredWaves {
		s.Waves = waves
	} else {
		s.Waves = waves[:maxDeclaredWaves]
	}
	return s
}

// allWaves returns the strategy's waves with their defaults, and the implied
// last one where no wave takes all that is left.
func allWaves(strategy v1alpha1.RolloutStrategy) []v1alpha1.Wave {
	waves := slices.Clone(strategy.Waves)
	if len(waves) == 0 {
		waves = defaultWaves()
	}
	if last := waves[len(waves)-1]; !takesAll(last) {
		waves = append(waves, v1alpha1.Wave{Name: freeName(waves)})
	}
	for i := range waves {
		w := &waves[i]
		w.MaxConcurrency = orValue(w.MaxConcurrency, intstr.FromString(DefaultMaxConcurrency))
		w.MaxFailures = orValue(w.MaxFailures, intstr.FromInt32(0))
		w.Deadline = orValue(w.Deadline, metav1.Duration{Duration: DefaultDeadline})
		w.Soak = orValue(w.Soak, metav1.Duration{})
		w.UnreadyGrace = orValue(w.UnreadyGrace, metav1.Duration{Duration: DefaultUnreadyGrace})
		w.Gates = withDefaults(w.Gates, w.Soak.Duration)
	}
	return waves
}

func defaultWaves() []v1alpha1.Wave {
	one, tenth := intstr.FromInt32(1), intstr.FromString("10%")
	return []v1alpha1.Wave{
		{Name: "canary", Size: &one},
		{Name: "early", Size: &tenth},
		{Name: RestWave},
	}
}

func takesAll(w v1alpha1.Wave) bool {
	noSelector := w.Selector == nil || len(w.Selector.MatchLabels) == 0 && len(w.Selector.MatchExpressions) == 0
	return noSelector && w.Size == nil
}

// freeName is RestWave, or RestWave with a number where a person already gave
// that name to a wave that does not take all.
func freeName(waves []v1alpha1.Wave) string {
	taken := func(name string) bool {
		return slices.ContainsFunc(waves, func(w v1alpha1.Wave) bool { return w.Name == name })
	}
	name := RestWave
	for i := 2; taken(name); i++ {
		name = fmt.Sprintf("%s-%d", RestWave, i)
	}
	return name
}

// assign distributes clusters over waves in order; the result has one list of
// names per wave, each in the order of admission. Every cluster is in exactly
// one list, because the last wave takes all.
func assign(waves []wave, clusters []Cluster) [][]string {
	left := slices.Clone(clusters)
	assigned := make([][]string, len(waves))
	for i, w := range waves {
		var matched, others []Cluster
		for _, c := range left {
			if w.selects(c) {
				matched = append(matched, c)
			} else {
				others = append(others, c)
			}
		}
		slices.SortFunc(matched, w.order)
		size := w.size(len(matched))
		for _, c := range matched[:size] {
			assigned[i] = append(assigned[i], c.Name)
		}
		left = append(others, matched[size:]...)
	}
	return assigned
}

// wave is a wave of the strategy with its selector parsed.
type wave struct {
	v1alpha1.Wave
	selector labels.Selector
	// caps bound the concurrency, as RolloutPolicies ask for.
	caps []intstr.IntOrString
}

// parseWaves fails only on a selector that the API server would have refused.
func parseWaves(strategy v1alpha1.RolloutStrategy) ([]wave, error) {
	declared := allWaves(strategy)
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

func (w wave) selects(c Cluster) bool { return w.selector.Matches(labels.Set(c.Labels)) }

// order puts clusters with a value for SortBy first, by that value, then by
// name.
func (w wave) order(a, b Cluster) int {
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

// size is how many of the clusters that the selector takes belong to the wave.
func (w wave) size(matched int) int {
	if w.Size == nil {
		return matched
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(w.Size, matched, true)
	if err != nil || n > matched {
		return matched
	}
	return max(n, 0)
}

// Limits returns how many of a wave's clusters may be changed at a time, and how
// many may fail, if the wave has so many clusters. The wave is one of a strategy
// with its defaults.
func Limits(w v1alpha1.Wave, clusters int) (concurrency, failures int) {
	limited := wave{Wave: w}
	return limited.concurrency(clusters), limited.failures(clusters)
}

// concurrency is MaxConcurrency of a wave with so many clusters: at least 1.
func (w wave) concurrency(total int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(w.MaxConcurrency, total, false)
	if err != nil {
		return 1
	}
	return policy.Concurrency(intstr.FromInt32(int32(max(n, 1))), w.caps, total)
}

// failures is MaxFailures of a wave with so many clusters: at most all of them.
func (w wave) failures(total int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(w.MaxFailures, total, false)
	if err != nil {
		return 0
	}
	return min(max(n, 0), total)
}

// joins tells whether a late joiner still belongs to this wave. A wave sized
// by percentage took its share when the rollout was planned.
func (w wave) joins(c Cluster, present int) bool {
	switch {
	case !w.selects(c):
		return false
	case w.Size == nil:
		return true
	case w.Size.Type == intstr.Int:
		return present < w.Size.IntValue()
	}
	return false
}

// movedTo returns the wave that the labels of a member of wave at select now; empty while that is the same wave, or
// may be: a wave with a size passes clusters on to the later ones.
func movedTo(waves []wave, at int, c Cluster) string {
	for _, w := range waves[:at] {
		if w.Size == nil && !takesAll(w.Wave) && w.selects(c) {
			return w.Name
		}
	}
	if waves[at].selects(c) {
		return ""
	}
	for _, w := range waves {
		if w.Size == nil && w.selects(c) {
			return w.Name
		}
	}
	return ""
}

// hashPlan is the SHA-256 of the frozen membership.
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

func orValue[T any](p *T, value T) *T {
	if p == nil {
		return &value
	}
	return p
}
