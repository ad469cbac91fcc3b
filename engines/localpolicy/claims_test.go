// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package localpolicy_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/engines/localpolicy"
)

const target = "argocd"

func subscription(uid types.UID, source, installed string) operatorsv1alpha1.Subscription {
	return operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: target, Name: string(uid), UID: uid},
		Spec:       &operatorsv1alpha1.SubscriptionSpec{CatalogSource: source, CatalogSourceNamespace: target},
		Status:     operatorsv1alpha1.SubscriptionStatus{InstalledCSV: installed, CurrentCSV: installed},
	}
}

func installPlan(of types.UID, csv string, created ...operatorsv1alpha1.StepResource) operatorsv1alpha1.InstallPlan {
	plan := operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "Subscription", UID: of}}},
		Spec:       operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{csv}},
	}
	for _, resource := range created {
		plan.Status.Plan = append(plan.Status.Plan, &operatorsv1alpha1.Step{Resolving: csv, Resource: resource,
			Status: operatorsv1alpha1.StepStatusCreated})
	}
	return plan
}

func account(name string, owners ...metav1.OwnerReference) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: target, Name: name,
		OwnerReferences: owners}}
}

func ownedBy(kind, name string) metav1.OwnerReference {
	return metav1.OwnerReference{Kind: kind, Name: name}
}

func labelled(labels ...string) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Namespace: target, Name: "b", Labels: map[string]string{}}
	for pair := range slices.Chunk(labels, 2) {
		out.Labels[pair[0]] = pair[1]
	}
	return out
}

func boundIn(meta metav1.ObjectMeta, ref string, subjects ...rbacv1.Subject) rbacv1.RoleBinding {
	return rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: ref}}
}

func everywhere(meta metav1.ObjectMeta, subjects ...rbacv1.Subject) rbacv1.ClusterRoleBinding {
	meta.Namespace = ""
	return rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster-admin"}}
}

func runsAsDefault(spec object) {
	d := strategy(spec)["deployments"].([]any)[0].(object)["spec"].(object)
	delete(d["template"].(object)["spec"].(object), "serviceAccountName")
}

