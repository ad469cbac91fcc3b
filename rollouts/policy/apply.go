// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Wave is a wave of the strategy, with its defaults and its clusters.
type Wave struct {
	v1alpha1.Wave
	// Clusters are the labels of the wave's clusters.
	Clusters []map[string]string
	// Total is the number of the wave's clusters, including clusters that left.
	Total int
	// TakesAll is true if the wave takes all remaining clusters.
	TakesAll bool
	// Verified waves are not judged again: they keep the gates with a name in Judged and get no other gates.
	Verified bool
	Judged   []string
}

// BoundWave is a wave with the requirements of policies.
type BoundWave struct {
	// Wave has the soak and the gates. The added gates have no defaults.
	v1alpha1.Wave
	// Caps limit how many clusters change at the same time, in addition to maxConcurrency.
	Caps []intstr.IntOrString
}

// Outcome is the effect of policies on a strategy.
type Outcome struct {
	// Waves are the waves in the order of the input.
	Waves   []BoundWave
	Applied []v1alpha1.AppliedPolicy
	// Unmet describes a requirement that cannot be met, and what a person can do; empty if all can be met. Otherwise
	// no cluster may be admitted.
	Unmet string
}

// The API's limits.
const (
	maxPolicies  = 20
	maxAdded     = 30
	maxText      = 256
	maxWaveGates = 20
)

// Apply applies the policies to all waves of a rollout, in order. done is true if all waves were verified: then too
// few waves are not a problem.
func (s *Set) Apply(waves []Wave, done bool) Outcome {
	if s == nil {
		s = &Set{}
	}
	b := &binding{set: s, waves: waves, done: done, added: map[int]int{}}
	for _, w := range waves {
		b.out.Waves = append(b.out.Waves, BoundWave{Wave: *w.DeepCopy()})
	}
	for _, p := range s.policies {
		b.applyPolicy(p)
	}
	if n := len(b.out.Applied); n > maxPolicies {
		b.recordUnmet(fmt.Sprintf("%d RolloutPolicies bind it, and %d are the limit: merge some of them", n,
			maxPolicies))
		b.out.Applied = b.out.Applied[:maxPolicies]
	}
	return b.out
}

// binding is one run of Apply.
type binding struct {
	set   *Set
	waves []Wave
	done  bool
	out   Outcome
	// added counts the added gates by wave.
	added map[int]int
}

// recordUnmet records the first requirement that cannot be met.
func (b *binding) recordUnmet(problem string) {
	if b.out.Unmet == "" {
		b.out.Unmet = problem
	}
}

// applyPolicy applies one policy to the waves that it binds, and records what it adds. A policy that cannot be
// evaluated is unmet, even if it binds no wave.
func (b *binding) applyPolicy(p policy) {
	applied := v1alpha1.AppliedPolicy{Name: p.name, Generation: p.generation}
	var boundWaves []int
	for i, w := range b.waves {
		if p.isBinding(w) {
			boundWaves = append(boundWaves, i)
			applied.Waves = append(applied.Waves, w.Name)
		}
	}
	if p.failure != nil {
		b.recordUnmet(fmt.Sprintf("RolloutPolicy %s cannot be evaluated: %v; correct or delete it", p.name, p.failure))
	}
	if len(boundWaves) == 0 {
		return
	}
	var texts []string
	for _, i := range boundWaves {
		texts = append(texts, b.raiseSoak(p, i)...)
		texts = append(texts, b.lowerConcurrency(p, i)...)
	}
	for _, g := range p.spec.Gates {
		texts = append(texts, b.addGate(p, g, boundWaves)...)
	}
	for _, name := range p.spec.Windows {
		texts = append(texts, "ChangeWindow "+name)
	}
	b.countWaves(p)
	for _, text := range texts[:min(len(texts), maxAdded)] {
		applied.Added = append(applied.Added, phrase.Truncate(text, maxText))
	}
	b.out.Applied = append(b.out.Applied, applied)
}

// isBinding reports whether a policy binds a wave: it selects a cluster of the wave, or has bound the wave before. A
// policy for all clusters also binds waves without clusters, because late joiners can be added to them.
func (p policy) isBinding(w Wave) bool {
	if p.clusters.Empty() || slices.Contains(p.recorded, w.Name) {
		return true
	}
	return slices.ContainsFunc(w.Clusters, func(c map[string]string) bool { return p.clusters.Matches(labels.Set(c)) })
}

