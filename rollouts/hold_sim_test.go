// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// schedule is when the windows of a simulated cluster are open: for a while in each
// period.
type schedule struct {
	period, open, phase time.Duration
}

// at reports whether the windows are open, and when that changes.
func (s schedule) at(now time.Time) (open bool, until time.Time) {
	if s.period == 0 {
		return true, time.Time{}
	}
	into := (time.Duration(now.Unix())*time.Second + s.phase) % s.period
	if into < s.open {
		return true, now.Add(s.open - into)
	}
	return false, now.Add(s.period - into)
}

// schedules draws the windows of a simulation: none in most.
func (sim *simulation) schedules() {
	if sim.windows = map[string]schedule{}; sim.rng.IntN(3) > 0 {
		return
	}
	for _, name := range []string{"canary", "prod", "other"} {
		if sim.rng.IntN(3) == 0 {
			continue
		}
		period := time.Duration(60+sim.rng.IntN(300)) * time.Second
		sim.windows[name] = schedule{period: period, open: period / time.Duration(2+sim.rng.IntN(3)),
			phase: time.Duration(sim.rng.IntN(600)) * time.Second}
	}
}

// windowOf is the schedule of a cluster, which goes by its name: labels change.
func (sim *simulation) windowOf(cluster string) schedule {
	return sim.windows[[]string{"canary", "prod", "other"}[int(cluster[len(cluster)-1])%3]]
}

// withHolds is a cluster as a hub sees it: vetoes as of its cache, windows as of now.
func (sim *simulation) withHolds(c rollouts.Cluster) rollouts.Cluster {
	c.Holds = slices.Clone(c.Holds)
	open, until := sim.windowOf(c.Name).at(sim.now)
	if open {
		c.OpenUntil = until
	} else {
		c.Holds = append(c.Holds, rollouts.Hold{Reason: v1alpha1.ReasonWindowClosed, Message: "closed", Until: until})
	}
	return c
}

// veto starts or ends the veto of a cluster's owner. On every second cluster it instead changes whether the release
// suits the cluster.
func (sim *simulation) veto(cluster string) {
	reason := v1alpha1.ReasonVetoed
	if cluster[len(cluster)-1]%2 == 0 {
		reason = v1alpha1.ReasonPreflightFailed
	}
	sim.putCluster(cluster, func(c *rollouts.Cluster) {
		if len(c.Holds) > 0 {
			c.Holds = nil
		} else {
			c.Holds = []rollouts.Hold{{Reason: reason, Message: "not now", Defers: true}}
		}
	})
}

// checkHolds is called before a stamp is written.
func (sim *simulation) checkHolds(p *hubPass, a rollouts.Action) {
	if open, _ := sim.windowOf(a.Cluster).at(sim.now); !open && p.read.Spec.WindowOverride == nil {
		sim.violate("%s is admitted while its windows are closed", a.Cluster)
	}
	for _, c := range p.in.Clusters {
		if c.Name == a.Cluster && isHeld(p.read, c) {
			sim.violate("%s is admitted and was seen held back: %+v", a.Cluster, c.Holds)
		}
	}
	for _, e := range p.read.Status.Batch.Clusters {
		if e.Cluster == a.Cluster && e.Held {
			sim.violate("%s is admitted by an entry that is held", a.Cluster)
		}
	}
}

func isHeld(ro *v1alpha1.OperatorRollout, c rollouts.Cluster) bool {
	return slices.ContainsFunc(c.Holds, func(h rollouts.Hold) bool {
		switch h.Reason {
		case v1alpha1.ReasonWindowClosed:
			return ro.Spec.WindowOverride == nil
		case v1alpha1.ReasonPreflightFailed:
			return ro.Spec.Rollback == nil
		}
		return true
	})
}
