// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestCorrectKeepsWhatTheBundleDoesNotSet changes a Deployment in several ways at
// once: only what the bundle sets is put back.
func TestCorrectKeepsWhatTheBundleDoesNotSet(t *testing.T) {
	config := &v1alpha1.OperatorConfig{Env: []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}}
	for _, bundle := range []string{"grafana-operator/5.9.2", "etcd/0.9.2", "addon-operator/1.0.0"} {
		t.Run(bundle, func(t *testing.T) {
			csv := readPublishedCSV(t, bundle)
			expected, err := ReadExpectedFields(csv, config)
			if err != nil {
				t.Fatal(err)
			}
			want := installed(csv, config)
			want.Spec.Template.Labels["example.com/team"] = "a"
			want.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = "today"
			want.Spec.Template.Spec.Containers = append(want.Spec.Template.Spec.Containers,
				corev1.Container{Name: "sidecar", Image: "example.com/sidecar"})
			got := want.DeepCopy()
			pod := &got.Spec.Template.Spec
			pod.ServiceAccountName = "admin"
			pod.Containers[0].Image = "example.com/other"
			for i, v := range pod.Containers[0].Env {
				if v.Name == "LEVEL" {
					pod.Containers[0].Env[i] = corev1.EnvVar{Name: "LEVEL", ValueFrom: &corev1.EnvVarSource{
						FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}
				}
			}
			fields := compare(t, expected, csv, got, false)
			correct(t, csv, config, fields, csv.DeepCopy(), got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%v were put back (-want +got):\n%s", fields, diff)
			}
		})
	}
}

// TestCorrectPutsBackWhatIsGone has elements and maps that were removed.
func TestCorrectPutsBackWhatIsGone(t *testing.T) {
	csv := readPublishedCSV(t, "grafana-operator/5.9.2")
	expected, err := ReadExpectedFields(csv, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := installed(csv, nil)
	got := want.DeepCopy()
	pod := &got.Spec.Template.Spec
	pod.Containers[0].Env = nil
	pod.Containers[0].ReadinessProbe = nil
	pod.SecurityContext = nil
	fields := compare(t, expected, csv, got, false)
	correct(t, csv, nil, fields, csv.DeepCopy(), got)
	if left := compare(t, expected, csv, got, false); len(fields) == 0 || len(left) > 0 {
		t.Errorf("of %v these still differ: %v", fields, left)
	}
}
