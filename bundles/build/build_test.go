// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/manifests"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/build"
)

var update = flag.Bool("update", false, "write the golden files")

func fromKustomize(t *testing.T) *build.Result {
	t.Helper()
	objects, err := build.BuildKustomization("testdata/kustomize")
	if err != nil {
		t.Fatal(err)
	}
	r, err := build.Assemble(objects,
		build.Options{Package: "snack-operator", Version: "1.4.0", Channels: []string{"candidate", "stable"}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func fromChart(t *testing.T) *build.Result {
	t.Helper()
	chart, err := build.ReadChartDir(os.DirFS("testdata/chart"))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{"metrics": map[string]any{"enabled": true}}
	rendered, err := chart.Render(build.ChartOptions{Values: values})
	if err != nil {
		t.Fatal(err)
	}
	r, err := build.Assemble(rendered.Sources, build.Options{}.FillDefaults(chart.Defaults()))
	if err != nil {
		t.Fatal(err)
	}
	r.Warnings = append(rendered.Warnings, r.Warnings...)
	return r
}

// TestAssemble compares whole bundles with those in testdata/golden.
func TestAssemble(t *testing.T) {
	for name, make := range map[string]func(*testing.T) *build.Result{"kustomize": fromKustomize, "chart": fromChart} {
		t.Run(name, func(t *testing.T) {
			r := make(t)
			files := maps.Clone(r.Files)
			files["warnings.txt"] = []byte(strings.Join(r.Warnings, "\n") + "\n")
			golden := filepath.Join("testdata", "golden", name)
			if *update {
				if err := os.RemoveAll(golden); err != nil {
					t.Fatal(err)
				}
				if err := build.Write(golden, files); err != nil {
					t.Fatal(err)
				}
			}
			want, err := build.ReadFiles(os.DirFS(golden))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(texts(want), texts(files)); diff != "" {
				t.Errorf("the bundle differs (-want +got); go test -update writes it down:\n%s", diff)
			}
			if again := make(t); !cmp.Equal(again.Files, r.Files) {
				t.Error("the same input gave other files the second time")
			}
		})
	}
}

func texts(f build.Files) map[string]string {
	out := map[string]string{}
	for name, text := range f {
		out[name] = string(text)
	}
	return out
}

// TestBuiltBundlesAreBundles checks that built bundles can be read by operator-framework, from the disk, and by
// package bundles.
func TestBuiltBundlesAreBundles(t *testing.T) {
	for name, make := range map[string]func(*testing.T) *build.Result{"kustomize": fromKustomize, "chart": fromChart} {
		t.Run(name, func(t *testing.T) {
			r, dir := make(t), filepath.Join(t.TempDir(), "bundle")
			if err := build.Write(dir, r.Files); err != nil {
				t.Fatal(err)
			}
			theirs, err := manifests.GetBundleFromDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, result := range validation.AllValidators.Validate(theirs.ObjectsToValidate()...) {
				for _, e := range result.Errors {
					t.Errorf("operator-framework's validators: %v", e)
				}
			}
			ours, err := bundles.Read(os.DirFS(dir))
			if err != nil {
				t.Fatal(err)
			}
			got := []string{ours.Name, ours.Package, ours.Version.String(),
				ours.Annotations[bundles.AnnotationPackage]}
			if diff := cmp.Diff([]string{r.Name, r.Package, r.Version, r.Package}, got); diff != "" {
				t.Errorf("what was read is not what was built (-built +read):\n%s", diff)
			}
			reused, err := build.Reuse(os.DirFS(dir))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(texts(r.Files), texts(reused.Files)); diff != "" {
				t.Errorf("building the built bundle changed it (-first +second):\n%s", diff)
			}
		})
	}
}

const (
	deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: ns}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {serviceAccountName: sa, containers: [{name: manager, image: "example.com/m:1"}]}
`
	account = `apiVersion: v1
kind: ServiceAccount
metadata: {name: sa, namespace: ns}
`
	csv = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: one}
spec: {displayName: One}
`
)

var ownNamespace = []operatorsv1alpha1.InstallModeType{operatorsv1alpha1.InstallModeTypeOwnNamespace}

// role binds a role to a subject.
func role(subject string) string {
	return `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r, namespace: ns}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: rb, namespace: ns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
subjects: [` + subject + `]
`
}

func join(documents ...string) string { return strings.Join(documents, "---\n") }

func TestAssembleRefuses(t *testing.T) {
	object := func(apiVersion, kind, name string) string {
		return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s, namespace: ns}\n", apiVersion, kind, name)
	}
	webhook := `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: w}
webhooks: [{name: w.example.com, admissionReviewVersions: [v1], sideEffects: None, clientConfig: %s}]
`
	for name, test := range map[string]struct {
		text    string
		options build.Options
		want    string
	}{
		"nothing": {"", build.Options{}, "no Deployment among the manifests"},
		"rights only": {join(account, role("{kind: ServiceAccount, name: sa, namespace: ns}")), build.Options{},
			"no Deployment among the manifests"},
		"rights of an account that is named": {join(account, role("{kind: ServiceAccount, name: sa, namespace: ns}")),
			build.Options{ServiceAccounts: []string{"sa"}}, "no Deployment among the manifests"},
		"broken YAML": {deployment + "---\n a: [\n", build.Options{}, "in.yaml, line 9: broken YAML"},
		"broken YAML below": {deployment + "---\na: b: c\n", build.Options{},
			"in.yaml, line 9: broken YAML: yaml: line 10"},
		"a key twice below": {deployment + "---\nkind: A\nkind: B\n", build.Options{},
			`line 11: the field "kind" is there twice`},
		"a key twice": {"apiVersion: v1\nkind: ConfigMap\nkind: Secret\n", build.Options{},
			`the field "kind" is there twice`},
		"no object": {join(deployment, "- 1\n"), build.Options{}, "is not an object"},
		"no kind":   {join(deployment, "apiVersion: v1\n"), build.Options{}, "has no kind"},
		"no name": {join(deployment, "apiVersion: v1\nkind: ConfigMap\n"), build.Options{},
			"ConfigMap has no metadata.name"},
		"two CSVs": {join(deployment, csv, strings.ReplaceAll(csv, "one", "two")), build.Options{},
			"there are two of kind ClusterServiceVersion"},
		"twins": {join(deployment, deployment), build.Options{},
			"Deployment manager (in.yaml, line 9) is there twice"},
		"wrong type": {strings.ReplaceAll(deployment, "{matchLabels: {a: b}}", "7"), build.Options{},
			"Deployment manager"},
		"a kind to refuse": {join(deployment, object("apps/v1", "StatefulSet", "db")), build.Options{},
			"cannot carry a StatefulSet.apps (OLM runs Deployments only)"},
		"a kind of elsewhere": {join(deployment, object("serving.knative.dev/v1", "Service", "s")), build.Options{},
			"cannot carry a Service.serving.knative.dev (if this operator defines it: with its " +
				"CustomResourceDefinition among the manifests it would be an example)"},
		"an old CRD": {join(deployment,
			object("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", "c")), build.Options{},
			"write it as apiextensions.k8s.io/v1"},
		"elsewhere": {join(deployment,
			strings.ReplaceAll(object("v1", "ConfigMap", "c"), "ns}", "kube-system}")), build.Options{},
			"is in namespace kube-system"},
		"a webhook at a URL": {join(deployment, fmt.Sprintf(webhook, "{url: https://example.com}")), build.Options{},
			"is answered at a URL"},
		"a webhook of nobody": {join(deployment, fmt.Sprintf(webhook, "{service: {name: s, namespace: ns}}")),
			build.Options{}, "no Deployment among the manifests is behind that"},
		"no version":     {deployment, build.Options{Version: "-"}, "is not X.Y.Z"},
		"a pre-release":  {deployment, build.Options{Version: "1.0.0-rc.1"}, "is a pre-release"},
		"build metadata": {deployment, build.Options{Version: "1.0.0+abc"}, "has build metadata"},
		"a bad package":  {deployment, build.Options{Package: "../x"}, `package "../x"`},
		"a bad channel":  {deployment, build.Options{Channels: []string{"a,b"}}, `channel "a,b"`},
		"no such channel": {deployment, build.Options{DefaultChannel: "beta"},
			`the default channel "beta" is none of`},
		"a bad install mode": {deployment,
			build.Options{About: build.About{InstallModes: []operatorsv1alpha1.InstallModeType{"Some"}}},
			`install mode "Some"`},
		"a bad minKubeVersion": {deployment, build.Options{About: build.About{MinKubeVersion: "new"}},
			"MinKubeVersion has an invalid value"},
		"50 MB": {deployment + "---\n#" + strings.Repeat("x", 50<<20), build.Options{},
			"more than 32 MiB"},
		"two namespaces": {join(deployment, strings.NewReplacer("name: manager, namespace: ns",
			"name: other, namespace: two").Replace(deployment)),
			build.Options{}, "OLM installs an operator into one"},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.options
			if o.Package == "" {
				o.Package = "p"
			}
			if o.Version == "" {
				o.Version = "1.0.0"
			}
			r, err := build.Assemble([]build.Source{{Name: "in.yaml", Text: []byte(test.text)}}, o)
			if !errors.Is(err, build.ErrInput) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got the bundle %v and the error %v, want an ErrInput with %q", r, err, test.want)
			}
		})
	}
}

