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
// so that a crash, another hub or the world can come between any two.
type hub struct {
	name string
	// installsAt and fleetAt are how far its caches have come.
	installsAt, fleetAt int
	pass                *hubPass
	// asked are questions that are on their way to Prometheus.
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
	// changes are those of the other operator that the hub saw, and others its
	// rollouts as they were read past the cache before the first action.
	changes holds.Changes
	others  []v1alpha1.OperatorRollout
	// first is what the hub saw of the operator that comes first.
	first installs
	// armed says that the first step of an action was taken, and seen is the
	// install as it was then.
	armed bool
	seen  install
}

// crash forgets the pass and the caches. The new caches may be older than the
// ones that were lost: another API server may answer the first list.
func (h *hub) crash(w *world) {
	w.log("%s: crash", h.name)
	h.pass, h.asked, h.answers = nil, nil, nil
	h.installsAt = w.rng.IntN(len(w.installs))
	h.fleetAt = w.rng.IntN(len(w.fleet))
}

// step does the next thing of a pass. With fresh, caches are up to date.
func (h *hub) step(w *world, fresh bool) {
	switch {
	case h.pass == nil:
		h.begin(w, w.choose(), fresh)
	case h.pass.done < len(h.pass.d.Actions):
		h.act(w)
	default:
		h.finish(w)
	}
}

// choose prefers the newest rollout.
func (w *world) choose() *rollout {
	if w.rng.IntN(4) == 0 {
		return w.rollouts[w.rng.IntN(len(w.rollouts))]
	}
	return w.latest()
}

func (h *hub) begin(w *world, r *rollout, fresh bool) {
	h.installsAt = advance(w.rng, h.installsAt, len(w.installs)-1, fresh)
	h.fleetAt = advance(w.rng, h.fleetAt, len(w.fleet)-1, fresh)
	read := r.now()
	if !fresh && w.rng.IntN(8) == 0 {
		read = r.history[max(0, len(r.history)-1-w.rng.IntN(3))]
	}
	p := &hubPass{r: r, read: read, started: w.now, view: w.installs[h.installsAt]}
	p.in = rollouts.Input{
		Now: w.now, Rollout: read, Newer: r != w.latest() && (fresh || w.rng.IntN(3) > 0), Answers: h.answers[r],
		Policies: w.policies,
	}
	if w.peer != nil && (fresh || w.rng.IntN(2) == 0) { // else its cache shows none yet
		p.changes = w.changes(w.peer.objects())
	}
	p.first = w.seeFirst(fresh)
	before := read.DeepCopy()
	p.look(w, p.view, w.fleet[h.fleetAt])
	if p.d = rollouts.Next(p.in); p.d.WantsLive {
		p.view, p.in.Live = w.present(), true
		p.look(w, p.view, w.clusters())
		p.d = rollouts.Next(p.in)
	}
	if w.rng.IntN(16) == 0 {
		p.checkPure(w, before)
	}
	h.ask(r, p.d.Questions)
	w.rng.Shuffle(len(p.d.Actions), reflect.Swapper(p.d.Actions))
	h.pass = p
}

// look fills in clusters and installs, in random order.
func (p *hubPass) look(w *world, view installs, clusters fleet) {
	p.in.Clusters, p.in.Installs, p.in.ObservedInstalls = nil, nil, ""
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		p.in.Clusters = append(p.in.Clusters, w.withDependency(w.withLock(w.withHolds(clusters[name]),
			p.changes), p.first))
	}
	w.rng.Shuffle(len(p.in.Clusters), reflect.Swapper(p.in.Clusters))
	newest := 0
	for _, name := range slices.Sorted(maps.Keys(view)) {
		i := view[name]
		p.in.Installs = append(p.in.Installs, i.Install)
		newest = max(newest, i.rv)
	}
	if p.in.Live {
		newest = len(w.installs)
	}
	if newest > 0 {
		p.in.ObservedInstalls = strconv.Itoa(newest)
	}
	w.rng.Shuffle(len(p.in.Installs), reflect.Swapper(p.in.Installs))
}

