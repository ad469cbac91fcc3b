// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/bundles"
)

// TestRights checks the rights of bundles with their sources, holders and scopes.
func TestRights(t *testing.T) {
	const (
		pods    = `{apiGroups: [""], resources: [pods], verbs: [get]}`
		rbac    = "rbac.authorization.k8s.io/v1"
		binds   = "subjects: [{kind: ServiceAccount, name: a}, {kind: Group, name: g}]"
		nowhere = "which is not in the bundle"
	)
	// csv is one whose spec and strategy have more fields.
	csv := func(spec, strategy string) string {
		return "{apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, metadata: {name: e.v1}, " +
			"spec: {" +
			spec + "install: {strategy: deployment, spec: {" + strategy + "}}}}"
	}
	object := func(api, kind, metadata, rest string) string {
		return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: r%s}, %s}", api, kind, metadata, rest)
	}
	hook := func(kind, resource string) string {
		return csv("webhookdefinitions: [{type: "+kind+", generateName: w, rules: [{apiGroups: [g], resources: ['"+
			resource+"']}]}], ", "")
	}
	monitor := func(endpoint string) string {
		return object("monitoring.coreos.com/v1", "ServiceMonitor", "", "spec: {endpoints: [{"+endpoint+"}]}")
	}
	ref := func(kind string) string { return "roleRef: {kind: " + kind + ", name: r}, " + binds }
	runsAs := func(field string) string {
		return csv("", "deployments: [{name: d, spec: {template: {spec: {"+field+": a}}}}]")
	}
	for name, tc := range map[string]struct{ manifests, want []string }{
		"none": {[]string{csv("", "")}, nil},
		"permissions": {[]string{csv("", "permissions: [{serviceAccountName: a, rules: ["+pods+"]}]")},
			[]string{"permissions of service account a: get pods, targets; ServiceAccount a targets"}},
		"cluster permissions": {[]string{csv("", "clusterPermissions: [{rules: ["+pods+"]}]")},
			[]string{"clusterPermissions of service account : get pods, cluster; ServiceAccount default cluster"}},
		"a role that nothing binds": {[]string{csv("", ""), object(rbac, "ClusterRole", "", "rules: ["+pods+"]")},
			[]string{"ClusterRole r: get pods, cluster"}},
		"a role with subjects": {[]string{csv("", ""), object(rbac, "Role", "", "rules: ["+pods+"]"),
			object(rbac, "RoleBinding", "", ref("Role"))},
			[]string{"Role r: get pods, namespace; ServiceAccount a namespace; Group g namespace"}},
		"a role of the cluster in a namespace": {[]string{csv("", ""), object(rbac, "RoleBinding", "", ref("ClusterRole")),
			object(rbac, "ClusterRole", "", "rules: ["+pods+"]")},
			[]string{"ClusterRole r: get pods, cluster; ServiceAccount a namespace; Group g namespace"}},
		"roles of another API, which OLM knows by their kind": {[]string{csv("", ""),
			object("x/v1", "ClusterRole", "", "rules: ["+pods+"]"),
			object("y/v1", "ClusterRoleBinding", "", ref("ClusterRole"))},
			[]string{"ClusterRole r: get pods, cluster; ServiceAccount a cluster; Group g cluster"}},
		"a role that others take the rules of": {[]string{csv("", ""), object(rbac, "ClusterRole",
			", labels: {a: b, rbac.authorization.k8s.io/aggregate-to-edit: 'true', "+
				"bellwether.dev/aggregate-to-agent: ''}",
			"rules: ["+pods+"]")},
			[]string{"ClusterRole r: get pods, cluster; AggregatedTo bellwether.dev/aggregate-to-agent cluster; " +
				"AggregatedTo rbac.authorization.k8s.io/aggregate-to-edit cluster"}},
		"which a Role is not": {[]string{csv("", ""), object(rbac, "Role",
			", labels: {rbac.authorization.k8s.io/aggregate-to-edit: 'true'}", "rules: ["+pods+"]")},
			[]string{"Role r: get pods, namespace"}},
		"an aggregated role": {[]string{csv("", ""), object(rbac, "ClusterRole", "",
			"aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}"),
			object(rbac, "ClusterRoleBinding", "", ref("ClusterRole"))},
			[]string{"ClusterRole r: unknown, ClusterRole r is aggregated from others, those with the labels a=b, " +
				"cluster; " +
				"ServiceAccount a cluster; Group g cluster"}},
		"a binding to what the bundle does not bring": {[]string{csv("", ""), object(rbac, "Role", "", "rules: []"),
			object(rbac, "RoleBinding", "", ref("ClusterRole"))},
			[]string{"RoleBinding r: unknown, RoleBinding r binds ClusterRole r, " + nowhere +
				", cluster; ServiceAccount a namespace; Group g namespace"}},
		"a role that OLM takes for its own": {[]string{csv("", ""), object(rbac, "Role", ", labels: {olm.owner: e.v1}",
			"rules: ["+pods+"]")},
			[]string{"Role r: unknown, Role r has the label olm.owner, by which OLM may grant it in all namespaces, " +
				"cluster",
				"Role r: get pods, namespace"}},
		"a role that cannot be read": {[]string{csv("", ""), object(rbac, "Role", "", "rules: all")},
			[]string{"Role r: unknown, Role r cannot be read, cluster"}},
		"a validating webhook": {[]string{hook("ValidatingAdmissionWebhook", "things")},
			[]string{"webhook w: get,list,watch things in g, cluster"}},
		"a mutating webhook": {[]string{hook("MutatingAdmissionWebhook", "*/*")},
			[]string{"webhook w: get,list,watch,create,update,patch * in g, cluster"}},
		"a webhook for subresources": {[]string{hook("ValidatingAdmissionWebhook", "things/*")},
			[]string{"webhook w: get,list,watch things,things/* in g, cluster"}},
		"a conversion webhook": {[]string{hook("ConversionWebhook", "things")}, nil},
		"an API": {[]string{csv("apiservicedefinitions: {owned: [{name: things, group: g}]}, ", "")},
			[]string{"owned API things: * things in g, cluster"}},
		"a Deployment with an account of others": {[]string{runsAs("serviceAccountName")},
			[]string{"Deployment d: unknown, Deployment d runs as service account a, " + nowhere + ", cluster"}},
		"by the old field": {[]string{runsAs("serviceAccount")},
			[]string{"Deployment d: unknown, Deployment d runs as service account a, " + nowhere + ", cluster"}},
		"with one of the bundle": {[]string{runsAs("serviceAccount"),
			"{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}"}, nil},
		"a kind that OLM does not know": {[]string{csv("", ""), object("apps/v1", "DaemonSet", "", "spec: {}")},
			[]string{"DaemonSet r: unknown, what DaemonSet r of API group apps does is not known, cluster"}},
		"a kind of another API": {[]string{csv("", ""), object("x/v1", "Secret", "", "data: {}")},
			[]string{"Secret r: unknown, what Secret r of API group x does is not known, cluster"}},
		"a token of somebody else": {[]string{csv("", ""), object("v1", "Secret", ", annotations: "+
			"{kubernetes.io/service-account.name: admin}", "type: kubernetes.io/service-account-token")},
			[]string{"Secret r, which gets a token of service account admin: create serviceaccounts/token, namespace"}},
		"of its own account": {[]string{csv("", "permissions: [{serviceAccountName: a, rules: []}]"), object("v1",
			"Secret", ", annotations: {kubernetes.io/service-account.name: a}",
			"type: kubernetes.io/service-account-token")}, nil},
		"the token of Prometheus": {[]string{csv("", ""), monitor("bearerTokenFile: /var/run/token")},
			[]string{"ServiceMonitor r, whose bearerTokenFile has Prometheus send its own token: create " +
				"serviceaccounts/token, cluster"}},
		"by a field that is not known": {[]string{csv("", ""), monitor("proof: [{secretFile: /var/run/token}]")},
			[]string{"ServiceMonitor r, whose secretFile has Prometheus send its own token: create " +
				"serviceaccounts/token, cluster"}},
		"its certificates": {[]string{csv("", ""), monitor("tlsConfig: {caFile: a, certFile: b, keyFile: c, ca: " +
			"{configMap: {name: a, key: b}}}")}, nil},
		"by a scrape class": {[]string{csv("", ""), object("monitoring.coreos.com/v1", "ServiceMonitor", "",
			"spec: {scrapeClass: tokens}")},
			[]string{"ServiceMonitor r, whose scrapeClass has Prometheus send its own token: create " +
				"serviceaccounts/token, cluster"}},
		"Secrets that the operator can mount": {[]string{csv("", ""), monitor("basicAuth: {username: {name: u, key: k}, " +
			"password: {name: p, key: k}}, tlsConfig: {keySecret: {name: t, key: k}}")}, nil},
		"a ServiceMonitor that cannot be read": {[]string{csv("", ""), object("monitoring.coreos.com/v1",
			"ServiceMonitor", "", "spec: all")},
			[]string{"ServiceMonitor r: unknown, ServiceMonitor r cannot be read, cluster"}},
		"the priority of all pods": {[]string{csv("", ""), object("scheduling.k8s.io/v1", "PriorityClass", "",
			"globalDefault: true")},
			[]string{"PriorityClass r: unknown, PriorityClass r holds for all pods of the cluster that name none, " +
				"cluster"}},
		"a priority": {[]string{csv("", ""), object("scheduling.k8s.io/v1", "PriorityClass", "", "value: 1")}, nil},
		"another operator": {[]string{csv("", ""), object("operators.coreos.com/v1alpha1", "Subscription", "", "spec: {}")},
			[]string{"Subscription r: unknown, Subscription r makes OLM install another operator, cluster"}},
	} {
		t.Run(name, func(t *testing.T) {
			manifests := make([][]byte, 0, len(tc.manifests))
			for _, m := range tc.manifests {
				manifests = append(manifests, []byte(m))
			}
			for from, read := range map[string]func([][]byte) (*bundles.Bundle, error){
				"whole":                        func(m [][]byte) (*bundles.Bundle, error) { return bundles.FromManifests(m, nil) },
				"reduced to what gives rights": bundles.ParseForRights,
			} {
				b, err := read(manifests)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, r := range b.Rights() {
					got = append(got, inWords(r))
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", from, diff)
				}
			}
		})
	}
}

