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
	"github.com/bellwether-dev/bellwether/phrase"
)

// Wave is a wave of the strategy, with its defaults, and who is in it.
type Wave struct {
	v1alpha1.Wave
	// Clusters are the labels of its clusters.
	Clusters []map[string]string
	// Total is how many clusters it has, those included that left.
	Total int
	// TakesAll says that it takes all clusters that are left.
	TakesAll bool
	// Verified waves are not judged any more: they keep the gates of Judged, which
	// are the names of those that they were judged by, and get no other ones.
	Verified bool
	Judged   []string
}

// Bound is a wave with what policies ask for.
type Bound struct {
	// Wave has the soak and the gates. The added gates have no defaults.
	v1alpha1.Wave
	// Caps bound how many clusters are changed at a time, beside maxConcurrency.
	Caps []intstr.IntOrString
}

// Outcome is what policies make of a strategy.
type Outcome struct {
	// Waves in the order in which they were given.
	Waves   []Bound
	Applied []v1alpha1.AppliedPolicy
	// Unmet says what cannot be met and what to do about it; empty where everything
	// is. Then nothing may be admitted.
	Unmet string
}

// Limits of the API.
const (
	maxPolicies  = 20
	maxAdded     = 30
	maxText      = 256
	maxWaveGates = 20
)

// Apply applies the policies to the waves of a rollout, all of its waves in order.
// done says that all waves were verified: too few of them are no problem any more.
func (s *Set) Apply(waves []Wave, done bool) Outcome {
	if s == nil {
		s = &Set{}
	}
	b := &binding{set: s, waves: waves, done: done, added: map[int]int{}}
	for _, w := range waves {
		b.out.Waves = append(b.out.Waves, Bound{Wave: *w.DeepCopy()})
	}
	for _, p := range s.policies {
		b.bind(p)
	}
	if n := len(b.out.Applied); n > maxPolicies {
		b.fail(fmt.Sprintf("%d RolloutPolicies bind it, and %d are the limit: merge some of them", n, maxPolicies))
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
	// added counts the gates that were added, by wave.
	added map[int]int
}

// fail keeps the first thing that cannot be met.
func (b *binding) fail(what string) {
	if b.out.Unmet == "" {
		b.out.Unmet = what
	}
}

// bind applies one policy.
func (b *binding) bind(p policy) {
	applied := v1alpha1.AppliedPolicy{Name: p.name, Generation: p.generation}
	var bound []int
	for i, w := range b.waves {
		if p.binds(w) {
			bound = append(bound, i)
			applied.Waves = append(applied.Waves, w.Name)
		}
	}
	if p.failure != nil {
		b.fail(fmt.Sprintf("RolloutPolicy %s cannot be evaluated: %v; correct or delete it", p.name, p.failure))
	}
	if len(bound) == 0 {
		return
	}
	var texts []string
	for _, i := range bound {
		texts = append(texts, b.soak(p, i)...)
		texts = append(texts, b.cap(p, i)...)
	}
	for _, g := range p.spec.Gates {
		texts = append(texts, b.gate(p, g, bound)...)
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

// binds tells whether a policy binds a wave: it selects a cluster of the wave, or did
// before. A policy for all clusters binds waves without clusters too, which late
// joiners may come to.
func (p policy) binds(w Wave) bool {
	if p.clusters.Empty() || slices.Contains(p.recorded, w.Name) {
		return true
	}
	return slices.ContainsFunc(w.Clusters, func(c map[string]string) bool { return p.clusters.Matches(labels.Set(c)) })
}

func (b *binding) soak(p policy, i int) []string {
	least, w := p.spec.MinSoak, &b.out.Waves[i]
	own := time.Duration(0)
	if w.Soak != nil {
		own = w.Soak.Duration
	}
	if least == nil || b.waves[i].Verified || own >= least.Duration {
		return nil
	}
	w.Soak = &metav1.Duration{Duration: least.Duration}
	return []string{fmt.Sprintf("soak %s in wave %s, was %s", span(least.Duration), w.Name, span(own))}
}

func (b *binding) cap(p policy, i int) []string {
	most, w := p.spec.MaxConcurrency, &b.out.Waves[i]
	if most == nil {
		return nil
	}
	own, total := *w.MaxConcurrency, b.waves[i].Total
	before := Concurrency(own, w.Caps, total)
	w.Caps = append(w.Caps, *most)
	if Concurrency(own, w.Caps, total) >= min(before, total) {
		return nil
	}
	return []string{fmt.Sprintf("maxConcurrency %s in wave %s, was %s", most.String(), w.Name, own.String())}
}

// Concurrency is how many of a wave's clusters may be changed at a time, at least 1.
func Concurrency(own intstr.IntOrString, caps []intstr.IntOrString, total int) int {
	least := resolve(own, total)
	for _, c := range caps {
		least = min(least, resolve(c, total))
	}
	return least
}

func resolve(v intstr.IntOrString, total int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, total, false)
	if err != nil {
		return 1
	}
	return max(n, 1)
}

// gate adds a gate to the bound waves where it can be passed.
func (b *binding) gate(p policy, g v1alpha1.Gate, bound []int) []string {
	var names []string
	possible := g.Baseline == nil
	for _, i := range bound {
		if g.Baseline != nil && b.waves[i].TakesAll {
			continue
		}
		possible = true
		w, name := &b.out.Waves[i], GateName(p.name, g.Name)
		if b.waves[i].Verified && !slices.Contains(b.waves[i].Judged, name) {
			continue
		}
		if b.added[i]++; b.added[i] > maxWaveGates {
			b.fail(fmt.Sprintf("RolloutPolicies add more than %d gates to wave %s: delete some of them", maxWaveGates,
				w.Name))
			continue
		}
		added := *g.DeepCopy()
		added.Name = name
		w.Gates = append(w.Gates, added)
		names = append(names, w.Name)
	}
	if !possible {
		b.fail(fmt.Sprintf("RolloutPolicy %s asks for gate %s, which compares with clusters on another release, and "+
			"the strategy has no wave that leaves any: give the strategy of ManagedOperator %s a wave before the last "+
			"one and start another rollout, or change the policy", p.name, g.Name, b.set.operator.Name))
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("gate %s in %s %s", GateName(p.name, g.Name), phrase.Word(len(names), "wave", "waves"),
		strings.Join(names, ", "))}
}

// countWaves fails if the clusters are in fewer waves than a policy asks for.
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
	if least := min(int(*p.spec.MinWaves), clusters); filled < least {
		b.fail(fmt.Sprintf("RolloutPolicy %s asks for at least %s, and the clusters are in %d: give the strategy of "+
			"ManagedOperator %s more waves that take clusters and start another rollout, or change the policy",
			p.name, phrase.Count(least, "wave"), filled, b.set.operator.Name))
	}
}

// span is a duration without the parts that are zero.
func span(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
