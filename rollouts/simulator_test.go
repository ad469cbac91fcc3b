// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/boilerplate/long"
	"github.com/bellwether-dev/bellwether/rollouts"
)

var (
	seeds = flag.Int("seeds", long.Cases(1000, 20_000), "how many worlds the simulator plays")
	seed  = flag.Uint64("seed", 0, "play only the world with this seed, and print what happened")
)

// TestSimulator plays random fleets, strategies, outcomes, crashes and old
// caches against the planner, two hubs at a time, and checks after every step
// what the design promises. A failure names its seed: run it again with
// -seed N to read what happened.
func TestSimulator(t *testing.T) {
	t.Parallel()
	if *seed != 0 {
		w := play(*seed)
		t.Log("\n" + strings.Join(w.trace, "\n"))
		if w.broken != "" {
			t.Fatal(w.broken)
		}
		return
	}
	ended := map[v1alpha1.RolloutPhase]int{}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	var broken atomic.Bool
	for s := range uint64(*seeds) {
		group.Go(func() error {
			if broken.Load() {
				return nil
			}
			w := play(s + 1)
			if w.broken != "" {
				broken.Store(true)
				return fmt.Errorf("seed %d: %s", s+1, w.broken)
			}
			mu.Lock()
			defer mu.Unlock()
			ended[w.latest().now().Status.Phase]++
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d worlds, by the phase their newest rollout ended in: %v", *seeds, ended)
	for _, phase := range []v1alpha1.RolloutPhase{v1alpha1.RolloutSucceeded, v1alpha1.RolloutHalted,
		v1alpha1.RolloutAborted} {
		if *seeds >= 1000 && ended[phase] < *seeds/100 {
			t.Errorf("only %d of %d worlds ended %s: the simulator does not exercise it", ended[phase], *seeds, phase)
		}
	}
}

// play runs one world: chaos first, then calm until nothing moves.
func play(seed uint64) *world {
	w := newWorld(seed)
	hubs := []*hub{{name: "hub-a"}, {name: "hub-b"}}
	for range 150 + w.rng.IntN(250) {
		w.chaos(hubs)
		if w.broken != "" {
			return w
		}
	}
	w.calm()
	w.settle(hubs[0])
	if w.broken == "" {
		w.checkEnd()
	}
	return w
}

func newWorld(seed uint64) *world {
	w := &world{
		rng:      rand.New(rand.NewPCG(seed, 7)),
		now:      time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		installs: []installs{{}}, fleet: []fleet{{}},
		agents: map[string]*agent{}, ledger: map[ledgerKey]*ledgerEntry{}, left: map[string]bool{},
	}
	w.bad = w.rng.IntN(4) == 0
	w.dies = w.bad && w.rng.IntN(2) == 0
	for n := range w.rng.IntN(13) {
		w.join(n)
	}
	w.startRollout(w.strategy())
	return w
}

func (w *world) join(n int) {
	name := fmt.Sprintf("c%02d", n)
	w.log("%s joins", name)
	w.putCluster(name, func(c *rollouts.Cluster) {
		c.Name = name
		c.Labels = map[string]string{"fleet": "yes", "stage": pick(w.rng, "canary", "prod", "prod"),
			"order": strconv.Itoa(w.rng.IntN(5))}
		c.Enrolled = true
		c.Online = w.bad || w.rng.IntN(8) > 0
		c.OnlineSince = w.now
	})
}

func pick[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }

// strategy draws waves that end with one that takes all, so that the checks
// need not know of the implied one; tables test that.
func (w *world) strategy() v1alpha1.RolloutStrategy {
	s := v1alpha1.RolloutStrategy{
		OnFailure:   pick(w.rng, v1alpha1.FailurePause, v1alpha1.FailurePause, v1alpha1.FailureAbort),
		Offline:     pick(w.rng, v1alpha1.OfflineDefer, v1alpha1.OfflineDefer, v1alpha1.OfflineFail),
		LateJoiners: pick(w.rng, v1alpha1.LateJoin, v1alpha1.LateJoin, v1alpha1.LateIgnore),
		MaxDeferred: pick(w.rng, nil, new(intstr.FromInt32(1)), new(intstr.FromString("50%"))),
	}
	for i := range w.rng.IntN(3) {
		wave := w.wave(fmt.Sprintf("w%d", i))
		if w.rng.IntN(2) == 0 {
			wave.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "canary"}}
		}
		wave.Size = pick(w.rng, nil, new(intstr.FromInt32(1)), new(intstr.FromInt32(3)), new(intstr.FromString("30%")))
		s.Waves = append(s.Waves, wave)
	}
	s.Waves = append(s.Waves, w.wave("rest"))
	return s
}

func (w *world) wave(name string) v1alpha1.Wave {
	wave := v1alpha1.Wave{
		Name:           name,
		SortBy:         pick(w.rng, "", "order"),
		MaxConcurrency: pick(w.rng, new(intstr.FromInt32(1)), new(intstr.FromInt32(3)), new(intstr.FromString("50%"))),
		MaxFailures:    pick(w.rng, new(intstr.FromInt32(0)), new(intstr.FromInt32(1)), new(intstr.FromString("25%"))),
		Deadline:       &metav1.Duration{Duration: pick(w.rng, time.Minute, 5*time.Minute)},
		Soak:           &metav1.Duration{Duration: pick(w.rng, 0, 30*time.Second, 2*time.Minute)},
		UnreadyGrace:   &metav1.Duration{Duration: pick(w.rng, 10*time.Second, time.Minute)},
	}
	if w.dies { // within the soak
		wave.Soak.Duration = max(wave.Soak.Duration, 30*time.Second)
	}
	if w.rng.IntN(5) == 0 {
		wave.Gates = []v1alpha1.Gate{{Name: "go", Approval: &v1alpha1.ApprovalGate{}}}
	}
	return wave
}

// chaos lets one thing happen.
func (w *world) chaos(hubs []*hub) {
	names := slices.Sorted(maps.Keys(w.clusters()))
	cluster := ""
	if len(names) > 0 {
		cluster = pick(w.rng, names...)
	}
	switch n := w.rng.IntN(100); {
	case n < 50:
		// One hub does many steps while the other stands still in the middle of
		// a pass.
		if w.rng.IntN(12) == 0 {
			w.active = w.rng.IntN(len(hubs))
		}
		hubs[w.active].step(w, false)
	case n < 75 && cluster != "":
		w.work(cluster)
	case n < 84:
		w.pass(w.soon())
	case n < 87:
		hubs[w.rng.IntN(len(hubs))].crash(w)
	case n < 90 && cluster != "" && !w.bad:
		w.disturb(cluster)
	case n < 92 && !w.bad:
		w.takeOut()
	case n < 93 && len(names) < 16:
		w.join(len(w.fleet) + 20)
	case n < 98:
		w.person()
	}
}

// disturb changes a cluster.
func (w *world) disturb(cluster string) {
	c := w.clusters()[cluster]
	switch w.rng.IntN(11) {
	case 8, 9, 10:
		w.sicken(cluster)
		return
	case 0, 1, 2:
		w.setOnline(cluster, !c.Online)
	case 3:
		w.putCluster(cluster, func(c *rollouts.Cluster) { c.Paused = !c.Paused })
	case 4, 5:
		w.putCluster(cluster, func(c *rollouts.Cluster) { c.Labels["stage"] = pick(w.rng, "canary", "prod", "other") })
	case 6:
		w.left[cluster] = true
		w.putCluster(cluster, func(c *rollouts.Cluster) { c.Labels["fleet"] = pick(w.rng, "yes", "no") })
	case 7:
		w.left[cluster] = true
		w.putCluster(cluster, func(c *rollouts.Cluster) { c.Deleting = c.Deleting || w.rng.IntN(3) == 0 })
	}
	w.log("%s: %+v", cluster, w.clusters()[cluster])
}

// person does what people do to the newest rollout.
func (w *world) person() {
	r := w.latest()
	n := w.rng.IntN(13)
	if n == 0 && len(w.rollouts) < 3 && !w.bad {
		w.supersede(r)
		return
	}
	w.putRollout(r, r.now().ResourceVersion, func(ro *v1alpha1.OperatorRollout) {
		switch n {
		case 1, 2:
			ro.Spec.Paused = true
		case 3, 4, 5, 6:
			ro.Spec.Paused = false
		case 7:
			if w.rng.IntN(6) == 0 {
				ro.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "enough"}
			}
		case 8, 9:
			w.approve(ro)
		case 10:
			ro.Spec.Blocked = pick(w.rng, "it loses data", "")
		case 11:
			ro.Spec.Blocked = ""
		case 12:
			ro.Spec.Retries++
		}
	})
}

