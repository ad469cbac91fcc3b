// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// releaseOf returns the release with which an install was admitted. It is empty if no rollout of this simulation
// admitted it.
func (sim *simulation) releaseOf(i install) v1alpha1.Release {
	for _, r := range sim.rollouts {
		if release := r.now().Spec.Release; release.Hash() == i.Stamp.Hash {
			return release
		}
	}
	return v1alpha1.Release{}
}

// isRefused reports whether the agent refuses to take over what its cluster has.
func (sim *simulation) isRefused(cluster string, i install) bool {
	return sim.refuses[cluster] && sim.releaseOf(i).AsInstalled
}

// bring makes a cluster run its admitted release.
func (sim *simulation) bring(cluster string, i install) {
	if release := sim.releaseOf(i); sim.has != nil && !release.AsInstalled {
		sim.has[cluster] = release.Version
	}
}

// adoptionWorld is a fleet on which others have installed the operator: some clusters have it, in several versions,
// some have nothing, and some cannot be taken over.
type adoptionWorld struct {
	*rollbackWorld
	// before are the versions that were installed before the take-over. hash is the hash of the release that
	// takes over.
	before map[string]string
	hash   string
	// stopped is true if clusters that could not be taken over have stopped the rollout.
	stopped bool
}

// TestAdoptionSimulator takes over installed operators, with crashes, old caches and clusters that come and go. The
// take-over changes no version, and a cluster that cannot be taken over stops its wave like any failure. The next
// rollout has the version to roll back to.
func TestAdoptionSimulator(t *testing.T) {
	t.Parallel()
	if *seed != 0 {
		replay(t, playAdoption(*seed).rollbackWorld)
		return
	}
	var mu sync.Mutex
	ended := map[v1alpha1.RolloutPhase]int{}
	playAll(t, func(seed uint64) string {
		w := playAdoption(seed)
		mu.Lock()
		defer mu.Unlock()
		if ended[w.rollouts[0].now().Status.Phase]++; w.stopped {
			ended[v1alpha1.RolloutHalted]++
		}
		return w.broken
	})
	t.Logf("%d worlds, by the phase that the take-over ended in: %v", *seeds, ended)
	for _, phase := range []v1alpha1.RolloutPhase{v1alpha1.RolloutSucceeded, v1alpha1.RolloutHalted} {
		if *seeds >= 1000 && ended[phase] < *seeds/20 {
			t.Errorf("only %d of %d take-overs ended %s: the simulator does not exercise it", ended[phase], *seeds,
				phase)
		}
	}
}

func newAdoptionWorld(seed uint64) *adoptionWorld {
	w := &adoptionWorld{rollbackWorld: newRollbackWorld(seed, 13)}
	w.has, w.refuses = map[string]string{}, map[string]bool{}
	w.disturbed = w.rng.IntN(2) == 0
	refusing := w.rng.IntN(3)
	for n := range 1 + w.rng.IntN(12) {
		w.join(n)
	}
	for _, name := range slices.Sorted(maps.Keys(w.clusters())) {
		if w.has[name] = pick(w.rng, "0.1.0", "0.2.0", ""); w.has[name] != "" && refusing > 0 {
			w.refuses[name] = w.rng.IntN(2+refusing) == 0
		}
	}
	w.before = maps.Clone(w.has)
	w.calm0()
	return w
}

func playAdoption(seed uint64) *adoptionWorld {
	w := newAdoptionWorld(seed)
	s := w.strategy()
	s.OnFailure = pick(w.rng, v1alpha1.FailureRollback, v1alpha1.FailureRollback, v1alpha1.FailurePause)
	s.ErrorBudgetPace = nil
	w.start(rollouts.AdoptionStrategy(s), true)
	ro := w.latest().now()
	ro.Spec.Release = v1alpha1.Release{Package: "echo", Channel: "stable", Adopt: &v1alpha1.OperatorAdoption{},
		AsInstalled: true}
	w.hash = ro.Spec.Release.Hash()
	w.good[w.hash] = true
	for range 150 + w.rng.IntN(250) {
		w.muddle(1)
		if w.checkTakeOver(); w.broken != "" {
			return w
		}
	}
	w.end()
	if w.broken == "" && len(w.refuses) > 0 && w.latest().now().Status.Phase == v1alpha1.RolloutHalted {
		w.lift()
	}
	if w.broken == "" && w.latest().now().Status.Phase == v1alpha1.RolloutSucceeded {
		w.goOn()
	}
	return w
}

