// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/testbed/chaos"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

var (
	chaosSeed     = flag.Uint64("chaos.seed", 1, "seed of the disturbances; 0 takes one by the time")
	chaosDuration = flag.Duration("chaos.duration", 0,
		"how long to go on with upgrades and rollbacks; there is always one of each")
	chaosLongest = flag.Duration("chaos.longest", 15*time.Second, "how long one disturbance lasts at most")
)

const (
	bundlePrefix = "echo-operator.v"
	// upgradeChaos and rollbackChaos are how long an upgrade or a rollback is disturbed at most.
	upgradeChaos  = time.Minute
	rollbackChaos = 30 * time.Second
	// chaosPatience is how long the end of a rollout is waited for. Each cluster has patience.
	chaosPatience = 4 * patience
)

// fixture is an operator whose upgrades and rollbacks are disturbed.
type fixture struct {
	*operator
	deck     *disturber
	recorder *recorder
	users    []*user
	// runs is the version that all clusters run.
	runs    string
	changes int
}

// TestChaos upgrades and rolls back while everything that Bellwether consists of, or rests on, is killed, stopped, cut
// off, slow or has the wrong time, at random. Each rollout ends. The limits of waves are kept, a bad release never
// leaves its wave, and nothing is installed that was not admitted. Users go on writing custom resources, and each field
// of what they were told is stored is there at the end.
func TestChaos(t *testing.T) {
	x := newFixture(t)
	began := time.Now()
	x.fails("1.2.0") // by way of 1.1.0, whose CRD has a new field
	x.succeeds(func(s *v1alpha1.ManagedOperatorSpec) { s.Version = "1.1.0" }, true)
	for time.Since(began) < *chaosDuration { // impatient: chaos lasts for so long
		x.release("1.2.0")
		x.fails("1.2.0")
		x.changes++
		x.succeeds(func(s *v1alpha1.ManagedOperatorSpec) {
			s.Version = "1.1.0"
			greeting(fmt.Sprintf("change %d", x.changes))(s)
		}, false)
	}
	x.deck.verdict(*chaosDuration > 0)
	x.recorder.verdict(map[string][]string{bundlePrefix + "1.2.0": {bundlePrefix + "1.1.0"}})
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	seed := *chaosSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("run it again with -chaos.seed %d -chaos.duration %s -chaos.longest %s", seed, *chaosDuration, *chaosLongest)
	x := &fixture{runs: "1.0.0"}
	x.operator = manage(t, "echo-chaos", nil, "1.0.0", "1.1.0", "1.2.0")
	x.everywhere(1)
	x.recorder = observe(t, x.operator, chaos.Judge{
		Waves: []string{"canary", "prod"}, Deadline: patience, Confined: []string{bundlePrefix + "1.2.0"},
		Limits: map[string]int{"canary": 1, "prod": 1, rollouts.RollbackWave: 1},
	})
	var names []string
	for i, member := range platform.DefaultMembers() {
		names = append(names, member.Name)
		x.users = append(x.users, newUser(t, member.Name, seed+uint64(i)))
	}
	x.change(protect) // there is nothing to measure without custom resources
	x.deck = newDisturber(t, chaos.NewDeck(seed, names, *chaosLongest))
	return x
}

// protect has the canary judged by a gate, and every release that fails rolled back.
func protect(s *v1alpha1.ManagedOperatorSpec) {
	s.Strategy.OnFailure = v1alpha1.FailureRollback
	s.Strategy.Rollback = &v1alpha1.RollbackStrategy{MaxConcurrency: ptr.To(intstr.FromInt32(1))}
	s.Strategy.Waves[0].Gates = []v1alpha1.Gate{{Name: "reconciles", PromQL: &v1alpha1.PromQLGate{
		Query: failingReconciles, Operator: v1alpha1.LessThan, Threshold: "0.3", FailureLimit: ptr.To[int32](1),
		Window: &metav1.Duration{Duration: time.Minute},
	}}}
}

// fails rolls a bad version out: the rollout ends as RolledBack, and every cluster runs what it ran before.
func (x *fixture) fails(version string) {
	x.t.Helper()
	stopWriting := x.write()
	rollout := x.newest() + 1
	x.t.Logf("roll out %s, which is bad", version)
	x.change(func(s *v1alpha1.ManagedOperatorSpec) { s.Version = version })
	stop := x.deck.disturb("upgrade", upgradeChaos)
	ro := x.ends(rollout)
	stopBack := x.deck.disturb("rollback", rollbackChaos)
	stop()
	if ro.Status.Phase != v1alpha1.RolloutRolledBack {
		x.t.Fatalf("the bad release ended as %s: %s\n%s", ro.Status.Phase, ro.Status.Message, x.why())
	}
	back := x.ends(rollout + 1)
	stopBack()
	stopWriting()
	if back.Spec.Rollback == nil {
		x.t.Fatalf("%s is no rollback", back.Name)
	}
	x.t.Logf("%s; then %s", ro.Status.Message, back.Status.Message)
	x.settles()
}

