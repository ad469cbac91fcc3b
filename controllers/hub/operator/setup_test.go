// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestProgressReportsDoNotWake compares an install that was upgraded and is backed up
// with a copy, as the cache delivers them when an agent reports its progress.
func TestProgressReportsDoNotWake(t *testing.T) {
	t.Parallel()
	before := &v1alpha1.OperatorInstall{Spec: v1alpha1.OperatorInstallSpec{Admission: &v1alpha1.Admission{
		RolloutUID: "uid-2", Hash: "new", Previous: &v1alpha1.PreviousRelease{Version: "1.0.0"}},
		Backup: &v1alpha1.BackupPolicy{Schedule: "@daily"}}}
	after := before.DeepCopy()
	after.Status.OLM = &v1alpha1.OLMStatus{}
	after.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "agent"}}
	if installChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("a progress report wakes the operator")
	}
	after.Spec.Admission.Previous.Version = "1.1.0"
	if !installChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("another previous release does not wake the operator")
	}
}
