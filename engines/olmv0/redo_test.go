// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRedone(t *testing.T) {
	t.Parallel()
	step := func(csv, kind string) *operatorsv1alpha1.Step {
		return &operatorsv1alpha1.Step{Resolving: csv, Status: operatorsv1alpha1.StepStatusCreated,
			Resource: operatorsv1alpha1.StepResource{Kind: kind, Name: "echo"}}
	}
	p := &operatorsv1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}}
	p.Status.Plan = []*operatorsv1alpha1.Step{step("echo.v1.0.0", "ClusterServiceVersion"), nil,
		step("echo.v1.0.0", "CustomResourceDefinition"), step("echo.v1.0.0", "Subscription"),
		step("echo.v1.0.0", "Service"), step("other.v1.0.0", "Service"), step("echo.v1.0.0", "PodDisruptionBudget")}
	want := []operation{
		{"test", "/metadata/resourceVersion", "7"},
		{"add", "/status/phase", operatorsv1alpha1.InstallPlanPhaseInstalling},
		{"add", "/status/plan/4/status", operatorsv1alpha1.StepStatusUnknown},
		{"add", "/status/plan/6/status", operatorsv1alpha1.StepStatusUnknown},
	}
	if diff := cmp.Diff(want, newRedoPatch(p, "echo.v1.0.0")); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
	p.Status.StartTime = &metav1.Time{}
	p.Status.Conditions = []operatorsv1alpha1.InstallPlanCondition{{}}
	got := newRedoPatch(p, "echo.v1.0.0")
	removed := []operation{{Op: "remove", Path: "/status/startTime"}, {Op: "remove", Path: "/status/conditions"}}
	if diff := cmp.Diff(removed, got[2:4]); diff != "" {
		t.Errorf("what is removed (-want +got):\n%s", diff)
	}
}
