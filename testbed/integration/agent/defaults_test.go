// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/bundletest"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// TestDefaultsAreTheAPIServers: what a bundle is told to do before it is installed is what it does once the API server
// has filled in its defaults.
func TestDefaultsAreTheAPIServers(t *testing.T) {
	t.Parallel()
	c, err := client.New(testenv.Cluster(t, cluster.Options{}).RESTConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*bundles.Bundle{}
	for _, name := range bundletest.Names(t) {
		all[name] = bundletest.Read(t, name)
	}
	const (
		web     = "containers: [{name: web, image: r/web, env: [{name: RELATED_IMAGE_A, value: r/a}]}]"
		account = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: admin}}"
		rbac    = "apiVersion: rbac.authorization.k8s.io/v1"
		rules   = `rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]`
	)
	for name, v := range map[string]struct {
		pod    string
		others []string
	}{
		"no account":          {pod: web},
		"the old field":       {pod: web + ", serviceAccount: admin"},
		"the new field":       {pod: web + ", serviceAccountName: admin"},
		"both fields":         {pod: web + ", serviceAccountName: admin, serviceAccount: admin"},
		"the bundle's own":    {pod: web + ", serviceAccount: admin", others: []string{account}},
		"other images":        {pod: web + ", initContainers: [{name: i, image: r/i}], volumes: [{name: v, image: {reference: r/v}}]"},
		"a token in a volume": {pod: web + ", volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]"},
		"roles and subjects": {pod: web, others: []string{
			"{" + rbac + ", kind: Role, metadata: {name: r}, " + rules + "}",
			"{" + rbac + ", kind: RoleBinding, metadata: {name: r}, roleRef: {kind: Role, name: r}, subjects: [" +
				"{kind: ServiceAccount, name: a}, {kind: Group, name: g}, {kind: User, name: u}]}",
			"{" + rbac + ", kind: ClusterRole, metadata: {name: r}, aggregationRule: {clusterRoleSelectors: " +
				"[{matchLabels: {a: b}}]}, " + rules + "}",
			"{" + rbac + ", kind: ClusterRoleBinding, metadata: {name: r}, roleRef: {kind: ClusterRole, name: view}, " +
				"subjects: [{kind: ServiceAccount, name: a, namespace: b}]}"}},
		"a Secret with a token": {pod: web, others: []string{account, "{apiVersion: v1, kind: Secret, metadata: {name: s, " +
			"annotations: {kubernetes.io/service-account.name: other}}, type: kubernetes.io/service-account-token}"}},
	} {
		manifests := [][]byte{[]byte("{apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, " +
			"metadata: {name: e.v1.0.0}, spec: {version: 1.0.0, install: {strategy: deployment, spec: {deployments: " +
			"[{name: d, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {" +
			v.pod + "}}}}]}}}}")}
		for _, o := range v.others {
			manifests = append(manifests, []byte(o))
		}
		if all[name], err = bundles.FromManifests(manifests, nil); err != nil {
			t.Fatal(err)
		}
	}
	for name, b := range all {
		t.Run(name, func(t *testing.T) {
			manifests, err := b.Manifests()
			if err != nil {
				t.Fatal(err)
			}
			for i := range manifests {
				manifests[i] = withDefaults(t, c, manifests[i])
			}
			defaulted, err := bundles.FromManifests(manifests, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(whatItDoes(b), whatItDoes(defaulted)); diff != "" {
				t.Errorf("-before +with the defaults of the API server:\n%s", diff)
			}
		})
	}
}

// withDefaults returns a manifest as the API server would have it; one of a kind that it does not know, but for a
// ClusterServiceVersion's Deployments, as it is.
func withDefaults(t *testing.T, c client.Client, manifest []byte) []byte {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(manifest); err != nil {
		t.Fatal(err)
	}
	var out any = o
	switch group := o.GroupVersionKind().Group; {
	case o.GetKind() == operatorsv1alpha1.ClusterServiceVersionKind:
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := json.Unmarshal(manifest, csv); err != nil {
			t.Fatal(err)
		}
		deployments := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
		for i := range deployments {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: deployments[i].Name},
				Spec: deployments[i].Spec}
			if err := c.Create(t.Context(), d, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			deployments[i].Spec = d.Spec
		}
		out = csv
	case group == "" || group == rbacv1.GroupName:
		o.SetNamespace("default")
		if err := c.Create(t.Context(), o, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		o.SetNamespace("")
	}
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// whatItDoes is what the model of a bundle tells.
func whatItDoes(b *bundles.Bundle) string {
	var out strings.Builder
	fmt.Fprintf(&out, "accounts %v\n", b.Accounts())
	for _, i := range b.Images() {
		fmt.Fprintf(&out, "image %s %s %s %s\n", i.Ref, i.Use, i.Owner, i.Name)
	}
	for _, r := range b.Rights() {
		fmt.Fprintf(&out, "right %s %s %+v %v\n", r.FormatSource(), r.Unknown, r.Rule, r.Holders)
	}
	return out.String()
}