func (w *world) supersede(r *rollout) {
	if !r.now().Status.Phase.Ended() {
		w.putRollout(r, r.now().ResourceVersion, func(ro *v1alpha1.OperatorRollout) {
			if ro.Spec.Abort == nil {
				ro.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "a newer target", Superseded: true}
			}
		})
	}
	w.startRollout(w.strategy())
}

func (w *world) approve(ro *v1alpha1.OperatorRollout) {
	for _, wave := range ro.Spec.Strategy.Waves {
		for _, g := range wave.Gates {
			if !approved(ro, wave.Name, g.Name) {
				ro.Spec.Approvals = append(ro.Spec.Approvals,
					v1alpha1.Approval{Wave: wave.Name, Gate: g.Name, By: "ann", Reason: "fine"})
			}
		}
	}
}

// calm puts everything right that a person or time can put right.
func (w *world) calm() {
	w.log("calm")
	for _, name := range slices.Sorted(maps.Keys(w.clusters())) {
		w.setOnline(name, true)
		w.putCluster(name, func(c *rollouts.Cluster) { c.Paused = false })
	}
	r := w.latest()
	w.putRollout(r, r.now().ResourceVersion, func(ro *v1alpha1.OperatorRollout) {
		ro.Spec.Paused, ro.Spec.Blocked = false, ""
		w.approve(ro)
	})
}

// settle runs one hub with fresh caches until nothing moves and time changes
// nothing either.
func (w *world) settle(h *hub) {
	h.pass = nil
	idle := 0
	for range 4000 {
		before := w.writes
		var wait time.Duration
		for _, r := range w.rollouts {
			if r == w.latest() || idle > 0 {
				wait = shorter(wait, h.run(w, r))
			}
		}
		w.takeOut()
		for _, name := range slices.Sorted(maps.Keys(w.present())) {
			w.work(name)
		}
		if w.broken != "" {
			return
		}
		if w.writes != before {
			idle = 0
			continue
		}
		// An agent that has only now begun writes nothing; time must pass.
		if idle++; idle > 3 && wait == 0 && !w.anyDue() {
			return
		}
		w.pass(min(cmp.Or(wait, 10*time.Second), 30*time.Second))
	}
	w.violate("the calm world does not come to rest: %s", w.latest().now().Status.Message)
}

// run does one whole pass and returns when the planner wants to look again.
func (h *hub) run(w *world, r *rollout) time.Duration {
	h.begin(w, r, true)
	wait := h.pass.d.RecheckAfter
	for h.pass != nil {
		h.step(w, true)
	}
	return wait
}

func (w *world) anyDue() bool {
	for name, a := range w.agents {
		if i, exists := w.present()[name]; exists && i.uid == a.uid && !a.due.IsZero() {
			return true
		}
	}
	return false
}

func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
