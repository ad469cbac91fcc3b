// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestObserveReady checks that an operator is not Ready until the agent has reported on a new admission, and that it
// stays Ready if the hub writes other fields, such as the services to probe.
func TestObserveReady(t *testing.T) {
	t.Parallel()
	type install = v1alpha1.OperatorInstall
	admit := func(revision int64, hash string) func(*install) {
		return func(o *install) {
			o.Generation++
			o.Spec.Admission = &v1alpha1.Admission{Revision: revision, Hash: hash}
		}
	}
	report := func(status metav1.ConditionStatus) func(*install) {
		return func(o *install) {
			o.Status.ObservedGeneration, o.Status.ObservedRevision = o.Generation, o.Spec.Admission.Revision
			o.Status.SucceededHash = o.Spec.Admission.Hash
			o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status,
				ObservedGeneration: o.Generation}}
		}
	}
	probe := func(o *install) {
		o.Generation++
		o.Spec.Services = []v1alpha1.ProbedService{{Name: "echo"}}
	}
	unfinished := func(o *install) {
		report(metav1.ConditionTrue)(o)
		o.Status.SucceededHash = ""
	}
	for name, test := range map[string]struct {
		steps []func(*install)
		want  bool
	}{
		"not admitted":              {nil, false},
		"not reported":              {[]func(*install){admit(1, "a")}, false},
		"reported":                  {[]func(*install){admit(1, "a"), report(metav1.ConditionTrue)}, true},
		"not Ready":                 {[]func(*install){admit(1, "a"), report(metav1.ConditionFalse)}, false},
		"a service is to be probed": {[]func(*install){admit(1, "a"), report(metav1.ConditionTrue), probe}, true},
		"so it is, and not Ready":   {[]func(*install){admit(1, "a"), report(metav1.ConditionFalse), probe}, false},
		"so it is, and not updated": {[]func(*install){admit(1, "a"), unfinished, probe}, false},
		"admitted to another release": {[]func(*install){admit(1, "a"), report(metav1.ConditionTrue),
			admit(2, "b")}, false},
		"admitted to the same release by another rollout": {[]func(*install){admit(1, "a"),
			report(metav1.ConditionTrue), admit(2, "a")}, false},
		"admitted to another release and back": {[]func(*install){admit(1, "a"), report(metav1.ConditionTrue),
			admit(2, "b"), admit(3, "a")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &install{}
			for _, step := range test.steps {
				step(o)
			}
			if got := ObserveInstall(o).Ready; got != test.want {
				t.Errorf("Ready %v, want %v", got, test.want)
			}
		})
	}
}