// checkPure plans the same again, in another order, as a hub would that was
// restarted at this moment.
func (p *hubPass) checkPure(w *world, before *v1alpha1.OperatorRollout) {
	if !reflect.DeepEqual(before, p.in.Rollout) {
		w.violate("the planner changed its input")
	}
	w.rng.Shuffle(len(p.in.Clusters), reflect.Swapper(p.in.Clusters))
	w.rng.Shuffle(len(p.in.Installs), reflect.Swapper(p.in.Installs))
	if again := rollouts.Next(p.in); !reflect.DeepEqual(again, p.d) {
		w.violate("the same observation led to another decision:\n%+v\n%+v", p.d, again)
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
func (h *hub) act(w *world) {
	p := h.pass
	a := p.d.Actions[p.done]
	if w.now.Sub(p.started) > rollouts.AdmissionTimeout {
		h.pass = nil
		return
	}
	at, exists := w.present()[a.Cluster]
	if !p.armed {
		if p.r.now().ResourceVersion != p.read.ResourceVersion {
			h.pass = nil
			return
		}
		if p.armed, p.seen = true, at; p.others == nil && w.peer != nil {
			p.others = w.peer.objects()
		}
		return
	}
	p.armed = false
	p.done++
	if at.uid != p.seen.uid || at.rv != p.seen.rv || exists && (at.Deleting || at.revision > p.read.Spec.Revision) {
		return
	}
	if a.Kind == rollouts.ActionAssign {
		h.assign(w, a, at, exists)
	} else {
		h.admit(w, a, at)
	}
}

func (h *hub) admit(w *world, a rollouts.Action, at install) {
	p, ro := h.pass, h.pass.read
	if at.Rollout != ro.Name || at.Wave != a.Wave || at.Stamp.RolloutUID == string(ro.UID) &&
		at.Stamp.Attempt >= a.Attempt || !a.NotAfter.IsZero() && !w.now.Before(a.NotAfter.Time) {
		return
	}
	if w.changes(p.others).Busy(a.Cluster, w.reference(), 1) != nil {
		return
	}
	w.checkAdmission(p, a, at)
	w.putInstall(a.Cluster, func(i *install) {
		i.Previous = w.previousOf(ro, *i)
		i.Stamp = rollouts.Stamp{RolloutUID: string(ro.UID), Hash: rollouts.ReleaseFor(ro, i.Previous).Hash(),
			AdmittedAt: a.AdmittedAt.Time, Attempt: a.Attempt}
		// What the agent reported was about another spec.
		i.revision, i.Stalled, i.Ready = ro.Spec.Revision, false, false
	})
	w.ledger[ledgerKey{a.Cluster, at.uid, string(ro.UID)}] = &ledgerEntry{
		at: a.AdmittedAt.Time, released: w.present()[a.Cluster].isUpdated(),
	}
	mark(p.r.touched, a.Wave, a.Cluster)
	w.log("%s: admit %s to %s/%s", h.name, a.Cluster, ro.Name, a.Wave)
}

func (h *hub) assign(w *world, a rollouts.Action, at install, exists bool) {
	ro := h.pass.read
	planned := ro.Status.PlanHash != ""
	if _, enrolled := w.clusters()[a.Cluster]; !enrolled || planned && at.Rollout == ro.Name {
		return
	}
	if !exists || at.Rollout != ro.Name || at.Wave != a.Wave {
		w.putInstall(a.Cluster, func(i *install) { i.Rollout, i.Wave = ro.Name, a.Wave })
		w.log("%s: assign %s to %s/%s", h.name, a.Cluster, ro.Name, a.Wave)
	}
	if planned {
		w.checkJoin(h.pass, a)
	}
	if h.pass.r.now().Status.PlanHash != "" { // also one that was decided before the membership was frozen
		mark(h.pass.r.ever, a.Wave, a.Cluster)
	}
}

// finish writes the status, if the rollout is still as it was read.
func (h *hub) finish(w *world) {
	p := h.pass
	h.pass = nil
	if p.r.now().ResourceVersion != p.read.ResourceVersion || reflect.DeepEqual(p.read.Status, p.d.Status) {
		return
	}
	w.checkStatus(p)
	w.checkFailures(p)
	if p.read.Status.PlanHash == "" && p.d.Status.PlanHash != "" {
		for _, i := range p.view {
			if i.Rollout == p.read.Name {
				mark(p.r.ever, i.Wave, i.Cluster)
			}
		}
	}
	w.putRollout(p.r, p.read.ResourceVersion, func(ro *v1alpha1.OperatorRollout) { ro.Status = p.d.Status })
	w.log("%s: %s is %s, wave %s, batch %d: %s", h.name, p.read.Name, p.d.Status.Phase, p.d.Status.CurrentWave,
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