func TestBindings(t *testing.T) {
	const mine, other = "{kind: ServiceAccount, name: sa, namespace: ns}",
		"{kind: ServiceAccount, name: prometheus, namespace: monitoring}"
	for name, test := range map[string]struct {
		subjects, replace string
		granted           int
		manifests         []string
		warning           string
	}{
		"the operator's": {mine, "", 1, nil, "nothing else can bind these by name: Role r"},
		"another's": {other, "", 0, []string{"r_rbac.authorization.k8s.io_v1_role.yaml",
			"rb_rbac.authorization.k8s.io_v1_rolebinding.yaml"}, ""},
		"both": {mine + ", " + other, "", 1,
			[]string{"r_rbac.authorization.k8s.io_v1_role.yaml", "rb_rbac.authorization.k8s.io_v1_rolebinding.yaml"},
			""},
		"a missing role": {mine, "kind: Role, name: absent", 0,
			[]string{"r_rbac.authorization.k8s.io_v1_role.yaml", "rb_rbac.authorization.k8s.io_v1_rolebinding.yaml"},
			"RoleBinding rb"},
		"its twin's, away": {"{kind: ServiceAccount, name: sa, namespace: away}", "", 0,
			[]string{"r_rbac.authorization.k8s.io_v1_role.yaml", "rb_rbac.authorization.k8s.io_v1_rolebinding.yaml"},
			""},
	} {
		t.Run(name, func(t *testing.T) {
			text := role(test.subjects)
			if test.replace != "" {
				text = strings.Replace(text, "kind: Role, name: r", test.replace, 1)
			}
			r, err := build.Assemble([]build.Source{{Name: "in.yaml", Text: []byte(join(deployment, account, text))}},
				build.Options{Package: "p", Version: "1.0.0", About: build.About{InstallModes: ownNamespace}})
			if err != nil {
				t.Fatal(err)
			}
			b, err := r.Files.Bundle()
			if err != nil {
				t.Fatal(err)
			}
			granted := 0
			for _, p := range b.CSV.Spec.InstallStrategy.StrategySpec.Permissions {
				granted += min(len(p.Rules), 1)
			}
			if granted != test.granted {
				t.Errorf("%d accounts have permissions, want %d", granted, test.granted)
			}
			var got []string
			for name := range r.Files {
				if strings.Contains(name, "rbac") {
					got = append(got, strings.TrimPrefix(name, "manifests/"))
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.manifests, got); diff != "" {
				t.Errorf("RBAC manifests (-want +got):\n%s", diff)
			}
			if warnings := strings.Join(r.Warnings, "\n"); !strings.Contains(warnings, test.warning) ||
				test.warning == "" && warnings != "" {
				t.Errorf("warnings %q, want %q", warnings, test.warning)
			}
		})
	}
	r, err := build.Assemble([]build.Source{{Name: "in.yaml", Text: []byte(join(deployment, role(mine+", "+other)))}},
		build.Options{Package: "p", Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(r.Files["manifests/rb_rbac.authorization.k8s.io_v1_rolebinding.yaml"]); strings.Contains(text,
		"name: sa") || !strings.Contains(text, "name: prometheus") {
		t.Errorf("of a shared binding the others' part should stay, but it is\n%s", text)
	}
}

// The rules of an aggregated role are the rules of the roles that it selects. The bundle contains them, or a warning
// says that it does not.
func TestAggregatedRoles(t *testing.T) {
	role := func(name, labels, rest string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + name + ", labels: {" +
			labels + "}}\n" + rest
	}
	const binding = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: b}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: all}\n" +
		"subjects: [{kind: ServiceAccount, name: sa, namespace: ns}]\n"
	aggregate := func(label string) string {
		return "aggregationRule: {clusterRoleSelectors: [{matchLabels: {" + label + ": 'true'}}]}\nrules: []\n"
	}
	rules := func(resource string) string {
		return "rules: [{apiGroups: [''], resources: [" + resource + "], verbs: [get]}]\n"
	}
	for name, tc := range map[string]struct {
		roles   []string
		want    []string
		warning string
	}{
		"two": {[]string{role("all", "", aggregate("a")), role("one", "a: 'true'", rules("pods")),
			role("two", "a: 'true'", rules("nodes")), role("three", "b: 'true'", rules("secrets"))},
			[]string{"pods", "nodes"}, "the rules of one, two are in the ClusterServiceVersion"},
		"one through another, which selects itself": {[]string{role("all", "a: 'true'", aggregate("a")),
			role("next", "a: 'true'", aggregate("b")), role("two", "b: 'true'", rules("nodes"))}, []string{"nodes"},
			"the rules of two are in the ClusterServiceVersion"},
		"none": {[]string{role("all", "", aggregate("a"))}, nil, "whose rules are not among the manifests"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := build.Assemble([]build.Source{{Name: "in.yaml",
				Text: []byte(join(append(tc.roles, deployment, binding)...))}},
				build.Options{Package: "p", Version: "1.0.0"})
			if err != nil {
				t.Fatal(err)
			}
			b, err := r.Files.Bundle()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range b.CSV.Spec.InstallStrategy.StrategySpec.ClusterPermissions {
				for _, rule := range p.Rules {
					got = append(got, rule.Resources...)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("granted resources (-want +got):\n%s", diff)
			}
			if warnings := strings.Join(r.Warnings, "\n"); !strings.Contains(warnings, tc.warning) {
				t.Errorf("warnings %q, want %q", warnings, tc.warning)
			}
		})
	}
}

// The binding of a second account names the author's namespace, which other clusters need not have, so OLM creates
// the account.
func TestSecondAccount(t *testing.T) {
	runner := strings.ReplaceAll(account, "name: sa", "name: runner")
	text := join(deployment, runner, role("{kind: ServiceAccount, name: runner, namespace: ns}"))
	r, err := build.Assemble([]build.Source{{Name: "in.yaml", Text: []byte(text)}},
		build.Options{Package: "p", Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.Files.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	granted := b.CSV.Spec.InstallStrategy.StrategySpec.Permissions
	if len(granted) != 2 || granted[0].ServiceAccountName != "runner" || len(granted[1].Rules) > 0 {
		t.Errorf("granted: %+v, want permissions of the account runner", granted)
	}
	for name, content := range r.Files {
		if strings.Contains(string(content), "namespace: ns") {
			t.Errorf("%s names the author's namespace:\n%s", name, content)
		}
	}
}

// OLM creates only the accounts of permissions. The webhook of mariadb-operator runs as an account that needs none.
func TestAccountWithoutRole(t *testing.T) {
	own := role("{kind: ServiceAccount, name: sa, namespace: ns}")
	for name, test := range map[string]struct {
		text  string
		rules []int
		warns bool
	}{
		"no role":         {join(deployment, account), []int{0}, false},
		"a role":          {join(deployment, account, own), []int{1}, false},
		"no account":      {join(deployment, own), []int{1}, false},
		"neither":         {deployment, []int{0}, true},
		"two Deployments": {join(deployment, strings.ReplaceAll(deployment, "manager", "other")), []int{0}, true},
		"the default":     {strings.ReplaceAll(join(deployment, account), "sa", "default"), nil, false},
	} {
		r, err := build.Assemble([]build.Source{{Name: "in.yaml", Text: []byte(test.text)}},
			build.Options{Package: "p", Version: "1.0.0"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b, err := r.Files.Bundle()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var rules []int
		for _, p := range b.CSV.Spec.InstallStrategy.StrategySpec.Permissions {
			if p.Rules == nil {
				t.Errorf("%s: the rules of %s are null, which the API server refuses", name, p.ServiceAccountName)
			}
			rules = append(rules, len(p.Rules))
		}
		if diff := cmp.Diff(test.rules, rules); diff != "" {
			t.Errorf("%s: rules for each account (-want +got):\n%s", name, diff)
		}
		got := strings.Count(strings.Join(r.Warnings, "\n"), "runs as service account sa")
		if (got == 1) != test.warns {
			t.Errorf("%s: warnings: %q", name, r.Warnings)
		}
	}
}

// Percona's operator for MongoDB has a Role and watches only its own namespace.
func TestRolesInAllNamespaces(t *testing.T) {
	const warning = "grants the rules of its Roles in all namespaces"
	own := role("{kind: ServiceAccount, name: sa, namespace: ns}")
	for name, test := range map[string]struct {
		text  string
		modes []operatorsv1alpha1.InstallModeType
		warns bool
	}{
		"by default":   {join(deployment, own), nil, true},
		"OwnNamespace": {join(deployment, own), ownNamespace, false},
		"no role":      {deployment, nil, false},
		"a ClusterRole": {join(deployment, own, strings.ReplaceAll(own, "kind: Role", "kind: ClusterRole")), nil,
			false},
	} {
		r, err := build.Assemble([]build.Source{{Name: "in.yaml", Text: []byte(test.text)}},
			build.Options{Package: "p", Version: "1.0.0", About: build.About{InstallModes: test.modes}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := strings.Contains(strings.Join(r.Warnings, "\n"), warning); got != test.warns {
			t.Errorf("%s: warnings: %q", name, r.Warnings)
		}
	}
}

// The chart gives its objects no namespace, and writes the namespace of the release into bindings.
func TestBindingOfForeignRole(t *testing.T) {
	binding := `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: delegator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:auth-delegator"}
subjects: [{kind: ServiceAccount, name: sa, namespace: release}]
`
	text := join(strings.ReplaceAll(deployment, ", namespace: ns", ""), binding)
	r, err := build.Assemble([]build.Source{{Name: "in.yaml", Text: []byte(text)}},
		build.Options{Package: "p", Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	if warnings := strings.Join(r.Warnings, "\n"); !strings.Contains(warnings, `into namespace "release"`) {
		t.Errorf("warnings do not name the namespace of the binding:\n%s", warnings)
	}
}

// OLM waits until the last listed version of a CRD is served. The last version in ECK's CRDs is not served.
func TestUnservedVersionIsNotOwned(t *testing.T) {
	definition := definitionOf("Thing") +
		"  - {name: v1alpha1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}\n"
	r, err := build.Assemble([]build.Source{{Name: "in.yaml", Text: []byte(join(deployment, definition))}},
		build.Options{Package: "p", Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.Files.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	var versions []string
	for _, d := range b.CSV.Spec.CustomResourceDefinitions.Owned {
		versions = append(versions, d.Version)
	}
	if diff := cmp.Diff([]string{"v1"}, versions); diff != "" {
		t.Errorf("owned versions (-want +got):\n%s", diff)
	}
}

func TestLeaveOut(t *testing.T) {
	job := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: setup, namespace: ns}\n"
	for _, what := range []string{"Job", "job/setup"} {
		r, err := build.Assemble([]build.Source{{Name: "in.yaml", Text: []byte(join(deployment, job, account))}},
			build.Options{Package: "p", Version: "1.0.0", LeaveOut: []string{what}})
		if err != nil {
			t.Errorf("with --leave-out %s: %v", what, err)
			continue
		}
		if !slices.Equal(r.Warnings, []string{"Job setup (in.yaml, line 9) is left out: --leave-out names it"}) {
			t.Errorf("with --leave-out %s it warns of %q", what, r.Warnings)
		}
	}
}

// TestCertificates checks the handling of certificates that cert-manager created.
func TestCertificates(t *testing.T) {
	const hook = `apiVersion: v1
kind: Service
metadata: {name: s}
spec: {selector: {a: b}, ports: [{port: 443}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: w}
webhooks: [{name: w.example.com, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {service: {name: ` +
		`s, namespace: ns}}}]
`
	const certificate = "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: c}\nspec: {secretName: " +
		"tls}\n"
	mounting := func(containers, secret string) string {
		return strings.Replace(deployment, `containers: [{name: manager, image: "example.com/m:1"}]`,
			"volumes: [{name: v, secret: {secretName: "+secret+"}}], "+containers, 1)
	}
	const theirs = `containers: [{name: manager, image: "example.com/m:1", volumeMounts: [{name: v, mountPath: ` +
		`/tmp/k8s-webhook-server/serving-certs/}]}]`
	const ours = `containers: [{name: manager, image: "example.com/m:1", volumeMounts: [{name: v, mountPath: /certs}]}]`
	const atStart = `containers: [{name: manager, image: "example.com/m:1"}], initContainers: [{name: i, image: ` +
		`"example.com/m:1", volumeMounts: [{name: v, mountPath: /certs}]}]`
	for name, test := range map[string]struct {
		documents []string
		volumes   int
		problem   string
	}{
		"where OLM mounts one": {[]string{mounting(theirs, "tls"), hook, certificate}, 0, ""},
		"elsewhere": {[]string{mounting(ours, "tls"), hook, certificate}, 0,
			"mounts Secret tls at /certs"},
		"no certificate": {[]string{mounting(ours, "password"), hook, certificate}, 1, ""},
		"a secret that is there": {[]string{mounting(theirs, "own"), hook,
			"apiVersion: v1\nkind: Secret\nmetadata: {name: own}\n"}, 1, ""},
		"at the start only":        {[]string{mounting(atStart, "password"), hook}, 1, ""},
		"a certificate at no hook": {[]string{mounting(ours, "tls"), certificate}, 0, "its pods would never start"},
	} {
		t.Run(name, func(t *testing.T) {
			r := assembled(t, join(test.documents...), build.Options{}, test.problem)
			if r == nil {
				return
			}
			b, err := r.Files.Bundle()
			if err != nil {
				t.Fatal(err)
			}
			pod := b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec
			if got := len(pod.Volumes); got != test.volumes ||
				len(pod.Containers[0].VolumeMounts)+len(pod.InitContainers) != test.volumes {
				t.Errorf("there are %d volumes, want %d: %v", got, test.volumes, pod)
			}
		})
	}
}

func TestPin(t *testing.T) {
	const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	r := fromKustomize(t)
	asked := map[string]int{}
	pinned, err := r.Pin(func(image string) (string, error) { asked[image]++; return digest, nil })
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"registry.example.com/snacks/operator:1.4.0": "registry.example.com/snacks/operator@" + digest,
		"registry.example.com/snacks/coins:2.0.1":    "registry.example.com/snacks/coins@" + digest,
	}
	if diff := cmp.Diff(want, pinned); diff != "" {
		t.Errorf("pinned images (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"registry.example.com/snacks/operator:1.4.0": 1,
		"registry.example.com/snacks/coins:2.0.1": 1}, asked); diff != "" {
		t.Errorf("images asked for (-want +got):\n%s", diff)
	}
	text := string(r.Files["manifests/snack-operator.clusterserviceversion.yaml"])
	if strings.Contains(text, "1.4.0\n        name: manager") || strings.Contains(text, "coins:2.0.1") ||
		strings.Count(text, digest) != 5 {
		t.Errorf("not all images are pinned:\n%s", text)
	}
	if again, err := r.Pin(func(string) (string, error) { return "", errors.New("asked again") }); err != nil ||
		again != nil {
		t.Errorf("pinning what is pinned gave %v, %v", again, err)
	}
	broken := errors.New("registry down")
	if _, err := fromChart(t).Pin(func(string) (string, error) { return "", broken }); !errors.Is(err, broken) {
		t.Errorf("the registry's error got lost: %v", err)
	}
}

func TestReuseRefuses(t *testing.T) {
	annotations := []byte("annotations:\n  operators.operatorframework.io.bundle.package.v1: p\n  " +
		"operators.operatorframework.io.bundle.manifests.v1: manifests/\n")
	for name, test := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"no annotations": {fstest.MapFS{"manifests/a.yaml": {Data: []byte(csv)}}, "annotations.yaml"},
		"no CSV": {fstest.MapFS{"metadata/annotations.yaml": {Data: annotations},
			"manifests/a.yaml": {Data: []byte(deployment)}}, "has no ClusterServiceVersion"},
		"two CSVs": {fstest.MapFS{"metadata/annotations.yaml": {Data: annotations},
			"manifests/a.yaml": {Data: []byte(csv)}, "manifests/b.yaml": {Data: []byte(csv)}}, "two of kind"},
		"invalid": {fstest.MapFS{"metadata/annotations.yaml": {Data: annotations},
			"manifests/a.yaml": {Data: []byte(csv)}}, "install modes not found"},
		"a link": {fstest.MapFS{"metadata/annotations.yaml": {Data: annotations},
			"manifests/a.yaml": {Mode: fs.ModeSymlink, Data: []byte("b")}}, "is a link or a device"},
		"50 MB": {fstest.MapFS{"metadata/annotations.yaml": {Data: annotations},
			"manifests/a.yaml": {Data: make([]byte, 50<<20)}}, "more than 32 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := build.Reuse(test.files); !errors.Is(err, build.ErrInput) ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an ErrInput with %q", err, test.want)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	files := build.Files{"metadata/annotations.yaml": []byte("a"), "manifests/x.yaml": []byte("x")}
	t.Run("replaces an earlier bundle as a whole", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "b")
		for _, f := range []build.Files{{"metadata/annotations.yaml": []byte("old"),
			"manifests/gone.yaml": []byte("g")}, files} {
			if err := build.Write(dir, f); err != nil {
				t.Fatal(err)
			}
		}
		got, err := build.ReadFiles(os.DirFS(dir))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(texts(files), texts(got)); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
		alone(t, dir)
	})
	t.Run("refuses what is no bundle", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := build.Write(dir, files); !errors.Is(err, build.ErrNotReplaceable) {
			t.Errorf("got %v, want ErrNotReplaceable", err)
		}
	})
	t.Run("leaves the old one where the new one fails", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "b")
		if err := build.Write(dir, files); err != nil {
			t.Fatal(err)
		}
		broken := errors.New("disk full")
		err := build.Replace(dir, "metadata/annotations.yaml", func(temporary string) error {
			return errors.Join(broken, os.WriteFile(filepath.Join(temporary, "half"), nil, 0o600))
		})
		if !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		if got, err := build.ReadFiles(os.DirFS(dir)); err != nil || !cmp.Equal(texts(got), texts(files)) {
			t.Errorf("what was there is now %v, %v", got, err)
		}
		alone(t, dir)
	})
}

// alone checks that a folder has no other entries beside it.
func alone(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside %s there is %v, %v", dir, entries, err)
	}
}

// As in Strimzi, the operator has the rights of a role, and binds this role to other accounts by name at run time.
const delegation = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: broker}
rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: delegation}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: broker}
subjects: [{kind: ServiceAccount, name: sa, namespace: ns}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager}
rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [%s], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: manager}
subjects: [{kind: ServiceAccount, name: sa, namespace: ns}]
`

func TestRolesThatTheOperatorBinds(t *testing.T) {
	for name, test := range map[string]struct {
		resource, becomes, warning string
		manifest                   bool
	}{
		"it may bind": {"clusterrolebindings", "permissions of the ClusterServiceVersion, and a manifest",
			"also kept as manifests besides the permissions, since the operator may make bindings and could bind " +
				"them by name: ClusterRole broker, ClusterRole manager", true},
		"it may not": {"clusterroles", "permissions of the ClusterServiceVersion",
			"nothing else can bind these by name: ClusterRole broker, ClusterRole manager", false},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := build.Assemble([]build.Source{{Name: "in.yaml",
				Text: []byte(join(deployment, fmt.Sprintf(delegation, test.resource)))}},
				build.Options{Package: "p", Version: "1.0.0"})
			if err != nil {
				t.Fatal(err)
			}
			_, ok := r.Files["manifests/broker_rbac.authorization.k8s.io_v1_clusterrole.yaml"]
			if ok != test.manifest {
				t.Errorf("the role is a manifest: %t", ok)
			}
			b, err := r.Files.Bundle()
			if err != nil {
				t.Fatal(err)
			}
			if got := len(b.CSV.Spec.InstallStrategy.StrategySpec.ClusterPermissions[0].Rules); got != 2 {
				t.Errorf("the operator has %d rules, want 2", got)
			}
			if !strings.Contains(strings.Join(r.Warnings, "\n"), test.warning) {
				t.Errorf("warnings %q, want %q", r.Warnings, test.warning)
			}
			want := build.Placement{Object: "ClusterRole broker (in.yaml, line 9)", Becomes: test.becomes}
			if !slices.Contains(r.Placements, want) {
				t.Errorf("the account lacks %+v: %+v", want, r.Placements)
			}
		})
	}
}

// A custom resource that a Deployment names must exist, and a bundle cannot contain it.
func TestNamedCustomResources(t *testing.T) {
	things := definitionOf("Config") + `---
