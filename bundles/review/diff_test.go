// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/bundletest"
)

var update = flag.Bool("update", false, "write the golden files")

// csv is a bundle's ClusterServiceVersion with further fields of spec, and with those of the Deployment's pod.
func csv(spec, pod string) string {
	return fmt.Sprintf(`
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: a.v1.0.0}
spec: {version: 1.0.0, %s install: {strategy: deployment, spec: {deployments: [{name: d, spec: {selector: `+
		`{matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {%s}}}}], PERMISSIONS}}}
`, spec, pod)
}

func bundle(t *testing.T, manifests ...string) *bundles.Bundle {
	t.Helper()
	texts := make([][]byte, 0, len(manifests))
	for _, m := range manifests {
		texts = append(texts, []byte(strings.ReplaceAll(m, ", PERMISSIONS", "")))
	}
	b, err := bundles.FromManifests(texts, map[string]string{bundles.AnnotationPackage: "a",
		bundles.AnnotationChannels: "stable"})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// permitted is a CSV with permissions.
func permitted(permissions string) string {
	return strings.ReplaceAll(csv("", "containers: []"), "PERMISSIONS", permissions)
}

// crd has one version, v1, whose spec has this schema.
func crd(spec string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec: {group: example.com, scope: Namespaced, names: {kind: Thing, plural: things}, versions: [{name: v1, served: `+
		`true, storage: true,
  schema: {openAPIV3Schema: {type: object, properties: {spec: %s}}}}]}
`, spec)
}

func TestCompare(t *testing.T) {
	plain := csv("", "containers: []")
	const subject = "things.example.com v1"
	type pair struct{ from, to []string }
	schema := func(from, to string) pair { return pair{[]string{plain, crd(from)}, []string{plain, crd(to)}} }
	object := func(properties string) string { return "{type: object, properties: {" + properties + "}}" }
	role := func(kind, group, resource, verb string) string {
		return permitted(fmt.Sprintf("%s: [{serviceAccountName: sa, rules: [{apiGroups: [%q], resources: [%q], "+
			"verbs: [%q]}]}]", kind, group, resource, verb))
	}
	for name, test := range map[string]struct {
		pair
		want []Change
	}{
		"nothing": {pair{[]string{plain}, []string{plain}}, nil},
		"a field gone": {schema(object("a: {type: string}"), object("")), []Change{
			{Area: AreaCRDs, Kind: Removed, Weight: Breaking, Subject: subject, Path: "spec.a", From: "string",
				Note: "what is in it is lost"}}},
		"a field gone that is kept all the same": {schema(object("a: {type: string}"),
			"{type: object, x-kubernetes-preserve-unknown-fields: true}"), []Change{
			{Area: AreaCRDs, Kind: Removed, Subject: subject, Path: "spec.a", From: "string"}}},
		"a field came": {schema(object(""),
			object("a: {type: array, items: {type: object, properties: {b: {type: string}}}}")), []Change{
			{Area: AreaCRDs, Kind: Added, Subject: subject, Path: "spec.a", To: "list of object, 1 fields"}}},
		"a required field came": {schema(object(""), "{type: object, required: [a], properties: {a: {type: string}}}"),
			[]Change{
				{Area: AreaCRDs, Kind: Added, Weight: Breaking, Subject: subject, Path: "spec.a", To: "string",
					Note: "it is required, and objects that exist do not have it"}}},
		"a required field came with a default": {schema(object(""),
			"{type: object, required: [a], properties: {a: {type: string, default: x}}}"), []Change{
			{Area: AreaCRDs, Kind: Added, Subject: subject, Path: "spec.a", To: "string"}}},
		"another type": {schema(object("a: {type: string}"), object("a: {type: integer}")), []Change{
			{Area: AreaCRDs, Kind: Changed, Weight: Breaking, Subject: subject, Path: "spec.a", From: "string",
				To: "integer", Note: "objects that exist have the other type"}}},
		"a tighter bound": {schema(object("a: {type: integer, maximum: 5}"), object("a: {type: integer, maximum: 4}")),
			[]Change{
				{Area: AreaCRDs, Kind: Changed, Weight: Breaking, Subject: subject, Path: "spec.a maximum", From: "5",
					To: "4", Note: "objects that exist may be outside"}}},
		"a wider bound": {schema(object("a: {type: integer, minimum: 5}"), object("a: {type: integer, minimum: 4}")),
			[]Change{
				{Area: AreaCRDs, Kind: Changed, Subject: subject, Path: "spec.a minimum", From: "5", To: "4"}}},
		"enums": {schema(object("a: {type: string, enum: [x, y]}"), object("a: {type: string, enum: [y, z]}")),
			[]Change{
				{Area: AreaCRDs, Kind: Added, Subject: subject, Path: "spec.a enum", To: `"z"`},
				{Area: AreaCRDs, Kind: Removed, Weight: Breaking, Subject: subject, Path: "spec.a enum", From: `"x"`,
					Note: "objects that exist may have this value"}}},
		"in a list": {schema(object("a: {type: array, items: {type: object, properties: {b: {type: string}}}}"),
			object("a: {type: array, items: {type: object}}")), []Change{
			{Area: AreaCRDs, Kind: Removed, Weight: Breaking, Subject: subject, Path: "spec.a[].b", From: "string",
				Note: "what is in it is lost"}}},
		"not served": {pair{[]string{plain, crd("{type: object}")},
			[]string{plain, strings.Replace(crd("{type: object}"), "served: true", "served: false", 1)}}, []Change{
			{Area: AreaCRDs, Kind: Changed, Weight: Breaking, Subject: subject, Path: "served", From: "true",
				To: "false", Note: "it may still be used"}}},
		"a version replaced": {pair{[]string{plain, crd("{type: object}")},
			[]string{plain, strings.Replace(crd("{type: object}"), "name: v1,", "name: v2,", 1)}}, []Change{
			{Area: AreaCRDs, Kind: Removed, Weight: Breaking, Subject: subject,
				Note: "objects may be stored in it, and programs may use it"},
			{Area: AreaCRDs, Kind: Added, Subject: "things.example.com v2"}}},
		"a CRD gone": {pair{[]string{plain, crd("{type: object}")}, []string{plain}}, []Change{
			{Area: AreaCRDs, Kind: Removed, Weight: Breaking, Subject: "things.example.com",
				Note: "its objects stay, and are no longer reconciled"}}},
		"a right more": {pair{[]string{role("permissions", "apps", "deployments", "get")},
			[]string{role("permissions", "apps", "deployments", "*")}}, []Change{
			{Area: AreaRBAC, Kind: Added, Weight: Attention, Subject: "service account sa, in its namespaces",
				Path: "deployments (apps)", To: "*"}}},
		"a right less": {pair{[]string{role("permissions", "apps", "*", "get")},
			[]string{role("permissions", "apps", "deployments", "get")}}, []Change{
			{Area: AreaRBAC, Kind: Removed, Subject: "service account sa, in its namespaces", Path: "* (apps)",
				From: "get"}}},
		"from everywhere to its namespaces": {pair{[]string{role("clusterPermissions", "", "pods", "get")},
			[]string{role("permissions", "", "pods", "get")}}, []Change{
			{Area: AreaRBAC, Kind: Removed, Subject: "service account sa, in all namespaces", Path: "pods",
				From: "get"}}},
		"secrets of all": {pair{[]string{plain}, []string{role("clusterPermissions", "", "secrets", "get")}}, []Change{
			{Area: AreaRBAC, Kind: Added, Weight: Attention, Subject: "service account sa, in all namespaces",
				Path: "secrets", To: "get", Note: "it reads the secrets of all namespaces"}}},
		"an image unpinned": {pair{[]string{csv("", "containers: [{name: m, image: a@sha256:0}]")},
			[]string{csv("", "containers: [{name: m, image: 'a:1'}]")}}, []Change{
			{Area: AreaImages, Kind: Changed, Weight: Attention, Subject: "container d/m", From: "a@sha256:0",
				To: "a:1", Note: "it is no longer pinned by its digest"}}},
		"settings": {pair{[]string{csv("", "containers: [{name: m, args: [--a, --b], env: [{name: X, value: '1'}]}]")},
			[]string{csv("", "hostNetwork: true, containers: [{name: m, args: [--a, --c], env: [{name: X, value: "+
				"'2'}, {name: Z, value: z}], resources: {limits: {memory: 1Gi}}}]")}}, []Change{
			{Area: AreaDeployments, Kind: Added, Subject: "deployment d", Path: "containers[m].args[]", To: "--c"},
			{Area: AreaDeployments, Kind: Removed, Subject: "deployment d", Path: "containers[m].args[]", From: "--b"},
			{Area: AreaDeployments, Kind: Changed, Subject: "deployment d", Path: "containers[m].env[X].value",
				From: "1", To: "2"},
			{Area: AreaDeployments, Kind: Added, Subject: "deployment d", Path: "containers[m].env[Z]",
				To: `{"name":"Z","value":"z"}`},
			{Area: AreaDeployments, Kind: Added, Subject: "deployment d", Path: "containers[m].resources.limits",
				To: `{"memory":"1Gi"}`},
			{Area: AreaDeployments, Kind: Added, Weight: Attention, Subject: "deployment d", Path: "hostNetwork",
				To: "true", Note: "it uses the node's network"}}},
		"arguments in another order": {pair{[]string{csv("", "containers: [{name: m, args: [a, b]}]")},
			[]string{csv("", "containers: [{name: m, args: [b, a]}]")}}, []Change{
			{Area: AreaDeployments, Kind: Changed, Subject: "deployment d", Path: "containers[m].args",
				From: `["a","b"]`, To: `["b","a"]`}}},
		"a webhook": {pair{[]string{csv("webhookdefinitions: [{type: ValidatingAdmissionWebhook, generateName: w, "+
			"failurePolicy: Ignore}],", "")},
			[]string{csv("webhookdefinitions: [{type: ValidatingAdmissionWebhook, generateName: w, failurePolicy: "+
				"Fail}, {type: MutatingAdmissionWebhook, generateName: x}],", "")}}, []Change{
			{Area: AreaWebhooks, Kind: Added, Weight: Attention, Subject: "MutatingAdmissionWebhook x",
				Note: "it can refuse or change users' objects"},
			{Area: AreaWebhooks, Kind: Changed, Weight: Attention, Subject: "ValidatingAdmissionWebhook w",
				Path: "failurePolicy", From: "Ignore", To: "Fail", Note: "when it is down, requests are refused"}}},
		"an install mode gone": {pair{[]string{csv("installModes: [{type: OwnNamespace, supported: true}],", "")},
			[]string{csv("installModes: [{type: OwnNamespace, supported: false}],", "")}}, []Change{
			{Area: AreaVersion, Kind: Removed, Weight: Breaking, Subject: "a", Path: "installModes",
				From: `["OwnNamespace"]`, Note: "where it is installed this way, OLM stops it"}}},
		"a lower version": {pair{[]string{plain},
			[]string{strings.ReplaceAll(plain, "version: 1.0.0", "version: 0.9.0")}}, []Change{
			{Area: AreaVersion, Kind: Changed, Weight: Attention, Subject: "a", Path: "version", From: "1.0.0",
				To: "0.9.0", Note: "the version gets lower"}}},
		"a secret": {pair{[]string{plain, "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {k: b25l}}"},
			[]string{plain, "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {k: dHdv}}"}}, []Change{
			{Area: AreaManifests, Kind: Changed, Subject: "Secret s", Path: "data.k", From: "hidden, 69de54b8",
				To: "hidden, cfcc7cbe"}}},
		"manifests": {pair{[]string{plain, "{apiVersion: v1, kind: ConfigMap, metadata: {name: s}, data: {k: v}}"},
			[]string{plain, "{apiVersion: v1, kind: ConfigMap, metadata: {name: t}}"}}, []Change{
			{Area: AreaManifests, Kind: Removed, Subject: "ConfigMap s"},
			{Area: AreaManifests, Kind: Added, Subject: "ConfigMap t"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Compare(bundle(t, test.from...), bundle(t, test.to...)).Changes
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDependencies(t *testing.T) {
	from, to := bundle(t, csv("", "")), bundle(t, csv("", ""))
	to.Dependencies = []bundles.Property{{Type: "olm.package",
		Value: []byte(`{"packageName": "cert-manager", "version": ">1.0.0"}`)}}
	to.Properties = []bundles.Property{{Type: "olm.package", Value: []byte(`{"packageName": "a"}`)}}
	want := []Change{{Area: AreaDependencies, Kind: Added, Weight: Attention,
		Subject: `olm.package {"packageName":"cert-manager","version":">1.0.0"}`,
		Note:    "OLM v0 installs it as well, OLM v1 refuses to install without"}}
	if diff := cmp.Diff(want, Compare(from, to).Changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestFold(t *testing.T) {
	var changes []Change
	for i := range 5 {
		changes = append(changes, Change{Kind: Added, Subject: "s", Path: fmt.Sprintf("spec.f%d.ref.name default", i),
			To: `""`})
	}
	changes = append(changes, Change{Kind: Added, Subject: "s", Path: "spec.other", To: "string"})
	got := Fold(changes)
	want := []Folded{{Change: changes[0], More: 4}, {Change: changes[5]}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("folded (-want +got):\n%s", diff)
	}
	if got := Fold(changes[:3]); len(got) != 3 {
		t.Errorf("three changes were folded into %d", len(got))
	}
}

func read(t *testing.T, dir string) *bundles.Bundle {
	t.Helper()
	b, err := bundles.Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMarkdown(t *testing.T) {
	echo := filepath.Join("..", "..", "testbed", "echo", "bundles")
	got := DiffMarkdown(Compare(read(t, filepath.Join(echo, "1.0.0")), read(t, filepath.Join(echo, "1.2.0"))))
	compareGolden(t, "echo.md", got)
}

// compareGolden compares a text with a file of testdata, which -update writes.
func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	golden := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); go test -update writes it down:\n%s", name, diff)
	}
}

func TestMarkdownIsEscaped(t *testing.T) {
	got := DiffMarkdown(Report{Changes: []Change{{Area: AreaImages, Kind: Added, Subject: "x\n# <b>*bold*", Path: "a`b",
		To: "v`` ` \n## no"}}})
	for _, bad := range []string{"\n# ", "<b>", " *bold*", "\n## no", "`a`b`"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q got into the Markdown as markup:\n%s", bad, got)
		}
	}
}

// TestRealBundles checks on published bundles what is known of them.
func TestRealBundles(t *testing.T) {
	older, newer := bundletest.Read(t, "grafana-operator/5.6.3"), bundletest.Read(t, "grafana-operator/5.9.2")
	r := Compare(older, newer)
	want := Change{Area: AreaCRDs, Kind: Changed, Weight: Breaking, Subject: "grafanas.grafana.integreatly.org v1beta1",
		Path: "spec.deployment.spec.template.spec.hostAliases[].ip", From: "optional", To: "required",
		Note: "objects that exist may lack it"}
	found := false
	for _, c := range r.Changes {
		found = found || c == want
	}
	if !found || r.Count(Breaking) != 1 {
		t.Errorf("of 5.6.3 to 5.9.2 exactly this is breaking: %+v; got %d: %s", want, r.Count(Breaking),
			DiffMarkdown(r))
	}
	back := Compare(newer, older)
	if back.Count(Breaking) < 10 {
		t.Errorf("going back loses fields, and %d changes are called breaking", back.Count(Breaking))
	}
}
