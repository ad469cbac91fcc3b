// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestProgressReportsDoNotWake compares an install that was upgraded with a copy, as
// the cache delivers them when an agent reports its progress.
func TestProgressReportsDoNotWake(t *testing.T) {
	t.Parallel()
	before := &v1alpha1.OperatorInstall{Spec: v1alpha1.OperatorInstallSpec{Admission: &v1alpha1.Admission{
		RolloutUID: "uid-2", Hash: "new", Previous: &v1alpha1.PreviousRelease{Version: "1.0.0"}}}}
	after := before.DeepCopy()
	after.Status.OLM = &v1alpha1.OLMStatus{}
	after.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "agent"}}
	if installChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("a progress report wakes the rollout")
	}
	after.Spec.Admission.Previous.Version = "1.1.0"
	if !installChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("another previous release does not wake the rollout")
	}
}

// TestWhatRequeues verifies that a rollout that may still admit clusters is reconciled, in any
// phase, when an object changes that admissions depend on.
func TestWhatRequeues(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	wakes := map[v1alpha1.RolloutPhase]bool{"": true, v1alpha1.RolloutPending: true, v1alpha1.RolloutProgressing: true,
		v1alpha1.RolloutPaused: true, v1alpha1.RolloutHalted: true, v1alpha1.RolloutSucceeded: true,
		v1alpha1.RolloutAborted: false, v1alpha1.RolloutSuperseded: false, v1alpha1.RolloutRolledBack: false}
	operator := &v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "echo"}}
	for phase, want := range wakes {
		ro := &v1alpha1.OperatorRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "echo-1"},
			Spec: v1alpha1.OperatorRolloutSpec{Operator: v1alpha1.LocalReference{Name: "echo"}}}
		ro.Status.Phase, ro.Status.Policies = phase, []v1alpha1.AppliedPolicy{{Name: "pace"}}
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(ro, operator).Build()
		r := &Reconciler{Client: c}
		for name, requests := range map[string]func(context.Context, client.Object) []reconcile.Request{
			"a change of the operator": func(ctx context.Context, _ client.Object) []reconcile.Request {
				return r.mapOperatorToRollouts(ctx, operator)
			},
			"a change of windows": r.mapToOpenRollouts,
			"a change of a policy": func(ctx context.Context, _ client.Object) []reconcile.Request {
				return r.mapPolicyToRollouts(ctx, &v1alpha1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: "pace"}})
			},
			"a change of a cluster": func(ctx context.Context, _ client.Object) []reconcile.Request {
				return r.mapClusterToRollouts(ctx, &v1alpha1.FleetCluster{})
			},
		} {
			if got := len(requests(t.Context(), nil)) == 1; got != want {
				t.Errorf("%s wakes a rollout in phase %q: %t, want %t", name, phase, got, want)
			}
		}
	}
}