// TestClaims checks that a bundle cannot name accounts and roles of others, because OLM would use them.
func TestClaims(t *testing.T) {
	ours := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: "ServiceAccount", Namespace: target, Name: name}
	}
	operator := bundleOf(t, asks("permissions", rule("", "pods", "get")))
	asDefault := bundleOf(t, runsAsDefault)
	source := []operatorsv1alpha1.Subscription{subscription("1", "ours", "echo.v2"),
		subscription("2", "other", "argo.v1")}
	byCSV, byCSV1 := ownedBy("ClusterServiceVersion", "echo.v2"), ownedBy("ClusterServiceVersion", "echo.v1")
	byOther := ownedBy("ClusterServiceVersion", "argo.v1")
	made := func(kind, name string) operatorsv1alpha1.StepResource {
		return operatorsv1alpha1.StepResource{Kind: kind, Name: name}
	}
	tests := map[string]struct {
		bundle  [][]byte
		cluster localpolicy.Cluster
		says    string
	}{
		"nothing is there": {bundle: operator},
		"an account without an owner": {bundle: operator, says: "account argocd/operator, which is there already",
			cluster: localpolicy.Cluster{Accounts: []metav1.PartialObjectMetadata{account("operator")}}},
		"that is bound": {bundle: operator, says: "bound by ClusterRoleBinding b (ClusterRole cluster-admin)",
			cluster: localpolicy.Cluster{Accounts: []metav1.PartialObjectMetadata{account("operator")},
				ClusterRoleBindings: []rbacv1.ClusterRoleBinding{everywhere(labelled(), ours("operator"))}}},
		"of a ServiceAccount of the bundle": {bundle: bundleOf(t, nil, object{"apiVersion": "v1",
			"kind": "ServiceAccount", "metadata": object{"name": "x"}}), says: "service account argocd/x",
			cluster: localpolicy.Cluster{Accounts: []metav1.PartialObjectMetadata{account("x")}}},
		"of another operator": {bundle: operator, says: "its owner is ClusterServiceVersion argo.v1",
			cluster: localpolicy.Cluster{Accounts: []metav1.PartialObjectMetadata{account("operator",
				ownedBy("ClusterServiceVersion", "argo.v1"))}}},
		"of this operator": {bundle: operator, cluster: localpolicy.Cluster{
			Accounts: []metav1.PartialObjectMetadata{account("operator", byCSV)},
			RoleBindings: []rbacv1.RoleBinding{
				boundIn(labelled("olm.owner", "echo.v2", "olm.owner.namespace", target), "r", ours("operator")),
				boundIn(metav1.ObjectMeta{Namespace: target, Name: "echo.v2", OwnerReferences: []metav1.OwnerReference{
					ownedBy("OperatorCondition", "echo.v2")}}, "r",
					rbacv1.Subject{Kind: "ServiceAccount", Name: "operator"}),
				boundIn(metav1.ObjectMeta{Namespace: "kube-system", Name: "echo-auth-reader"},
					"extension-apiserver-authentication-reader", ours("operator"))},
			ClusterRoleBindings: []rbacv1.ClusterRoleBinding{everywhere(labelled("olm.owner", "echo.v2",
				"olm.owner.namespace", target), ours("operator"))}}},
		"of its version before": {bundle: operator, cluster: localpolicy.Cluster{
			InstallPlans: []operatorsv1alpha1.InstallPlan{installPlan("1", "echo.v1")},
			Accounts:     []metav1.PartialObjectMetadata{account("operator", byCSV1)},
			RoleBindings: []rbacv1.RoleBinding{boundIn(labelled("olm.owner", "echo.v1", "olm.owner.namespace", target),
				"r", ours("operator"))}}},
		"of a plan that is for two operators": {bundle: operator, says: "its owner is ClusterServiceVersion argo.v1",
			cluster: localpolicy.Cluster{InstallPlans: []operatorsv1alpha1.InstallPlan{installPlan("1", "argo.v1")},
				Accounts: []metav1.PartialObjectMetadata{account("operator", byOther)}}},
		"a binding that its bundle brought": {bundle: operator, cluster: localpolicy.Cluster{
			InstallPlans: []operatorsv1alpha1.InstallPlan{installPlan("1", "echo.v2", made("RoleBinding", "b"))},
			Accounts:     []metav1.PartialObjectMetadata{account("operator", byCSV)},
			RoleBindings: []rbacv1.RoleBinding{boundIn(labelled("olm.managed", "true"), "r", ours("operator"))}}},
		"a binding of others": {bundle: operator, says: "bound by RoleBinding argocd/b (Role r)",
			cluster: localpolicy.Cluster{Accounts: []metav1.PartialObjectMetadata{account("operator", byCSV)},
				RoleBindings: []rbacv1.RoleBinding{boundIn(labelled("olm.managed", "true"), "r", ours("operator"))}}},
		"a binding before its account": {bundle: operator, says: "bound by RoleBinding argocd/b",
			cluster: localpolicy.Cluster{RoleBindings: []rbacv1.RoleBinding{boundIn(labelled(), "r", rbacv1.Subject{
				Kind: "User", Name: "system:serviceaccount:argocd:operator"})}}},
		"an owner of the same name elsewhere": {bundle: operator, says: "bound by", cluster: localpolicy.Cluster{
			ClusterRoleBindings: []rbacv1.ClusterRoleBinding{everywhere(labelled("olm.owner", "echo.v2",
				"olm.owner.namespace", "other"), ours("operator"))}}},
		"default": {bundle: asDefault, cluster: localpolicy.Cluster{
			Accounts: []metav1.PartialObjectMetadata{account("default")}}},
		"default with rights": {bundle: asDefault, says: "argocd/default is bound by", cluster: localpolicy.Cluster{
			Accounts:            []metav1.PartialObjectMetadata{account("default")},
			ClusterRoleBindings: []rbacv1.ClusterRoleBinding{everywhere(labelled(), ours("default"))}}},
		"another account": {bundle: operator, cluster: localpolicy.Cluster{
			ClusterRoleBindings: []rbacv1.ClusterRoleBinding{everywhere(labelled(), ours("x"), rbacv1.Subject{
				Kind: "ServiceAccount", Namespace: "other", Name: "operator"})}}},
		"a role of the cluster": {bundle: bundleOf(t, nil, role("ClusterRole", "cluster-admin")),
			says: "brings ClusterRole cluster-admin, which is there already", cluster: localpolicy.Cluster{
				Roles: map[localpolicy.Role]metav1.PartialObjectMetadata{
					{Kind: "ClusterRole", Name: "cluster-admin"}: {}}}},
		"a role of OLM": {bundle: bundleOf(t, nil, role("ClusterRole", "r")), cluster: localpolicy.Cluster{
			Roles: map[localpolicy.Role]metav1.PartialObjectMetadata{{Kind: "ClusterRole", Name: "r"}: {
				ObjectMeta: labelled("olm.managed", "true")}}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			claims, err := parse(t, "permissions: {denyClusterWildcards: true}").ReadClaims("echo.v3", target,
				test.bundle)
			if err != nil {
				t.Fatal(err)
			}
			test.cluster.Source, test.cluster.Subscriptions = "ours", source
			refused(t, claims.Judge(test.cluster), test.says)
		})
	}
}

func TestClaimsAreThoseOfTheBundle(t *testing.T) {
	bundle := bundleOf(t, func(spec object) {
		asks("clusterPermissions", rule("", "pods", "get"))(spec)
		runsAsDefault(spec)
	}, role("Role", "r"), object{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": "more"}})
	claims, err := parse(t, "permissions: {denyClusterWildcards: true}").ReadClaims("echo", target, bundle)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"default", "more", "operator"}, claims.Accounts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]localpolicy.Role{{Kind: "Role", Name: "r"}}, claims.Roles); diff != "" {
		t.Error(diff)
	}
	for _, policy := range []*localpolicy.Policy{nil, parse(t, "{}"), parse(t, "allowedRegistries: [quay.io]")} {
		if claims, err := policy.ReadClaims("echo", target, bundle); claims != nil || err != nil {
			t.Errorf("without limits on permissions: %v, %v", claims, err)
		}
	}
}
