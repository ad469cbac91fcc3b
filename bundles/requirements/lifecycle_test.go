// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package requirements_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
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

// bundleWith returns a bundle with an object of a kind.
func bundleWith(t *testing.T, apiVersion, kind string) *bundles.Bundle {
	t.Helper()
	object := "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: echo}\n"
	b, err := bundles.FromManifests([][]byte{[]byte(csv), []byte(object)}, nil)
	if err != nil {
		t.Fatalf("read bundle: %v", err)
	}
	return b
}

func TestRemovedAPIs(t *testing.T) {
	for name, test := range map[string]struct{ apiVersion, kind, want string }{
		"without a type in k8s.io/api":   {"policy/v1beta1", "PodSecurityPolicy", "1.25"},
		"with a type":                    {"policy/v1beta1", "PodDisruptionBudget", "1.25"},
		"newer than the validator knows": {"flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema", "1.32"},
		"older than the validator knows": {"apps/v1beta2", "Deployment", "1.16"},
		"another group than Kubernetes'": {"example.com/v1beta1", "Ingress", ""},
		"an API that stays":              {"policy/v1", "PodDisruptionBudget", ""},
		"to be removed":                  {"storage.k8s.io/v1beta1", "VolumeAttributesClass", "1.37"},
	} {
		t.Run(name, func(t *testing.T) {
			b := bundleWith(t, test.apiVersion, test.kind)
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

// TestRemovedAPIsOfTheValidator compares the removals with those that OLM's own validator knows. It tells of them in
// messages only.
func TestRemovedAPIsOfTheValidator(t *testing.T) {
	for apiVersion, kinds := range map[string][]string{
		"scheduling.k8s.io/v1beta1":         {"PriorityClass"},
		"rbac.authorization.k8s.io/v1beta1": {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"},
		"apiextensions.k8s.io/v1beta1":      {"CustomResourceDefinition"},
		"apiregistration.k8s.io/v1beta1":    {"APIService"},
		"authentication.k8s.io/v1beta1":     {"TokenReview"},
		"authorization.k8s.io/v1beta1": {"LocalSubjectAccessReview", "SelfSubjectAccessReview",
			"SubjectAccessReview"},
		"admissionregistration.k8s.io/v1beta1": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"},
		"coordination.k8s.io/v1beta1":          {"Lease"},
		"extensions/v1beta1":                   {"Ingress"},
		"networking.k8s.io/v1beta1":            {"Ingress", "IngressClass"},
		"storage.k8s.io/v1beta1":               {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"},
		"certificates.k8s.io/v1beta1":          {"CertificateSigningRequest"},
		"batch/v1beta1":                        {"CronJob"},
		"discovery.k8s.io/v1beta1":             {"EndpointSlice"},
		"events.k8s.io/v1beta1":                {"Event"},
		"autoscaling/v2beta1":                  {"HorizontalPodAutoscaler"},
		"autoscaling/v2beta2":                  {"HorizontalPodAutoscaler"},
		"policy/v1beta1":                       {"PodDisruptionBudget", "PodSecurityPolicy"},
		"node.k8s.io/v1beta1":                  {"RuntimeClass"},
	} {
		for _, kind := range kinds {
			b := bundleWith(t, apiVersion, kind)
			want := validatorRemoval(b)
			if got := requirements.RemovedAPIs(b); want == "" || len(got) != 1 || got[0].In != want {
				t.Errorf("%s of %s: %v, and the validator says %q", kind, apiVersion, got, want)
			}
		}
	}
}

// validatorRemoval returns in which version of Kubernetes the validator says that an API of the bundle is gone.
func validatorRemoval(b *bundles.Bundle) string {
	checked := &manifests.Bundle{Name: b.Name, CSV: b.CSV}
	for _, o := range b.Objects {
		checked.Objects = append(checked.Objects, o.Unstructured)
		if d := requirements.DecodeV1beta1CRD(o); d != nil {
			checked.V1beta1CRDs = append(checked.V1beta1CRDs, d)
		}
	}
	for _, result := range validation.AlphaDeprecatedAPIsValidator.Validate(checked) {
		for _, e := range slices.Concat(result.Errors, result.Warnings) {
			_, version, found := strings.Cut(e.Error(), "removed in v")
			version, _, _ = strings.Cut(version, ". ")
			if found && version != "" { // other messages are about spec.minKubeVersion
				return version
			}
		}
	}
	return ""
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
