// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/fleet/plan"
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
		change              func(*plan.Input)
	}{
		"none":   {},
		"begins": {reported: veto("audit", metav1.Time{}), want: veto("audit", at)},
		"goes on, with another reason": {reported: veto("holidays", metav1.Time{}), was: veto("audit", before),
			want: veto("holidays", before)},
		"the agent cannot set since when": {reported: veto("audit", before), want: veto("audit", at)},
		"ends":                            {was: veto("audit", before), ended: &at},
		"the agent is gone: it goes on": {was: veto("audit", before), want: veto("audit", before),
			change: func(in *plan.Input) { in.Lease.Found = false }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := healthy()
			in.Cluster.Status.Veto, in.Lease.Veto = test.was, test.reported
			if test.change != nil {
				test.change(&in)
			}
			got := plan.Next(in).Status
			if diff := cmp.Diff(test.want, got.Veto); diff != "" {
				t.Errorf("veto (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.ended, got.VetoEndedAt); diff != "" {
				t.Errorf("ended (-want +got):\n%s", diff)
			}
		})
	}
}
