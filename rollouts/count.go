// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// pass is one observation, indexed, and what was derived from it.
type pass struct {
	in       Input
	prior    v1alpha1.OperatorRolloutStatus
	strategy v1alpha1.RolloutStrategy
	hash     string
	waves    []wave
	// selected is sorted by name.
	selected []Cluster
	clusters map[string]Cluster
	installs map[string]Install
	// batch holds the entries whose stamp was not seen.
	batch map[string]v1alpha1.BatchEntry
	// unready says since when the hub knows clusters to be not Ready.
	unready map[string]time.Time
	states  []waveState
	// policies are the RolloutPolicies that bind the rollout, and unmet what it cannot
	// meet.
	policies []v1alpha1.AppliedPolicy
	unmet    string
	// pace is how fast the rollout may go; nil where it is always full.
	pace *v1alpha1.PaceStatus
	// recorded says that there are no policies to look at, and that the status says
	// what they ask for.
	recorded bool
}

// counts has methods on the API's counts.
type counts v1alpha1.WaveCounts

// waveState is a wave as it was observed.
type waveState struct {
	wave
	prior   v1alpha1.WaveStatus
	members []member
	// present are the members that the fleet still has.
	present int
	counts  counts
	// updated members installed the release; unready ones are in their grace.
	updated, unready int32
	// empty members succeeded because they had nothing that could be taken over.
	empty int32
	// open says that every wave before it is done and its own gates are passed.
	open bool
	// reached says that every wave before it is done.
	reached bool
	// undeterred waves admit clusters whatever becomes of the others.
	undeterred bool
	// changed is the participle for clusters that run the release: updated, or taken over.
	changed string
	gates   []v1alpha1.GateStatus
	// observation is the gate of a wave in which no cluster was observed; nil in others.
	observation *v1alpha1.GateStatus
	// updatedAt and interruptedAt are the clock of the soak.
	updatedAt, interruptedAt    *metav1.Time
	maxConcurrency, maxFailures int
}

func newPass(in Input) (*pass, error) {
	ro := in.Rollout
	waves, err := parseWaves(ro.Spec.Strategy)
	if err != nil {
		return nil, err
	}
	selects, err := metav1.LabelSelectorAsSelector(&ro.Spec.ClusterSelector)
	if err != nil {
		return nil, fmt.Errorf("parse cluster selector: %w", err)
	}
	p := &pass{
		in: in, prior: ro.Status, strategy: Defaulted(ro.Spec.Strategy), waves: waves,
		hash:     cmp.Or(ro.Status.ReleaseHash, ro.Spec.Release.Hash()),
		clusters: map[string]Cluster{}, installs: map[string]Install{}, batch: map[string]v1alpha1.BatchEntry{},
		unready: map[string]time.Time{},
	}
	p.index(selects)
	p.bind()
	p.judgePace()
	return p, nil
}

