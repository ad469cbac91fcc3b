// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// withoutInventory are the values of a hub without an inventory. withInventory has one.
const (
	withoutInventory = "hub: {enabled: true, replicas: 1, bindAddress: $(POD_IP)}"
	withInventory    = "hub: {enabled: true, replicas: 1, bindAddress: $(POD_IP), inventory: {enabled: true, " +
		"tlsSecret: inventory-tls, storage: {storageClassName: fast, size: 10Gi}, " +
		"maxAge: 720h, maxSize: 5Gi, port: 9443}}"
)

// TestInventory compares the objects that the inventory adds or changes with a golden file.
func TestInventory(t *testing.T) {
	before, err := render(t, withFixedRules(load(t)), withoutInventory)
	if err != nil {
		t.Fatal(err)
	}
	after, err := render(t, withFixedRules(load(t)), withInventory)
	if err != nil {
		t.Fatal(err)
	}
	for _, manifest := range after {
		decodes(t, manifest)
	}
	compareGolden(t, "inventory", slices.DeleteFunc(after, func(m string) bool { return slices.Contains(before, m) }))
}

// TestInventoryVolume verifies which claim the hub mounts, and that its group may write to the volume.
func TestInventoryVolume(t *testing.T) {
	openShift := chartutil.DefaultCapabilities.Copy()
	openShift.APIVersions = append(openShift.APIVersions, "security.openshift.io/v1")
	for name, test := range map[string]struct {
		values       string
		capabilities *chartutil.Capabilities
		claim        string
		isMade       bool
		group        *int64
	}{
		"made": {"hub: {enabled: true, replicas: 1, inventory: {enabled: true}}", chartutil.DefaultCapabilities,
			"bellwether-hub-inventory", true, ptr.To[int64](65532)},
		"made under another name": {"{nameOverride: sheep, hub: {enabled: true, replicas: 1, " +
			"inventory: {enabled: true}}}", chartutil.DefaultCapabilities, "sheep-hub-inventory", true,
			ptr.To[int64](65532)},
		"there": {"hub: {enabled: true, replicas: 1, inventory: {enabled: true, storage: {existingClaim: history}}}",
			chartutil.DefaultCapabilities, "history", false, ptr.To[int64](65532)},
		"without a group": {"hub: {enabled: true, replicas: 1, inventory: {enabled: true, fsGroup: 0}}",
			chartutil.DefaultCapabilities, "bellwether-hub-inventory", true, nil},
		"group of all pods": {"{podSecurityContext: {fsGroup: 7}, hub: {enabled: true, replicas: 1, " +
			"inventory: {enabled: true}}}", chartutil.DefaultCapabilities, "bellwether-hub-inventory", true,
			ptr.To[int64](7)},
		"on OpenShift": {"hub: {enabled: true, replicas: 1, inventory: {enabled: true}}", openShift,
			"bellwether-hub-inventory", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			manifests, err := renderFor(t, load(t), test.values, test.capabilities)
			if err != nil {
				t.Fatal(err)
			}
			var made []string
			var hub appsv1.Deployment
			for _, manifest := range manifests {
				switch key := sortKey(t, manifest); {
				case strings.HasPrefix(key, "PersistentVolumeClaim/"):
					made = append(made, decode[corev1.PersistentVolumeClaim](t, manifest).Name)
				case strings.HasPrefix(key, "Deployment/"):
					hub = decode[appsv1.Deployment](t, manifest)
				}
			}
			if want := []string{test.claim}; test.isMade != slices.Equal(made, want) || !test.isMade && made != nil {
				t.Errorf("made %v, want %v: %t", made, want, test.isMade)
			}
			pod := hub.Spec.Template.Spec
			i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil })
			if i < 0 || pod.Volumes[i].PersistentVolumeClaim.ClaimName != test.claim {
				t.Errorf("the volumes are %v, want one of the claim %s", pod.Volumes, test.claim)
			}
			if diff := cmp.Diff(test.group, pod.SecurityContext.FSGroup); diff != "" {
				t.Errorf("group (-want +got):\n%s", diff)
			}
		})
	}
}

// TestInventoryReplacesTheStrategy verifies that a release without an inventory can be upgraded to one with it: Helm's
// patch removes the parameters of the strategy RollingUpdate, which the API server set. Recreate permits none.
func TestInventoryReplacesTheStrategy(t *testing.T) {
	encode := func(d appsv1.Deployment) []byte {
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	before, _ := parts(t, withoutInventory)
	after, _ := parts(t, withInventory)
	current := *before[0].DeepCopy()
	current.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{}}
	meta, err := strategicpatch.NewPatchMetaFromStruct(appsv1.Deployment{})
	if err != nil {
		t.Fatal(err)
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(
		encode(before[0]),
		encode(after[0]),
		encode(current),
		meta,
		true,
	)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := strategicpatch.StrategicMergePatch(encode(current), patch, appsv1.Deployment{})
	if err != nil {
		t.Fatal(err)
	}
	var got appsv1.Deployment
	if err := json.Unmarshal(patched, &got); err != nil {
		t.Fatal(err)
	}
	want := appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	if diff := cmp.Diff(want, got.Spec.Strategy); diff != "" {
		t.Errorf("strategy (-want +got):\n%s", diff)
	}
}

// TestInventoryNotes verifies that the notes say how to reach the inventory.
func TestInventoryNotes(t *testing.T) {
	for values, want := range map[string]string{
		withoutInventory: "",
		withInventory:    "export BELLWETHER_INVENTORY=https://localhost:9443",
		"hub: {enabled: true, replicas: 1, inventory: {enabled: true}}": "export " +
			"BELLWETHER_INVENTORY=http://localhost:8443",
	} {
		notes := renderNotes(t, load(t), values)
		if says := strings.Contains(notes, "BELLWETHER_INVENTORY"); says != (want != "") ||
			!strings.Contains(notes, want) {
			t.Errorf("the notes for %q are %q, want them to have %q", values, notes, want)
		}
	}
}

// renderNotes returns what Helm shows after it has installed the chart with the values.
func renderNotes(t *testing.T, loaded *chart.Chart, values string) string {
	t.Helper()
	var overrides map[string]any
	if err := yaml.Unmarshal([]byte(values), &overrides); err != nil {
		t.Fatal(err)
	}
	options := chartutil.ReleaseOptions{Name: "fleet", Namespace: "bellwether-system", IsInstall: true, Revision: 1}
	all, err := chartutil.ToRenderValues(loaded, overrides, options, chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(loaded, all)
	if err != nil {
		t.Fatal(err)
	}
	return rendered["bellwether/templates/NOTES.txt"]
}
