// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// TestPausedReason checks which clusters rollouts must not change.
func TestPausedReason(t *testing.T) {
	for name, test := range map[string]struct {
		person, reports bool
		// believed is the status of the condition Hibernating.
		believed metav1.ConditionStatus
		source   *v1alpha1.ClusterSource
		want     string
	}{
		"added by hand":           {want: ""},
		"paused by a person":      {person: true, want: v1alpha1.ReasonPaused},
		"its source runs":         {source: &v1alpha1.ClusterSource{State: v1alpha1.SourcePresent, PowerState: v1alpha1.PowerRunning}},
		"its source has no power": {source: &v1alpha1.ClusterSource{State: v1alpha1.SourcePresent}},
		"it moved away":           {source: &v1alpha1.ClusterSource{State: v1alpha1.SourceMoved}},
		"it hibernates": {believed: metav1.ConditionTrue, source: &v1alpha1.ClusterSource{
			PowerState: v1alpha1.PowerHibernating}, want: v1alpha1.ReasonHibernating},
		"it should hibernate, and reported": {believed: metav1.ConditionFalse, source: &v1alpha1.ClusterSource{
			PowerState: v1alpha1.PowerHibernating}},
		"it should hibernate, and reports": {believed: metav1.ConditionFalse, reports: true,
			source: &v1alpha1.ClusterSource{PowerState: v1alpha1.PowerHibernating}},
		"it resumes, and reports already": {believed: metav1.ConditionTrue, reports: true, source: &v1alpha1.ClusterSource{
			PowerState: v1alpha1.PowerResuming}, want: v1alpha1.ReasonHibernating},
		"it resumes for too long, and reports": {believed: metav1.ConditionFalse, reports: true,
			source: &v1alpha1.ClusterSource{PowerState: v1alpha1.PowerResuming}},
		"it is stopped for too long": {believed: metav1.ConditionFalse, source: &v1alpha1.ClusterSource{
			PowerState: v1alpha1.PowerStopping}},
		"nothing was decided yet": {reports: true, source: &v1alpha1.ClusterSource{PowerState: v1alpha1.PowerResuming}},
		"it runs, and the condition is not removed yet": {believed: metav1.ConditionTrue, source: &v1alpha1.ClusterSource{
			PowerState: v1alpha1.PowerRunning}},
		"it has no source any more, and the condition is not removed yet": {believed: metav1.ConditionTrue},
		"its source is paused": {source: &v1alpha1.ClusterSource{State: v1alpha1.SourcePaused,
			PowerState: v1alpha1.PowerRunning}, want: v1alpha1.ReasonSourcePaused},
		"its source relocates": {source: &v1alpha1.ClusterSource{State: v1alpha1.SourceRelocating},
			want: v1alpha1.ReasonSourcePaused},
		"a person paused it": {person: true, believed: metav1.ConditionTrue, source: &v1alpha1.ClusterSource{PowerState: v1alpha1.PowerHibernating},
			want: v1alpha1.ReasonPaused},
	} {
		t.Run(name, func(t *testing.T) {
			c := &v1alpha1.FleetCluster{Spec: v1alpha1.FleetClusterSpec{Paused: test.person},
				Status: v1alpha1.FleetClusterStatus{Source: test.source}}
			if test.reports {
				conditions.Set(&c.Status.Conditions, 1, v1alpha1.ConditionOnline, true, v1alpha1.ReasonLeaseFresh, "")
			}
			if test.believed != "" {
				conditions.Set(&c.Status.Conditions, 1, v1alpha1.ConditionHibernating,
					test.believed == metav1.ConditionTrue, v1alpha1.ReasonHibernating, "")
			}
			got := rollouts.ObserveCluster(c)
			if got.PausedReason != test.want || got.Paused != (test.want != "") {
				t.Errorf("paused %v because of %q, want %q", got.Paused, got.PausedReason, test.want)
			}
		})
	}
}

// TestPausedReasonOfAnEarlierHub has a cluster whose condition Online was written by a hub that had no condition
// Hibernating.
func TestPausedReasonOfAnEarlierHub(t *testing.T) {
	c := &v1alpha1.FleetCluster{Status: v1alpha1.FleetClusterStatus{Source: &v1alpha1.ClusterSource{
		PowerState: v1alpha1.PowerHibernating}}}
	conditions.Set(&c.Status.Conditions, 1, v1alpha1.ConditionOnline, false, v1alpha1.ReasonHibernating, "")
	if got := rollouts.PausedReason(c); got != v1alpha1.ReasonHibernating {
		t.Errorf("paused because of %q, want Hibernating", got)
	}
}