// end runs the rollout until nothing changes.
func (w *adoptionWorld) end() {
	w.calm()
	w.settle(map[*simulation][]*hub{w.simulation: w.hubs})
	if w.broken == "" {
		w.checkEnd()
		w.checkTakeOver()
	}
}

// checkTakeOver checks that no admission has a version, and that nothing is rolled back.
func (w *adoptionWorld) checkTakeOver() {
	r := w.latest()
	ro := r.now()
	if ro.Status.Phase == v1alpha1.RolloutRolledBack {
		w.violate("%s took over and is rolled back", ro.Name)
	}
	for name, i := range w.present() {
		if i.Stamp.RolloutUID != "" && i.Stamp.Hash != w.hash {
			w.violate("%s is admitted to another release than %s", name, ro.Name)
		}
		if w.has[name] != w.before[name] {
			w.violate("%s had %q and has %q", name, w.before[name], w.has[name])
		}
	}
	if w.disturbed {
		return
	}
	for wave, clusters := range r.touched {
		refused := 0
		for name := range clusters {
			if w.refuses[name] {
				refused++
			}
		}
		if limit := r.maxFailures(wave) + r.maxConcurrency(wave); refused > limit {
			w.violate("%d clusters of wave %s were admitted that cannot be taken over, %d are the limit", refused, wave,
				limit)
		}
	}
}

// lift corrects the clusters that cannot be taken over, as a person would. The rollout then continues by itself.
func (w *adoptionWorld) lift() {
	w.log("the findings are dealt with")
	clear(w.refuses)
	w.stopped = true
	for _, name := range slices.Sorted(maps.Keys(w.present())) {
		if a, i := w.agents[name], w.present()[name]; a != nil && a.uid == i.uid && i.Stalled {
			a.outcome, a.due = success, w.now
		}
	}
	w.end()
	if phase := w.latest().now().Status.Phase; w.broken == "" && phase != v1alpha1.RolloutSucceeded {
		w.violate("nothing is refused any more, and the rollout is %s: %s", phase, w.latest().now().Status.Message)
	}
}

// goOn starts the rollout of a version, as the hub does after the take-over.
func (w *adoptionWorld) goOn() {
	taken := map[string]bool{}
	for name, i := range w.present() {
		taken[name] = i.isUpdated()
	}
	s := w.strategy()
	s.ErrorBudgetPace, s.OnFailure = nil, v1alpha1.FailurePause
	w.start(s, true)
	w.latest().now().Spec.Release.Adopt = &v1alpha1.OperatorAdoption{}
	w.good[w.latest().now().Spec.Release.Hash()] = true
	w.settle(map[*simulation][]*hub{w.simulation: w.hubs})
	ro := w.latest().now()
	if w.broken == "" && ro.Status.Phase != v1alpha1.RolloutSucceeded {
		w.violate("the rollout after the take-over is %s: %s", ro.Status.Phase, ro.Status.Message)
	}
	for name, i := range w.present() {
		if i.Stamp.RolloutUID != string(ro.UID) || !taken[name] {
			continue
		}
		was := ""
		if i.Previous != nil {
			was = i.Previous.Version
		}
		if was != w.before[name] || w.has[name] != ro.Spec.Release.Version {
			w.violate("%s had %q, goes back to %q, and has %q", name, w.before[name], was, w.has[name])
		}
	}
}
