// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestPart compares the request to the API server: it contains the fields that are set, and no
// null, which is the encoding of a zero time.
func TestPart(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	install := &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", UID: "u",
		ResourceVersion: "7", Labels: map[string]string{"others": "label"}}}
	part := Part{Object: install, Spec: struct {
		Holds []v1alpha1.VersionHold `json:"holds"`
		Since *metav1.Time           `json:"since,omitempty"`
	}{
		Holds: []v1alpha1.VersionHold{{Version: "1.0.0", Reason: "bad"}},
		Since: &metav1.Time{Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)},
	}}
	got, err := part.buildConfiguration(fake.NewClientBuilder().WithScheme(scheme).Build())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "bellwether.dev/v1alpha1", "kind": "OperatorInstall",
		"metadata": map[string]any{"namespace": "n", "name": "a", "uid": "u", "resourceVersion": "7"},
		"spec": map[string]any{
			"holds": []any{map[string]any{"version": "1.0.0", "reason": "bad"}}, "since": "2026-03-01T12:00:00Z",
		},
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}
