// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	echov1alpha1 "github.com/bellwether-dev/bellwether/testbed/echo/api/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/echo/operator/plan"
)

func server(replicas *int32) *echov1alpha1.EchoServer {
	return &echov1alpha1.EchoServer{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "hello", UID: "u1", Generation: 3},
		Spec:       echov1alpha1.EchoServerSpec{Message: "hi", Replicas: replicas, Uppercase: true},
	}
}

func TestStatus(t *testing.T) {
	type conditions map[string]metav1.ConditionStatus
	tests := map[string]struct {
		replicas int32
		servers  plan.Servers
		want     conditions
	}{
		"just applied": {1, plan.Servers{Generation: 1}, conditions{"Available": "False", "Progressing": "True"}},
		"rolled out": {2, plan.Servers{Generation: 1, ObservedGeneration: 1, Total: 2, Updated: 2, Ready: 2,
			Available: 2}, conditions{"Available": "True", "Progressing": "False"}},
		"stale status": {2, plan.Servers{Generation: 2, ObservedGeneration: 1, Total: 2, Updated: 2, Ready: 2,
			Available: 2}, conditions{"Available": "True", "Progressing": "True"}},
		"old pod left": {1, plan.Servers{Generation: 2, ObservedGeneration: 2, Total: 2, Updated: 1, Ready: 2,
			Available: 2}, conditions{"Available": "True", "Progressing": "True"}},
		"none wanted": {0, plan.Servers{Generation: 1, ObservedGeneration: 1},
			conditions{"Available": "True", "Progressing": "False"}},
		"crashing": {1, plan.Servers{Generation: 1, ObservedGeneration: 1, Total: 1, Updated: 1},
			conditions{"Available": "False", "Progressing": "True"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			es := server(&tt.replicas)
			st := plan.Status(plan.Input{Server: es, Version: "1.0.0"}, tt.servers)
			got := conditions{}
			for _, c := range st.Conditions {
				got[c.Type] = c.Status
				if c.ObservedGeneration != es.Generation {
					t.Errorf("%s speaks of generation %d, want %d", c.Type, c.ObservedGeneration, es.Generation)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			es.Status = st
			again := plan.Status(plan.Input{Server: es, Version: "1.0.0"}, tt.servers)
			if diff := cmp.Diff(st, again, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("a second pass changes the status:\n%s", diff)
			}
		})
	}
}

func TestParseFault(t *testing.T) {
	tests := map[string]struct {
		in     string
		want   plan.Fault
		wantOK bool
	}{
		"none": {"", plan.FaultNone, true}, "half": {"half", plan.FaultHalf, true},
		"typo": {"hlaf", plan.FaultNone, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := plan.ParseFault(tt.in)
			if got != tt.want || (err == nil) != tt.wantOK {
				t.Errorf("ParseFault(%q) = %q, %v", tt.in, got, err)
			}
		})
	}
}
