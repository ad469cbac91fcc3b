// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// legislate has the platform team write a policy, change it, or delete it.
func (sim *simulation) legislate() {
	name := pick(sim.rng, "p", "q")
	policies := slices.DeleteFunc(slices.Clone(sim.policies),
		func(p v1alpha1.RolloutPolicy) bool { return p.Name == name })
	if sim.rng.IntN(3) > 0 {
		p := v1alpha1.RolloutPolicy{Spec: sim.policySpec()}
		sim.generations++
		p.Name, p.Generation = name, sim.generations
		policies = append(policies, p)
		sim.log("RolloutPolicy %s: %+v", name, p.Spec)
	} else {
		sim.log("RolloutPolicy %s is gone", name)
	}
	sim.policies = policies
	sim.writes++
}

func (sim *simulation) policySpec() v1alpha1.RolloutPolicySpec {
	spec := v1alpha1.RolloutPolicySpec{
		MinSoak: pick(sim.rng, nil, &metav1.Duration{Duration: 40 * time.Second},
			&metav1.Duration{Duration: 3 * time.Minute}),
		MaxConcurrency: pick(sim.rng, nil, new(intstr.FromInt32(1)), new(intstr.FromString("25%"))),
		MinWaves:       pick(sim.rng, nil, nil, nil, new(int32(2))),
		ClusterSelector: pick(sim.rng, nil, &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "canary"}},
			&metav1.LabelSelector{MatchLabels: map[string]string{"stage": "prod"}}),
	}
	if sim.rng.IntN(4) == 0 {
		spec.Gates = append(spec.Gates, v1alpha1.Gate{Name: "go", Approval: &v1alpha1.ApprovalGate{}})
	}
	if sim.rng.IntN(3) == 0 {
		g := queryGate()
		g.PromQL.Window = &metav1.Duration{Duration: time.Minute}
		spec.Gates = append(spec.Gates, g)
	}
	return spec
}

// reconcilePolicies has the platform team give up what cannot be met.
func (sim *simulation) reconcilePolicies() {
	sim.policies = slices.Clone(sim.policies)
	for i := range sim.policies {
		sim.generations++
		sim.policies[i].Spec.MinWaves, sim.policies[i].Generation = nil, sim.generations
	}
}

// approvePolicies approves the gates that policies add to the newest rollout.
func (sim *simulation) approvePolicies() {
	r := sim.latest()
	open := func(ro *v1alpha1.OperatorRollout, wave string, g v1alpha1.GateStatus) bool {
		_, place := strategyWave(ro, wave)
		return place >= 0 && g.Approval && !approved(ro, wave, g.Name)
	}
	if !slices.ContainsFunc(r.now().Status.Waves, func(s v1alpha1.WaveStatus) bool {
		return slices.ContainsFunc(s.Gates, func(g v1alpha1.GateStatus) bool { return open(r.now(), s.Name, g) })
	}) {
		return
	}
	sim.putRollout(r, r.now().ResourceVersion, func(ro *v1alpha1.OperatorRollout) {
		for _, s := range ro.Status.Waves {
			for _, g := range s.Gates {
				if open(ro, s.Name, g) {
					ro.Spec.Approvals = append(ro.Spec.Approvals,
						v1alpha1.Approval{Wave: s.Name, Gate: g.Name, By: "ann", Reason: "fine"})
				}
			}
		}
	})
}

// bound are the policies that a hub saw and that bind a wave. This reads the
// selectors on its own, not through the planner.
func (p *hubPass) bound(wave string) []v1alpha1.RolloutPolicy {
	if p.read.Spec.Rollback != nil {
		return nil
	}
	stages := map[string]bool{}
	for _, c := range p.in.Clusters {
		if i, exists := p.view[c.Name]; exists && i.Rollout == p.read.Name && i.Wave == wave {
			stages[c.Labels["stage"]] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(p.in.Policies), func(o v1alpha1.RolloutPolicy) bool {
		s := o.Spec.ClusterSelector
		return s != nil && !stages[s.MatchLabels["stage"]]
	})
}

// soak returns the longest soak of the strategy and the policies.
func (p *hubPass) soak(wave v1alpha1.Wave) time.Duration {
	longest := wave.Soak.Duration
	for _, o := range p.bound(wave.Name) {
		if o.Spec.MinSoak != nil {
			longest = max(longest, o.Spec.MinSoak.Duration)
		}
	}
	return longest
}

// checkPolicies is called before a stamp is written. It checks that the policies that the hub saw are met.
func (sim *simulation) checkPolicies(p *hubPass, wave string) {
	filled, clusters := 0, 0
	for _, s := range p.read.Status.Waves {
		if clusters += int(s.Total); s.Total > 0 {
			filled++
		}
	}
	for _, o := range p.bound(wave) {
		if least := o.Spec.MinWaves; least != nil && filled < min(int(*least), clusters) &&
			p.read.Status.Phase != v1alpha1.RolloutSucceeded {
			sim.violate("a cluster of wave %s is admitted in %d waves, policy %s asks for %d", wave, filled,
				o.Name, *least)
		}
		for _, g := range o.Spec.Gates {
			if g.Approval != nil && !isVerified(p.read, wave) && !approved(p.read, wave, o.Name+"/"+g.Name) {
				sim.violate("a cluster of wave %s is admitted without the approval that policy %s asks for", wave,
					o.Name)
			}
		}
	}
}

// checkPace: a wave that gets new entries has no more clusters in progress than the
// policies and the error budget say.
func (sim *simulation) checkPace(p *hubPass, wave v1alpha1.WaveStatus) {
	if !p.hasNewEntries(wave.Name) {
		return
	}
	sim.checkBudget(p, wave)
	for _, o := range p.bound(wave.Name) {
		if most := o.Spec.MaxConcurrency; most != nil && int(wave.InProgress) > max(1, share(most, int(wave.Total))) {
			sim.violate("wave %s of %d has %d clusters in progress, policy %s permits %s", wave.Name, wave.Total,
				wave.InProgress, o.Name, most)
		}
	}
}

// hasNewEntries reports whether clusters of a wave are admitted by this decision.
func (p *hubPass) hasNewEntries(wave string) bool {
	return p.d.Status.Batch != nil && slices.ContainsFunc(p.d.Status.Batch.Clusters, func(e v1alpha1.BatchEntry) bool {
		known := p.read.Status.Batch != nil && slices.ContainsFunc(p.read.Status.Batch.Clusters,
			func(was v1alpha1.BatchEntry) bool { return was.Cluster == e.Cluster })
		return e.Wave == wave && !known
	})
}

// checkPolicyGates is called when a wave is verified: gates of policies were passed.
func (sim *simulation) checkPolicyGates(p *hubPass, wave v1alpha1.WaveStatus) {
	if sim.unobserved[string(p.read.UID)+wave.Name] {
		return
	}
	for _, o := range p.bound(wave.Name) {
		for _, g := range o.Spec.Gates {
			if !slices.ContainsFunc(wave.Gates, func(s v1alpha1.GateStatus) bool {
				return s.Name == o.Name+"/"+g.Name && s.IsPassed()
			}) {
				sim.violate("wave %s is verified, and gate %s of policy %s was not passed", wave.Name, g.Name, o.Name)
			}
		}
	}
}
