// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// hub is a simulated hub. It follows the reconciler's protocol step by step,
// so that a crash, another hub or the simulation can come between any two.
type hub struct {
	name string
	// installsAt and fleetAt are how far its caches have come.
	installsAt, fleetAt int
	pass                *hubPass
	// asked are the questions that Prometheus has not answered.
	asked   []asked
	answers map[*rollout][]rollouts.Answer
}

type hubPass struct {
	r       *rollout
	read    *v1alpha1.OperatorRollout
	in      rollouts.Input
	d       rollouts.Decision
	view    installs
	started time.Time
	done    int
	// changes are the changes of the other operator that the hub saw. others are its rollouts, which were read without
	// the cache before the first action.
	changes holds.Changes
	others  []v1alpha1.OperatorRollout
	// first are the installs that the hub saw of the operator that this operator depends on.
	first installs
	// armed is true if the first step of an action was taken. seen is the install at that time.
	armed bool
	seen  install
}

// crash forgets the pass and the caches. The new caches may be older than the
// ones that were lost: another API server may answer the first list.
func (h *hub) crash(s *simulation) {
	s.log("%s: crash", h.name)
	h.pass, h.asked, h.answers = nil, nil, nil
	h.installsAt = s.rng.IntN(len(s.installs))
	h.fleetAt = s.rng.IntN(len(s.fleet))
}

// step does the next thing of a pass. With fresh, caches are up to date.
func (h *hub) step(s *simulation, fresh bool) {
	switch {
	case h.pass == nil:
		h.begin(s, s.choose(), fresh)
	case h.pass.done < len(h.pass.d.Actions):
		h.act(s)
	default:
		h.finish(s)
	}
}

// choose prefers the newest rollout.
func (sim *simulation) choose() *rollout {
	if sim.rng.IntN(4) == 0 {
		return sim.rollouts[sim.rng.IntN(len(sim.rollouts))]
	}
	return sim.latest()
}

func (h *hub) begin(s *simulation, r *rollout, fresh bool) {
	h.installsAt = advance(s.rng, h.installsAt, len(s.installs)-1, fresh)
	h.fleetAt = advance(s.rng, h.fleetAt, len(s.fleet)-1, fresh)
	read := r.now()
	if !fresh && s.rng.IntN(8) == 0 {
		read = r.history[max(0, len(r.history)-1-s.rng.IntN(3))]
	}
	p := &hubPass{r: r, read: read, started: s.now, view: s.installs[h.installsAt]}
	p.in = rollouts.Input{
		Now: s.now, Rollout: read, Newer: r != s.latest() && (fresh || s.rng.IntN(3) > 0), Answers: h.answers[r],
		Policies: s.policies,
	}
	if s.peer != nil && (fresh || s.rng.IntN(2) == 0) { // else its cache shows none yet
		p.changes = s.changes(s.peer.objects())
	}
	p.first = s.seeFirst(fresh)
	before := read.DeepCopy()
	p.look(s, p.view, s.fleet[h.fleetAt])
	if p.d = rollouts.Next(p.in); p.d.WantsLive {
		p.view, p.in.Live = s.present(), true
		p.look(s, p.view, s.clusters())
		p.d = rollouts.Next(p.in)
	}
	if s.rng.IntN(16) == 0 {
		p.checkPure(s, before)
	}
	h.ask(r, p.d.Questions)
	s.rng.Shuffle(len(p.d.Actions), reflect.Swapper(p.d.Actions))
	h.pass = p
}

// look fills in clusters and installs, in random order.
func (p *hubPass) look(s *simulation, view installs, clusters fleet) {
	p.in.Clusters, p.in.Installs, p.in.ObservedInstalls = nil, nil, ""
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		p.in.Clusters = append(p.in.Clusters, s.withDependency(s.withLock(s.withHolds(clusters[name]),
			p.changes), p.first))
	}
	s.rng.Shuffle(len(p.in.Clusters), reflect.Swapper(p.in.Clusters))
	newest := 0
	for _, name := range slices.Sorted(maps.Keys(view)) {
		i := view[name]
		p.in.Installs = append(p.in.Installs, i.Install)
		newest = max(newest, i.rv)
	}
	if p.in.Live {
		newest = len(s.installs)
	}
	if newest > 0 {
		p.in.ObservedInstalls = strconv.Itoa(newest)
	}
	s.rng.Shuffle(len(p.in.Installs), reflect.Swapper(p.in.Installs))
}

// checkPure plans the same again, in another order, as a hub would that was
// restarted at this moment.
func (p *hubPass) checkPure(s *simulation, before *v1alpha1.OperatorRollout) {
	if !reflect.DeepEqual(before, p.in.Rollout) {
		s.violate("the planner changed its input")
	}
	s.rng.Shuffle(len(p.in.Clusters), reflect.Swapper(p.in.Clusters))
	s.rng.Shuffle(len(p.in.Installs), reflect.Swapper(p.in.Installs))
	if again := rollouts.Next(p.in); !reflect.DeepEqual(again, p.d) {
		s.violate("the same observation led to another decision:\n%+v\n%+v", p.d, again)
	}
}

