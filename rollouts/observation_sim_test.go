// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"maps"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// emptyWave takes every cluster of a wave out of the selection, or removes it from the fleet.
func (sim *simulation) emptyWave() {
	ro := sim.latest().now()
	wave := pick(sim.rng, ro.Spec.Strategy.Waves...).Name
	deletes := sim.rng.IntN(2) == 0
	for _, name := range slices.Sorted(maps.Keys(sim.present())) {
		_, enrolled := sim.clusters()[name]
		if i := sim.present()[name]; !enrolled || i.Rollout != ro.Name || i.Wave != wave {
			continue
		}
		sim.left[name] = true
		sim.putCluster(name, func(c *rollouts.Cluster) {
			c.Deleting = c.Deleting || deletes
			if !deletes {
				c.Labels["fleet"] = "no"
			}
		})
	}
	sim.log("every cluster of wave %s of %s leaves", wave, ro.Name)
}

// lie makes an agent report nonsense: Ready without an admission, and the success of a release that no rollout has.
func (sim *simulation) lie(cluster string) {
	i, exists := sim.present()[cluster]
	if !exists || i.Deleting || i.isUpdated() || !sim.clusters()[cluster].Online {
		return
	}
	sim.putInstall(cluster, func(i *install) {
		i.Ready = !i.Stalled && sim.rng.IntN(2) == 0
		i.SucceededHash, i.Bundle = pick(sim.rng, "nonsense", "new"), pick(sim.rng, "", "nonsense.v9")
	})
	sim.log("%s: reports nonsense", cluster)
}

// checkObserved: a wave is verified by clusters that ran the release and were Ready where the hub could see them, or
// because a person said so. Clusters that are deferred may be caught up later, if none failed.
func (sim *simulation) checkObserved(p *hubPass, wave v1alpha1.WaveStatus) {
	if p.read.Spec.Rollback != nil {
		return // what ran before is known to work
	}
	var observed, present, failed int
	for _, c := range p.in.Clusters {
		i, exists := p.view[c.Name]
		if !exists || i.Rollout != p.read.Name || i.Wave != wave.Name || i.Deleting || c.Deleting ||
			c.Labels["fleet"] != "yes" {
			continue
		}
		present++
		switch ours := i.Stamp.RolloutUID == string(p.read.UID); {
		case i.isUpdated() && i.Stamp.Hash == p.read.Spec.Release.Hash() && i.Ready && c.Online:
			observed++
		case ours && i.Stalled && !c.Paused:
			failed++
		}
	}
	switch isOverridden := overridden(p.read, wave.Name, v1alpha1.GateObservation); {
	case observed > 0:
	case isOverridden:
		sim.unobserved[string(p.read.UID)+wave.Name] = true
	case present == 0 || failed > 0:
		sim.violate("wave %s is verified, and none of its clusters was observed: %d are there, %d failed", wave.Name,
			present, failed)
	}
}

// checkSkipped checks that a wave is skipped only if it never had a cluster, only when its turn comes,
// and permanently.
func (sim *simulation) checkSkipped(p *hubPass, place int) {
	wave, was := p.d.Status.Waves[place], v1alpha1.WaveStatus{}
	if place < len(p.read.Status.Waves) {
		was = p.read.Status.Waves[place]
	}
	switch skipped := wave.Phase == v1alpha1.WaveSkipped; {
	case was.Phase == v1alpha1.WaveSkipped && !skipped:
		sim.violate("wave %s was skipped and is %s", wave.Name, wave.Phase)
	case !skipped || was.Phase == v1alpha1.WaveSkipped:
		return
	case wave.Total > 0 || was.Total > 0:
		sim.violate("wave %s is skipped, and had %d clusters", wave.Name, wave.Total)
	}
	for _, before := range p.read.Status.Waves[:min(place, len(p.read.Status.Waves))] {
		if before.VerifiedAt == nil && before.Phase != v1alpha1.WaveSkipped {
			sim.violate("wave %s is skipped before wave %s is done", wave.Name, before.Name)
		}
	}
}

// checkWaves is called after every step: what statuses say of waves does not contradict itself.
func (sim *simulation) checkWaves() {
	for _, r := range sim.rollouts {
		ro := r.now()
		for _, w := range ro.Status.Waves {
			isVerified := w.Phase == v1alpha1.WaveVerified
			if isVerified != (w.VerifiedAt != nil) {
				sim.violate("wave %s is %s, and was verified at %v", w.Name, w.Phase, w.VerifiedAt)
			}
			if isVerified && w.Total == 0 {
				sim.violate("wave %s is verified, and never had a cluster", w.Name)
			}
			isOpen := func(g v1alpha1.GateStatus) bool { return g.Name == v1alpha1.GateObservation && !g.IsPassed() }
			waits := w.Phase == v1alpha1.WaveVerifying && slices.ContainsFunc(w.Gates, isOpen)
			if waits && ro.Spec.Rollback != nil {
				sim.violate("rollback %s waits for an observation", ro.Name)
			}
			if waits && !ro.Status.Phase.Ended() && w.Succeeded > 0 {
				sim.violate("wave %s waits for an observation, and %d clusters succeeded", w.Name, w.Succeeded)
			}
		}
	}
}
