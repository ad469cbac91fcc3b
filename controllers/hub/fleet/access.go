// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"maps"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

const labelManagedBy = "app.kubernetes.io/managed-by"

// buildLabels returns the labels of the objects that the hub creates for a cluster.
func buildLabels(cluster string) map[string]string {
	return map[string]string{v1alpha1.LabelCluster: cluster, labelManagedBy: "bellwether"}
}

// AgentRules returns all permissions of an agent in its namespace on the hub.
//
// An agent needs patch and update on operatorinstalls only for its finalizer. The admission
// policy bellwether-agents refuses any other change.
func AgentRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"operatorinstalls"},
			Verbs: []string{"get", "list", "watch", "patch", "update"},
		},
		{
			APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"operatorinstalls/status"},
			Verbs: []string{"get", "patch", "update"},
		},
		{ // to create and delete the backups that its policy requests; a spec cannot be changed
			APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"operatorbackups"},
			Verbs: []string{"get", "list", "watch", "create", "delete"},
		},
		{
			APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"operatorbackups/status"},
			Verbs: []string{"get", "patch", "update"},
		},
		{ // the report of what runs on its cluster; the hub creates the object
			APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"operatorscans"},
			ResourceNames: []string{v1alpha1.ScanName}, Verbs: []string{"get"},
		},
		{
			APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"operatorscans/status"},
			ResourceNames: []string{v1alpha1.ScanName}, Verbs: []string{"update"},
		},
		{ // create cannot be restricted to a name
			APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, Verbs: []string{"create"},
		},
		{
			APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"},
			ResourceNames: []string{v1alpha1.LeaseName}, Verbs: []string{"get", "patch", "update"},
		},
		{
			APIGroups: []string{eventsv1.GroupName}, Resources: []string{"events"},
			Verbs: []string{"create", "patch"},
		},
		{ // to renew its own tokens
			APIGroups: []string{corev1.GroupName}, Resources: []string{"serviceaccounts/token"},
			ResourceNames: []string{v1alpha1.AgentServiceAccount}, Verbs: []string{"create"},
		},
		{ // the hub's certificate authority
			APIGroups: []string{corev1.GroupName}, Resources: []string{"configmaps"},
			ResourceNames: []string{"kube-root-ca.crt"}, Verbs: []string{"get"},
		},
	}
}

// AgentQuota returns the limits for objects that an agent creates in its namespace on the hub.
// Leases and Events are limited by the admission policies bellwether-agents-*, which allow only
// a few names. Kubernetes applies no quota to Events, and a quota of Leases would refuse the
// agent's first Lease until the quota was calculated.
func AgentQuota() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceName("count/operatorbackups." + v1alpha1.SchemeGroupVersion.Group): resource.MustParse("500"),
	}
}

// access is the observed access of an agent to the hub. A nil field is a missing object.
type access struct {
	account *corev1.ServiceAccount
	role    *rbacv1.Role
	binding *rbacv1.RoleBinding
	quota   *corev1.ResourceQuota
	// scan has only metadata: the hub does not read the report of an agent.
	scan *metav1.PartialObjectMetadata
}

// newScanMetadata returns an empty OperatorScan of which only the metadata is read and cached.
func newScanMetadata() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("OperatorScan"))
	return object
}

// accountUID returns the UID of the ServiceAccount; empty if it is missing.
func (a access) accountUID() types.UID {
	if a.account == nil {
		return ""
	}
	return a.account.UID
}

// observeAccess reads the objects of the agent's access in a namespace.
func (r *Reconciler) observeAccess(ctx context.Context, namespace string) (access, error) {
	var a access
	for name, target := range map[string]struct {
		object client.Object
		keep   func(client.Object)
	}{
		"ServiceAccount": {&corev1.ServiceAccount{}, func(o client.Object) { a.account = o.(*corev1.ServiceAccount) }},
		"Role":           {&rbacv1.Role{}, func(o client.Object) { a.role = o.(*rbacv1.Role) }},
		"RoleBinding":    {&rbacv1.RoleBinding{}, func(o client.Object) { a.binding = o.(*rbacv1.RoleBinding) }},
		"ResourceQuota":  {&corev1.ResourceQuota{}, func(o client.Object) { a.quota = o.(*corev1.ResourceQuota) }},
		"OperatorScan":   {newScanMetadata(), func(o client.Object) { a.scan = o.(*metav1.PartialObjectMetadata) }},
	} {
		key := client.ObjectKey{Namespace: namespace, Name: v1alpha1.AgentServiceAccount}
		switch err := r.Client.Get(ctx, key, target.object); {
		case apierrors.IsNotFound(err): // the field stays nil
		case err != nil:
			return access{}, fmt.Errorf("read %s %s: %w", name, key, err)
		default:
			target.keep(target.object)
		}
	}
	return a, nil
}

