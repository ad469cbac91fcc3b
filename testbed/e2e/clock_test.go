// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/chaos"
)

// clockShift is how far the clock of an agent is off.
const clockShift = time.Hour

// agentsWithClocks builds the agent with clocks that are off.
func agentsWithClocks(t *testing.T) map[chaos.Kind]string {
	t.Helper()
	agents := map[chaos.Kind]string{
		chaos.Ahead:  filepath.Join(shared.Fleet.Dir(), "bin", "agent-ahead"),
		chaos.Behind: filepath.Join(shared.Fleet.Dir(), "bin", "agent-behind"),
	}
	for kind, shift := range map[chaos.Kind]time.Duration{chaos.Ahead: clockShift, chaos.Behind: -clockShift} {
		if err := build.LocalWithClock(t.Context(), os.Stderr, agents[kind], build.Agent, shift); err != nil {
			t.Fatal(err)
		}
	}
	return agents
}

// TestClockOfAnAgentIsOff installs and upgrades an operator on a cluster whose agent has the wrong time. What the agent
// reports is by the clock of its cluster all the same: from its success on, an operator keeps others from changing the
// cluster for a while, by the hub's clock.
func TestClockOfAnAgentIsOff(t *testing.T) {
	const cluster = "prod-us"
	agents := agentsWithClocks(t)
	t.Cleanup(func() {
		if err := restartAgent(cluster, shared.Fleet.Binary(build.Agent)); err != nil {
			t.Error(err)
		}
	})
	o := install(t, cluster)
	for i, kind := range []chaos.Kind{chaos.Ahead, chaos.Behind} {
		o.must(restartAgent(cluster, agents[kind]))
		o.change(greeting(string(kind)))
		o.everywhere(int64(i) + 2)
		oi := o.install(cluster)
		admitted, succeeded := oi.Spec.Admission.AdmittedAt, oi.Status.SucceededAt
		if succeeded.Time.Before(admitted.Add(-time.Minute)) || succeeded.After(time.Now().Add(time.Minute)) {
			t.Errorf("admitted at %s, the agent, whose clock %s, says that it succeeded at %s", admitted, kind,
				succeeded)
		}
		for _, c := range oi.Status.Conditions {
			if c.LastTransitionTime.After(time.Now().Add(time.Minute)) {
				t.Errorf("the agent, whose clock %s, says that %s is %s since %s", kind, c.Type, c.Status,
					c.LastTransitionTime)
			}
		}
	}
}
