// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver/cache"
	"github.com/operator-framework/operator-registry/pkg/api"

	"github.com/bellwether-dev/bellwether/engines/olmv0/steps"
)

const (
	csv = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"annotations":{"a":"b"},
		"name":"echo.v1.0.0"},"spec":{"version":"1.0.0","install":{"strategy":"deployment","spec":{
		"permissions":[{"serviceAccountName":"echo","rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]},
			{"serviceAccountName":"other","rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}],
		"clusterPermissions":[{"serviceAccountName":"echo","rules":[
			{"apiGroups":[""],"resources":["nodes"],"verbs":["get"]}]}],
		"deployments":[{"name":"echo","spec":{"replicas":1,"selector":null,"template":{"spec":{"containers":[
			{"name":"echo","image":"registry.example.com/echo","resources":{"limits":{"cpu":"1000m"}},
			"securityContext":{"allowPrivilegeEscalation":false}}]}}}}]}}}}`
	configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"a":"b"}}`
	secret    = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"login"},"stringData":{"a":"b"}}`
	role      = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"reader",` +
		`"labels":{"rbac.authorization.k8s.io/aggregate-to-view":"true"}},"rules":[]}`
)

// planOf returns the steps that OLM makes of a bundle, and of a dependency without a Subscription. The first manifest
// is the ClusterServiceVersion.
func planOf(t *testing.T, manifests ...string) []*operatorsv1alpha1.Step {
	t.Helper()
	out, err := resolver.NewStepsFromBundle(&api.Bundle{CsvName: "echo.v1.0.0", CsvJson: manifests[0],
		Object:     manifests,
		Properties: []*api.Property{{Type: "olm.package", Value: `{"packageName":"echo","version":"1.0.0"}`}}},
		"team", "echo.v0.9.0", "bellwether-echo", "team")
	if err != nil {
		t.Fatal(err)
	}
	subscription, err := resolver.NewSubscriptionStepResource("team", cache.OperatorSourceInfo{Package: "echo",
		Channel: "stable", StartingCSV: "echo.v1.0.0",
		Catalog: cache.SourceKey{Name: "bellwether-echo", Namespace: "team"}})
	if err != nil {
		t.Fatal(err)
	}
	return append(out, &operatorsv1alpha1.Step{Resolving: "echo.v1.0.0", Resource: subscription})
}

// edit changes the text of a step of a kind. OLM does not order the steps that it makes for permissions.
func edit(kind, from, to string) func(*testing.T, []*operatorsv1alpha1.Step) []*operatorsv1alpha1.Step {
	return func(t *testing.T, plan []*operatorsv1alpha1.Step) []*operatorsv1alpha1.Step {
		t.Helper()
		for _, step := range plan {
			if step.Resource.Kind == kind && strings.Contains(step.Resource.Manifest, from) {
				step.Resource.Manifest = strings.Replace(step.Resource.Manifest, from, to, 1)
				return plan
			}
		}
		t.Fatalf("%s is in no step %s", from, kind)
		return nil
	}
}

func added(kind, manifest string) func(*testing.T, []*operatorsv1alpha1.Step) []*operatorsv1alpha1.Step {
	return func(_ *testing.T, plan []*operatorsv1alpha1.Step) []*operatorsv1alpha1.Step {
		var named struct{ Metadata struct{ Name string } }
		_ = json.Unmarshal([]byte(manifest), &named)
		return append(plan, &operatorsv1alpha1.Step{Resolving: "echo.v1.0.0", Resource: operatorsv1alpha1.StepResource{
			Kind: kind, Name: named.Metadata.Name, Manifest: manifest}})
	}
}

func without(kind string) func(*testing.T, []*operatorsv1alpha1.Step) []*operatorsv1alpha1.Step {
	return func(_ *testing.T, plan []*operatorsv1alpha1.Step) []*operatorsv1alpha1.Step {
		return slices.DeleteFunc(plan, func(s *operatorsv1alpha1.Step) bool { return s.Resource.Kind == kind })
	}
}

