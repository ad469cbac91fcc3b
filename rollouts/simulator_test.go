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
	"github.com/bellwether-dev/bellwether/internal/tools/long"
	"github.com/bellwether-dev/bellwether/rollouts"
)

var (
	seeds = flag.Int("seeds", long.Cases(1000, 20_000), "how many worlds the simulator plays")
	first = flag.Uint64("first", 1, "the seed of the first world")
	seed  = flag.Uint64("seed", 0, "play only the world with this seed, and print what happened")
)

// maxBroken is the maximum number of broken simulations before the test stops.
const maxBroken = 10

// playAll plays a simulation for each seed, several at a time. The function plays one and returns what is broken in it.
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

// replay prints what happened in a world, which -seed names.
func replay(t *testing.T, w *rollbackWorld) {
	t.Helper()
	t.Log("\n" + strings.Join(w.trace, "\n"))
	if w.broken != "" {
		t.Fatal(w.broken)
	}
}

// TestSimulator plays random fleets, strategies, outcomes, crashes and old
// caches against the planner, two hubs at a time, and checks after every step
// what the design promises. A failure names its seed: run it again with
// -seed N to read what happened.
func TestSimulator(t *testing.T) {
	t.Parallel()
	if *seed != 0 {
		s := play(*seed)
		for _, x := range s.worlds() {
			t.Log(x.operator + "\n" + strings.Join(x.trace, "\n"))
		}
		if s.broken != "" {
			t.Fatal(s.broken)
		}
		return
	}
	ended := map[v1alpha1.RolloutPhase]int{}
	var mu sync.Mutex
	playAll(t, func(seed uint64) string {
		s := play(seed)
		mu.Lock()
		defer mu.Unlock()
		ended[s.latest().now().Status.Phase]++
		return s.broken
	})
	t.Logf("%d worlds, by the phase their newest rollout ended in: %v", *seeds, ended)
	for _, phase := range []v1alpha1.RolloutPhase{v1alpha1.RolloutSucceeded, v1alpha1.RolloutHalted,
		v1alpha1.RolloutAborted} {
		if *seeds >= 1000 && ended[phase] < *seeds/100 {
			t.Errorf("only %d of %d worlds ended %s: the simulator does not exercise it", ended[phase], *seeds, phase)
		}
	}
}

// play runs one simulation: chaos first, then calm until nothing moves.
func play(seed uint64) *simulation {
	s := newSimulation(seed)
	s.couple(seed)
	hubs := map[*simulation][]*hub{}
	for _, x := range s.worlds() {
		hubs[x] = []*hub{{name: "hub-a"}, {name: "hub-b"}}
	}
	for range (150 + s.rng.IntN(250)) * len(hubs) {
		x := pick(s.rng, s.worlds()...)
		x.chaos(hubs[x])
		x.checkWaves()
		x.sync()
		if x.broken != "" {
			s.broken = x.broken
			return s
		}
	}
	for _, x := range s.worlds() {
		x.calm()
	}
	s.settle(hubs)
	for _, x := range s.worlds() {
		if s.broken = cmp.Or(s.broken, x.broken); s.broken == "" {
			x.checkEnd()
			s.broken = x.broken
		}
	}
	return s
}

func newSimulation(seed uint64) *simulation {
	s := &simulation{
		rng:      rand.New(rand.NewPCG(seed, 7)),
		operator: "echo",
		now:      time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		installs: []installs{{}}, fleet: []fleet{{}},
		agents: map[string]*agent{}, ledger: map[ledgerKey]*ledgerEntry{}, left: map[string]bool{},
		measurements: measurements{answers: map[string]measurement{}, unobserved: map[string]bool{}},
	}
	s.bad = s.rng.IntN(4) == 0
	s.dies = s.bad && s.rng.IntN(2) == 0
	s.burns = !s.bad && s.rng.IntN(8) == 0
	s.schedules()
	for n := range s.rng.IntN(13) {
		s.join(n)
	}
	if s.rng.IntN(3) == 0 {
		s.legislate()
	}
	s.startRollout(s.strategy())
	return s
}

func (sim *simulation) join(n int) {
	name := fmt.Sprintf("c%02d", n)
	sim.log("%s joins", name)
	sim.putCluster(name, func(c *rollouts.Cluster) {
		c.Name = name
		c.Labels = map[string]string{"fleet": "yes", "stage": pick(sim.rng, "canary", "prod", "prod"),
			"order": strconv.Itoa(sim.rng.IntN(5))}
		c.Enrolled = true
		c.Online = sim.bad || sim.rng.IntN(8) > 0
		c.OnlineSince = sim.now
	})
}

func pick[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }

// strategy draws waves of which the last takes all clusters, so that the checks need no implied wave. Table tests
// cover the implied wave.
func (sim *simulation) strategy() v1alpha1.RolloutStrategy {
	s := v1alpha1.RolloutStrategy{
		OnFailure:   pick(sim.rng, v1alpha1.FailurePause, v1alpha1.FailurePause, v1alpha1.FailureAbort),
		Offline:     pick(sim.rng, v1alpha1.OfflineDefer, v1alpha1.OfflineDefer, v1alpha1.OfflineFail),
		LateJoiners: pick(sim.rng, v1alpha1.LateJoin, v1alpha1.LateJoin, v1alpha1.LateIgnore),
		MaxDeferred: pick(sim.rng, nil, new(intstr.FromInt32(1)), new(intstr.FromString("50%"))),
	}
	for i := range sim.rng.IntN(3) {
		wave := sim.wave(fmt.Sprintf("sim%d", i), false)
		if sim.rng.IntN(2) == 0 {
			wave.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "canary"}}
		}
		wave.Size = pick(sim.rng, nil, new(intstr.FromInt32(1)), new(intstr.FromInt32(3)),
			new(intstr.FromString("30%")))
		s.Waves = append(s.Waves, wave)
	}
	s.Waves = append(s.Waves, sim.wave("rest", true))
	s.ErrorBudgetPace = sim.pace()
	return s
}

func (sim *simulation) wave(name string, last bool) v1alpha1.Wave {
	wave := v1alpha1.Wave{
		Name:   name,
		SortBy: pick(sim.rng, "", "order"),
		MaxConcurrency: pick(sim.rng, new(intstr.FromInt32(1)), new(intstr.FromInt32(3)),
			new(intstr.FromString("50%"))),
		MaxFailures: pick(sim.rng, new(intstr.FromInt32(0)), new(intstr.FromInt32(1)),
			new(intstr.FromString("25%"))),
		Deadline:     &metav1.Duration{Duration: pick(sim.rng, time.Minute, 5*time.Minute)},
		Soak:         &metav1.Duration{Duration: pick(sim.rng, 0, 30*time.Second, 2*time.Minute)},
		UnreadyGrace: &metav1.Duration{Duration: pick(sim.rng, 10*time.Second, time.Minute)},
	}
	if sim.dies { // within the soak
		wave.Soak.Duration = max(wave.Soak.Duration, 30*time.Second)
	}
	if sim.rng.IntN(5) == 0 {
		wave.Gates = []v1alpha1.Gate{{Name: "go", Approval: &v1alpha1.ApprovalGate{}}}
	}
	wave.Gates = append(wave.Gates, sim.measuredGates(last)...)
	return wave
}

// chaos lets one thing happen.
func (sim *simulation) chaos(hubs []*hub) {
	names := slices.Sorted(maps.Keys(sim.clusters()))
	cluster := ""
	if len(names) > 0 {
		cluster = pick(sim.rng, names...)
	}
	switch n := sim.rng.IntN(100); {
	case n < 50:
		// One hub does many steps while the other stands still in the middle of
		// a pass.
		if sim.rng.IntN(12) == 0 {
			sim.active = sim.rng.IntN(len(hubs))
		}
		hubs[sim.active].step(sim, false)
		if sim.rng.IntN(4) == 0 {
			hubs[sim.active].hear(sim)
		}
	case n < 75 && cluster != "":
		sim.work(cluster)
	case n < 84:
		sim.pass(sim.soon())
	case n < 87:
		hubs[sim.rng.IntN(len(hubs))].crash(sim)
	case n < 90 && cluster != "" && !sim.bad:
		sim.disturb(cluster)
	case n < 92 && !sim.bad:
		sim.takeOut()
	case n < 93 && sim.rng.IntN(3) == 0 && !sim.bad:
		sim.emptyWave()
	case n < 93 && len(names) < 16:
		sim.join(len(sim.fleet) + 20)
	case n < 94 && cluster != "":
		sim.lie(cluster)
	case n < 98:
		sim.person()
	case n < 99:
		sim.legislate()
	}
}

// disturb changes a cluster.
func (sim *simulation) disturb(cluster string) {
	c := sim.clusters()[cluster]
	switch sim.rng.IntN(13) {
	case 11, 12:
		sim.veto(cluster)
	case 8, 9, 10:
		sim.sicken(cluster)
		return
	case 0, 1, 2:
		sim.setOnline(cluster, !c.Online)
	case 3:
		sim.putCluster(cluster, func(c *rollouts.Cluster) { c.Paused = !c.Paused })
	case 4, 5:
		sim.putCluster(cluster, func(c *rollouts.Cluster) {
			c.Labels["stage"] = pick(sim.rng, "canary", "prod", "other")
		})
	case 6:
		sim.left[cluster] = true
		sim.putCluster(cluster, func(c *rollouts.Cluster) { c.Labels["fleet"] = pick(sim.rng, "yes", "no") })
	case 7:
		sim.left[cluster] = true
		sim.putCluster(cluster, func(c *rollouts.Cluster) { c.Deleting = c.Deleting || sim.rng.IntN(3) == 0 })
	}
	sim.log("%s: %+v", cluster, sim.clusters()[cluster])
}