func advance(rng *rand.Rand, at, latest int, fresh bool) int {
	if fresh || rng.IntN(3) == 0 {
		return latest
	}
	return at + rng.IntN(latest-at+1)
}

// act carries out one action as the executor does, in two steps: the rollout
// must still be as it was read and the install is read live; then the write is
// conditional on that read, and must come in time.
func (h *hub) act(s *simulation) {
	p := h.pass
	a := p.d.Actions[p.done]
	if s.now.Sub(p.started) > rollouts.AdmissionTimeout {
		h.pass = nil
		return
	}
	at, exists := s.present()[a.Cluster]
	if !p.armed {
		if p.r.now().ResourceVersion != p.read.ResourceVersion {
			h.pass = nil
			return
		}
		if p.armed, p.seen = true, at; p.others == nil && s.peer != nil {
			p.others = s.peer.objects()
		}
		return
	}
	p.armed = false
	p.done++
	if at.uid != p.seen.uid || at.rv != p.seen.rv || exists && (at.Deleting || at.revision > p.read.Spec.Revision) {
		return
	}
	if a.Kind == rollouts.ActionAssign {
		h.assign(s, a, at, exists)
	} else {
		h.admit(s, a, at)
	}
}

func (h *hub) admit(s *simulation, a rollouts.Action, at install) {
	p, ro := h.pass, h.pass.read
	if at.Rollout != ro.Name || at.Wave != a.Wave || at.Stamp.RolloutUID == string(ro.UID) &&
		at.Stamp.Attempt >= a.Attempt || !a.NotAfter.IsZero() && !s.now.Before(a.NotAfter.Time) {
		return
	}
	if s.changes(p.others).FindBusyHold(a.Cluster, s.reference(), 1) != nil {
		return
	}
	s.checkAdmission(p, a, at)
	s.putInstall(a.Cluster, func(i *install) {
		i.Previous = s.previousOf(ro, *i)
		i.Stamp = rollouts.Stamp{RolloutUID: string(ro.UID), Hash: rollouts.ReleaseFor(ro, i.Previous).Hash(),
			AdmittedAt: a.AdmittedAt.Time, Attempt: a.Attempt}
		// The agent's report was about another spec.
		i.revision, i.Stalled, i.Ready = ro.Spec.Revision, false, false
	})
	s.ledger[ledgerKey{a.Cluster, at.uid, string(ro.UID)}] = &ledgerEntry{
		at: a.AdmittedAt.Time, released: s.present()[a.Cluster].isUpdated(),
	}
	mark(p.r.touched, a.Wave, a.Cluster)
	s.log("%s: admit %s to %s/%s", h.name, a.Cluster, ro.Name, a.Wave)
}

func (h *hub) assign(s *simulation, a rollouts.Action, at install, exists bool) {
	ro := h.pass.read
	planned := ro.Status.PlanHash != ""
	if _, enrolled := s.clusters()[a.Cluster]; !enrolled || planned && at.Rollout == ro.Name {
		return
	}
	if !exists || at.Rollout != ro.Name || at.Wave != a.Wave {
		s.putInstall(a.Cluster, func(i *install) { i.Rollout, i.Wave = ro.Name, a.Wave })
		s.log("%s: assign %s to %s/%s", h.name, a.Cluster, ro.Name, a.Wave)
	}
	if planned {
		s.checkJoin(h.pass, a)
	}
	if h.pass.r.now().Status.PlanHash != "" { // also one that was decided before the membership was frozen
		mark(h.pass.r.ever, a.Wave, a.Cluster)
	}
}

// finish writes the status, if the rollout is still as it was read.
func (h *hub) finish(s *simulation) {
	p := h.pass
	h.pass = nil
	if p.r.now().ResourceVersion != p.read.ResourceVersion || reflect.DeepEqual(p.read.Status, p.d.Status) {
		return
	}
	s.checkStatus(p)
	s.checkFailures(p)
	if p.read.Status.PlanHash == "" && p.d.Status.PlanHash != "" {
		for _, i := range p.view {
			if i.Rollout == p.read.Name {
				mark(p.r.ever, i.Wave, i.Cluster)
			}
		}
	}
	s.putRollout(p.r, p.read.ResourceVersion, func(ro *v1alpha1.OperatorRollout) { ro.Status = p.d.Status })
	s.log("%s: %s is %s, wave %s, batch %d: %s", h.name, p.read.Name, p.d.Status.Phase, p.d.Status.CurrentWave,
		batchSize(p.d.Status), p.d.Status.Message)
}

func batchSize(s v1alpha1.OperatorRolloutStatus) int {
	if s.Batch == nil {
		return 0
	}
	return len(s.Batch.Clusters)
}

func mark(sets map[string]map[string]bool, key, value string) {
	if sets[key] == nil {
		sets[key] = map[string]bool{}
	}
	sets[key][value] = true
}
