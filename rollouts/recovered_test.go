// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"testing"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestObserveRecovered: an install is not known before its agent has reported, nor while
// its cluster keeps something that the hub does not have. An agent with an old view may
// report what the hub has; that is nothing new.
func TestObserveRecovered(t *testing.T) {
	admission := func(revision int64, uid string, recovered bool) *v1alpha1.Admission {
		return &v1alpha1.Admission{Revision: revision, RolloutUID: uid, Recovered: recovered}
	}
	type seen struct {
		recovered  int64
		unreported bool
	}
	for name, test := range map[string]struct {
		admission *v1alpha1.Admission
		observed  int64
		kept      *v1alpha1.Admission
		want      seen
	}{
		"just made":                  {want: seen{0, true}},
		"nothing kept":               {observed: 1, want: seen{0, false}},
		"kept":                       {observed: 1, kept: admission(7, "lost", false), want: seen{7, true}},
		"recovered":                  {admission(7, "lost", true), 2, nil, seen{7, false}},
		"recovered, an old view":     {admission(7, "lost", true), 1, admission(7, "lost", false), seen{7, false}},
		"admitted":                   {admission(8, "new", false), 3, nil, seen{0, false}},
		"admitted, an old view":      {admission(8, "new", false), 2, admission(7, "lost", false), seen{0, false}},
		"an old backup":              {admission(5, "old", false), 2, admission(7, "lost", false), seen{7, true}},
		"an old backup that goes on": {admission(7, "new", false), 2, admission(7, "lost", false), seen{7, true}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &v1alpha1.OperatorInstall{}
			o.Spec.Admission, o.Status.ObservedGeneration = test.admission, test.observed
			if test.kept != nil {
				o.Status.Kept = &v1alpha1.KeptAdmission{Admission: *test.kept}
			}
			if got := ObserveInstall(o); (seen{got.Recovered, got.Unreported}) != test.want {
				t.Errorf("recovered %d, unreported %v", got.Recovered, got.Unreported)
			}
		})
	}
}
