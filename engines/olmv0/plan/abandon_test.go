// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
	"time"
)

const v3 = "echo.v1.1.1"

// olm is what matters of OLM v0, and of the agent, when an upgrade from v1 to v2
// did not finish and v3 is admitted. It is comparable.
//
// OLM has two operators, which see a CSV's phase at different times. The one that
// resolves does so only after an event of the Subscription or of the catalog's
// connection. It does not resolve again when a CSV changes its phase, nor after
// it found that the constraints cannot be satisfied (olm.md, facts 22 and 23).
type olm struct {
	// phase of v2; resolverSees and agentSees are what the caches have of it.
	phase, resolverSees, agentSees string
	abandoned                      bool
	// viewOfV3 is what the agent serves, and connected what OLM is connected to.
	viewOfV3, connected bool
	queued, failed      bool
	planned             bool
	// clock is the time since v3 was admitted, and updated when the Subscription's
	// status was written.
	clock, updated time.Duration
}

// input is what the agent observes.
func (o olm) input() Input {
	in := upgrading()
	in.Now = now.Add(o.clock)
	in.Install.Spec.Admission.Revision = 3
	in.Install.Spec.Admission.Release.Version, in.Install.Spec.Admission.Release.Bundle = "1.1.1", v3
	in.Install.Status.Conditions = servedSince(now)
	in.Cluster.Subscriptions[0].InstalledCSV, in.Cluster.Subscriptions[0].CurrentCSV = v2, v2
	in.Cluster.Subscriptions[0].LastUpdated = now.Add(o.updated)
	in.Cluster.CSVs[0].Phase = "Replacing"
	in.Cluster.CSVs = append(in.Cluster.CSVs, CSV{Name: v2, Replaces: v1, Phase: o.agentSees, IsOfPackage: true,
		Reason: "RequirementsNotMet", Created: now.Add(-time.Hour), Since: now.Add(-time.Hour)})
	in.Offer.Path, in.Offer.Next, in.Offer.Admitted = []string{v3}, v3, []string{v3}
	in.Offer.ViewHash, in.View.Hash = "view-3", "view-2"
	if o.viewOfV3 {
		in.View.Hash = "view-3"
	}
	if o.failed {
		in.Cluster.Subscriptions[0].ResolutionFailed = "constraints not satisfiable"
	}
	if o.planned {
		in.Cluster.InstallPlans = append(in.Cluster.InstallPlans,
			InstallPlan{Name: "install-3", Compared: true, Phase: "RequiresApproval", CSVs: []string{v3},
				Created: in.Now})
	}
	return in
}

func (o olm) agent() olm {
	for _, a := range Next(o.input()).Actions {
		switch a.Verb {
		case Serve:
			o.viewOfV3 = true
		case Abandon:
			o.abandoned = true
		case Reset:
			o.updated, o.queued = o.clock, true
		}
	}
	return o
}

// fail is OLM's operator of CSVs, which fails one with an unknown strategy.
func (o olm) fail() olm {
	if o.abandoned {
		o.phase = "Failed"
	}
	return o
}

func (o olm) resolverCatchesUp() olm { o.resolverSees = o.phase; return o }
func (o olm) agentCatchesUp() olm    { o.agentSees = o.phase; return o }

func (o olm) connect() olm {
	if o.viewOfV3 && !o.connected {
		o.connected, o.queued = true, true
	}
	return o
}

func (o olm) resolve() olm {
	if !o.queued || o.planned {
		return o
	}
	o.queued = false
	switch {
	case !o.connected:
	case o.resolverSees == "Failed":
		o.planned, o.failed = true, false
	default:
		o.failed, o.updated = true, o.clock
	}
	return o
}

func (o olm) wait() olm {
	if o.clock < 90*time.Second { // longer delays reach no other states
		o.clock += 15 * time.Second
	}
	return o
}

// TestAbandonedUpgradesConverge runs every order of the steps of agent and OLM, with every delay, from an unfinished
// upgrade on. In every case, OLM plans the admitted version in the end.
func TestAbandonedUpgradesConverge(t *testing.T) {
	steps := []func(olm) olm{olm.agent, olm.fail, olm.resolverCatchesUp, olm.agentCatchesUp, olm.connect, olm.resolve,
		olm.wait}
	start := olm{phase: "Pending", resolverSees: "Pending", agentSees: "Pending"}
	seen, todo := map[olm]bool{start: true}, []olm{start}
	for len(todo) > 0 {
		state := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if end := settle(state, steps); !end.planned {
			t.Fatalf("OLM never plans %s after %+v; it stays %+v", v3, state, end)
		}
		for _, step := range steps {
			if next := step(state); !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	t.Logf("%d states", len(seen))
}

// settle runs all possible steps for an hour.
func settle(state olm, steps []func(olm) olm) olm {
	for range 60 {
		for _, step := range steps {
			state = step(state)
		}
		state.clock += time.Minute
	}
	return state
}

// TestAFailedResolutionIsRepeated has a state that occurred on a cluster: the upgrade Failed, and OLM had resolved
// before it detected that, and did not resolve again.
func TestAFailedResolutionIsRepeated(t *testing.T) {
	stuck := olm{phase: "Failed", resolverSees: "Failed", agentSees: "Failed", abandoned: true, viewOfV3: true,
		connected: true, failed: true, clock: 10 * time.Minute}
	reset := Action{Verb: Reset, Kind: KindSubscription, Name: "echo", Value: v2}
	if got := Next(stuck.input()).Actions; !slices.Equal(got, []Action{reset}) {
		t.Errorf("actions %v, want %v", got, reset)
	}
	stuck.updated = stuck.clock - time.Second
	if got := Next(stuck.input()).Actions; len(got) != 0 {
		t.Errorf("actions %v although OLM has just resolved", got)
	}
}
