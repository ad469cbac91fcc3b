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

// couple gives some worlds a second operator on the same clusters. It is a simulation of
// its own, with the same time.
func (s *simulation) couple(seed uint64) {
	if s.rng.IntN(3) > 0 {
		return
	}
	s.peer = newSimulation(seed + 1<<40)
	s.peer.operator, s.peer.peer = "zeta", s
	s.peer.depends = seed%2 == 0
	for _, r := range s.peer.rollouts {
		r.now().Spec.Operator.Name = "zeta"
	}
}

// sync brings the time of the other simulation up to that of this one.
func (s *simulation) sync() {
	if s.peer != nil && s.peer.now.Before(s.now) {
		s.peer.pass(s.now.Sub(s.peer.now))
	}
}

func (s *simulation) reference() v1alpha1.OperatorReference {
	return v1alpha1.OperatorReference{Namespace: "ops", Name: s.operator}
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
func (s *simulation) objects() []v1alpha1.OperatorRollout {
	var all []v1alpha1.OperatorRollout
	for _, r := range s.rollouts {
		ro := *r.now().DeepCopy()
		ro.Namespace = "ops"
		all = append(all, ro)
	}
	return all
}

// changes are those of the other operator: its rollouts were read before.
func (s *simulation) changes(others []v1alpha1.OperatorRollout) holds.Changes {
	if s.peer == nil {
		return nil
	}
	var installs []v1alpha1.OperatorInstall
	for _, name := range slices.Sorted(maps.Keys(s.peer.present())) {
		installs = append(installs, s.peer.present()[name].object(s.peer))
	}
	return holds.ReadChanges(s.now, s.reference(), others, installs, s.peer.clusters())
}

// withLock is a cluster as a hub sees it that sees these changes.
func (s *simulation) withLock(c rollouts.Cluster, changes holds.Changes) rollouts.Cluster {
	if busy := changes.Busy(c.Name, s.reference(), 1); busy != nil {
		c.Holds = append(slices.Clone(c.Holds), *busy)
	}
	return c
}

// checkLock is called before a stamp is written: the other operator must not change
// the cluster, in truth.
func (w *simulation) checkLock(cluster string) {
	if w.peer == nil {
		return
	}
	i, exists := w.peer.present()[cluster]
	e := w.peer.entry(i)
	if !exists || e == nil || i.Deleting || !w.peer.clusters()[cluster].Online {
		return
	}
	ro := w.peer.rolloutWith(i.Stamp.RolloutUID)
	s, place := strategyWave(ro, i.Wave)
	switch {
	case place < 0: // a newer rollout has taken it over
	case !e.released && w.now.Before(e.at.Add(s.Deadline.Duration)):
		w.violate("%s is admitted while the other operator changes it", cluster)
	case i.isUpdated() && w.now.Before(e.succeededAt.Add(s.UnreadyGrace.Duration)) &&
		w.now.Before(e.at.Add(s.Deadline.Duration)):
		w.violate("%s is admitted in the grace of the other operator's success", cluster)
	}
}

func (s *simulation) rolloutWith(uid string) *v1alpha1.OperatorRollout {
	for _, r := range s.rollouts {
		if r.now().UID == types.UID(uid) {
			return r.now()
		}
	}
	return &v1alpha1.OperatorRollout{}
}

// worlds are this one and the other.
func (s *simulation) worlds() []*simulation {
	if s.peer == nil {
		return []*simulation{s}
	}
	return []*simulation{s, s.peer}
}

// rest runs one pass of everything in a simulation, and returns when the planner wants to
// look again.
func (s *simulation) rest(h *hub, all bool) time.Duration {
	var wait time.Duration
	for _, r := range s.rollouts {
		if r == s.latest() || all {
			wait = shorter(wait, h.run(s, r))
		}
	}
	if isHeldByGate(s.latest().now()) {
		s.overrideGates(s.latest(), func(g v1alpha1.GateStatus) bool { return g.WaitingSince != nil })
	}
	s.approvePolicies()
	s.takeOut()
	for _, name := range slices.Sorted(maps.Keys(s.present())) {
		s.work(name)
	}
	return wait
}
