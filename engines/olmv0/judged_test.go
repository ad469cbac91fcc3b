// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver"
	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/engines/localpolicy"
)

// inCatalog is a catalog with one bundle, whose manifests are in it.
type inCatalog struct{ manifests []string }

func (c inCatalog) Resolve(context.Context, oci.Source) (string, error) { return "sha256:1", nil }

func (c inCatalog) Decode(_ string, decode func() error) error { return decode() }

func (c inCatalog) BundleObjects(context.Context, string, oci.Access) ([][]byte, error) {
	return nil, oci.ErrUnreachable
}

func (c inCatalog) Open(context.Context, oci.Source, string) (catalogs.Files, error) {
	var properties strings.Builder
	for _, manifest := range c.manifests {
		fmt.Fprintf(&properties, `,{"type":"olm.bundle.object","value":{"data":%q}}`,
			base64.StdEncoding.EncodeToString([]byte(manifest)))
	}
	return catalogs.SingleFile("f", strings.NewReader(`{"schema":"olm.package","name":"echo","defaultChannel":"stable"}
		{"schema":"olm.channel","package":"echo","name":"stable","entries":[{"name":"echo.v1.0.0"}]}
		{"schema":"olm.bundle","package":"echo","name":"echo.v1.0.0","properties":[{"type":"olm.package","value":
		{"packageName":"echo","version":"1.0.0"}}`+properties.String()+"]}")), nil
}

const (
	csvHead = `"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion",` +
		`"metadata":{"name":"echo.v1.0.0"}`
	// grab is what the policy of TestWhatIsJudgedIsServed denies.
	grab = `[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]`
	// harmless and greedy are the same ClusterServiceVersion with other rights.
	harmless = `{` + csvHead + `,"spec":{"version":"1.0.0","install":{"strategy":"deployment","spec":{` +
		`"deployments":[]}}}}`
	greedyInstall = `{"strategy":"deployment","spec":{"deployments":[],"clusterPermissions":[` +
		`{"serviceAccountName":"echo","rules":` + grab + `}]}}`
	greedy = `{` + csvHead + `,"spec":{"version":"1.0.0","install":` + greedyInstall + `}}`
)

// TestWhatIsJudgedIsServed has bundles that one decoder takes for harmless and another one does not. OLM's own code
// says what it would install of what is served: nothing that the policy denies.
func TestWhatIsJudgedIsServed(t *testing.T) {
	role := func(text string) []string {
		return []string{harmless, strings.ReplaceAll(text, "GRAB", grab)}
	}
	const roleHead = `"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"r"}`
	for name, test := range map[string]struct {
		manifests []string
		says      string // of the refusal; empty where it is served
	}{
		"harmless": {manifests: []string{harmless}},
		"greedy":   {[]string{greedy}, "rights that are denied"},
		"a role":   {role(`{` + roleHead + `,"rules":GRAB}`), "rights that are denied"},
		"install twice": {[]string{greedy[:len(greedy)-2] +
			`,"install":{"strategy":"deployment","spec":{"deployments":[]}}}}`}, `duplicate field "spec.install"`},
		"install twice, escaped": {[]string{greedy[:len(greedy)-2] +
			`,"in\u0073tall":{"strategy":"deployment","spec":{"deployments":[]}}}}`}, `duplicate field "spec.install"`},
		"spec twice": {[]string{greedy[:len(greedy)-1] + `,"spec":{"version":"1.0.0","install":{"strategy":` +
			`"deployment","spec":{"deployments":[]}}}}`}, `duplicate field "spec"`},
		"metadata twice": {[]string{greedy[:len(greedy)-1] + `,"metadata":{"name":"echo.v1.0.0"}}`},
			`duplicate field "metadata"`},
		"spec twice in YAML": {[]string{"apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\n" +
			"metadata: {name: echo.v1.0.0}\nspec: {version: 1.0.0, install: " + greedyInstall + "}\n" +
			"spec: {version: 1.0.0, install: {strategy: deployment, spec: {deployments: []}}}\n"},
			`the field "spec" is there twice`},
		"rules twice":           {role(`{` + roleHead + `,"rules":GRAB,"rules":[]}`), `duplicate field "rules"`},
		"rules by another case": {role(`{` + roleHead + `,"rules":[],"Rules":GRAB}`), `the field "Rules"`},
		"install by another letter": {[]string{greedy[:len(greedy)-2] + `,"in\u017ftall":` + greedyInstall + `}}`},
			"the field"},
		"a second document":            {[]string{harmless + "\n---\n" + greedy}, "a second document begins"},
		"a second document in YAML":    {[]string{harmless, "kind: ConfigMap\n---\n" + greedy}, "a second document"},
		"a second object":              {[]string{harmless + greedy}, "several documents"},
		"bytes that are no text":       {[]string{strings.Replace(harmless, "deployment", "\xff", 1)}, "not UTF-8"},
		"two ClusterServiceVersions":   {[]string{harmless, greedy}, "it needs one"},
		"two of them, the other order": {[]string{greedy, harmless}, "it needs one"},
		"a kind by another case":       {[]string{kindBy("Kind", greedy), harmless}, `the field "Kind"`},
		"a kind by another letter":     {[]string{kindBy("\u212aind", greedy), harmless}, "the field"},
		"a kind, the other order":      {[]string{harmless, kindBy("KIND", greedy)}, `the field "KIND"`},
		"a name by another case": {[]string{strings.Replace(harmless, `"name"`, `"Name":"x","name"`, 1)},
			`"metadata.Name"`},
		"metadata by another case": {[]string{harmless[:len(harmless)-1] + `,"Metadata":{"name":"x"}}`},
			`"Metadata"`},
		"what a ConfigMap has instead": {[]string{harmless, reference("catalogSourceName")}, `"catalogSourceName"`},
		"the same by another case":     {[]string{harmless, reference("CatalogSourceName")}, `"CatalogSourceName"`},
		"rights by aliases": {[]string{harmless, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n" +
			"metadata: {name: r}\nrules: [{apiGroups: &all ['*'], resources: *all, verbs: *all}]\n"},
			"rights that are denied"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := judgedAndServed(t, test.manifests)
			if err == nil {
				for _, what := range deniedBy(t, b) {
					t.Errorf("OLM would install %s", what)
				}
			}
			if refused := err != nil; refused != (test.says != "") ||
				refused && !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q", err, test.says)
			}
		})
	}
}