func inWords(r bundles.Right) string {
	what := fmt.Sprintf("%s %s", strings.Join(r.Rule.Verbs, ","), strings.Join(r.Rule.Resources, ","))
	if group := strings.Join(r.Rule.APIGroups, ","); group != "" {
		what += " in " + group
	}
	if r.Unknown != "" {
		what = "unknown, " + r.Unknown
	}
	text := fmt.Sprintf("%s: %s, %s", r.FormatSource(), what, r.Scope)
	for _, h := range r.Holders {
		text += fmt.Sprintf("; %s %s %s", h.Kind, h.Name, h.Scope)
	}
	return text
}

// TestPlacesOfRights checks the place of each right in its file.
func TestPlacesOfRights(t *testing.T) {
	b, err := bundles.FromManifests([][]byte{[]byte(`apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: e.v1}
spec:
  apiservicedefinitions:
    owned: [{name: things, group: g}]
  webhookdefinitions:
  - type: ValidatingAdmissionWebhook
    generateName: w
    rules:
    - {apiGroups: [g], resources: [things]}
  install:
    spec:
      permissions:
      - rules: []
      - serviceAccountName: a
        rules:
        - verbs: [get]
`), []byte(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: r}
roleRef: {kind: ClusterRole, name: cluster-admin}
`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, r := range b.Rights() {
		got[r.FormatSource()] = r.Object.Position(r.Path...)
	}
	want := map[string]int{"permissions of service account a": 18, "ClusterRoleBinding r": 4, "webhook w": 11,
		"owned API things": 6}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// TestAccounts checks that an account counts once, independent of its source.
func TestAccounts(t *testing.T) {
	const head = "{apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, metadata: {name: e.v1}, " +
		"spec: {install: {strategy: deployment, spec: {"
	for name, tc := range map[string]struct {
		strategy string
		others   []string
		want     []string
	}{
		"none":           {"", nil, nil},
		"permissions":    {"permissions: [{serviceAccountName: b}, {serviceAccountName: a}]", nil, []string{"a", "b"}},
		"without a name": {"clusterPermissions: [{rules: []}]", nil, []string{"default"}},
		"Deployments": {"deployments: [{name: a, spec: {template: {spec: {serviceAccountName: x}}}}, {name: b}]",
			nil, []string{"default", "x"}},
		"objects": {"permissions: [{serviceAccountName: a}]", []string{
			"{apiVersion: v1, kind: ServiceAccount, metadata: {name: z}}",
			"{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}"}, []string{"a", "z"}},
	} {
		t.Run(name, func(t *testing.T) {
			manifests := [][]byte{[]byte(head + tc.strategy + "}}}}")}
			for _, o := range tc.others {
				manifests = append(manifests, []byte(o))
			}
			b, err := bundles.ParseForRights(manifests)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, b.Accounts()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