// TestPlansAreApprovedByContent checks that any difference between a plan and the view is found.
func TestPlansAreApprovedByContent(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*testing.T, []*operatorsv1alpha1.Step) []*operatorsv1alpha1.Step
		says   string // empty where it does not differ
	}{
		"as OLM makes it":                     {nil, ""},
		"without a dependency's Subscription": {without("Subscription"), ""},
		"another image": {edit("ClusterServiceVersion", "registry.example.com/echo", "evil.example.com/echo"),
			"ClusterServiceVersion echo.v1.0.0 is not as the bundle has it: " +
				"spec.install.spec.deployments[0].spec.template.spec.containers[0].image"},
		"a field less, as if OLM did not know it": {edit("ClusterServiceVersion", `"allowPrivilegeEscalation":false`, ""),
			""},
		"a field that nobody knows": {edit("ClusterServiceVersion", `"allowPrivilegeEscalation":false`, `"a":1`),
			"ClusterServiceVersion echo.v1.0.0 is not"},
		"more permissions in the ClusterServiceVersion": {edit("ClusterServiceVersion", `"nodes"`, `"secrets"`), "is not as"},
		"fewer fields":           {edit("ClusterServiceVersion", `"annotations":{"a":"b",`, `"annotations":{`), ""},
		"a field of a newer OLM": {edit("ClusterServiceVersion", `"spec":{"`, `"spec":{"new":{"a":[],"b":false},"`), ""},
		"a field that only a newer OLM knows": {edit("ClusterServiceVersion", `"spec":{"`, `"spec":{"new":{"a":true},"`),
			`is not as the bundle has it: unknown field "spec.new"`},
		"one more container": {edit("ClusterServiceVersion", `"containers":[`, `"containers":[{"name":"x"},`),
			"deployments[0].spec.template.spec.containers"},
		"a container less": {edit("ClusterServiceVersion", `"containers":[`, `"containers":[],"initContainers":[`),
			"template.spec.initContainers"},
		"what is allowed": {edit("ClusterServiceVersion", `"allowPrivilegeEscalation":false`,
			`"allowPrivilegeEscalation":true`), "containers[0].securityContext.allowPrivilegeEscalation"},
		"a name":                    {edit("ClusterServiceVersion", `"name":"echo.v1.0.0",`, ""), "is not as"},
		"another annotation":        {edit("ClusterServiceVersion", `"a":"b"`, `"a":"c"`), "is not as"},
		"another predecessor":       {edit("ClusterServiceVersion", "echo.v0.9.0", "foreign.v1.0.0"), "replaces foreign.v1.0.0"},
		"none":                      {edit("ClusterServiceVersion", `"replaces":"echo.v0.9.0",`, ""), ""},
		"no ClusterServiceVersion":  {without("ClusterServiceVersion"), "0 steps with the ClusterServiceVersion"},
		"a changed object":          {edit("ConfigMap", `"a":"b"`, `"a":"c"`), "ConfigMap settings is not as"},
		"a changed label":           {edit("ClusterRole", "aggregate-to-view", "aggregate-to-edit"), "ClusterRole reader is not as"},
		"an object less":            {without("ConfigMap"), "it lacks ConfigMap settings"},
		"another object":            {added("ConfigMap", strings.Replace(configMap, "settings", "more", 1)), "ConfigMap more is not as"},
		"an object twice":           {added("ConfigMap", configMap), "ConfigMap settings is not as"},
		"an object by another kind": {added("Service", configMap), "Service settings is not as"},
		"a foreign Secret":          {added("Secret", `{}`), "Secret  is not as"},
		"what a ConfigMap has": {edit("ConfigMap", `"kind"`, `"name":"c","namespace":"team","catalogSourceName":"c",`+
			`"catalogSourceNamespace":"team","kind"`), "names a ConfigMap, whose content"},
		"more rules": {edit("Role", `"pods"`, `"pods","secrets"`), "and the bundle does not"},
		"rules for another account": {edit("RoleBinding", `"name":"echo","namespace"`, `"name":"other","namespace"`),
			"gives service account other the rules of"},
		"rules for everybody": {edit("RoleBinding", `"kind":"ServiceAccount","name":"echo","namespace":"team"`,
			`"kind":"Group","name":"system:authenticated"`), "is not as"},
		"in all namespaces": {added("ClusterRoleBinding", `{"metadata":{"name":"echo.v1.0.0-x"},"roleRef":{"apiGroup":
			"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"ServiceAccount",
			"name":"echo","namespace":"team"}]}`), "the rules of ClusterRole cluster-admin"},
		"an owner of a role of the cluster": {edit("ClusterRole", `"metadata":{"name":"echo`,
			`"metadata":{"ownerReferences":[{"apiVersion":"operators.coreos.com/v1alpha1","kind":`+
				`"ClusterServiceVersion","name":"echo.v1.0.0","uid":"x"}],"name":"echo`), "is not as"},
		"one more role": {added("ClusterRole", `{"metadata":{"name":"echo.v1.0.0-x"},"rules":[]}`),
			"it has ClusterRole echo.v1.0.0-x"},
		"a role of the cluster": {added("ClusterRole", `{"metadata":{"name":"view"},"rules":[]}`), "ClusterRole view is not as"},
		"an account with a login": {edit("ServiceAccount", `"metadata"`, `"imagePullSecrets":[{"name":"x"}],"metadata"`),
			"is not as"},
		"another account":                  {added("ServiceAccount", `{"metadata":{"name":"admin"}}`), "ServiceAccount admin is not as"},
		"another catalog for a dependency": {edit("Subscription", `"source":"bellwether-echo"`, `"source":"foreign"`), "is not as"},
		"no roles":                         {without("Role"), "the rules of Role"},
		"no bindings":                      {without("ClusterRoleBinding"), "it has ClusterRole echo.v1.0.0"},
		"nothing that can be read":         {edit("ConfigMap", "{", "{{"), "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planOf(t, csv, configMap, secret, role)
			if test.change != nil {
				plan = test.change(t, plan)
			}
			b, err := steps.NewBundle([][]byte{[]byte(csv), []byte(configMap), []byte(secret), []byte(role)},
				"echo.v0.9.0")
			if err != nil {
				t.Fatal(err)
			}
			got := b.FindDifference(steps.Plan{Namespace: "team", Source: "bellwether-echo", CSV: "echo.v1.0.0",
				Steps: plan})
			if (got == "") != (test.says == "") || !strings.Contains(got, test.says) {
				t.Errorf("got %q, want %q", got, test.says)
			}
		})
	}
}

