// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// TestReadOnlyAgent verifies that an agent with read-only access gets only get, list and watch
// on its cluster, independent of other values. In its own namespace it may store its token, and
// emit an Event if the hub refuses the token.
func TestReadOnlyAgent(t *testing.T) {
	manifests, err := render(t, load(t), "agent: {enabled: true, cluster: canary, readOnly: true, bindView: true, "+
		"extraRules: [{apiGroups: [a.example.com], resources: [b], verbs: [delete]}], jobs: {namespaces: [jobs]}, "+
		"backup: {secrets: [store]}, pullSecrets: [login]}")
	if err != nil {
		t.Fatal(err)
	}
	var roles []string
	for _, manifest := range manifests {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(manifest), &role); err != nil {
			t.Fatal(err)
		}
		switch role.Kind {
		case "Deployment":
			if !strings.Contains(manifest, "--read-only=true\n") {
				t.Error("the agent is not told that it may only read")
			}
		case "ClusterRole", "Role":
			roles = append(roles, role.Kind+" "+role.Name)
		case "ClusterRoleBinding":
			var binding rbacv1.ClusterRoleBinding
			if err := yaml.Unmarshal([]byte(manifest), &binding); err != nil {
				t.Fatal(err)
			}
			if binding.RoleRef.Name != "bellwether-agent" {
				t.Errorf("the agent is bound to %s", binding.RoleRef.Name)
			}
		}
		if role.Kind != "ClusterRole" {
			continue
		}
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				if !slices.Contains([]string{"get", "list", "watch"}, verb) {
					t.Errorf("%s may %s %v", role.Name, verb, rule.Resources)
				}
			}
			if slices.Contains(rule.Resources, "secrets") || slices.Contains(rule.Resources, "configmaps") {
				t.Errorf("%s may read %v", role.Name, rule.Resources)
			}
		}
	}
	slices.Sort(roles)
	if got := strings.Join(roles, ", "); got != "ClusterRole bellwether-agent, Role bellwether-agent-credentials" {
		t.Errorf("roles: %s", got)
	}
}