// isInSync reports whether the objects are as the hub writes them. A missing ServiceAccount
// counts as in sync, because a ServiceAccount must sometimes stay missing for a while. The content
// of the OperatorScan is not compared, because the agent writes it.
func (a access) isInSync(cluster string) bool {
	if a.role == nil || a.binding == nil || a.quota == nil || a.scan == nil {
		return false
	}
	for _, o := range []client.Object{a.role, a.binding, a.quota} {
		if !hasLabels(o, buildLabels(cluster)) {
			return false
		}
	}
	return (a.account == nil || hasLabels(a.account, buildLabels(cluster))) &&
		equality.Semantic.DeepEqual(a.role.Rules, AgentRules()) &&
		a.canKeepBinding() &&
		equality.Semantic.DeepEqual(a.binding.Subjects, newSubjects(a.binding.Namespace)) &&
		equality.Semantic.DeepEqual(a.quota.Spec, corev1.ResourceQuotaSpec{Hard: AgentQuota()})
}

// canKeepBinding reports whether the RoleBinding is missing or has the right role. The role of a
// RoleBinding cannot be changed, so a wrong binding must be replaced.
func (a access) canKeepBinding() bool {
	return a.binding == nil || a.binding.RoleRef == rbacv1.RoleRef{
		APIGroup: rbacv1.GroupName, Kind: "Role", Name: v1alpha1.AgentServiceAccount,
	}
}

// newSubjects returns the subjects of the agent's RoleBinding.
func newSubjects(namespace string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: v1alpha1.AgentServiceAccount}}
}

// hasLabels reports whether an object has all wanted labels.
func hasLabels(o client.Object, want map[string]string) bool {
	labels := o.GetLabels()
	for key, value := range want {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// applyAccess writes the objects of the agent's access, but does not create the
// ServiceAccount and issues no token. The quota is written first, so that no permission
// exists without its limit.
func (r *Reconciler) applyAccess(ctx context.Context, cluster string, observed access) error {
	namespace, name, labels := v1alpha1.ClusterNamespace(cluster), v1alpha1.AgentServiceAccount, buildLabels(cluster)
	force := client.ForceOwnership
	quota := corev1ac.ResourceQuota(name, namespace).WithLabels(maps.Clone(labels)).
		WithSpec(corev1ac.ResourceQuotaSpec().WithHard(AgentQuota()))
	if err := r.Client.Apply(ctx, quota, kit.FleetManager, force); err != nil {
		return fmt.Errorf("apply ResourceQuota: %w", err)
	}
	if observed.account != nil {
		// The UID prevents the apply from creating a new account if the
		// account was deleted meanwhile.
		account := corev1ac.ServiceAccount(name, namespace).WithLabels(maps.Clone(labels)).WithUID(observed.account.UID)
		if err := r.Client.Apply(ctx, account, kit.FleetManager, force); err != nil {
			return fmt.Errorf("apply ServiceAccount: %w", err)
		}
	}
	if observed.scan == nil {
		scan := &v1alpha1.OperatorScan{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.ScanName,
			Labels: maps.Clone(labels)}}
		if err := r.Client.Create(ctx, scan, kit.FleetManager); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create OperatorScan: %w", err)
		}
	}
	role := rbacv1ac.Role(name, namespace).WithLabels(maps.Clone(labels)).WithRules(toApplyRules(AgentRules())...)
	if err := r.Client.Apply(ctx, role, kit.FleetManager, force); err != nil {
		return fmt.Errorf("apply Role: %w", err)
	}
	if !observed.canKeepBinding() {
		if err := r.Client.Delete(ctx, observed.binding); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete RoleBinding to a foreign role: %w", err)
		}
	}
	binding := rbacv1ac.RoleBinding(name, namespace).WithLabels(maps.Clone(labels)).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(name)).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(namespace).WithName(name))
	if err := r.Client.Apply(ctx, binding, kit.FleetManager, force); err != nil {
		return fmt.Errorf("apply RoleBinding: %w", err)
	}
	return nil
}

// createAccount creates the agent's ServiceAccount. Tokens of an earlier ServiceAccount with
// this name are not valid for it.
func (r *Reconciler) createAccount(ctx context.Context, cluster string) error {
	account := corev1ac.ServiceAccount(v1alpha1.AgentServiceAccount, v1alpha1.ClusterNamespace(cluster)).
		WithLabels(buildLabels(cluster))
	if err := r.Client.Apply(ctx, account, kit.FleetManager, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply ServiceAccount: %w", err)
	}
	// If the account is missing in the next pass, it was deleted after this write.
	r.absences.forget(cluster)
	return nil
}

// toApplyRules converts rules to their apply configurations.
func toApplyRules(rules []rbacv1.PolicyRule) []*rbacv1ac.PolicyRuleApplyConfiguration {
	var out []*rbacv1ac.PolicyRuleApplyConfiguration
	for _, rule := range rules {
		out = append(out, rbacv1ac.PolicyRule().WithAPIGroups(rule.APIGroups...).WithResources(rule.Resources...).
			WithResourceNames(rule.ResourceNames...).WithVerbs(rule.Verbs...))
	}
	return out
}
