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

func labelsOf(cluster string) map[string]string {
	return map[string]string{v1alpha1.LabelCluster: cluster, labelManagedBy: "bellwether"}
}

// AgentRules is exactly what an agent may do in its namespace on the hub.
//
// It needs patch and update on operatorinstalls for its finalizer only; that it
// changes nothing else there is held by the admission policy bellwether-agents.
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
		{ // the backups that its policy asks for, and their removal; their spec cannot be changed
			APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"operatorbackups"},
			Verbs: []string{"get", "list", "watch", "create", "delete"},
		},
		{
			APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"operatorbackups/status"},
			Verbs: []string{"get", "patch", "update"},
		},
		{ // what runs on its cluster; the hub makes the object
			APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"operatorscans"},
			ResourceNames: []string{v1alpha1.ScanName}, Verbs: []string{"get"},
		},
		{
			APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"operatorscans/status"},
			ResourceNames: []string{v1alpha1.ScanName}, Verbs: []string{"update"},
		},
		{ // create cannot be bound to a name
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
		{ // it renews its own tokens
			APIGroups: []string{corev1.GroupName}, Resources: []string{"serviceaccounts/token"},
			ResourceNames: []string{v1alpha1.AgentServiceAccount}, Verbs: []string{"create"},
		},
		{ // the hub's certificate authority
			APIGroups: []string{corev1.GroupName}, Resources: []string{"configmaps"},
			ResourceNames: []string{"kube-root-ca.crt"}, Verbs: []string{"get"},
		},
	}
}

// AgentQuota bounds what an agent may create in its namespace on the hub. Leases and
// Events are bounded by the admission policies bellwether-agents-*, which permit few
// names: Kubernetes applies no quota to Events, and a quota of Leases would refuse the
// agent's first one until the quota was counted.
func AgentQuota() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceName("count/operatorbackups." + v1alpha1.SchemeGroupVersion.Group): resource.MustParse("500"),
	}
}

// access is what is observed of an agent's access to the hub.
type access struct {
	account *corev1.ServiceAccount
	role    *rbacv1.Role
	binding *rbacv1.RoleBinding
	quota   *corev1.ResourceQuota
	// scan is only metadata: the hub does not read what an agent found.
	scan *metav1.PartialObjectMetadata
}

// scanMeta is an OperatorScan of which only the metadata is read and cached.
func scanMeta() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("OperatorScan"))
	return object
}

func (a access) uid() types.UID {
	if a.account == nil {
		return ""
	}
	return a.account.UID
}

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
		"OperatorScan":   {scanMeta(), func(o client.Object) { a.scan = o.(*metav1.PartialObjectMetadata) }},
	} {
		key := client.ObjectKey{Namespace: namespace, Name: v1alpha1.AgentServiceAccount}
		switch err := r.Client.Get(ctx, key, target.object); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return access{}, fmt.Errorf("read %s %s: %w", name, key, err)
		default:
			target.keep(target.object)
		}
	}
	return a, nil
}

// inSync leaves out a missing ServiceAccount, which may have to stay away for a while.
func (a access) inSync(cluster string) bool {
	if a.role == nil || a.binding == nil || a.quota == nil || a.scan == nil {
		return false
	}
	for _, o := range []client.Object{a.role, a.binding, a.quota} {
		if !hasLabels(o, labelsOf(cluster)) {
			return false
		}
	}
	return (a.account == nil || hasLabels(a.account, labelsOf(cluster))) &&
		equality.Semantic.DeepEqual(a.role.Rules, AgentRules()) &&
		a.bindingFits() &&
		equality.Semantic.DeepEqual(a.binding.Subjects, subjects(a.binding.Namespace)) &&
		equality.Semantic.DeepEqual(a.quota.Spec, corev1.ResourceQuotaSpec{Hard: AgentQuota()})
}

// bindingFits tells whether the RoleBinding can stay: its role cannot be changed.
func (a access) bindingFits() bool {
	return a.binding == nil || a.binding.RoleRef == rbacv1.RoleRef{
		APIGroup: rbacv1.GroupName, Kind: "Role", Name: v1alpha1.AgentServiceAccount,
	}
}

func subjects(namespace string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: v1alpha1.AgentServiceAccount}}
}

func hasLabels(o client.Object, want map[string]string) bool {
	have := o.GetLabels()
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return true
}

// applyAccess makes the agent's access what it should be, but for the ServiceAccount itself. It
// hands out no token: a person does that. The bounds come before what they bound.
func (r *Reconciler) applyAccess(ctx context.Context, cluster string, seen access) error {
	namespace, name, labels := v1alpha1.ClusterNamespace(cluster), v1alpha1.AgentServiceAccount, labelsOf(cluster)
	force := client.ForceOwnership
	quota := corev1ac.ResourceQuota(name, namespace).WithLabels(maps.Clone(labels)).
		WithSpec(corev1ac.ResourceQuotaSpec().WithHard(AgentQuota()))
	if err := r.Client.Apply(ctx, quota, kit.FleetManager, force); err != nil {
		return fmt.Errorf("apply ResourceQuota: %w", err)
	}
	if seen.account != nil {
		// The UID keeps this from making another one in place of one that was deleted since.
		account := corev1ac.ServiceAccount(name, namespace).WithLabels(maps.Clone(labels)).WithUID(seen.account.UID)
		if err := r.Client.Apply(ctx, account, kit.FleetManager, force); err != nil {
			return fmt.Errorf("apply ServiceAccount: %w", err)
		}
	}
	if seen.scan == nil {
		scan := &v1alpha1.OperatorScan{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.ScanName,
			Labels: maps.Clone(labels)}}
		if err := r.Client.Create(ctx, scan, kit.FleetManager); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create OperatorScan: %w", err)
		}
	}
	role := rbacv1ac.Role(name, namespace).WithLabels(maps.Clone(labels)).WithRules(applyRules(AgentRules())...)
	if err := r.Client.Apply(ctx, role, kit.FleetManager, force); err != nil {
		return fmt.Errorf("apply Role: %w", err)
	}
	if !seen.bindingFits() {
		if err := r.Client.Delete(ctx, seen.binding); client.IgnoreNotFound(err) != nil {
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

// createAccount makes the agent's ServiceAccount. It accepts no token of one of that name before.
func (r *Reconciler) createAccount(ctx context.Context, cluster string) error {
	account := corev1ac.ServiceAccount(v1alpha1.AgentServiceAccount, v1alpha1.ClusterNamespace(cluster)).
		WithLabels(labelsOf(cluster))
	if err := r.Client.Apply(ctx, account, kit.FleetManager, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply ServiceAccount: %w", err)
	}
	// One that is gone at the next look was deleted after this.
	r.gone.forget(cluster)
	return nil
}

func applyRules(rules []rbacv1.PolicyRule) []*rbacv1ac.PolicyRuleApplyConfiguration {
	var out []*rbacv1ac.PolicyRuleApplyConfiguration
	for _, rule := range rules {
		out = append(out, rbacv1ac.PolicyRule().WithAPIGroups(rule.APIGroups...).WithResources(rule.Resources...).
			WithResourceNames(rule.ResourceNames...).WithVerbs(rule.Verbs...))
	}
	return out
}
