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
	first = flag.Uint64("first", 1, "the seed of the first world")
	seed  = flag.Uint64("seed", 0, "play only the world with this seed, and print what happened")
)

// maxBroken is how many broken worlds are reported before no other one is played.
const maxBroken = 10

// playAll plays a world for each seed, several at a time. The function plays one and returns what is broken in it.
func playAll(t *testing.T, play func(seed uint64) string) {
	t.Helper()
	var broken atomic.Int32
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for s := range uint64(*seeds) {
		group.Go(func() error {
			if broken.Load() >= maxBroken {
				return nil
			}
			if what := play(*first + s); what != "" {
				broken.Add(1)
				t.Errorf("seed %d: %s", *first+s, what)
			}
			return nil
		})
	}
	_ = group.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// TestSimulator plays random fleets, strategies, outcomes, crashes and old
// caches against the planner, two hubs at a time, and checks after every step
// what the design promises. A failure names its seed: run it again with
// -seed N to read what happened.
func TestSimulator(t *testing.T) {
	t.Parallel()
	if *seed != 0 {
		w := play(*seed)
		for _, x := range w.worlds() {
			t.Log(x.operator + "\n" + strings.Join(x.trace, "\n"))
		}
		if w.broken != "" {
			t.Fatal(w.broken)
		}
		return
	}
	ended := map[v1alpha1.RolloutPhase]int{}
	var mu sync.Mutex
	playAll(t, func(seed uint64) string {
		w := play(seed)
		mu.Lock()
		defer mu.Unlock()
		ended[w.latest().now().Status.Phase]++
		return w.broken
	})
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
	w.couple(seed)
	hubs := map[*world][]*hub{}
	for _, x := range w.worlds() {
		hubs[x] = []*hub{{name: "hub-a"}, {name: "hub-b"}}
	}
	for range (150 + w.rng.IntN(250)) * len(hubs) {
		x := pick(w.rng, w.worlds()...)
		x.chaos(hubs[x])
		x.sync()
		if x.broken != "" {
			w.broken = x.broken
			return w
		}
	}
	for _, x := range w.worlds() {
		x.calm()
	}
	w.settle(hubs)
	for _, x := range w.worlds() {
		if w.broken = cmp.Or(w.broken, x.broken); w.broken == "" {
			x.checkEnd()
			w.broken = x.broken
		}
	}
	return w
}

func newWorld(seed uint64) *world {
	w := &world{
		rng:      rand.New(rand.NewPCG(seed, 7)),
		operator: "echo",
		now:      time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		installs: []installs{{}}, fleet: []fleet{{}},
		agents: map[string]*agent{}, ledger: map[ledgerKey]*ledgerEntry{}, left: map[string]bool{},
		measurements: measurements{answers: map[string]measured{}, empty: map[string]bool{}},
	}
	w.bad = w.rng.IntN(4) == 0
	w.dies = w.bad && w.rng.IntN(2) == 0
	w.burns = !w.bad && w.rng.IntN(8) == 0
	w.schedules()
	for n := range w.rng.IntN(13) {
		w.join(n)
	}
	if w.rng.IntN(3) == 0 {
		w.legislate()
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
		wave := w.wave(fmt.Sprintf("w%d", i), false)
		if w.rng.IntN(2) == 0 {
			wave.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "canary"}}
		}
		wave.Size = pick(w.rng, nil, new(intstr.FromInt32(1)), new(intstr.FromInt32(3)), new(intstr.FromString("30%")))
		s.Waves = append(s.Waves, wave)
	}
	s.Waves = append(s.Waves, w.wave("rest", true))
	s.ErrorBudgetPace = w.pace()
	return s
}

func (w *world) wave(name string, last bool) v1alpha1.Wave {
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
	wave.Gates = append(wave.Gates, w.measuredGates(last)...)
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
		if w.rng.IntN(4) == 0 {
			hubs[w.active].hear(w)
		}
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
	case n < 99:
		w.legislate()
	}
}

// disturb changes a cluster.
func (w *world) disturb(cluster string) {
	c := w.clusters()[cluster]
	switch w.rng.IntN(13) {
	case 11, 12:
		w.veto(cluster)
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
	n := w.rng.IntN(15)
	if n == 0 && len(w.rollouts) < 3 && !w.bad {
		w.supersede(r)
		return
	}
	if n == 14 {
		which := pick(w.rng, v1alpha1.GateFailed, v1alpha1.GateWaiting)
		w.overrideGates(r, func(g v1alpha1.GateStatus) bool { return g.Verdict == which && g.Evidence != "" })
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
		case 13:
			if w.rng.IntN(4) == 0 {
				ro.Spec.WindowOverride = &v1alpha1.WindowOverride{By: "ann", Reason: "emergency"}
			}
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
			if g.Approval != nil && !approved(ro, wave.Name, g.Name) {
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
		w.putCluster(name, func(c *rollouts.Cluster) { c.Paused, c.Holds = false, nil })
	}
	if w.depends {
		w.windows = nil // those of what waits for the other operator would open and close for ever
	}
	w.isCalm = true
	w.reconcilePolicies()
	r := w.latest()
	w.putRollout(r, r.now().ResourceVersion, func(ro *v1alpha1.OperatorRollout) {
		ro.Spec.Paused, ro.Spec.Blocked = false, ""
		w.approve(ro)
	})
}

// settle runs one hub with fresh caches for each operator until nothing moves and
// time changes nothing either.
func (w *world) settle(hubs map[*world][]*hub) {
	idle := 0
	for range 4000 {
		before, due := 0, false
		var wait time.Duration
		for _, x := range w.worlds() {
			before += x.writes
			hubs[x][0].pass = nil
			wait = shorter(wait, x.rest(hubs[x][0], idle > 0))
			if w.broken = cmp.Or(w.broken, x.broken); w.broken != "" {
				return
			}
		}
		after := 0
		for _, x := range w.worlds() {
			after += x.writes
			due = due || x.anyDue()
		}
		if after != before {
			idle = 0
			continue
		}
		// An agent that has only now begun writes nothing; time must pass.
		if idle++; idle > 3 && wait == 0 && !due {
			return
		}
		w.pass(min(cmp.Or(wait, 10*time.Second), 30*time.Second))
		w.sync()
	}
	for _, x := range w.worlds() {
		w.log("at the end, %s: %s", x.operator, x.latest().now().Status.Message)
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
	h.hear(w)
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