// kindBy is a ConfigMap whose kind is another one by a field that only some decoders take for it.
func kindBy(field, csv string) string {
	return strings.Replace(csv, `"kind":"ClusterServiceVersion"`, `"kind":"ConfigMap","`+field+
		`":"ClusterServiceVersion"`, 1)
}

// reference is a ConfigMap that OLM takes for a reference to what another one has.
func reference(field string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"name":"other","namespace":"echo","` + field +
		`":"c","catalogSourceNamespace":"echo"}`
}

// judgedAndServed returns the bundle as a client of the view gets it.
func judgedAndServed(t *testing.T, manifests []string) (*api.Bundle, error) {
	t.Helper()
	r := requestOf("registry.example.com", "1.0.0")
	secrets := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}
	r.Policy = &localpolicy.Policy{Spec: localpolicy.Spec{
		Permissions: localpolicy.Permissions{Denied: []rbacv1.PolicyRule{secrets}}}}
	var claims []*localpolicy.Claims
	v, err := load.New(inCatalog{manifests}, load.Options{}).View(t.Context(), load.Request{Digest: "sha256:1",
		Package: "echo", Next: "echo.v1.0.0", Permit: r.NewBundleCheck(&claims)})
	if err != nil {
		return nil, err
	}
	s := serve.New(serve.Options{})
	t.Cleanup(s.Close)
	addr, _, err := s.Set("v", v, 0)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	b, err := api.NewRegistryClient(conn).GetBundle(t.Context(), &api.GetBundleRequest{PkgName: "echo",
		ChannelName: "stable", CsvName: "echo.v1.0.0"}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	return b, nil
}

// deniedBy returns what of a bundle the policy denies, as OLM reads it.
func deniedBy(t *testing.T, b *api.Bundle) []string {
	t.Helper()
	steps, err := resolver.NewStepsFromBundle(b, "echo", "", "c", "echo")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, step := range steps {
		if step.Resource.Kind == operatorsv1alpha1.ClusterServiceVersionKind {
			continue // its rights are steps of their own
		}
		var role rbacv1.ClusterRole
		if json.Unmarshal([]byte(step.Resource.Manifest), &role) == nil && len(role.Rules) > 0 {
			out = append(out, step.Resource.Kind+" "+step.Resource.Manifest)
		}
		var ref struct{ Kind, CatalogSourceName string }
		if json.Unmarshal([]byte(step.Resource.Manifest), &ref) == nil && ref.CatalogSourceName != "" {
			out = append(out, "what a ConfigMap of the cluster has: "+step.Resource.Manifest)
		}
	}
	return out
}