// raiseSoak raises the soak of the wave with index i to the policy's minimum, unless the wave is verified. It returns
// the description of the change; nil if there is none.
func (b *binding) raiseSoak(p policy, i int) []string {
	minSoak, w := p.spec.MinSoak, &b.out.Waves[i]
	declared := time.Duration(0)
	if w.Soak != nil {
		declared = w.Soak.Duration
	}
	if minSoak == nil || b.waves[i].Verified || declared >= minSoak.Duration {
		return nil
	}
	w.Soak = &metav1.Duration{Duration: minSoak.Duration}
	return []string{fmt.Sprintf("soak %s in wave %s, was %s", formatDuration(minSoak.Duration), w.Name,
		formatDuration(declared))}
}

// lowerConcurrency adds the policy's limit of the concurrency to the wave with index i. It returns the description of
// the change; nil if the limit is not lower than the previous limits, or than the number of clusters.
func (b *binding) lowerConcurrency(p policy, i int) []string {
	maxConcurrency, w := p.spec.MaxConcurrency, &b.out.Waves[i]
	if maxConcurrency == nil {
		return nil
	}
	declared, total := *w.MaxConcurrency, b.waves[i].Total
	previousLimit := Concurrency(declared, w.Caps, total)
	w.Caps = append(w.Caps, *maxConcurrency)
	if Concurrency(declared, w.Caps, total) >= min(previousLimit, total) {
		return nil
	}
	return []string{fmt.Sprintf("maxConcurrency %s in wave %s, was %s", maxConcurrency.String(), w.Name,
		declared.String())}
}

// Concurrency returns how many clusters of a wave may change at the same time: at least 1.
func Concurrency(declared intstr.IntOrString, caps []intstr.IntOrString, total int) int {
	lowest := computeLimit(declared, total)
	for _, c := range caps {
		lowest = min(lowest, computeLimit(c, total))
	}
	return lowest
}

// computeLimit returns the number, or the percentage of total, rounded down: at least 1.
func computeLimit(v intstr.IntOrString, total int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, total, false)
	if err != nil {
		return 1
	}
	return max(n, 1)
}

// addGate adds a gate to the bound waves in which it can pass. It returns the description of the change; nil if
// there is none. If the gate can pass in no bound wave, the policy is not met. A verified wave gets only gates that
// judged it.
func (b *binding) addGate(p policy, g v1alpha1.Gate, boundWaves []int) []string {
	var names []string
	canPass := g.Baseline == nil
	for _, i := range boundWaves {
		if g.Baseline != nil && b.waves[i].TakesAll {
			continue // after this wave, no cluster is on another release to compare with
		}
		canPass = true
		w, name := &b.out.Waves[i], GateName(p.name, g.Name)
		if b.waves[i].Verified && !slices.Contains(b.waves[i].Judged, name) {
			continue
		}
		if b.added[i]++; b.added[i] > maxWaveGates {
			b.recordUnmet(fmt.Sprintf("RolloutPolicies add more than %d gates to wave %s: delete some of them",
				maxWaveGates, w.Name))
			continue
		}
		added := *g.DeepCopy()
		added.Name = name
		w.Gates = append(w.Gates, added)
		names = append(names, w.Name)
	}
	if !canPass {
		b.recordUnmet(fmt.Sprintf(
			"RolloutPolicy %s asks for gate %s, which compares with clusters on another release, and the "+
				"strategy has no wave that leaves any: give the strategy of ManagedOperator %s a wave before the last "+
				"one and start another rollout, or change the policy", p.name, g.Name, b.set.operator.Name))
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("gate %s in %s %s", GateName(p.name, g.Name), phrase.Word(len(names), "wave", "waves"),
		strings.Join(names, ", "))}
}

// countWaves records an unmet requirement if the clusters are in fewer waves than a policy requires. With fewer
// clusters than required waves, one cluster in each wave is sufficient.
func (b *binding) countWaves(p policy) {
	if p.spec.MinWaves == nil || b.done {
		return
	}
	filled, clusters := 0, 0
	for _, w := range b.waves {
		clusters += w.Total
		if w.Total > 0 {
			filled++
		}
	}
	if minWaves := min(int(*p.spec.MinWaves), clusters); filled < minWaves {
		b.recordUnmet(fmt.Sprintf(
			"RolloutPolicy %s asks for at least %s, and the clusters are in %d: give the strategy of "+
				"ManagedOperator %s more waves that take clusters and start another rollout, or change the policy",
			p.name, phrase.Count(minWaves, "wave"), filled, b.set.operator.Name))
	}
}

// formatDuration formats a duration without zero minutes and seconds at the end.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
