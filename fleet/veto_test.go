// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/fleet"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

func TestVeto(t *testing.T) {
	before := metav1.Time{Time: now.Add(-time.Hour)}
	at := metav1.Time{Time: now}
	veto := func(reason string, since metav1.Time) *v1alpha1.ClusterVeto {
		return &v1alpha1.ClusterVeto{Reason: reason, Since: since}
	}
	tests := map[string]struct {
		reported, was, want *v1alpha1.ClusterVeto
		ended               *metav1.Time
		change              func(*fleet.Input)
	}{
		"none":   {},
		"begins": {reported: veto("audit", metav1.Time{}), want: veto("audit", at)},
		"goes on, with another reason": {reported: veto("holidays", metav1.Time{}), was: veto("audit", before),
			want: veto("holidays", before)},
		"the agent cannot set since when": {reported: veto("audit", before), want: veto("audit", at)},
		"ends":                            {was: veto("audit", before), ended: &at},
		"the agent is gone: it goes on": {was: veto("audit", before), want: veto("audit", before),
			change: func(in *fleet.Input) { in.Lease.Found = false }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := healthy()
			in.Cluster.Status.Veto, in.Lease.Veto = test.was, test.reported
			if test.change != nil {
				test.change(&in)
			}
			got := fleet.Next(in).Status
			if diff := cmp.Diff(test.want, got.Veto); diff != "" {
				t.Errorf("veto (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.ended, got.VetoEndedAt); diff != "" {
				t.Errorf("ended (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFrozenOffboarding: a cluster under a FleetFreeze is not taken out of the fleet, also when its time is over, and
// has what was left of it when the freeze ends, also after another one. It counts from when the freeze was made.
func TestFrozenOffboarding(t *testing.T) {
	in := healthy()
	in.Operators = []fleet.Operator{{Install: removal.Install{Namespace: "bellwether-a", Name: "team.echo",
		Held: true}}}
	leaving(v1alpha1.RemovalUninstall)(&in)
	in.Cluster.DeletionTimestamp.Time = now.Add(time.Hour - fleet.DefaultOffboardingTimeout) // an hour is left
	began := now.Add(-time.Minute)                                                           // no hub ran then
	in.Freeze = &v1alpha1.FleetFreeze{ObjectMeta: metav1.ObjectMeta{Name: "incident",
		CreationTimestamp: metav1.Time{Time: began}},
		Spec: v1alpha1.FleetFreezeSpec{Clusters: []string{"*"}, Reason: "the registry is hostile"}}
	again := in.Freeze.DeepCopy()
	d := fleet.Next(in)
	want := &v1alpha1.ClusterFreeze{Name: "incident", Reason: "the registry is hostile",
		Since: metav1.Time{Time: began}}
	if diff := cmp.Diff(want, d.Status.Freeze); diff != "" {
		t.Errorf("freeze (-want +got):\n%s", diff)
	}
	ready := conditions.Get(d.Status.Conditions, v1alpha1.ConditionReady)
	if len(d.Removals)+len(d.Actions) > 0 || ready.Reason != v1alpha1.ReasonFrozen {
		t.Errorf("%v, %v, %s: %s", d.Removals, d.Actions, ready.Reason, ready.Message)
	}
	in.Cluster.Status, in.Freeze, in.Now = d.Status, nil, now.Add(48*time.Hour)
	d = fleet.Next(in)
	past := []v1alpha1.FreezePeriod{{Since: want.Since, EndedAt: metav1.Time{Time: in.Now}}}
	if diff := cmp.Diff(past, d.Status.PastFreezes); d.Status.Freeze != nil || diff != "" {
		t.Errorf("it goes on: %+v, past ones (-want +got):\n%s", d.Status.Freeze, diff)
	}
	if releases(d) {
		t.Error("the hub releases it as soon as the freeze has ended")
	}
	in.Cluster.Status = d.Status
	in.Now, in.Freeze = in.Now.Add(time.Minute), again
	again.CreationTimestamp.Time = in.Now
	in.Cluster.Status = fleet.Next(in).Status
	in.Now, in.Freeze = in.Now.Add(48*time.Hour), nil
	in.Cluster.Status = fleet.Next(in).Status
	in.Now = in.Now.Add(59 * time.Minute)
	if d = fleet.Next(in); releases(d) {
		t.Error("the hub releases it before the time is over that it had left")
	}
	in.Now = in.Now.Add(2 * time.Minute)
	if d = fleet.Next(in); !releases(d) {
		t.Errorf("the hub does not release it: %+v", d.Removals)
	}
}

func releases(d fleet.Decision) bool {
	return slices.ContainsFunc(d.Removals, func(s removal.Step) bool { return s.Release })
}
