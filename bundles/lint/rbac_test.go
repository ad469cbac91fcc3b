// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestCovers(t *testing.T) {
	rule := func(groups, resources, verbs, names []string) grant {
		return grant{PolicyRule: rbacv1.PolicyRule{APIGroups: groups, Resources: resources, Verbs: verbs,
			ResourceNames: names}}
	}
	all := []string{"*"}
	for name, tc := range map[string]struct {
		grant grant
		right permission
		want  bool
	}{
		"the same": {rule([]string{""}, []string{"pods"}, []string{"get"}, nil),
			permission{resource: "pods", verb: "get"}, true},
		"another verb": {rule([]string{""}, []string{"pods"}, []string{"get"}, nil),
			permission{resource: "pods", verb: "list"}, false},
		"another group": {rule([]string{"apps"}, []string{"pods"}, []string{"get"}, nil),
			permission{resource: "pods", verb: "get"}, false},
		"everything": {rule(all, all, all, nil),
			permission{group: "apps", resource: "deployments/scale", verb: "get"}, true},
		"a subresource": {rule([]string{""}, []string{"pods"}, all, nil),
			permission{resource: "pods/exec", verb: "create"}, false},
		"all such subresources": {rule(all, []string{"*/scale"}, all, nil),
			permission{group: "apps", resource: "deployments/scale", verb: "get"}, true},
		"one by its name": {rule([]string{""}, []string{"secrets"}, all, []string{"a"}),
			permission{resource: "secrets", verb: "get", name: "a"}, true},
		"all of one name": {rule([]string{""}, []string{"secrets"}, all, []string{"a"}),
			permission{resource: "secrets", verb: "get"}, false},
		"one of all": {rule([]string{""}, []string{"secrets"}, all, nil),
			permission{resource: "secrets", verb: "get", name: "a"}, true},
		"a wildcard of a list": {rule([]string{""}, []string{"pods", "services"}, all, nil),
			permission{resource: "*", verb: "get"}, false},
		"a URL": {grant{PolicyRule: rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"},
			Verbs: all}}, permission{url: "/metrics", verb: "get"}, true},
		"URLs by a prefix": {grant{PolicyRule: rbacv1.PolicyRule{NonResourceURLs: []string{"/debug/*"},
			Verbs: all}}, permission{url: "/debug/pprof", verb: "get"}, true},
		"another URL": {grant{PolicyRule: rbacv1.PolicyRule{NonResourceURLs: []string{"/debug/*"},
			Verbs: all}}, permission{url: "/metrics", verb: "get"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hasPermission(tc.grant, tc.right); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestCompact(t *testing.T) {
	got := formatPermissions([]permission{
		{resource: "pods", verb: "get"}, {resource: "pods", verb: "list"}, {resource: "services", verb: "get"},
		{resource: "services", verb: "list"},
		{group: "apps", resource: "deployments", verb: "delete"}, {resource: "secrets", name: "a", verb: "get"},
		{url: "/metrics", verb: "get"},
	})
	want := "delete on deployments.apps; get on /metrics, secrets a; get, list on pods, services"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Growth is about rights; the way in which they are written does not matter.
func TestGrowth(t *testing.T) {
	const head = "-- manifests/echo-operator.clusterserviceversion.yaml.patch --\nspec:\n  install:\n    spec:\n      "
	const touch = "-- history/1.0.0/metadata/annotations.yaml.patch --\nannotations: {}\n"
	const subject = "{kind: ServiceAccount, name: echo-operator, namespace: echo}"
	role := func(api, metadata string) string {
		return "-- manifests/role.yaml --\napiVersion: " + api + "\nkind: ClusterRole\nmetadata: {name: extra" +
			metadata +
			"}\nrules: [{apiGroups: [''], resources: [nodes], verbs: [list]}]\n"
	}
	binding := func(kind, subjects string) string {
		return "-- manifests/binding.yaml --\napiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind +
			"\nmetadata: {name: extra}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, " +
			"name: extra}\n" +
			"subjects: [" +
			subjects + "]\n" + touch
	}
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"fewer": {head + "clusterPermissions: null\n" + touch, nil},
		"from one role to the other": {head +
			"clusterPermissions:\n      - serviceAccountName: echo-operator\n        rules: []\n      permissions:\n " +
			"     - serviceAccountName: echo-operator\n        rules: [{apiGroups: [apps], resources: [deployments], " +
			"verbs: [get]}]\n" + touch, nil},
		"no predecessor": {head +
			"clusterPermissions:\n      - serviceAccountName: echo-operator\n        rules: [{apiGroups: ['*'], " +
			"resources: ['*'], verbs: ['*']}]\n", nil},
		"everything": {head +
			"clusterPermissions:\n      - serviceAccountName: echo-operator\n        rules: [{apiGroups: ['*'], " +
			"resources: ['*'], verbs: ['*']}]\n" + touch, []string{"new since 1.0.0, in all namespaces: * on *.*"}},
		"a role among the manifests": {role("rbac.authorization.k8s.io/v1", "") + binding("ClusterRoleBinding", subject),
			[]string{"new since 1.0.0, in all namespaces: list on nodes"}},
		"one of another API, which OLM knows by its kind": {role("x/v1", "") + binding("ClusterRoleBinding", subject),
			[]string{"new since 1.0.0, in all namespaces: list on nodes"}},
		"one that is bound in a namespace": {role("rbac.authorization.k8s.io/v1", "") + binding("RoleBinding", subject),
			[]string{"new since 1.0.0: list on nodes"}},
		"one that nobody is bound to":   {role("rbac.authorization.k8s.io/v1", "") + binding("ClusterRoleBinding", ""), nil},
		"a role that nothing binds yet": {role("rbac.authorization.k8s.io/v1", "") + touch, nil},
		"a role for users": {role("rbac.authorization.k8s.io/v1", ", labels: {rbac.authorization.k8s.io/aggregate-to-edit: "+
			"'true'}") + touch, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in, o := examplePlay(t, tc.text)
			var got []string
			for _, f := range of(Run(in, o).Findings, "rbac-growth") {
				got = append(got, f.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Rules that become valid in more namespaces, or in more install modes, count as growth.
func TestGrowthOfScope(t *testing.T) {
	csv := func(history, field string) string {
		return "-- " + history + "manifests/echo-operator.clusterserviceversion.yaml.patch --\nspec:\n  install:\n " +
			"   " +
			"spec:\n      permissions: null\n      clusterPermissions: null\n" +
			"-- " + history + "manifests/echo-operator.clusterserviceversion.yaml.patch --\nspec:\n  install:\n    " +
			"spec:\n      " + field + ":\n      - serviceAccountName: echo-operator\n        rules:\n        " +
			"- {apiGroups: [''], resources: [secrets], verbs: [get]}\n"
	}
	for name, tc := range map[string]struct {
		before, after string
		want          []string
	}{
		"the same":         {"permissions", "permissions", nil},
		"of the cluster":   {"clusterPermissions", "clusterPermissions", nil},
		"less than it was": {"clusterPermissions", "permissions", nil},
		"more than it was": {"permissions", "clusterPermissions",
			[]string{"warning: new since 1.0.0, in all namespaces: get on secrets"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := csv("history/1.0.0/", tc.before) + csv("", tc.after)
			if diff := cmp.Diff(tc.want, messages(t, "rbac-growth", text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