// succeeds rolls a good release out. Disturbances may make the wave fail; then it is rolled back, and a person tries
// again when all is quiet.
func (x *fixture) succeeds(change func(*v1alpha1.ManagedOperatorSpec), withoutPrometheus bool) {
	x.t.Helper()
	stopWriting := x.write()
	rollout := x.newest() + 1
	x.t.Log("roll out a good release")
	var bringBack func() error
	if withoutPrometheus {
		var err error
		bringBack, err = x.deck.take(chaos.Disturbance{Part: chaos.Prometheus, Kind: chaos.Gone})
		x.must(err)
	}
	x.change(change)
	stop := x.deck.disturb("upgrade", upgradeChaos)
	if withoutPrometheus {
		x.waitsForPrometheus(rollout)
		x.must(bringBack())
	}
	ro := x.ends(rollout)
	stop()
	x.t.Logf("%s: %s", ro.Status.Phase, ro.Status.Message)
	if ro.Status.Phase == v1alpha1.RolloutRolledBack {
		x.ends(rollout + 1)
		x.settles()
		x.t.Log("try it again")
		x.releaseAll()
		ro = x.ends(rollout + 2)
	}
	stopWriting()
	if ro.Status.Phase != v1alpha1.RolloutSucceeded {
		x.t.Fatalf("the good release ended as %s: %s\n%s", ro.Status.Phase, ro.Status.Message, x.why())
	}
	x.runs = ro.Spec.Release.Version
	x.settles()
}

// newest returns the revision of the newest rollout.
func (x *fixture) newest() int64 {
	x.t.Helper()
	ro, err := x.newestRollout()
	x.must(err)
	return ro.Spec.Revision
}

// ends waits until a rollout has ended. One that is rolled back, or is a rollback, may be halted meanwhile: it has to
// go on when what halted it is over.
func (x *fixture) ends(revision int64) *v1alpha1.OperatorRollout {
	x.t.Helper()
	return x.within(chaosPatience, revision, "ended",
		func(ro *v1alpha1.OperatorRollout) bool { return ro.Status.Phase.Ended() })
}

// waitsForPrometheus waits until the gate of the canary says that it misses Prometheus. Without data, no wave is
// verified.
func (x *fixture) waitsForPrometheus(revision int64) {
	x.t.Helper()
	var verified bool
	ro := x.within(chaosPatience, revision, "waiting for Prometheus", func(ro *v1alpha1.OperatorRollout) bool {
		if ro.Status.Phase.Ended() || len(ro.Status.Waves) == 0 || len(ro.Status.Waves[0].Gates) == 0 {
			return ro.Status.Phase.Ended()
		}
		canary := ro.Status.Waves[0]
		verified = verified || canary.VerifiedAt != nil
		gate := canary.Gates[0]
		return gate.Verdict == v1alpha1.GateWaiting && strings.Contains(gate.Evidence, "connection refused")
	})
	if !ro.Status.Phase.Ended() {
		x.t.Logf("without Prometheus: %s", ro.Status.Waves[0].Gates[0].Evidence)
	}
	if verified {
		x.t.Errorf("the canary was verified without Prometheus: %+v", ro.Status.Waves[0])
	}
}

// release has a person release the hold of a version.
func (x *fixture) release(version string) {
	x.t.Helper()
	out, err := shared.Bellwether(x.t.Context(), "operator", "release-hold", x.key.Name, version)
	x.t.Log(out)
	x.must(err)
}

// releaseAll takes all holds away, also those of settings.
func (x *fixture) releaseAll() {
	x.t.Helper()
	x.change(func(s *v1alpha1.ManagedOperatorSpec) { s.Holds = nil })
}

// settles waits until every cluster is online and runs the release, and looks for all that was lost.
func (x *fixture) settles() {
	x.t.Helper()
	for _, member := range platform.DefaultMembers() {
		x.online(member.Name, true)
		last := ""
		err := wait.PollUntilContextTimeout(x.t.Context(), look, chaosPatience, true,
			func(ctx context.Context) (bool, error) {
				last = x.isSettled(ctx, member.Name)
				return last == "", nil
			})
		if err != nil {
			x.t.Fatalf("%s does not run %s: %s\n%s", member.Name, x.runs, last, x.why())
		}
	}
	for _, u := range x.users {
		u.finds(x.t, x.runs)
	}
}

// isSettled says why a cluster does not run the release; empty if it does.
func (x *fixture) isSettled(ctx context.Context, cluster string) string {
	oi := &v1alpha1.OperatorInstall{}
	name := v1alpha1.OperatorReference{Namespace: x.key.Namespace, Name: x.key.Name}.InstallName()
	if err := x.hub.Get(ctx, client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(cluster), Name: name},
		oi); err != nil {
		return err.Error()
	}
	seen := rollouts.ObserveInstall(oi)
	if a := oi.Spec.Admission; a == nil || a.Release.Bundle != bundlePrefix+x.runs || seen.SucceededHash != a.Hash ||
		!seen.Ready {
		return fmt.Sprintf("admitted to %+v, status %+v", a, oi.Status)
	}
	return ""
}

// write has the users of all clusters write until the returned function is called.
func (x *fixture) write() (stop func()) {
	x.t.Helper()
	ctx, cancel := context.WithCancel(x.t.Context())
	for _, u := range x.users {
		u.work(ctx)
	}
	return func() {
		cancel()
		for _, u := range x.users {
			u.done.Wait()
		}
	}
}
