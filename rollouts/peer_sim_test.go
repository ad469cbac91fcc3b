// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// couple adds a second operator on the same clusters to some simulations. The second operator has its own simulation
// with the same time.
func (sim *simulation) couple(seed uint64) {
	if sim.rng.IntN(3) > 0 {
		return
	}
	sim.peer = newSimulation(seed + 1<<40)
	sim.peer.operator, sim.peer.peer = "zeta", sim
	sim.peer.depends = seed%2 == 0
	for _, r := range sim.peer.rollouts {
		r.now().Spec.Operator.Name = "zeta"
	}
}

// sync sets the time of the other simulation to the time of this simulation.
func (sim *simulation) sync() {
	if sim.peer != nil && sim.peer.now.Before(sim.now) {
		sim.peer.pass(sim.now.Sub(sim.peer.now))
	}
}

func (sim *simulation) reference() v1alpha1.OperatorReference {
	return v1alpha1.OperatorReference{Namespace: "ops", Name: sim.operator}
}

// object is an install as the API has it.
func (i install) object(s *simulation) v1alpha1.OperatorInstall {
	o := v1alpha1.OperatorInstall{}
	o.Name, o.Spec.Operator, o.Spec.Cluster = s.reference().InstallName(), s.reference(), i.Cluster
	if i.Stamp.RolloutUID != "" {
		o.Spec.Admission = &v1alpha1.Admission{RolloutUID: i.Stamp.RolloutUID, Wave: i.Wave, Hash: i.Stamp.Hash,
			AdmittedAt: metav1.Time{Time: i.Stamp.AdmittedAt}, Attempt: i.Stamp.Attempt}
	}
	o.Status.SucceededHash = i.SucceededHash
	if e := s.entry(i); e != nil && !e.succeededAt.IsZero() {
		o.Status.SucceededAt = &metav1.Time{Time: e.succeededAt}
	}
	if i.Stalled {
		o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue}}
	}
	i.report(&o)
	if i.Deleting {
		o.DeletionTimestamp = &metav1.Time{Time: s.now}
	}
	return o
}

// objects are the rollouts of a simulation as the API has them now.
func (sim *simulation) objects() []v1alpha1.OperatorRollout {
	var all []v1alpha1.OperatorRollout
	for _, r := range sim.rollouts {
		ro := *r.now().DeepCopy()
		ro.Namespace = "ops"
		all = append(all, ro)
	}
	return all
}

// changes returns the changes of the other operator, whose rollouts were read before.
func (sim *simulation) changes(others []v1alpha1.OperatorRollout) holds.Changes {
	if sim.peer == nil {
		return nil
	}
	var installs []v1alpha1.OperatorInstall
	for _, name := range slices.Sorted(maps.Keys(sim.peer.present())) {
		installs = append(installs, sim.peer.present()[name].object(sim.peer))
	}
	return holds.ReadChanges(sim.now, sim.reference(), others, installs, sim.peer.clusters())
}

// withLock is a cluster as a hub sees it that sees these changes.
func (sim *simulation) withLock(c rollouts.Cluster, changes holds.Changes) rollouts.Cluster {
	if busy := changes.FindBusyHold(c.Name, sim.reference(), 1); busy != nil {
		c.Holds = append(slices.Clone(c.Holds), *busy)
	}
	return c
}

// checkLock is called before a stamp is written: the other operator must not change
// the cluster, in truth.
func (sim *simulation) checkLock(cluster string) {
	if sim.peer == nil {
		return
	}
	i, exists := sim.peer.present()[cluster]
	e := sim.peer.entry(i)
	if !exists || e == nil || i.Deleting || !sim.peer.clusters()[cluster].Online {
		return
	}
	ro := sim.peer.rolloutWith(i.Stamp.RolloutUID)
	s, place := strategyWave(ro, i.Wave)
	switch {
	case place < 0: // a newer rollout has taken it over
	case !e.released && sim.now.Before(e.at.Add(s.Deadline.Duration)):
		sim.violate("%s is admitted while the other operator changes it", cluster)
	case i.isUpdated() && sim.now.Before(e.succeededAt.Add(s.UnreadyGrace.Duration)) &&
		sim.now.Before(e.at.Add(s.Deadline.Duration)):
		sim.violate("%s is admitted in the grace of the other operator's success", cluster)
	}
}

func (sim *simulation) rolloutWith(uid string) *v1alpha1.OperatorRollout {
	for _, r := range sim.rollouts {
		if r.now().UID == types.UID(uid) {
			return r.now()
		}
	}
	return &v1alpha1.OperatorRollout{}
}

// worlds are this one and the other.
func (sim *simulation) worlds() []*simulation {
	if sim.peer == nil {
		return []*simulation{sim}
	}
	return []*simulation{sim, sim.peer}
}

// rest runs one pass of everything in a simulation, and returns the planner's delay until the next pass.
func (sim *simulation) rest(h *hub, all bool) time.Duration {
	var wait time.Duration
	for _, r := range sim.rollouts {
		if r == sim.latest() || all {
			wait = shorter(wait, h.run(sim, r))
		}
	}
	if isHeldByGate(sim.latest().now()) {
		sim.overrideGates(sim.latest(), func(g v1alpha1.GateStatus) bool { return g.WaitingSince != nil })
	}
	sim.approvePolicies()
	sim.takeOut()
	for _, name := range slices.Sorted(maps.Keys(sim.present())) {
		sim.work(name)
	}
	return wait
}
