// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"flag"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/build"
)

var (
	chaosSeed   = flag.Uint64("chaos.seed", 1, "seed of the random kills")
	chaosRounds = flag.Int("chaos.rounds", 1, "how many rollouts to disturb")
)

// TestChaosRolloutSurvivesKills rolls out while hubs and agents are killed with
// SIGKILL at random moments, and an API server restarts: the rollout ends
// right, the concurrency is never exceeded, and nothing outside an admitted
// wave is touched.
func TestChaosRolloutSurvivesKills(t *testing.T) {
	o := manage(t, "echo-chaos", nil, "1.0.0", "1.1.0", "1.3.0")
	o.phase(1, v1alpha1.RolloutSucceeded)
	w := observe(t, o, []string{"canary", "prod"}, 1)
	random := rand.New(rand.NewPCG(*chaosSeed, 0))
	revision := int64(1)
	for round := range *chaosRounds {
		stop := disturb(t, random)
		for _, change := range changes(round) {
			o.change(change)
			revision++
			o.phase(revision, v1alpha1.RolloutSucceeded)
		}
		stop()
	}
	w.verdict()
	for _, cluster := range []string{"canary", "prod-eu", "prod-us"} {
		oi := o.install(cluster)
		if oi.Status.SucceededHash != oi.Spec.Admission.Hash || oi.Spec.Admission.Revision != revision {
			t.Errorf("%s runs %+v of revision %d", cluster, oi.Status.Installed, oi.Spec.Admission.Revision)
		}
	}
}

// changes are the releases of one round: versions only go up, so they come
// first.
func changes(round int) []func(*v1alpha1.ManagedOperatorSpec) {
	if round > 0 {
		return []func(*v1alpha1.ManagedOperatorSpec){greeting("round " + time.Duration(round).String())}
	}
	version := func(v string) func(*v1alpha1.ManagedOperatorSpec) {
		return func(s *v1alpha1.ManagedOperatorSpec) { s.Version = v }
	}
	return []func(*v1alpha1.ManagedOperatorSpec){version("1.1.0"), version("1.3.0"), greeting("again")}
}

// disturb kills at random until the returned function is called. What was killed
// comes back with a back-off that doubles, so it has to be left alone at times.
func disturb(t *testing.T, random *rand.Rand) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	var kills int
	done.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Duration(2000+random.IntN(6000)) * time.Millisecond):
			}
			switch random.IntN(8) {
			case 0:
				restartAPIServer(ctx, t, random)
			case 1, 2, 3:
				kills += kill(t, build.Hub, random)
			default:
				kills += kill(t, build.Agent, random)
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
		t.Logf("%d processes were killed", kills)
		if kills == 0 {
			t.Error("nothing was killed")
		}
	}
}

func kill(t *testing.T, program string, random *rand.Rand) int {
	t.Helper()
	running := pids(t, program)
	if len(running) == 0 {
		return 0
	}
	if err := syscall.Kill(running[random.IntN(len(running))], syscall.SIGKILL); err != nil {
		return 0 // it ended by itself meanwhile
	}
	return 1
}

func restartAPIServer(ctx context.Context, t *testing.T, random *rand.Rand) {
	t.Helper()
	clusters := shared.Fleet.Clusters
	c := clusters[random.IntN(len(clusters)-1)] // not the spare one, which comes last
	if err := c.RestartAPIServer(context.WithoutCancel(ctx)); err != nil {
		t.Errorf("restart API server of %s: %v", c.Name(), err)
	}
}
