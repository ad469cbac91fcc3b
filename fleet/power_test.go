// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/fleet"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// TestPowerStateThatNeverEnds has sources that continue to report that the cluster does not run.
func TestPowerStateThatNeverEnds(t *testing.T) {
	silent := func(ago time.Duration) func(*fleet.Input) {
		return func(in *fleet.Input) { in.Lease.SeenAt = now.Add(-ago) }
	}
	stale := func(ago time.Duration) func(*fleet.Input) {
		return func(in *fleet.Input) {
			in.Lease.SeenAt, in.Cluster.Status.StaleSince = time.Time{}, &metav1.Time{Time: now.Add(-ago)}
		}
	}
	reports := func(*fleet.Input) {}
	hosted := func(in *fleet.Input) {
		in.Lease.APIServer, in.Cluster.Status.StaleSince = unreachable, &metav1.Time{Time: now.Add(-2 * time.Hour)}
	}
	unseen := func(ago time.Duration) func(*fleet.Input) { // the hub could not read the Lease then
		return func(in *fleet.Input) { in.Lease.SeenAt, in.Lease.ValidFrom = now.Add(-62*time.Minute), now.Add(-ago) }
	}
	neverJoined := func(in *fleet.Input) { in.Lease = fleet.Lease{} }
	const stopping, stopped, resuming = v1alpha1.PowerStopping, v1alpha1.PowerHibernating, v1alpha1.PowerResuming
	for name, test := range map[string]struct {
		power  v1alpha1.ClusterPowerState
		since  time.Duration
		agent  func(*fleet.Input)
		want   string // condition Hibernating
		online string // condition Online
		paused string
	}{
		"no power state":  {"", 0, reports, "", "+LeaseFresh", ""},
		"runs":            {v1alpha1.PowerRunning, time.Hour, reports, "", "+LeaseFresh", ""},
		"runs, is silent": {v1alpha1.PowerRunning, time.Hour, silent(time.Hour), "", "LeaseExpired", ""},

		"stopping":                         {stopping, 29 * time.Minute, silent(20 * time.Minute), "+Hibernating", "Hibernating", "Hibernating"},
		"stopping, still reports":          {stopping, 29 * time.Minute, reports, "+Hibernating", "+LeaseFresh", "Hibernating"},
		"stopping for too long":            {stopping, 30 * time.Minute, silent(20 * time.Minute), "PowerUnknown", "LeaseExpired", ""},
		"stopping for a week, and reports": {stopping, 7 * 24 * time.Hour, reports, "PowerUnknown", "+LeaseFresh", ""},
		"resuming":                         {resuming, 29 * time.Minute, silent(time.Hour), "+Hibernating", "Hibernating", "Hibernating"},
		"resuming, reports already":        {resuming, 29 * time.Minute, reports, "+Hibernating", "+LeaseFresh", "Hibernating"},
		"resuming for too long":            {resuming, time.Hour, silent(2 * time.Hour), "PowerUnknown", "LeaseExpired", ""},
		"resuming for a week, and reports": {resuming, 7 * 24 * time.Hour, reports, "PowerUnknown", "+LeaseFresh", ""},
		"resuming, never joined":           {resuming, time.Hour, neverJoined, "PowerUnknown", "NeverJoined", ""},

		"hibernates": {stopped, time.Hour, silent(62 * time.Minute), "+Hibernating", "Hibernating", "Hibernating"},
		"hibernates for a month": {stopped, 30 * 24 * time.Hour, silent(31 * 24 * time.Hour), "+Hibernating",
			"Hibernating", "Hibernating"},
		"hibernates, the hub was restarted": {stopped, time.Hour, stale(time.Hour), "+Hibernating", "Hibernating", "Hibernating"},
		"hibernates, the hub was blind": {stopped, time.Hour, unseen(30 * time.Minute), "+Hibernating", "Hibernating",
			"Hibernating"},
		"hibernates, the hub is blind": {stopped, time.Hour, unseen(0), "+Hibernating", "+LeaseFresh", "Hibernating"},
		"hibernates, the last renewal came with it": {stopped, time.Hour, silent(time.Hour - 40*time.Second), "+Hibernating",
			"Hibernating", "Hibernating"},
		"hibernates since a moment ago": {stopped, 30 * time.Second, reports, "+Hibernating", "+LeaseFresh", "Hibernating"},
		"hibernates, its agent is hosted elsewhere": {stopped, time.Hour, hosted, "+Hibernating", "+LeaseFresh",
			"Hibernating"},
		"hibernates, never joined":       {stopped, time.Hour, neverJoined, "+Hibernating", "NeverJoined", "Hibernating"},
		"should hibernate, and reports":  {stopped, time.Hour, reports, "PowerUnknown", "+LeaseFresh", ""},
		"should hibernate, and reported": {stopped, time.Hour, silent(30 * time.Minute), "PowerUnknown", "LeaseExpired", ""},
		"should hibernate, and reported before the hub was restarted": {stopped, time.Hour, stale(30 * time.Minute),
			"PowerUnknown", "LeaseExpired", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := healthy()
			in.Cluster.Status.Source = &v1alpha1.ClusterSource{State: v1alpha1.SourcePresent, PowerState: test.power,
				PowerStateSince: &metav1.Time{Time: now.Add(-test.since)}}
			test.agent(&in)
			in.Cluster.Status = fleet.Next(in).Status
			for conditionType, want := range map[string]string{v1alpha1.ConditionHibernating: test.want,
				v1alpha1.ConditionOnline: test.online} {
				if got := describe(in.Cluster.Status.Conditions, conditionType); got != want {
					t.Errorf("condition %s is %q, want %q", conditionType, got, want)
				}
			}
			if got := rollouts.PausedReason(in.Cluster); got != test.paused {
				t.Errorf("paused because of %q, want %q", got, test.paused)
			}
			again := fleet.Next(in).Status
			if got := describe(again.Conditions, v1alpha1.ConditionHibernating); got != test.want {
				t.Errorf("decided again, condition Hibernating is %q, want %q", got, test.want)
			}
		})
	}
}

