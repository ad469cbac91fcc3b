// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// asHub returns a client with the credentials of the hub's pod.
func (h *harness) asHub(t *testing.T) client.Client {
	t.Helper()
	config, err := h.cluster.UserConfig(hubUser, "system:serviceaccounts", "system:serviceaccounts:"+hubNamespace)
	must(t, err)
	return h.as(t, config)
}

// TestTheHubsCredentialsLeadToNoOthers tries to become another ServiceAccount with the credentials of the hub's pod.
// The hub's own namespace has an agent: the hub's cluster may be a member of the fleet.
func TestTheHubsCredentialsLeadToNoOthers(t *testing.T) {
	h := start(t)
	hub := h.asHub(t)
	cluster := fleetCluster("escalation")
	h.join(t, cluster)
	own := cluster.Status.Namespace
	privileged := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace,
		Name: v1alpha1.AgentServiceAccount}}
	must(t, h.Create(t.Context(), privileged))
	t.Cleanup(func() { _ = h.Delete(t.Context(), privileged) })

	meta := func(namespace string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.AgentServiceAccount}
	}
	tokenOf := func(namespace, name, account string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
			Annotations: map[string]string{corev1.ServiceAccountNameKey: account}},
			Type: corev1.SecretTypeServiceAccountToken}
	}
	binding := func(namespace, role string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "made"},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: hubNamespace,
				Name: "bellwether-hub"}}}
	}
	create := func(o client.Object) func() error {
		return func() error { return hub.Create(t.Context(), o) }
	}
	token := func(namespace, name string) func() error {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		return func() error {
			return hub.SubResource("token").Create(t.Context(), account, &authenticationv1.TokenRequest{})
		}
	}
	for name, try := range map[string]func() error{
		"a token Secret in kube-system": create(tokenOf(metav1.NamespaceSystem, "bellwether-agent-token",
			"namespace-controller")),
		"a token Secret in its own namespace": create(tokenOf(hubNamespace, "bellwether-alertmanager",
			privileged.Name)),
		"a token Secret in a cluster's namespace": create(tokenOf(own, "bellwether-agent-token", privileged.Name)),
		"a token of an agent":                     token(own, v1alpha1.AgentServiceAccount),
		"a token of the agent beside it":          token(hubNamespace, privileged.Name),
		"a token of another ServiceAccount":       token(metav1.NamespaceSystem, "namespace-controller"),
		"a ServiceAccount in kube-system": create(
			&corev1.ServiceAccount{ObjectMeta: meta(metav1.NamespaceSystem)}),
		"a Role in kube-system": create(&rbacv1.Role{ObjectMeta: meta(metav1.NamespaceSystem),
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"},
				ResourceNames: []string{v1alpha1.AgentServiceAccount}, Verbs: []string{"create"}}}}),
		"a Role beyond its rights": create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "made"},
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"},
				Verbs: []string{"get"}}}}),
		"cluster-admin in a cluster's namespace": create(binding(own, "cluster-admin")),
		"cluster-admin in kube-system":           create(binding(metav1.NamespaceSystem, "cluster-admin")),
		"a ClusterRoleBinding": create(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "made"},
			RoleRef: binding("", "cluster-admin").RoleRef, Subjects: binding("", "").Subjects}),
		"a quota that stops kube-system": create(&corev1.ResourceQuota{ObjectMeta: meta(metav1.NamespaceSystem),
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("0")}}}),
		"a namespace": create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "made"}}),
		"a namespace with a cluster's label": create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "made",
			Labels: map[string]string{v1alpha1.LabelCluster: "escalation"}}}),
		"the end of another namespace": func() error {
			return hub.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hubNamespace}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := try(); !apierrors.IsForbidden(err) {
				t.Errorf("the hub gets it: %v", err)
			} else {
				t.Log(err)
			}
		})
	}
}

// TestTheHubMayNoMore asks the API server what the hub may do.
func TestTheHubMayNoMore(t *testing.T) {
	h := start(t)
	hub := h.asHub(t)
	const rbac = rbacv1.GroupName
	for name, test := range map[string]struct {
		attributes authorizationv1.ResourceAttributes
		want       bool
	}{
		"its own Secret": {authorizationv1.ResourceAttributes{Namespace: hubNamespace, Verb: "patch",
			Resource: "secrets", Name: "bellwether-alertmanager"}, true},
		"a token of an earlier version": {authorizationv1.ResourceAttributes{Namespace: "bellwether-a", Verb: "get",
			Resource: "secrets", Name: "bellwether-agent-token"}, false},
		"another Secret": {authorizationv1.ResourceAttributes{Namespace: "bellwether-a", Verb: "get",
			Resource: "secrets", Name: "other"}, false},
		"creating Secrets": {authorizationv1.ResourceAttributes{Namespace: "bellwether-a", Verb: "create",
			Resource: "secrets"}, false},
		"all Secrets": {authorizationv1.ResourceAttributes{Verb: "list", Resource: "secrets"}, false},
		"any Role": {authorizationv1.ResourceAttributes{Namespace: "default", Verb: "patch", Group: rbac,
			Resource: "roles", Name: "other"}, false},
		"ClusterRoles": {authorizationv1.ResourceAttributes{Verb: "create", Group: rbac, Resource: "clusterroles"},
			false},
		"rights beyond its own": {authorizationv1.ResourceAttributes{Namespace: "default", Verb: "escalate",
			Group: rbac, Resource: "roles", Name: "bellwether-agent"}, false},
		"roles beyond its own": {authorizationv1.ResourceAttributes{Namespace: "default", Verb: "bind", Group: rbac,
			Resource: "clusterroles", Name: "cluster-admin"}, false},
		"being a user":  {authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users"}, false},
		"being a group": {authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "groups"}, false},
		"being a ServiceAccount": {authorizationv1.ResourceAttributes{Verb: "impersonate", Namespace: "bellwether-a",
			Resource: "serviceaccounts", Name: "bellwether-agent"}, false},
		"reading pods": {authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"}, false},
		"making pods":  {authorizationv1.ResourceAttributes{Namespace: "a", Verb: "create", Resource: "pods"}, false},
		"nodes": {authorizationv1.ResourceAttributes{Verb: "get", Resource: "nodes",
			Subresource: "proxy"}, false},
		"its own policy": {authorizationv1.ResourceAttributes{Verb: "delete", Group: "admissionregistration.k8s.io",
			Resource: "validatingadmissionpolicies", Name: "bellwether-hub"}, false},
		"certificates": {authorizationv1.ResourceAttributes{Verb: "update", Group: "certificates.k8s.io",
			Resource: "certificatesigningrequests", Subresource: "approval"}, false},
		"labels of a namespace": {authorizationv1.ResourceAttributes{Verb: "patch", Resource: "namespaces",
			Name: "kube-system"}, false},
		"overriding a gate of its own rollout": {authorizationv1.ResourceAttributes{Verb: "override",
			Group: "bellwether.dev", Resource: "operatorrollouts"}, false},
		"approving its own rollout": {authorizationv1.ResourceAttributes{Verb: "approve", Group: "bellwether.dev",
			Resource: "operatorrollouts"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			review := &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &test.attributes},
			}
			must(t, hub.Create(t.Context(), review))
			if review.Status.Allowed != test.want {
				t.Errorf("allowed = %v, want %v (%s)", review.Status.Allowed, test.want, review.Status.Reason)
			}
		})
	}
}
