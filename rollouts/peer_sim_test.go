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

// couple gives some worlds a second operator on the same clusters. It is a world of
// its own, with the same time.
func (w *world) couple(seed uint64) {
	if w.rng.IntN(3) > 0 {
		return
	}
	w.peer = newWorld(seed + 1<<40)
	w.peer.operator, w.peer.peer = "zeta", w
	w.peer.depends = seed%2 == 0
	for _, r := range w.peer.rollouts {
		r.now().Spec.Operator.Name = "zeta"
	}
}

// sync brings the time of the other world up to that of this one.
func (w *world) sync() {
	if w.peer != nil && w.peer.now.Before(w.now) {
		w.peer.pass(w.now.Sub(w.peer.now))
	}
}

func (w *world) reference() v1alpha1.OperatorReference {
	return v1alpha1.OperatorReference{Namespace: "ops", Name: w.operator}
}

// object is an install as the API has it.
func (i install) object(w *world) v1alpha1.OperatorInstall {
	o := v1alpha1.OperatorInstall{}
	o.Name, o.Spec.Operator, o.Spec.Cluster = w.reference().InstallName(), w.reference(), i.Cluster
	if i.Stamp.RolloutUID != "" {
		o.Spec.Admission = &v1alpha1.Admission{RolloutUID: i.Stamp.RolloutUID, Wave: i.Wave, Hash: i.Stamp.Hash,
			AdmittedAt: metav1.Time{Time: i.Stamp.AdmittedAt}, Attempt: i.Stamp.Attempt}
	}
	o.Status.SucceededHash = i.SucceededHash
	if e := w.entry(i); e != nil && !e.succeededAt.IsZero() {
		o.Status.SucceededAt = &metav1.Time{Time: e.succeededAt}
	}
	if i.Stalled {
		o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue}}
	}
	i.report(&o)
	if i.Deleting {
		o.DeletionTimestamp = &metav1.Time{Time: w.now}
	}
	return o
}

// objects are the rollouts of a world as the API has them now.
func (w *world) objects() []v1alpha1.OperatorRollout {
	var all []v1alpha1.OperatorRollout
	for _, r := range w.rollouts {
		ro := *r.now().DeepCopy()
		ro.Namespace = "ops"
		all = append(all, ro)
	}
	return all
}

// changes are those of the other operator: its rollouts were read before.
func (w *world) changes(others []v1alpha1.OperatorRollout) holds.Changes {
	if w.peer == nil {
		return nil
	}
	var installs []v1alpha1.OperatorInstall
	for _, name := range slices.Sorted(maps.Keys(w.peer.present())) {
		installs = append(installs, w.peer.present()[name].object(w.peer))
	}
	return holds.ReadChanges(w.now, w.reference(), others, installs, w.peer.clusters())
}

// withLock is a cluster as a hub sees it that sees these changes.
func (w *world) withLock(c rollouts.Cluster, changes holds.Changes) rollouts.Cluster {
	if busy := changes.Busy(c.Name, w.reference(), 1); busy != nil {
		c.Holds = append(slices.Clone(c.Holds), *busy)
	}
	return c
}

// checkLock is called before a stamp is written: the other operator must not change
// the cluster, in truth.
func (w *world) checkLock(cluster string) {
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

func (w *world) rolloutWith(uid string) *v1alpha1.OperatorRollout {
	for _, r := range w.rollouts {
		if r.now().UID == types.UID(uid) {
			return r.now()
		}
	}
	return &v1alpha1.OperatorRollout{}
}

// worlds are this one and the other.
func (w *world) worlds() []*world {
	if w.peer == nil {
		return []*world{w}
	}
	return []*world{w, w.peer}
}

// rest runs one pass of everything in a world, and returns when the planner wants to
// look again.
func (w *world) rest(h *hub, all bool) time.Duration {
	var wait time.Duration
	for _, r := range w.rollouts {
		if r == w.latest() || all {
			wait = shorter(wait, h.run(w, r))
		}
	}
	if isHeldByGate(w.latest().now()) {
		w.overrideGates(w.latest(), func(g v1alpha1.GateStatus) bool { return g.WaitingSince != nil })
	}
	w.approvePolicies()
	w.takeOut()
	for _, name := range slices.Sorted(maps.Keys(w.present())) {
		w.work(name)
	}
	return wait
}
