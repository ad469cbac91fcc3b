// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver"
	"github.com/operator-framework/operator-registry/pkg/api"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/bundletest"
	"github.com/bellwether-dev/bellwether/engines/olmv0/steps"
)

// between separates the manifests of an input of FuzzModelIsOLM.
const between = "\n----\n"

// FuzzModelIsOLM gives the same manifests to Bellwether and to OLM's own code. Accepted manifests must mean the same
// to both: OLM makes the same steps from the text and from the served bundle, the steps have the permissions that
// Bellwether reports, and they do not differ from the served bundle.
func FuzzModelIsOLM(f *testing.F) {
	const role = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"r"},"rules":` +
		grab + `}`
	for _, seed := range [][]string{
		{harmless}, {greedy}, {greedy, role}, {harmless, kindBy("Kind", greedy)},
		{harmless, reference("catalogSourceName")},
		{strings.Replace(harmless, `"install":`, `"install":`+greedyInstall+`,"install":`, 1)},
		{strings.Replace(greedy, `"rules"`, `"rules":[],"Rules"`, 1)},
		{strings.Replace(greedy, `"clusterPermissions"`, `"permissions"`, 1), "kind: ConfigMap\napiVersion: v1\n" +
			"metadata: {name: c}\ndata: {a: &a b, c: *a}\n"},
		{strings.Replace(greedy, `"serviceAccountName":"echo"`, `"serviceAccountName":"default"`, 1),
			strings.Replace(role, "ClusterRole", "Role", 1)},
		{strings.Replace(harmless, `"deployments":[]`,
			`"deployments":[{"name":"d","spec":{"replicas":9007199254740993}}]`, 1)},
		{strings.Replace(greedy, `"name":"echo.v1.0.0"`, `"name":"`+strings.Repeat("echo.", 12)+`v1.0.0"`, 1)},
		{strings.Replace(greedy, `"clusterPermissions":[`, `"clusterPermissions":[{"serviceAccountName":"echo","rules":`+
			grab+`},`, 1), role, role},
		{harmless, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"a":"Yg=="},"x":1.0}`},
	} {
		f.Add([]byte(strings.Join(seed, between)))
	}
	f.Fuzz(func(t *testing.T, text []byte) { comparesWithOLM(t, bytes.Split(text, []byte(between))) })
}

// TestPublishedBundlesAreApproved gives published bundles of others to Bellwether and to OLM's own code.
func TestPublishedBundlesAreApproved(t *testing.T) {
	for _, name := range bundletest.Names(t) {
		if !comparesWithOLM(t, filesOf(t, name)) {
			t.Errorf("OLM or Bellwether does not take %s", name)
		}
	}
}

func filesOf(t *testing.T, name string) [][]byte {
	t.Helper()
	var manifests [][]byte
	files := bundletest.Files(t, name)
	paths, err := fs.Glob(files, "manifests/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := fs.ReadFile(files, path)
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, text)
	}
	return manifests
}

// comparesWithOLM compares what Bellwether and OLM read in the manifests. It returns false if one of them cannot use
// the manifests.
func comparesWithOLM(t *testing.T, manifests [][]byte) bool {
	t.Helper()
	b, err := bundles.FromManifests(manifests, nil)
	if err != nil || isRefused(b) {
		return false
	}
	served, err := b.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := stepsOfOLM(b.Name, served)
	if err != nil {
		return false
	}
	if raw, err := stepsOfOLM(b.Name, manifests); err == nil {
		if diff := cmp.Diff(raw, plan); diff != "" {
			t.Errorf("OLM reads what is served in another way (-text +served):\n%s", diff)
		}
	}
	if diff := cmp.Diff(rulesOf(t, b.Rights()), rulesOfOLM(t, plan)); diff != "" {
		t.Errorf("rights (-bundle +OLM):\n%s", diff)
	}
	content, err := steps.NewBundle(served, "")
	if err != nil {
		t.Fatal(err)
	}
	if why := content.FindDifference(steps.Plan{Namespace: "echo", Source: "c", CSV: b.Name, Steps: plan}); why != "" {
		t.Errorf("what OLM makes of what is served differs from it: %s", why)
	}
	return true
}

// isRefused reports whether every local policy refuses a bundle.
func isRefused(b *bundles.Bundle) bool {
	return slices.ContainsFunc(b.Objects, func(o *bundles.Object) bool { return o.FindMisspeltField() != "" }) ||
		slices.ContainsFunc(b.Rights(), func(r bundles.Right) bool {
			return strings.HasSuffix(r.Unknown, "cannot be read")
		})
}

// stepsOfOLM returns the steps that OLM makes of manifests. Only a manifest in JSON may be the ClusterServiceVersion.
func stepsOfOLM(name string, manifests [][]byte) ([]*operatorsv1alpha1.Step, error) {
	b := &api.Bundle{CsvName: name}
	for _, m := range manifests {
		if bundles.IsCSV(m) {
			b.CsvJson = string(m)
		}
		b.Object = append(b.Object, string(m))
	}
	return resolver.NewStepsFromBundle(b, "echo", "", "c", "echo")
}

// rulesOf returns the rules of the roles in a bundle, sorted.
func rulesOf(t *testing.T, rights []bundles.Right) []string {
	t.Helper()
	var out []string
	for _, r := range rights {
		kind, _, _ := strings.Cut(r.Name, " ")
		switch {
		case r.Unknown != "" || slices.Contains([]bundles.Source{bundles.FromWebhook, bundles.FromAPI,
			bundles.FromObject}, r.Source):
			continue // no rule of RBAC
		case r.Source == bundles.FromPermissions:
			kind = "Role"
		case r.Source == bundles.FromClusterPermissions:
			kind = "ClusterRole"
		}
		out = append(out, kind+" "+textOf(t, r.Rule))
	}
	slices.Sort(out)
	return out
}

func rulesOfOLM(t *testing.T, plan []*operatorsv1alpha1.Step) []string {
	t.Helper()
	var out []string
	for _, step := range plan {
		if step.Resource.Kind != "Role" && step.Resource.Kind != "ClusterRole" {
			continue
		}
		var role rbacv1.ClusterRole
		if err := json.Unmarshal([]byte(step.Resource.Manifest), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			out = append(out, step.Resource.Kind+" "+textOf(t, rule))
		}
	}
	slices.Sort(out)
	return out
}

func textOf(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
