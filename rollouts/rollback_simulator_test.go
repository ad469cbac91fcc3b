// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// previousOf returns the previous release that the executor reads from an install before it admits the install.
func (sim *simulation) previousOf(ro *v1alpha1.OperatorRollout, i install) *v1alpha1.PreviousRelease {
	ran, ever := sim.lastRan[i.Cluster]
	if _, known := sim.before[i.Cluster]; ever && !known && sim.bad && !sim.good[ro.Spec.Release.Hash()] {
		sim.before[i.Cluster] = ran
	}
	o := &v1alpha1.OperatorInstall{}
	if i.Stamp.RolloutUID == "" {
		return rollouts.PreviousOf(ro, o)
	}
	o.Spec.Admission = &v1alpha1.Admission{RolloutUID: i.Stamp.RolloutUID, Hash: i.Stamp.Hash, Previous: i.Previous}
	o.Status.SucceededHash = i.SucceededHash
	for _, r := range sim.rollouts {
		if r.now().Spec.Release.Hash() == i.Stamp.Hash {
			o.Spec.Admission.Release = r.now().Spec.Release
		}
	}
	if version := sim.has[i.Cluster]; version != "" {
		o.Status.Installed = &v1alpha1.InstalledVersion{Bundle: "echo.v" + version, Version: version}
	}
	return rollouts.PreviousOf(ro, o)
}

// rollbackWorld is a fleet that runs good releases, and then has a bad one rolled
// out.
type rollbackWorld struct {
	*simulation
	bad  *rollout
	hubs []*hub
}

// TestRollbackSimulator lets a bad release be rolled back, by its failure policy or
// by a person, among crashes, old caches and clusters that come and go.
func TestRollbackSimulator(t *testing.T) {
	t.Parallel()
	if *seed != 0 {
		replay(t, playRollback(*seed))
		return
	}
	var mu sync.Mutex
	ended := map[v1alpha1.RolloutPhase]int{}
	origins := 0
	playAll(t, func(seed uint64) string {
		w := playRollback(seed)
		mu.Lock()
		defer mu.Unlock()
		if w.broken == "" {
			ended[w.bad.now().Status.Phase]++
			origins += len(w.origins())
		}
		return w.broken
	})
	t.Logf("%d worlds, by the phase that the bad rollout ended in: %v; %d releases were gone back to", *seeds, ended,
		origins)
	if *seeds >= 1000 && (ended[v1alpha1.RolloutRolledBack] < *seeds/2 ||
		origins < ended[v1alpha1.RolloutRolledBack]+*seeds/50) {
		t.Errorf("the simulator does not exercise rollbacks to several releases")
	}
}

// newRollbackWorld returns a fleet without clusters. Streams of one seed differ.
func newRollbackWorld(seed, stream uint64) *rollbackWorld {
	return &rollbackWorld{hubs: []*hub{{name: "hub-a"}, {name: "hub-b"}}, simulation: &simulation{
		rng: rand.New(rand.NewPCG(seed, stream)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		installs: []installs{{}}, fleet: []fleet{{}}, good: map[string]bool{},
		agents: map[string]*agent{}, ledger: map[ledgerKey]*ledgerEntry{}, left: map[string]bool{}, operator: "echo",
		measurements: measurements{answers: map[string]measurement{}, unobserved: map[string]bool{}},
	}}
}

func playRollback(seed uint64) *rollbackWorld {
	w := newRollbackWorld(seed, 11)
	w.lastRan, w.before = map[string]string{}, map[string]string{}
	w.disturbed = w.rng.IntN(2) == 0
	for n := range 1 + w.rng.IntN(12) {
		w.join(n)
	}
	w.calm0()
	w.start(w.strategy(), true)
	w.settle(map[*simulation][]*hub{w.simulation: w.hubs})
	if w.rng.IntN(2) == 0 { // some clusters run another release
		w.start(w.strategy(), true)
		w.muddle(30 + w.rng.IntN(60))
	}
	w.startBad()
	w.muddle(150 + w.rng.IntN(250))
	if w.broken != "" {
		return w
	}
	w.calm()
	for range 20 { // the operator's controller looks again whenever nothing moves
		w.settle(map[*simulation][]*hub{w.simulation: w.hubs})
		if w.broken != "" || !w.operate() {
			break
		}
	}
	if w.broken == "" {
		w.checkRollback()
	}
	return w
}

// calm0 has every cluster online before the first rollout.
func (w *rollbackWorld) calm0() {
	for _, name := range slices.Sorted(maps.Keys(w.clusters())) {
		w.setOnline(name, true)
	}
}

func (w *rollbackWorld) start(s v1alpha1.RolloutStrategy, good bool) {
	for i := range s.Waves {
		s.Waves[i].Gates = nil
	}
	if len(w.rollouts) > 0 {
		w.endRunning()
	}
	w.startRollout(s)
	w.good[w.latest().now().Spec.Release.Hash()] = good
}

func (w *rollbackWorld) endRunning() {
	r := w.latest()
	if !r.now().Status.Phase.Ended() {
		w.putRollout(r, r.now().ResourceVersion, func(ro *v1alpha1.OperatorRollout) {
			ro.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "a newer target", Superseded: true}
		})
	}
}

func (w *rollbackWorld) startBad() {
	w.simulation.bad, w.dies = true, w.rng.IntN(2) == 0
	s := w.strategy()
	s.OnFailure = pick(w.rng, v1alpha1.FailureRollback, v1alpha1.FailureRollback, v1alpha1.FailurePause)
	s.Rollback = &v1alpha1.RollbackStrategy{MaxConcurrency: pick(w.rng, nil, new(intstr.FromInt32(1)),
		new(intstr.FromString("50%")))}
	w.start(s, false)
	w.bad = w.latest()
}

