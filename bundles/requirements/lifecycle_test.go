// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package requirements_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/requirements"
)

// TestKubernetesIsThatOfTheModule fails if k8s.io/api was updated and the constant was not.
func TestKubernetesIsThatOfTheModule(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatalf("read go.mod: %v", err)
	}
	found := regexp.MustCompile(`(?m)^\s*k8s\.io/api v0\.(\d+)\.`).FindSubmatch(text)
	if found == nil {
		t.Fatal("go.mod has no k8s.io/api")
	}
	if want := "1." + string(found[1]); requirements.Kubernetes != want {
		t.Errorf("Kubernetes is %s, and go.mod has %s", requirements.Kubernetes, want)
	}
}

const csv = `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: echo.v1.0.0}
spec: {version: 1.0.0}
`

func TestRemovedAPIs(t *testing.T) {
	for name, test := range map[string]struct{ apiVersion, kind, want string }{
		"of the validator's table":       {"policy/v1beta1", "PodSecurityPolicy", "1.25"},
		"of both tables":                 {"policy/v1beta1", "PodDisruptionBudget", "1.25"},
		"newer than the validator knows": {"flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema", "1.32"},
		"older than the validator knows": {"apps/v1beta2", "Deployment", "1.16"},
		"another group than Kubernetes'": {"example.com/v1beta1", "Ingress", ""},
		"an API that stays":              {"policy/v1", "PodDisruptionBudget", ""},
		"to be removed":                  {"storage.k8s.io/v1beta1", "VolumeAttributesClass", "1.37"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := bundles.FromManifests([][]byte{[]byte(csv), []byte("apiVersion: " + test.apiVersion + "\nkind: " +
				test.kind + "\nmetadata: {name: echo}\n")}, nil)
			if err != nil {
				t.Fatalf("read bundle: %v", err)
			}
			got := ""
			for _, removed := range requirements.RemovedAPIs(b) {
				got += removed.In
			}
			if got != test.want {
				t.Errorf("removed in %q, want %q", got, test.want)
			}
		})
	}
}

func TestRemovedResources(t *testing.T) {
	for name, test := range map[string]struct {
		rule rbacv1.PolicyRule
		want []requirements.RemovedResource
	}{
		"removed": {rbacv1.PolicyRule{APIGroups: []string{"policy"}, Resources: []string{"podsecuritypolicies"}},
			[]requirements.RemovedResource{{Group: "policy", Resource: "podsecuritypolicies", In: "1.25"}}},
		"in another version of the group": {rule: rbacv1.PolicyRule{APIGroups: []string{"policy"},
			Resources: []string{"poddisruptionbudgets"}}},
		"a wildcard": {rule: rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, requirements.RemovedResources(test.rule)); diff != "" {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
		})
	}
}