// person does what people do to the newest rollout.
func (sim *simulation) person() {
	r := sim.latest()
	n := sim.rng.IntN(15)
	if n == 0 && len(sim.rollouts) < 3 && !sim.bad {
		sim.supersede(r)
		return
	}
	if n == 14 {
		which := pick(sim.rng, v1alpha1.GateFailed, v1alpha1.GateWaiting)
		sim.overrideGates(r, func(g v1alpha1.GateStatus) bool { return g.Verdict == which && g.Evidence != "" })
		return
	}
	sim.putRollout(r, r.now().ResourceVersion, func(ro *v1alpha1.OperatorRollout) {
		switch n {
		case 1, 2:
			ro.Spec.Paused = true
		case 3, 4, 5, 6:
			ro.Spec.Paused = false
		case 7:
			if sim.rng.IntN(6) == 0 {
				ro.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "enough"}
			}
		case 8, 9:
			sim.approve(ro)
		case 10:
			ro.Spec.Blocked = pick(sim.rng, "it loses data", "")
		case 11:
			ro.Spec.Blocked = ""
		case 12:
			ro.Spec.Retries++
		case 13:
			if sim.rng.IntN(4) == 0 {
				ro.Spec.WindowOverride = &v1alpha1.WindowOverride{By: "ann", Reason: "emergency"}
			}
		}
	})
}

func (sim *simulation) supersede(r *rollout) {
	if !r.now().Status.Phase.Ended() {
		sim.putRollout(r, r.now().ResourceVersion, func(ro *v1alpha1.OperatorRollout) {
			if ro.Spec.Abort == nil {
				ro.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "a newer target", Superseded: true}
			}
		})
	}
	sim.startRollout(sim.strategy())
	if sim.rng.IntN(3) == 0 { // a catalog renamed the default channel: the same version, and another release
		now := sim.latest().now()
		now.Spec.Release.Version, now.Spec.Release.Channel = r.now().Spec.Release.Version, "renamed-"+now.Name
	}
}

func (sim *simulation) approve(ro *v1alpha1.OperatorRollout) {
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
func (sim *simulation) calm() {
	sim.log("calm")
	for _, name := range slices.Sorted(maps.Keys(sim.clusters())) {
		sim.setOnline(name, true)
		sim.putCluster(name, func(c *rollouts.Cluster) { c.Paused, c.Holds = false, nil })
	}
	if sim.depends {
		sim.windows = nil // those of what waits for the other operator would open and close for ever
	}
	sim.isCalm = true
	sim.reconcilePolicies()
	r := sim.latest()
	sim.putRollout(r, r.now().ResourceVersion, func(ro *v1alpha1.OperatorRollout) {
		ro.Spec.Paused, ro.Spec.Blocked = false, ""
		sim.approve(ro)
	})
}

// settle runs one hub with fresh caches for each operator until nothing moves and
// time changes nothing either.
func (sim *simulation) settle(hubs map[*simulation][]*hub) {
	idle := 0
	for range 4000 {
		before, due := 0, false
		var wait time.Duration
		for _, x := range sim.worlds() {
			before += x.writes
			hubs[x][0].pass = nil
			wait = shorter(wait, x.rest(hubs[x][0], idle > 0))
			if sim.broken = cmp.Or(sim.broken, x.broken); sim.broken != "" {
				return
			}
		}
		after := 0
		for _, x := range sim.worlds() {
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
		sim.pass(min(cmp.Or(wait, 10*time.Second), 30*time.Second))
		sim.sync()
	}
	for _, x := range sim.worlds() {
		sim.log("at the end, %s: %s", x.operator, x.latest().now().Status.Message)
	}
	sim.violate("the calm world does not come to rest: %s", sim.latest().now().Status.Message)
}

// run does one whole pass and returns the planner's delay until the next pass.
func (h *hub) run(s *simulation, r *rollout) time.Duration {
	h.begin(s, r, true)
	wait := h.pass.d.RecheckAfter
	for h.pass != nil {
		h.step(s, true)
	}
	h.hear(s)
	return wait
}

func (sim *simulation) anyDue() bool {
	for name, a := range sim.agents {
		if i, exists := sim.present()[name]; exists && i.uid == a.uid && !a.due.IsZero() {
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
