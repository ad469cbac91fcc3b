// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"testing"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// TestPausedReason says which clusters rollouts leave alone.
func TestPausedReason(t *testing.T) {
	for name, test := range map[string]struct {
		person, reports bool
		source          *v1alpha1.ClusterSource
		want            string
	}{
		"added by hand":           {want: ""},
		"paused by a person":      {person: true, want: v1alpha1.ReasonPaused},
		"its source runs":         {source: &v1alpha1.ClusterSource{State: v1alpha1.SourcePresent, PowerState: v1alpha1.PowerRunning}},
		"its source has no power": {source: &v1alpha1.ClusterSource{State: v1alpha1.SourcePresent}},
		"it moved away":           {source: &v1alpha1.ClusterSource{State: v1alpha1.SourceMoved}},
		"it hibernates": {source: &v1alpha1.ClusterSource{State: v1alpha1.SourcePresent,
			PowerState: v1alpha1.PowerHibernating}, want: v1alpha1.ReasonHibernating},
		"it should hibernate, and reports": {reports: true, source: &v1alpha1.ClusterSource{State: v1alpha1.SourcePresent,
			PowerState: v1alpha1.PowerHibernating}},
		"it resumes, and reports already": {reports: true, source: &v1alpha1.ClusterSource{
			PowerState: v1alpha1.PowerResuming}, want: v1alpha1.ReasonHibernating},
		"it resumes": {source: &v1alpha1.ClusterSource{PowerState: v1alpha1.PowerResuming},
			want: v1alpha1.ReasonHibernating},
		"its source is paused": {source: &v1alpha1.ClusterSource{State: v1alpha1.SourcePaused,
			PowerState: v1alpha1.PowerRunning}, want: v1alpha1.ReasonSourcePaused},
		"its source relocates": {source: &v1alpha1.ClusterSource{State: v1alpha1.SourceRelocating},
			want: v1alpha1.ReasonSourcePaused},
		"a person is told first": {person: true, source: &v1alpha1.ClusterSource{PowerState: v1alpha1.PowerHibernating},
			want: v1alpha1.ReasonPaused},
	} {
		t.Run(name, func(t *testing.T) {
			c := &v1alpha1.FleetCluster{Spec: v1alpha1.FleetClusterSpec{Paused: test.person},
				Status: v1alpha1.FleetClusterStatus{Source: test.source}}
			if test.reports {
				conditions.Set(&c.Status.Conditions, 1, v1alpha1.ConditionOnline, true, v1alpha1.ReasonLeaseFresh, "")
			}
			got := rollouts.ObserveCluster(c)
			if got.PausedReason != test.want || got.Paused != (test.want != "") {
				t.Errorf("paused %v because of %q, want %q", got.Paused, got.PausedReason, test.want)
			}
		})
	}
}
