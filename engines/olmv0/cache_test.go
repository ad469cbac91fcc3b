// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStripCSV checks that the cache keeps only the fields of a CSV that are read.
func TestStripCSV(t *testing.T) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	csv.Name = "echo.v1.0.0"
	csv.Annotations = map[string]string{"alm-examples": "[]"}
	csv.Spec.Replaces, csv.Spec.Description = "echo.v0.9.0", "long"
	csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: "echos.example.com",
		Version: "v1", Kind: "Echo", Description: "long"}}
	csv.Spec.CustomResourceDefinitions.Required = []operatorsv1alpha1.CRDDescription{{Name: "dbs.example.com",
		Version: "v1", Kind: "DB", Description: "long"}}
	csv.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "olm", Subresource: "status", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:status":{}}`)}},
		{Manager: "catalog", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:version":{}}}`)}},
		{Manager: "kubectl-edit", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{}}`)}},
	}
	replicas := int32(2)
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{{Name: "echo",
		Label: map[string]string{"a": "b"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas, MinReadySeconds: 3}}}
	path := "/validate"
	csv.Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{
		{Type: operatorsv1alpha1.ValidatingAdmissionWebhook, GenerateName: "v.echo.example.com", WebhookPath: &path,
			DeploymentName: "echo"},
	}
	want := &operatorsv1alpha1.ClusterServiceVersion{}
	want.Name, want.Spec.Replaces = "echo.v1.0.0", "echo.v0.9.0"
	want.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: "echos.example.com",
		Version: "v1", Kind: "Echo"}}
	want.Spec.CustomResourceDefinitions.Required = []operatorsv1alpha1.CRDDescription{{Name: "dbs.example.com"}}
	want.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "catalog", FieldsV1: specFields}}
	want.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{{Name: "echo",
		Spec: appsv1.DeploymentSpec{Replicas: &replicas}}}
	want.Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{
		{Type: operatorsv1alpha1.ValidatingAdmissionWebhook, GenerateName: "v.echo.example.com"},
	}
	got, err := stripCSV(csv)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("stripped (-want +got):\n%s", diff)
	}
}