// muddle lets so many things happen.
func (w *rollbackWorld) muddle(steps int) {
	for range steps {
		names := slices.Sorted(maps.Keys(w.clusters()))
		cluster := pick(w.rng, names...)
		switch n := w.rng.IntN(100); {
		case n < 52:
			if w.rng.IntN(12) == 0 {
				w.active = w.rng.IntN(len(w.hubs))
			}
			w.hubs[w.active].step(w.simulation, false)
		case n < 77:
			w.work(cluster)
		case n < 86:
			w.pass(w.soon())
		case n < 89:
			w.hubs[w.rng.IntN(len(w.hubs))].crash(w.simulation)
		case n < 92 && w.disturbed:
			w.setOnline(cluster, !w.clusters()[cluster].Online)
		case n < 93 && w.disturbed:
			w.putCluster(cluster, func(c *rollouts.Cluster) { c.Paused = !c.Paused })
		case n < 97:
			w.operate()
		case n < 98:
			w.askForRollback()
		}
		w.checkHeld()
		w.checkWaves()
		if w.broken != "" {
			return
		}
	}
}

// askForRollback has a person roll the bad release back, also where it ended.
func (w *rollbackWorld) askForRollback() {
	if w.bad == nil || w.latest() != w.bad || w.rng.IntN(3) > 0 {
		return
	}
	w.putRollout(w.bad, w.bad.now().ResourceVersion, func(ro *v1alpha1.OperatorRollout) {
		ro.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "it is bad", Rollback: &v1alpha1.RollbackRequest{}}
	})
}

// operate plays the operator's controller, which makes the rollback. It reports whether it did.
func (w *rollbackWorld) operate() bool {
	of := w.latest().now()
	if of.Status.Phase != v1alpha1.RolloutRolledBack || of.Spec.Rollback != nil {
		return false
	}
	list := make([]rollouts.Install, 0, len(w.present()))
	for _, name := range slices.Sorted(maps.Keys(w.present())) {
		list = append(list, w.present()[name].Install)
	}
	spec, ok := rollouts.NewRollback(of, list)
	if !ok {
		w.violate("%s is RolledBack, and there is nothing to go back to", of.Name)
		return false
	}
	w.startRollout(spec.Strategy)
	r := w.latest()
	ro := r.now()
	spec.Revision, spec.Operator = ro.Spec.Revision, ro.Spec.Operator
	ro.Spec = spec
	w.log("%s %s", ro.Name, rollouts.RollbackText(ro))
	w.good[spec.Release.Hash()] = true
	return ro.UID != types.UID("")
}

// checkHeld: once the bad rollout is rolled back, no cluster is admitted to its
// release any more. One write may come after, by a hub that had made sure before.
func (w *rollbackWorld) checkHeld() {
	if w.bad == nil {
		return
	}
	for _, h := range w.hubs {
		if p := h.pass; p != nil && p.r == w.bad && p.read.Status.Phase == v1alpha1.RolloutRolledBack &&
			slices.ContainsFunc(p.d.Actions, func(a rollouts.Action) bool { return a.Kind == rollouts.ActionAdmit }) {
			w.violate("a hub admits to %s, which is rolled back", p.read.Name)
		}
	}
	back := w.latest().now()
	if back.Spec.Rollback == nil {
		return
	}
	for _, clusters := range w.latest().touched {
		for name := range clusters {
			if i := w.present()[name]; i.Stamp.RolloutUID == string(back.UID) && i.Stamp.Hash != w.before[name] {
				w.violate("%s is taken back to another release than it ran before", name)
			}
			if !w.wasTouched(name) {
				w.violate("%s is taken back, and the bad release never reached it", name)
			}
		}
	}
}

func (w *rollbackWorld) wasTouched(cluster string) bool {
	for _, clusters := range w.bad.touched {
		if clusters[cluster] {
			return true
		}
	}
	return false
}

// origins are the releases that clusters were taken back to.
func (w *rollbackWorld) origins() map[string]bool {
	found := map[string]bool{}
	back := w.latest().now()
	for _, i := range w.present() {
		if back.Spec.Rollback != nil && i.Stamp.RolloutUID == string(back.UID) {
			found[i.Stamp.Hash] = true
		}
	}
	return found
}

// checkRollback is called when nothing moves any more.
func (w *rollbackWorld) checkRollback() {
	w.checkHeld()
	back := w.latest().now()
	if w.latest() == w.bad {
		if !back.Status.Phase.Ended() && back.Status.Phase != v1alpha1.RolloutHalted {
			w.violate("never ended: %s: %s", back.Status.Phase, back.Status.Message)
		}
		w.checkNotRolledBack(back)
		return
	}
	if back.Status.Phase != v1alpha1.RolloutSucceeded {
		w.violate("the rollback is %s: %s", back.Status.Phase, back.Status.Message)
	}
	for name, i := range w.present() {
		was, ran := w.before[name]
		switch {
		case !w.wasTouched(name) && i.Stamp.RolloutUID == string(back.UID):
			w.violate("%s was never touched, and has the stamp of the rollback", name)
		case w.wasTouched(name) && ran && (i.SucceededHash != was || i.Stamp.Hash != was):
			w.violate("%s does not run what it ran before: %+v", name, i)
		}
	}
}

// checkNotRolledBack checks that a failed wave is rolled back if the policy requires it.
func (w *rollbackWorld) checkNotRolledBack(bad *v1alpha1.OperatorRollout) {
	if bad.Status.Phase == v1alpha1.RolloutHalted && bad.Spec.Strategy.OnFailure == v1alpha1.FailureRollback {
		for name := range w.before {
			if w.wasTouched(name) {
				w.violate("halted, and %s could be taken back: %s", name, bad.Status.Message)
			}
		}
	}
}