func (p *pass) index(selects labels.Selector) {
	for _, i := range p.in.Installs {
		p.installs[i.Cluster] = i
	}
	p.selected = slices.DeleteFunc(selected(selects, p.in.Clusters),
		func(c Cluster) bool { return !p.isTouched(c.Name) })
	slices.SortFunc(p.selected, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range p.selected {
		p.clusters[c.Name] = c
	}
	for _, e := range unseen(p.in) {
		p.batch[e.Cluster] = e
	}
	for _, u := range p.prior.Unready {
		p.unready[u.Cluster] = u.Since.Time
	}
}

// unseen are the batch entries whose stamp the view does not show, of members
// that still have an install.
func unseen(in Input) []v1alpha1.BatchEntry {
	if in.Rollout.Status.Batch == nil {
		return nil
	}
	members := make(map[string]Install, len(in.Installs))
	for _, i := range in.Installs {
		if i.Rollout == in.Rollout.Name {
			members[i.Cluster] = i
		}
	}
	var result []v1alpha1.BatchEntry
	for _, e := range in.Rollout.Status.Batch.Clusters {
		install, exists := members[e.Cluster]
		if exists && install.Wave == e.Wave && !IsSeen(in.Rollout, e, install.Stamp) {
			result = append(result, e)
		}
	}
	return result
}

// count classifies every member over the frozen denominators.
func (p *pass) count() {
	p.dropLapsed()
	byName := map[string]int{}
	reached := true
	for i, w := range p.waves {
		byName[w.Name] = i
		s := waveState{wave: w, prior: p.priorWave(w.Name), reached: reached, undeterred: p.isBack(),
			changed: p.changed()}
		s.gates = p.judgeAdmission(w)
		s.open = reached && s.mayAdmit() && (!p.recorded || !s.isRecordedShut())
		reached = reached && s.prior.IsDone()
		p.states = append(p.states, s)
	}
	for _, install := range p.in.Installs {
		if i, ok := byName[install.Wave]; ok && install.Rollout == p.in.Rollout.Name {
			m := p.classify(install, &p.states[i])
			p.states[i].members = append(p.states[i].members, m)
			if m.Class == ClassSucceeded && p.isAsInstalled() && install.Bundle == "" {
				p.states[i].empty++
			}
		}
	}
	for i := range p.states {
		s := &p.states[i]
		s.sum(p.pace)
		s.updatedAt, s.interruptedAt = p.soakClock(s)
		p.judgeMeasurements(s)
		p.announce(s)
	}
	for i := range p.states { // what holds a wave back depends on the others
		p.judgeObservation(i)
	}
}

func (p *pass) priorWave(name string) v1alpha1.WaveStatus {
	for _, w := range p.prior.Waves {
		if w.Name == name {
			return w
		}
	}
	return v1alpha1.WaveStatus{Name: name}
}

// sum adds the members up. A member whose install is gone stays in the total,
// as removed. The pace is that of the rollout; nil where it is full.
func (s *waveState) sum(pace *v1alpha1.PaceStatus) {
	slices.SortFunc(s.members, func(a, b member) int { return s.order(a.cluster, b.cluster) })
	c := &s.counts
	for _, m := range s.members {
		*c.of(m.Class)++
		if m.Updated && m.Class != ClassRemoved {
			s.updated++
		}
		if m.isUnready() {
			s.unready++
		}
	}
	seen := int32(len(s.members))
	s.present = len(s.members) - int(c.Removed)
	c.Total = max(s.prior.Total, seen)
	c.Removed += c.Total - seen
	s.maxConcurrency = slowed(s.concurrency(int(c.Total)), pace)
	s.maxFailures = s.failures(int(c.Total))
}

// of is the address of the count of a class.
func (c *counts) of(k Class) *int32 {
	switch k {
	case ClassInProgress:
		return &c.InProgress
	case ClassSucceeded:
		return &c.Succeeded
	case ClassFailed:
		return &c.Failed
	case ClassDeferred:
		return &c.Deferred
	case ClassRemoved:
		return &c.Removed
	default:
		return &c.Pending
	}
}

// unreadyClusters is what the next pass has to remember: the members that are
// not Ready in waves that are judged, sorted by name.
func (p *pass) unreadyClusters() []v1alpha1.UnreadyCluster {
	var known, fresh []v1alpha1.UnreadyCluster
	for i := range p.states {
		for _, m := range p.states[i].members {
			if m.unreadySince.IsZero() || m.Class == ClassRemoved {
				continue
			}
			entry := v1alpha1.UnreadyCluster{Cluster: m.Cluster, Since: metav1.Time{Time: m.unreadySince.UTC()}}
			if _, ok := p.unready[m.Cluster]; ok {
				known = append(known, entry)
			} else {
				fresh = append(fresh, entry)
			}
		}
	}
	room := max(MaxUnready-len(known), 0)
	all := append(known, fresh[:min(room, len(fresh))]...)
	slices.SortFunc(all, func(a, b v1alpha1.UnreadyCluster) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return all
}
