// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	echov1alpha1 "github.com/bellwether-dev/bellwether/testbed/echo/api/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/echo/operator/plan"
	"github.com/bellwether-dev/bellwether/testbed/echo/operator/render"
)

func server(replicas *int32) *echov1alpha1.EchoServer {
	return &echov1alpha1.EchoServer{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "hello", UID: "u1", Generation: 3},
		Spec:       echov1alpha1.EchoServerSpec{Message: "hi", Replicas: replicas, Uppercase: true},
	}
}

func TestObjects(t *testing.T) {
	tests := map[string]struct {
		fault    plan.Fault
		replicas *int32
		wantN    int32
		wantEnv  map[string]string
	}{
		"defaults": {plan.FaultNone, nil, 1, map[string]string{"ECHO_MESSAGE": "hi", "ECHO_UPPERCASE": "true",
			"ECHO_VERSION": "1.1.0", "ECHO_FAULT": ""}},
		"none": {plan.FaultNone, ptr.To[int32](0), 0,
			map[string]string{"ECHO_MESSAGE": "hi", "ECHO_UPPERCASE": "true", "ECHO_VERSION": "1.1.0",
				"ECHO_FAULT": ""}},
		"faulty": {plan.FaultHalf, ptr.To[int32](2), 2,
			map[string]string{"ECHO_MESSAGE": "hi", "ECHO_UPPERCASE": "true", "ECHO_VERSION": "1.1.0",
				"ECHO_FAULT": "half"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := render.Objects(plan.Input{Server: server(tt.replicas), Version: "1.1.0", Fault: tt.fault})
			spec := got.Deployment.Spec
			if *spec.Replicas != tt.wantN {
				t.Errorf("replicas = %d, want %d", *spec.Replicas, tt.wantN)
			}
			container := spec.Template.Spec.Containers[0]
			if want := "example.com/bellwether/echo-server:1.1.0"; *container.Image != want {
				t.Errorf("image = %q, want %q", *container.Image, want)
			}
			env := map[string]string{}
			for _, e := range container.Env {
				if e.ValueFrom == nil {
					env[*e.Name] = *e.Value
				}
			}
			if diff := cmp.Diff(tt.wantEnv, env); diff != "" {
				t.Errorf("env (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(spec.Selector.MatchLabels, got.Service.Spec.Selector); diff != "" {
				t.Errorf("Deployment and Service select differently:\n%s", diff)
			}
			for label, value := range got.Service.Spec.Selector {
				if spec.Template.Labels[label] != value {
					t.Errorf("pods lack label %s=%s", label, value)
				}
			}
		})
	}
}

// What is applied must not depend on the version of anything but its inputs.
func TestObjectsAreStable(t *testing.T) {
	in := plan.Input{Server: server(nil), Version: "1.0.0"}
	a, errA := json.Marshal(render.Objects(in))
	b, errB := json.Marshal(render.Objects(in))
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if diff := cmp.Diff(string(a), string(b)); diff != "" {
		t.Error(diff)
	}
}
