// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAddedPermissions checks that rights of all sources count, except those that existing rights cover.
func TestAddedPermissions(t *testing.T) {
	asks := func(field, rules string) string {
		return permitted(field + ": [{serviceAccountName: a, rules: [" + rules + "]}]")
	}
	const (
		reads  = `{apiGroups: [""], resources: [configmaps], verbs: [get, list]}`
		writes = `{apiGroups: [""], resources: [configmaps], verbs: [get, update]}`
		secret = `{apiGroups: [""], resources: [secrets], verbs: [list]}`
		all    = `{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}`
		role   = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: r}
rules: [` + secret + `]`
		binding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: `
		subjects = `}
subjects: [{kind: ServiceAccount, name: a}]`
		everywhere = " (service account a, in all namespaces)"
		reading    = ": it reads the secrets of all namespaces"
		unknown    = "rights that cannot be known: "
		plain      = "subjects: [{kind: ServiceAccount, name: a}]"
	)
	// object is one of RBAC, or of an API that OLM takes for it.
	object := func(api, kind, metadata, rest string) string {
		return "{apiVersion: " + api + ", kind: " + kind + ", metadata: {name: r, " + metadata + "}, " + rest + "}"
	}
	cluster := func(metadata, rest string) string {
		return object("rbac.authorization.k8s.io/v1", "ClusterRole", metadata, rest)
	}
	bound := func(subjects string) string {
		return object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "",
			"roleRef: {kind: ClusterRole, name: r}, "+subjects)
	}
	hook := func(kind, group, resource string) string {
		return csv("webhookdefinitions: [{type: "+kind+", generateName: w, rules: [{apiGroups: ['"+group+
			"'], resources: ["+resource+"]}]}],", "containers: []")
	}
	// runs is a bundle with two accounts, as one of which its Deployment runs.
	runs := func(account string) string {
		return strings.ReplaceAll(csv("", "serviceAccount: "+account+", containers: []"), "PERMISSIONS",
			"clusterPermissions: [{serviceAccountName: a, rules: ["+reads+"]}, {serviceAccountName: b, rules: ["+
				reads+", "+secret+"]}]")
	}
	modes := func(mode string) string {
		return strings.ReplaceAll(csv("installModes: [{type: "+mode+", supported: true}],", "containers: []"),
			"PERMISSIONS", "permissions: [{serviceAccountName: a, rules: ["+secret+"]}]")
	}
	scraped := func(endpoint string) string {
		return "{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: m}, " +
			"spec: {endpoints: [{" + endpoint + "}]}}"
	}
	harmless := []string{csv("", "containers: []")}
	with := func(manifests ...string) []string { return append(manifests, harmless...) }
	for name, test := range map[string]struct{ from, to, want []string }{
		"nothing": {from: []string{asks("permissions", reads)}, to: []string{asks("permissions", reads)}},
		"less":    {from: []string{asks("clusterPermissions", all)}, to: []string{asks("permissions", reads)}},
		"a verb": {from: []string{asks("permissions", reads)}, to: []string{asks("permissions", writes)},
			want: []string{"update configmaps (service account a, in its namespaces)"}},
		"in all namespaces": {from: []string{asks("permissions", secret)}, to: []string{asks("clusterPermissions",
			secret)}, want: []string{"list secrets" + everywhere + reading}},
		"by a role among the manifests": {from: []string{asks("permissions", reads), role},
			to:   []string{asks("permissions", reads), role, binding + "r" + subjects},
			want: []string{"list secrets" + everywhere + ": it reads the secrets of all namespaces"}},
		"by a role of the cluster": {from: []string{asks("permissions", reads)},
			to: []string{asks("permissions", reads), binding + "cluster-admin" + subjects},
			want: []string{unknown + "ClusterRoleBinding b binds ClusterRole cluster-admin, " +
				"which is not in the bundle" + everywhere}},
		"by a role of the cluster, where everything was permitted": {from: []string{asks("clusterPermissions", all)},
			to: []string{asks("permissions", reads), binding + "cluster-admin" + subjects}},
		"by the node's files": {from: harmless, to: []string{csv("", "containers: [], volumes: [{name: v, hostPath: {path: "+
			"/etc}}]")}, want: []string{"mounts /etc of the node (Deployment d)"}},
		"by its network and processes": {from: harmless, to: []string{csv("", "containers: [], hostNetwork: true, "+
			"hostPID: true, hostIPC: true")}, want: []string{
			"shares the memory segments of the node (hostIPC) (Deployment d)",
			"shares the network of the node (hostNetwork) (Deployment d)",
			"shares the processes of the node (hostPID) (Deployment d)"}},
		"by what containers may do": {from: harmless, to: []string{csv("", "containers: [{name: c, securityContext: "+
			"{privileged: true, capabilities: {add: [SYS_ADMIN]}}}]")}, want: []string{
			"has the capability SYS_ADMIN (Deployment d)", "runs a privileged container (Deployment d)"}},
		"which they did": {from: []string{csv("", "containers: [{name: c, securityContext: {privileged: true}}]")},
			to: []string{csv("", "initContainers: [{name: i, securityContext: {privileged: true}}]")}},
		"by the token of Prometheus": {from: harmless, to: with(scraped("bearerTokenFile: /token")),
			want: []string{"create serviceaccounts/token (tokens that Prometheus or a Secret gives to the operator)"}},
		"which it had": {from: with(scraped("bearerTokenFile: /token")),
			to: with(strings.ReplaceAll(scraped("bearerTokenFile: /other"), "name: m", "name: other"))},
		"by a kind that is not known": {from: harmless, to: with(object("x/v1", "Widget", "", "spec: {}")),
			want: []string{unknown + "what Widget r of API group x does is not known (the operator)"}},
		"by a role that nothing binds": {from: harmless, to: with(cluster("", "rules: ["+secret+"]")),
			want: []string{"list secrets (every subject that is bound to ClusterRole r)"}},
		"by a role that nothing binds any more": {from: with(cluster("", "rules: ["+secret+"]"), bound(plain)),
			to: with(cluster("", "rules: ["+secret+"]"))},
		"for everybody with a role of Kubernetes": {from: harmless, to: with(cluster(
			"labels: {rbac.authorization.k8s.io/aggregate-to-edit: 'true'}", "rules: ["+secret+"]")),
			want: []string{"list secrets (everybody with ClusterRole edit)"}},
		"for the agent": {from: harmless, to: with(cluster(
			"labels: {bellwether.dev/aggregate-to-agent-backup: 'true'}", "rules: ["+secret+"]")),
			want: []string{"list secrets (every subject that gets rights by the label " +
				"bellwether.dev/aggregate-to-agent-backup)"}},
		"by an aggregated role": {from: harmless, to: with(bound(plain), cluster("",
			"aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}")),
			want: []string{unknown + "ClusterRole r is aggregated from others, those with the labels a=b" +
				everywhere}},
		"by an aggregated role that takes others": {
			from: with(bound(plain), cluster("", "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}")),
			to:   with(bound(plain), cluster("", "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: c}}]}")),
			want: []string{unknown + "ClusterRole r is aggregated from others, those with the labels a=c" +
				everywhere}},
		"by a mutating webhook": {from: harmless, to: []string{hook("MutatingAdmissionWebhook", "", "pods")},
			want: []string{"create, get, list, patch, update, watch pods (admission webhooks): they see and change " +
				"what " +
				"others write"}},
		"by a validating webhook": {from: harmless, to: []string{hook("ValidatingAdmissionWebhook", "", "secrets")},
			want: []string{"get, list, watch secrets (admission webhooks): they see what others write"}},
		"by a webhook that was validating": {from: []string{hook("ValidatingAdmissionWebhook", "", "pods")},
			to: []string{hook("MutatingAdmissionWebhook", "", "pods")}, want: []string{
				"create, patch, update pods (admission webhooks): they see and change what others write"}},
		"by a webhook for a kind that it brought already": {from: with(crd("{type: object}")),
			to: []string{hook("MutatingAdmissionWebhook", "example.com", "things"), crd("{type: object}")}},
		"by a webhook for a kind that it brings now": {from: harmless,
			to: []string{hook("ValidatingAdmissionWebhook", "example.com", "things"), crd("{type: object}")},
			want: []string{
				"get, list, watch things (example.com) (admission webhooks): they see what others write"}},
		"by an API": {from: harmless, to: []string{csv("apiservicedefinitions: {owned: [{name: pods, group: "+
			"metrics.k8s.io}]},", "containers: []")},
			want: []string{"* pods (metrics.k8s.io) (APIs that the operator serves)"}},
		"by a role of another API, which OLM knows by its kind": {from: harmless,
			to: with(object("x/v1", "ClusterRole", "", "rules: ["+secret+"]"), object("x/v1", "ClusterRoleBinding", "",
				"roleRef: {kind: ClusterRole, name: r}, "+plain)),
			want: []string{"list secrets" + everywhere + reading}},
		"for a group that has the name of an account": {
			from: with(cluster("", "rules: ["+secret+"]"), bound("subjects: [{kind: ServiceAccount, name: g}]")),
			to:   with(cluster("", "rules: ["+secret+"]"), bound("subjects: [{kind: Group, name: g}]")),
			want: []string{"list secrets (group g, in all namespaces)" +
				reading}},
		"for an account of another namespace": {
			from: with(cluster("", "rules: ["+secret+"]"), bound(plain)),
			to: with(cluster("", "rules: ["+secret+"]"),
				bound("subjects: [{kind: ServiceAccount, name: a, namespace: x}]")),
			want: []string{"list secrets (service account a of namespace x, in all namespaces)" + reading}},
		"by a Deployment that runs as another account": {from: []string{runs("a")}, to: []string{runs("b")},
			want: []string{"list secrets (Deployment d, which now runs as service account b, in all namespaces)" +
				reading}},
		"by one with less rights": {from: []string{runs("b")}, to: []string{runs("a")}},
		"by an account that the bundle does not bring": {from: []string{runs("a")}, to: []string{runs("admin")},
			want: []string{unknown + "Deployment d runs as service account admin, which is not in the bundle " +
				"(the operator)"}},
		"by an install mode": {from: []string{modes("OwnNamespace")}, to: []string{modes("AllNamespaces")},
			want: []string{"list secrets (service account a, in all namespaces if it is installed for them)"}},
		"by an install mode that goes": {from: []string{modes("AllNamespaces")}, to: []string{modes("OwnNamespace")}},
		"by another operator": {from: harmless, to: with(object("operators.coreos.com/v1alpha1", "Subscription", "",
			"spec: {}")), want: []string{unknown + "Subscription r makes OLM install another operator (the operator)"}},
		"what is more than usual is first": {from: harmless,
			to: []string{asks("clusterPermissions", reads+", "+secret), binding + "cluster-admin" + subjects},
			want: []string{unknown + "ClusterRoleBinding b binds ClusterRole cluster-admin, " +
				"which is not in the bundle" + everywhere, "list secrets" + everywhere + reading,
				"get, list configmaps" + everywhere}},
	} {
		if diff := cmp.Diff(test.want, AddedPermissions(bundle(t, test.from...), bundle(t, test.to...))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