// TestPowerStateEndsByItself has a hub that hears nothing new.
func TestPowerStateEndsByItself(t *testing.T) {
	in := healthy()
	in.Lease.SeenAt = now.Add(-time.Hour)
	in.Cluster.Status.Source = &v1alpha1.ClusterSource{PowerState: v1alpha1.PowerResuming,
		PowerStateSince: &metav1.Time{Time: now.Add(-20 * time.Minute)}}
	d := fleet.Next(in)
	if d.RecheckAfter != 10*time.Minute {
		t.Fatalf("looks again after %s, want 10m", d.RecheckAfter)
	}
	in.Cluster.Status, in.Now = d.Status, in.Now.Add(d.RecheckAfter)
	d = fleet.Next(in)
	if d.RecheckAfter != 0 {
		t.Errorf("looks again after %s, want never", d.RecheckAfter)
	}
	want := "the agent has not renewed its Lease since 2026-11-21T09:00:00Z: check the agent on the cluster, and its " +
		"connection to the hub; its source reports the power state Resuming since 2026-11-21T09:40:00Z, which the " +
		"hub accepts for 30 minutes only, so the cluster counts as running: check the source"
	if got := conditions.Get(d.Status.Conditions, v1alpha1.ConditionOnline).Message; got != want {
		t.Errorf("message\n%s\nwant\n%s", got, want)
	}
	in.Cluster.Status.Source = &v1alpha1.ClusterSource{PowerState: v1alpha1.PowerRunning}
	if got := describe(fleet.Next(in).Status.Conditions, v1alpha1.ConditionHibernating); got != "" {
		t.Errorf("condition Hibernating is %q when the source says Running, want none", got)
	}
}
