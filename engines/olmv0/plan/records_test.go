// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestWhatIsKept writes a record and reads it again. It is outdated by another admission
// and by other holds, but not by being recovered.
func TestWhatIsKept(t *testing.T) {
	install := &v1alpha1.OperatorInstall{Spec: v1alpha1.OperatorInstallSpec{
		Operator: v1alpha1.OperatorReference{Namespace: "fleet", Name: "echo"},
		Admission: &v1alpha1.Admission{Rollout: "echo-3", RolloutUID: "uid", Revision: 3, Wave: "rest", Hash: "hash",
			AdmittedAt: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), Recovered: true,
			Release:  v1alpha1.Release{Package: "echo", Version: "1.1.0"},
			Rollback: &v1alpha1.AdmissionRollback{}, Previous: &v1alpha1.PreviousRelease{Version: "1.0.0"}},
		Holds: []v1alpha1.VersionHold{{Version: "1.2.0", Reason: "it loses data"}},
	}}
	rendered := &unstructured.Unstructured{Object: map[string]any{}}
	rendered.SetAnnotations(map[string]string{v1alpha1.AnnotationSpecHash: "spec"})
	factsBuilder{Facts: &Facts{Input: Input{Install: install},
		Rendered: map[string]*unstructured.Unstructured{KindSubscription: rendered}}}.addRecord()
	read := ReadRecord(rendered)
	if read == nil || read.Operator != install.Spec.Operator || read.Admission.Recovered {
		t.Fatalf("%+v", read)
	}
	if diff := cmp.Diff(install.Spec.Holds, read.Holds); diff != "" {
		t.Errorf("holds (-want +got):\n%s", diff)
	}
	outdated := func(change func(*v1alpha1.OperatorInstallSpec)) bool {
		changed := install.DeepCopy()
		change(&changed.Spec)
		var observed Subscription
		setRecordFlags(&observed, rendered, changed)
		return observed.Outdated
	}
	if outdated(func(*v1alpha1.OperatorInstallSpec) {}) ||
		outdated(func(s *v1alpha1.OperatorInstallSpec) { s.Admission.Recovered = false }) {
		t.Error("the record is outdated at once")
	}
	if !outdated(func(s *v1alpha1.OperatorInstallSpec) { s.Admission.Revision++ }) ||
		!outdated(func(s *v1alpha1.OperatorInstallSpec) { s.Holds = nil }) {
		t.Error("a record of something else is current")
	}
}

// TestRubbishIsNotKept checks that an invalid record counts as missing.
func TestRubbishIsNotKept(t *testing.T) {
	for _, text := range []string{"", "rubbish", "{}", `{"operator":{"name":"echo"}}`, "[]", "null"} {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetAnnotations(map[string]string{v1alpha1.AnnotationKept: text})
		if r := ReadRecord(o); r != nil {
			t.Errorf("%q: %+v", text, r)
		}
	}
}