// TestWhatOLMMakesDoesNotDiffer checks that OLM can install ordinary bundles.
func TestWhatOLMMakesDoesNotDiffer(t *testing.T) {
	const twice = `{"serviceAccountName":"other","rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`
	monitor := `{"apiVersion":"monitoring.coreos.com/v1","kind":"ServiceMonitor","metadata":{"name":"m"},"spec":{}}`
	named := func(length int) string { return strings.Repeat("a", length-len(".v1.0.0")) + ".v1.0.0" }
	for name, test := range map[string]struct {
		csv       string
		manifests []string
	}{
		"a name that OLM just keeps": {csv: named(24)},
		"a name that it cuts":        {csv: named(25)},
		"a longer one":               {csv: named(26)},
		"a long one":                 {csv: named(60)},
		"a permission twice":         {manifests: []string{strings.Replace(csv, twice, twice+","+twice, 1)}},
		"a manifest twice":           {manifests: []string{csv, configMap, configMap}},
		"a kind of two APIs": {manifests: []string{csv, monitor,
			strings.Replace(monitor, "monitoring.coreos.com", "monitoring.rhobs", 1)}},
		"generated names": {manifests: []string{csv, strings.Replace(configMap, `"name"`, `"generateName"`, 1)}},
		"the account default": {manifests: []string{strings.ReplaceAll(csv, `"serviceAccountName":"other"`,
			`"serviceAccountName":"default"`)}},
		"no account": {manifests: []string{strings.ReplaceAll(csv, `"serviceAccountName":"other"`,
			`"serviceAccountName":""`)}},
		"numbers": {manifests: []string{csv, strings.Replace(configMap, `"data"`, `"a":1.0,"b":9007199254740993,"data"`, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			if len(test.manifests) == 0 {
				test.manifests = []string{csv, configMap, secret, role}
			}
			if test.csv == "" {
				test.csv = "echo.v1.0.0"
			}
			var served [][]byte
			for i, m := range test.manifests {
				test.manifests[i] = strings.ReplaceAll(m, "echo.v1.0.0", test.csv)
				served = append(served, []byte(test.manifests[i]))
			}
			plan := planOf(t, test.manifests...)
			b, err := steps.NewBundle(served, "echo.v0.9.0")
			if err != nil {
				t.Fatal(err)
			}
			got := b.FindDifference(steps.Plan{Namespace: "team", Source: "bellwether-echo", CSV: test.csv,
				Steps: plan[:len(plan)-1]}) // without the Subscription, which names another one
			if got != "" {
				t.Error(got)
			}
		})
	}
}

// TestReplacesOfWhatIsInstalled: a view of what is installed has no predecessor, and its plan may have failed half way.
func TestReplacesOfWhatIsInstalled(t *testing.T) {
	b, err := steps.NewBundle([][]byte{[]byte(csv)}, "")
	if err != nil {
		t.Fatal(err)
	}
	p := steps.Plan{Namespace: "team", Source: "bellwether-echo", CSV: "echo.v1.0.0", Steps: planOf(t, csv)}
	if got := b.FindDifference(p); !strings.Contains(got, "replaces echo.v0.9.0") {
		t.Errorf("before it is installed: %q", got)
	}
	p.Installed = true
	if got := b.FindDifference(p); got != "" {
		t.Errorf("when it is: %q", got)
	}
}