apiVersion: example.com/v1
kind: Config
metadata: {name: default-configuration, namespace: ns}
`
	named := strings.Replace(deployment, `image: "example.com/m:1"`,
		`image: "example.com/m:1", env: [{name: CONFIGURATION, value: default-configuration}]`, 1)
	for name, test := range map[string]struct {
		deployment       string
		leaveOut         []string
		problem, warning string
	}{
		"a sample":         {deployment, nil, "", ""},
		"a named one":      {named, nil, "variable CONFIGURATION of Deployment manager", ""},
		"lost, as it must": {named, []string{"Config/default-configuration"}, "", "is an example only"},
	} {
		t.Run(name, func(t *testing.T) {
			r := assembled(t, join(test.deployment, things), build.Options{LeaveOut: test.leaveOut}, test.problem)
			if r == nil {
				return
			}
			if !strings.Contains(strings.Join(r.Warnings, "\n"), test.warning) {
				t.Errorf("warnings %q, want %q", r.Warnings, test.warning)
			}
		})
	}
}

// TestAccount compares input and output: every object is in the bundle under its name, or the account contains the
// reason why it is not.
func TestAccount(t *testing.T) {
	for name, make := range map[string]func(*testing.T) *build.Result{"kustomize": fromKustomize, "chart": fromChart} {
		t.Run(name, func(t *testing.T) {
			r := make(t)
			b, err := r.Files.Bundle()
			if err != nil {
				t.Fatal(err)
			}
			inBundle := map[string]bool{}
			for _, o := range b.Objects {
				inBundle[o.GetKind()+" "+o.GetName()] = true
			}
			if len(r.Placements) < 5 {
				t.Errorf("the account has %d objects only", len(r.Placements))
			}
			for _, p := range r.Placements {
				what, _, _ := strings.Cut(p.Object, " (")
				isManifest := strings.HasSuffix(p.Becomes, "a manifest")
				if p.Becomes == "" || isManifest != inBundle[what] {
					t.Errorf("%s becomes %q; it is a manifest of the bundle: %t", p.Object, p.Becomes, inBundle[what])
				}
				if reason, out := strings.CutPrefix(p.Becomes, "left out: "); out &&
					!strings.Contains(strings.Join(r.Warnings, "\n"), reason) {
					t.Errorf("nobody is told that %s is left out", p.Object)
				}
			}
		})
	}
}

// kubebuilder writes a sample for each version of an API, under one name.
func TestSamplesOfTwoVersions(t *testing.T) {
	definition := definitionOf("Config") +
		"  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n"
	sample := func(version string) string {
		return "apiVersion: example.com/" + version + "\nkind: Config\nmetadata: {name: sample}\n"
	}
	assemble := func(versions ...string) (*build.Result, error) {
		text := join(deployment, definition)
		for _, v := range versions {
			text = join(text, sample(v))
		}
		return build.Assemble([]build.Source{{Name: "in.yaml", Text: []byte(text)}},
			build.Options{Package: "p", Version: "1.0.0"})
	}
	r, err := assemble("v1", "v2")
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.Files.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	if examples := b.CSV.Annotations["alm-examples"]; strings.Count(examples, `"sample"`) != 2 {
		t.Errorf("the examples are %s", examples)
	}
	if _, err := assemble("v1", "v1"); !errors.Is(err, build.ErrInput) {
		t.Errorf("two samples of one version: %v", err)
	}
}

// A prefix and a suffix of kustomize must not prevent finding the place of an object. The place must not be guessed.
func TestLocate(t *testing.T) {
	documents := build.Documents([]byte("# roles\nkind: Role\nmetadata: {name: manager-role}\n---\nkind: Role\n" +
		"metadata: {name: manager}\n---\nkind: Role\nmetadata: {name: viewer}\n---\na: [\n---\nkind: Role\n" +
		"metadata: {name: editor}\n---\nkind: Role\nmetadata: {generateName: x}\n"))
	for name, want := range map[string]int{"manager": 4, "my-manager": 4, "my-manager-role": 1, "my-viewer-2": 7,
		"editor": 12, "my-viewer-editor": 0, "other": 0} {
		if got := build.Locate(documents, "Role", name); got != want {
			t.Errorf("%s is at line %d, want %d", name, got, want)
		}
	}
	if got := build.Locate(documents, "ClusterRole", "viewer"); got != 0 {
		t.Errorf("an object of another kind is at line %d", got)
	}
}

// definitionOf is the CustomResourceDefinition of a kind in example.com with the version v1. It ends with the list of
// versions, so that others can follow.
func definitionOf(kind string) string {
	return strings.NewReplacer("Thing", kind, "thing", strings.ToLower(kind)).Replace(
		`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`)
}

// assembled builds the bundle of one file. If a problem is expected, the error must contain it, and assembled
// returns nil.
func assembled(t *testing.T, text string, o build.Options, problem string) *build.Result {
	t.Helper()
	o.Package, o.Version = "p", "1.0.0"
	r, err := build.Assemble([]build.Source{{Name: "in.yaml", Text: []byte(text)}}, o)
	switch {
	case problem == "" && err != nil:
		t.Fatal(err)
	case problem == "":
		return r
	case !errors.Is(err, build.ErrInput) || !strings.Contains(err.Error(), problem):
		t.Errorf("got %v, want an ErrInput with %q", err, problem)
	}
	return nil
}
