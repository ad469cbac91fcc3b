// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestGitOpsIsRecognised(t *testing.T) {
	t.Parallel()
	type marks = map[string]string
	const flux, kustomize, helm = "toolkit.fluxcd.io/", "kustomize.", "helm."
	for want, test := range map[string]struct{ labels, annotations marks }{
		"":               {labels: marks{"app.kubernetes.io/instance": "echo"}},
		"Argo CD (team)": {labels: marks{"argocd.argoproj.io/instance": "team"}},
		"Argo CD (app)":  {annotations: marks{"argocd.argoproj.io/tracking-id": "app:group/Kind:ns/name"}},
		"Flux (Kustomization flux/infra)": {labels: marks{kustomize + flux + "name": "infra",
			kustomize + flux + "namespace": "flux"}},
		"Flux (HelmRelease flux/echo)": {labels: marks{helm + flux + "name": "echo",
			helm + flux + "namespace": "flux"}},
		"Helm (release ops/echo)": {annotations: marks{"meta.helm.sh/release-name": "echo",
			"meta.helm.sh/release-namespace": "ops"}},
		"Helm":              {labels: marks{"app.kubernetes.io/managed-by": "Helm"}},
		"a SyncSet of Hive": {labels: marks{"hive.openshift.io/managed": "true"}},
	} {
		if got := findGitOpsTool(test.labels, test.annotations); got != want {
			t.Errorf("%+v: %q, want %q", test, got, want)
		}
	}
}

// TestEditedCSV: OLM writes a CSV under the names of its programs, and the agent under its own. Anybody else edited it.
func TestEditedCSV(t *testing.T) {
	t.Parallel()
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	for _, manager := range []string{"olm", "kubectl-edit", "catalog", FieldOwner} {
		csv.ManagedFields = append(csv.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager})
	}
	if diff := cmp.Diff([]string{"kubectl-edit"}, (&Inventory{}).describeCSV(csv).EditedBy); diff != "" {
		t.Errorf("edited by (-want +got):\n%s", diff)
	}
}
