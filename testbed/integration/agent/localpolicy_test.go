// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/localpolicy"
)

// TestLocalPolicyBoundsTheHub plays a hub that was taken over: it admits the cluster to
// an operator with all rights, from a catalog that nobody signed. Where the owner of the
// cluster wrote no policy the agent installs it. Where there is one the agent refuses it
// before it makes anything, and leaves alone what runs.
func TestLocalPolicyBoundsTheHub(t *testing.T) {
	t.Parallel()
	const own = "policed-agent"
	agent := start(t, quiet(t), "policed", "--own-namespace", own)
	agent.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: own}})

	early := agent.of(t, "early")
	early.to(early.pin(takeover("1.0.0", "1.1.0")...), "1.0.0")
	early.runs()

	policy := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: localpolicy.ConfigMap},
		Data: map[string]string{localpolicy.Key: "permissions: {denyClusterWildcards: true}"}}
	agent.create(policy)

	late := agent.of(t, "intruding")
	late.to(late.pin(takeover("1.0.0")...), "1.0.0")
	late.stalls(v1alpha1.ReasonLocalPolicy, "a wildcard in all namespaces", localpolicy.ConfigMap)
	late.madeNothing()

	release := releaseOf("intruding", late.pin(line("1.0.0")...), "1.0.0")
	release.Install.Namespace = "kube-system"
	late.admit(release)
	late.stalls(v1alpha1.ReasonLocalPolicy, "namespace kube-system is denied")

	early.to(early.pin(takeover("1.0.0", "1.1.0")...), "1.0.0") // another stamp makes the agent look again at once
	early.says("early.v1.0.0 runs. The policy of the cluster's owner does not permit this release")
	early.to(early.pin(takeover("1.0.0", "1.1.0")...), "1.1.0")
	early.stalls(v1alpha1.ReasonLocalPolicy, "early.v1.1.0")
	if early.csv("1.1.0") != nil || early.csv("1.0.0") == nil {
		t.Error("what ran was not left as it was")
	}

	policy.Data[localpolicy.Key] = "allowedRegistries: [registry.example.com]"
	agent.must(agent.Update(t.Context(), policy))
	late.to(late.pin(line("1.0.0")...), "1.0.0")
	late.stalls(v1alpha1.ReasonLocalPolicy, "has no registry")

	policy.Data[localpolicy.Key] = "alowedRegistries: []"
	agent.must(agent.Update(t.Context(), policy))
	late.to(late.pin(line("1.0.0")...), "1.0.0")
	late.stalls(v1alpha1.ReasonLocalPolicyInvalid, "alowedRegistries")
	late.madeNothing()

	policy.Data[localpolicy.Key] = "permissions: {denyClusterWildcards: true}"
	agent.must(agent.Update(t.Context(), policy))
	late.to(late.pin(line("1.0.0")...), "1.0.0")
	late.runs()
	late.to(late.pin(line("1.0.0", "1.1.0")...), "1.1.0") // its service account is there, and its own
	late.runs()
	if late.csv("1.1.0") == nil {
		t.Error("the upgrade was not made")
	}

	// Another operator's account has rights that no bundle asks for.
	agent.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "claimed"}})
	agent.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "claimed", Name: "operator"}})
	agent.create(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "of-claimed"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "claimed", Name: "operator"}}})
	claiming := agent.of(t, "claimed")
	claiming.to(claiming.pin(line("1.0.0")...), "1.0.0")
	claiming.stalls(v1alpha1.ReasonLocalPolicy, "service account claimed/operator, which is there already",
		"ClusterRoleBinding of-claimed")
}

// takeover is a line of versions that have all rights.
func takeover(versions ...string) []bundle {
	bundles := line(versions...)
	for i := range bundles {
		bundles[i].change = func(csv, _ object) {
			csv["spec"].(object)["install"].(object)["spec"].(object)["clusterPermissions"] = []any{object{
				"serviceAccountName": "operator", "rules": []any{object{"apiGroups": []any{"*"},
					"resources": []any{"*"}, "verbs": []any{"*"}}}}}
		}
	}
	return bundles
}

// madeNothing checks that there is not even a namespace for the operator.
func (h *harness) madeNothing() {
	h.t.Helper()
	err := h.Get(h.t.Context(), client.ObjectKey{Name: h.operator}, &corev1.Namespace{})
	if client.IgnoreNotFound(err) != nil || err == nil {
		h.t.Errorf("namespace %s is there, or cannot be looked for: %v", h.operator, err)
	}
}
