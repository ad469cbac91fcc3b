// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/charts"
)

func definitions(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	all, err := charts.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// renderedCRDs are the CRDs that the chart makes of the values, by their names.
func renderedCRDs(t *testing.T, values string) map[string]*unstructured.Unstructured {
	t.Helper()
	manifests, err := render(t, load(t), values)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*unstructured.Unstructured{}
	for _, manifest := range manifests {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), object); err != nil {
			t.Fatal(err)
		}
		if object.GetKind() == "CustomResourceDefinition" {
			out[object.GetName()] = object
		}
	}
	return out
}

// TestCRDsOfEachPart verifies that the hub has all CRDs, an agent has the CRD of EndpointProbes,
// and components outside the cluster have none.
func TestCRDsOfEachPart(t *testing.T) {
	all := []string{
		"alertsilences.bellwether.dev",
		"changewindows.bellwether.dev",
		"endpointprobes.bellwether.dev",
		"fleetaccesses.bellwether.dev",
		"fleetclusters.bellwether.dev",
		"fleetfreezes.bellwether.dev",
		"managedoperators.bellwether.dev",
		"operatorbackups.bellwether.dev",
		"operatorcatalogs.bellwether.dev",
		"operatorinstalls.bellwether.dev",
		"operatorrollouts.bellwether.dev",
		"operatorscans.bellwether.dev",
		"operatorslos.bellwether.dev",
		"pagingpolicies.bellwether.dev",
		"rolloutpolicies.bellwether.dev",
	}
	probes := []string{"endpointprobes.bellwether.dev"}
	for name, c := range map[string]struct {
		values string
		want   []string
	}{
		"nothing": {"{}", nil},
		"hub":     {"hub: {enabled: true}", all},
		"agent":   {"agent: {enabled: true, cluster: prod}", probes},
		"both":    {both, all},
		"access":  {"agent: {enabled: true, accessOnly: true}", probes},
		"hosted": {"agent: {enabled: true, hosted: {enabled: true}, viewHost: views.example.com, " +
			"viewPorts: {last: 50102}}", nil},
		"switched off": {"{crds: {enabled: false}, hub: {enabled: true}}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := slices.Sorted(maps.Keys(renderedCRDs(t, c.values)))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("CRDs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRenderedCRDsAreTheGeneratedOnes: Helm adds metadata, and changes nothing else.
func TestRenderedCRDsAreTheGeneratedOnes(t *testing.T) {
	for keep, values := range map[bool]string{
		true:  "hub: {enabled: true}",
		false: "{crds: {keep: false}, hub: {enabled: true}}",
	} {
		rendered := renderedCRDs(t, values)
		for _, want := range definitions(t) {
			got := rendered[want.GetName()]
			if diff := cmp.Diff(want.Object["spec"], got.Object["spec"]); diff != "" {
				t.Errorf("%s (-generated +rendered):\n%s", want.GetName(), diff)
			}
			annotations := want.GetAnnotations()
			if keep {
				annotations["helm.sh/resource-policy"] = "keep"
			}
			if diff := cmp.Diff(annotations, got.GetAnnotations()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", want.GetName(), diff)
			}
		}
	}
}

// secrets keep the last Secret that was created.
type secrets struct {
	typedcorev1.SecretInterface
	last *corev1.Secret
}

func (s *secrets) Create(_ context.Context, secret *corev1.Secret, _ metav1.CreateOptions) (*corev1.Secret, error) {
	s.last = secret
	return secret, nil
}

// TestReleaseFitsASecret: Helm keeps a release in one Secret, with the chart and all manifests, so twice with the CRDs.
func TestReleaseFitsASecret(t *testing.T) {
	loaded := load(t)
	manifests, err := render(t, loaded, everything)
	if err != nil {
		t.Fatal(err)
	}
	kept := &secrets{}
	stored := storage.Init(driver.NewSecrets(kept))
	if err := stored.Create(&release.Release{Name: "bellwether", Namespace: "bellwether-system", Version: 1,
		Chart: loaded, Info: &release.Info{Status: release.StatusDeployed},
		Manifest: strings.Join(manifests, "---\n")}); err != nil {
		t.Fatal(err)
	}
	size := 0
	for key, value := range kept.last.Data {
		size += len(key) + len(value)
	}
	t.Logf("the Secret has %d KiB", size>>10)
	// The values of users are stored too.
	if size > corev1.MaxSecretSize*3/4 {
		t.Errorf("the Secret of the release has %d KiB of %d: see decision 0068", size>>10, corev1.MaxSecretSize>>10)
	}
}
