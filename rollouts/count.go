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
	batch  map[string]v1alpha1.BatchEntry
	states []waveState
}

// class is the one count that a cluster belongs to.
type class int

const (
	pending class = iota
	inProgress
	succeeded
	failed
	deferred
	removed
)

// member is a cluster in a wave.
type member struct {
	name    string
	cluster Cluster
	class   class
	// ours says that this rollout admitted it, or has decided to.
	ours bool
	// holds says that it takes a slot: it was admitted, by this rollout or an
	// older one, and may still be changing.
	holds bool
	// ready says that it may be admitted.
	ready bool
	// deadline is when it will count as failed; zero if it was not admitted.
	deadline time.Time
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
	// open says that every wave before it is verified and its own gates are
	// passed.
	open bool
	// reached says that every wave before it is verified.
	reached                     bool
	gates                       []v1alpha1.GateStatus
	maxConcurrency, maxFailures int
}

func observe(in Input) (*pass, error) {
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
	}
	p.index(selects)
	return p, nil
}

func (p *pass) index(selects labels.Selector) {
	p.selected = selected(selects, p.in.Clusters)
	slices.SortFunc(p.selected, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range p.selected {
		p.clusters[c.Name] = c
	}
	for _, i := range p.in.Installs {
		p.installs[i.Cluster] = i
	}
	for _, e := range unseen(p.in) {
		p.batch[e.Cluster] = e
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
		at, exists := members[e.Cluster]
		if exists && at.Wave == e.Wave && at.Stamp.RolloutUID != string(in.Rollout.UID) {
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
		s := waveState{wave: w, prior: p.priorWave(w.Name), reached: reached}
		s.gates = p.judge(w)
		s.open = reached && passed(s.gates)
		reached = reached && s.prior.VerifiedAt != nil
		p.states = append(p.states, s)
	}
	for _, install := range p.in.Installs {
		if i, ok := byName[install.Wave]; ok && install.Rollout == p.in.Rollout.Name {
			p.states[i].members = append(p.states[i].members, p.classify(install, &p.states[i]))
		}
	}
	for i := range p.states {
		p.states[i].sum()
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
// as removed.
func (s *waveState) sum() {
	slices.SortFunc(s.members, func(a, b member) int { return s.order(a.cluster, b.cluster) })
	c := &s.counts
	for _, m := range s.members {
		*c.of(m.class)++
	}
	seen := int32(len(s.members))
	s.present = len(s.members) - int(c.Removed)
	c.Total = max(s.prior.Total, seen)
	c.Removed += c.Total - seen
	s.maxConcurrency = s.concurrency(int(c.Total))
	s.maxFailures = s.failures(int(c.Total))
}

// of is the address of the count of a class.
func (c *counts) of(k class) *int32 {
	switch k {
	case inProgress:
		return &c.InProgress
	case succeeded:
		return &c.Succeeded
	case failed:
		return &c.Failed
	case deferred:
		return &c.Deferred
	case removed:
		return &c.Removed
	default:
		return &c.Pending
	}
}

// classify decides in the order of this list:
//
//  1. not selected any more, or being deleted: removed
//  2. the agent saw this very release succeed: succeeded
//  3. admitted by this rollout: in progress until the agent is stalled or the
//     time is up; then deferred if a person paused the cluster, or if the time
//     is up and the agent is offline; else failed
//  4. in the batch, stamp not seen: in progress
//  5. busy with an older rollout's release: in progress
//  6. paused: deferred
//  7. offline: deferred, or failed once its wave is open and the policy says so
//  8. pending
func (p *pass) classify(at Install, s *waveState) member {
	c, stays := p.clusters[at.Cluster]
	c.Name = at.Cluster
	m := member{name: at.Cluster, cluster: c, class: p.outcome(at, c, s)}
	_, written := p.batch[at.Cluster]
	m.ours = written || at.Stamp.RolloutUID == string(p.in.Rollout.UID)
	switch {
	case written:
		m.holds = true
	case at.Stamp.RolloutUID != "":
		m.deadline = p.deadline(at, c, s)
		m.holds = !at.Stalled && at.SucceededHash != at.Stamp.Hash && p.in.Now.Before(m.deadline)
	}
	m.ready = !m.ours && c.Online && !c.Paused && (m.class == pending || m.class == inProgress)
	if !stays || at.Deleting {
		m.class, m.ready = removed, false
	}
	return m
}

func (p *pass) outcome(at Install, c Cluster, s *waveState) class {
	inTime := p.in.Now.Before(p.deadline(at, c, s))
	busy := at.Stamp.RolloutUID != "" && at.SucceededHash != at.Stamp.Hash && !at.Stalled && inTime
	_, written := p.batch[at.Cluster]
	switch {
	case at.SucceededHash == p.hash && at.Stamp.Hash == p.hash:
		return succeeded
	case at.Stamp.RolloutUID == string(p.in.Rollout.UID):
		return p.admitted(at, c, inTime)
	case written, busy:
		return inProgress
	case c.Paused:
		return deferred
	case !c.Online && p.strategy.Offline == v1alpha1.OfflineDefer:
		return deferred
	case !c.Online && s.open:
		return failed
	}
	return pending
}

func (p *pass) admitted(at Install, c Cluster, inTime bool) class {
	switch {
	case inTime && !at.Stalled:
		return inProgress
	case c.Paused:
		return deferred
	case at.Stalled:
		return failed
	case !c.Online && p.strategy.Offline == v1alpha1.OfflineDefer:
		return deferred
	}
	return failed
}

// deadline is counted from the admission. Where offline clusters are deferred,
// one that comes back has the whole time anew.
func (p *pass) deadline(at Install, c Cluster, s *waveState) time.Time {
	start := at.Stamp.AdmittedAt
	if c.Online && c.OnlineSince.After(start) && p.strategy.Offline == v1alpha1.OfflineDefer {
		start = c.OnlineSince
	}
	return start.Add(s.Deadline.Duration)
}
