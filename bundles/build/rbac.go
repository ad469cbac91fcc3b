// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/bundles"
)

// permissions are the rules that OLM grants to the operator's accounts, by the name of the account, and the roles whose
// rules these are.
type permissions struct {
	// namespaced are rules that apply in a namespace, and cluster are rules that apply in the whole cluster.
	namespaced, cluster map[string][]rbacv1.PolicyRule
	// absorbed are roles whose rules are in the CSV; kept are roles that must also stay because a remaining binding
	// needs them.
	absorbed, kept map[roleKey]bool
	// renamed are roles that exist only under OLM's names; bindable are roles that also exist under their own names.
	renamed, bindable []string
}

// roleKey identifies a Role or a ClusterRole.
type roleKey struct{ kind, name string }

// grantPermissions converts the roles that are bound to the operator's accounts to permissions of the CSV, because OLM
// creates these accounts, their roles and their bindings. Bindings of other subjects stay manifests.
func (a *assembler) grantPermissions() {
	p := &a.permissions
	p.namespaced, p.cluster = map[string][]rbacv1.PolicyRule{}, map[string][]rbacv1.PolicyRule{}
	p.absorbed, p.kept = map[roleKey]bool{}, map[roleKey]bool{}
	accounts := a.listAccounts()
	for _, b := range a.listBindings() {
		granted := p.cluster
		if b.GetKind() == kindRoleBinding {
			granted = p.namespaced
		}
		a.keepBinding(b.object, a.grantRole(b, accounts, granted), accounts)
	}
	operatorBinds := p.canBind()
	for _, r := range a.objects.roles {
		a.keepRole(r.object, kindRole, operatorBinds)
	}
	for _, r := range a.objects.clusterRoles {
		a.keepRole(r.object, kindClusterRole, operatorBinds)
	}
	a.warnAboutNames()
	a.warnAboutDefaultAccount()
	a.placeAccounts(accounts)
}

// binding is a RoleBinding or a ClusterRoleBinding.
type binding struct {
	object
	ref      rbacv1.RoleRef
	subjects []rbacv1.Subject
}

// listBindings returns the RoleBindings, followed by the ClusterRoleBindings.
func (a *assembler) listBindings() []binding {
	var out []binding
	for _, b := range a.objects.roleBindings {
		out = append(out, binding{b.object, b.value.RoleRef, b.value.Subjects})
	}
	for _, b := range a.objects.clusterRoleBindings {
		out = append(out, binding{b.object, b.value.RoleRef, b.value.Subjects})
	}
	return out
}

// listAccounts returns the accounts that OLM creates: the operator's own accounts, and accounts that bindings name in
// the namespace of the operator. A binding in the bundle would name the same namespace on every cluster, but OLM
// creates accounts of permissions in the operator's namespace.
func (a *assembler) listAccounts() map[string]bool {
	out := a.listOwnAccounts()
	if len(a.objects.deployments) == 0 {
		return out // the install strategy of the base stays as it is
	}
	candidates := []string{bundles.DefaultAccount} // exists in every namespace
	for _, o := range a.objects.accounts {
		candidates = append(candidates, o.GetName())
	}
	for _, name := range candidates {
		if a.isBoundInNamespace(name) {
			out[name] = true
		}
	}
	return out
}

// listOwnAccounts returns the accounts that Deployments run as, and those of Options.ServiceAccounts.
func (a *assembler) listOwnAccounts() map[string]bool {
	out := map[string]bool{}
	for _, d := range a.objects.deployments {
		out[bundles.ReadServiceAccount(d.value.Spec.Template.Spec)] = true
	}
	for _, name := range a.options.ServiceAccounts {
		out[name] = true
	}
	return out
}

// isBoundInNamespace reports whether a binding grants rules to an account in the operator's namespace.
func (a *assembler) isBoundInNamespace(account string) bool {
	return slices.ContainsFunc(a.listBindings(), func(b binding) bool {
		rules, _ := a.findRules(roleKey{b.ref.Kind, b.ref.Name})
		return len(rules) > 0 && slices.ContainsFunc(b.subjects, func(s rbacv1.Subject) bool {
			return s.Kind == kindServiceAccount && s.Name == account && a.isInNamespace(s.Namespace)
		})
	})
}

// grantRole adds the rules of a bound role to granted, the permissions of those subjects that are accounts of the
// operator, and records that the role is absorbed. It returns the other subjects; these need the role too, so it is
// also kept. If the rules are not known, it grants nothing and returns all subjects.
func (a *assembler) grantRole(b binding, accounts map[string]bool,
	granted map[string][]rbacv1.PolicyRule) []rbacv1.Subject {
	isOwn := func(s rbacv1.Subject) bool {
		return s.Kind == kindServiceAccount && accounts[s.Name] && a.isInNamespace(s.Namespace)
	}
	key := roleKey{b.ref.Kind, b.ref.Name}
	rules, isKnown := a.findRules(key)
	ownIndex := slices.IndexFunc(b.subjects, isOwn)
	if ownIndex < 0 || !isKnown {
		if ownIndex >= 0 {
			a.warnAboutUnknownRole(b, b.subjects[ownIndex])
		}
		a.permissions.kept[key] = true
		return b.subjects
	}
	if !a.permissions.absorbed[key] {
		a.warnAboutAggregation(key)
	}
	a.permissions.absorbed[key] = true
	var otherSubjects []rbacv1.Subject
	for _, s := range b.subjects {
		if !isOwn(s) {
			otherSubjects = append(otherSubjects, s)
			continue
		}
		granted[s.Name] = appendRules(granted[s.Name], rules, b.GetKind() == kindRoleBinding)
	}
	if len(otherSubjects) > 0 {
		a.permissions.kept[key] = true
	}
	return otherSubjects
}

// warnAboutUnknownRole warns that the binding of an account of the operator stays a manifest, and where it works.
func (a *assembler) warnAboutUnknownRole(b binding, account rbacv1.Subject) {
	place := ""
	if b.GetKind() != kindRoleBinding {
		place = fmt.Sprintf(". It works only where the operator is installed into namespace %q",
			cmp.Or(account.Namespace, a.namespace))
	}
	a.warn("%v stays a manifest: it binds %s %s, whose rules are not among the manifests, so they cannot be in the "+
		"ClusterServiceVersion%s", b.object, b.ref.Kind, b.ref.Name, place)
}

// findRules returns the rules of a role among the manifests, and whether they are known. The rules of an aggregated
// role are the rules of the selected roles among the manifests; they are unknown if no role is selected.
func (a *assembler) findRules(key roleKey) ([]rbacv1.PolicyRule, bool) {
	for _, r := range a.objects.roles {
		if key == (roleKey{kindRole, r.GetName()}) {
			return r.value.Rules, true
		}
	}
	for _, r := range a.objects.clusterRoles {
		if key == (roleKey{kindClusterRole, r.GetName()}) {
			if r.value.AggregationRule == nil {
				return r.value.Rules, true
			}
			rules, roleNames := a.collectAggregatedRules(r.value.AggregationRule)
			return rules, len(roleNames) > 0
		}
	}
	return nil, false
}

// warnAboutAggregation warns that only the rules of roles among the manifests are granted, if a role is aggregated.
func (a *assembler) warnAboutAggregation(key roleKey) {
	for _, r := range a.objects.clusterRoles {
		if key != (roleKey{kindClusterRole, r.GetName()}) || r.value.AggregationRule == nil {
			continue
		}
		_, roleNames := a.collectAggregatedRules(r.value.AggregationRule)
		a.warn("%v is aggregated: the rules of %s are in the ClusterServiceVersion; what other roles of a cluster "+
			"would add is not granted", r.object, strings.Join(roleNames, ", "))
	}
}

// collectAggregatedRules returns the rules of the roles among the manifests that an aggregation selects, and the names
// of these roles. If a selected role is itself aggregated, its selectors are followed, because its own rules are empty
// in manifests.
func (a *assembler) collectAggregatedRules(rule *rbacv1.AggregationRule) (rules []rbacv1.PolicyRule,
	roleNames []string) {
	visited := map[string]bool{}
	var add func(*rbacv1.AggregationRule)
	add = func(rule *rbacv1.AggregationRule) {
		for _, r := range a.objects.clusterRoles {
			if visited[r.GetName()] || !matchesAggregation(rule, r.GetLabels()) {
				continue
			}
			visited[r.GetName()] = true
			if r.value.AggregationRule != nil {
				add(r.value.AggregationRule)
				continue
			}
			rules, roleNames = appendRules(rules, r.value.Rules, false), append(roleNames, r.GetName())
		}
	}
	add(rule)
	return rules, roleNames
}

// matchesAggregation reports whether an aggregation selects a role with these labels. An invalid selector selects none.
func matchesAggregation(rule *rbacv1.AggregationRule, roleLabels map[string]string) bool {
	return slices.ContainsFunc(rule.ClusterRoleSelectors, func(s metav1.LabelSelector) bool {
		selector, err := metav1.LabelSelectorAsSelector(&s)
		return err == nil && selector.Matches(labels.Set(roleLabels))
	})
}

// appendRules adds the rules that are not in the list yet. If namespaced is true, it skips rules about URLs: they grant
// nothing in a namespace, and the API server would refuse OLM's Role for them.
func appendRules(to, rules []rbacv1.PolicyRule, namespaced bool) []rbacv1.PolicyRule {
	for _, r := range rules {
		exists := slices.ContainsFunc(to,
			func(have rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(have, r) })
		isSkippedURL := namespaced && len(r.NonResourceURLs) > 0
		if exists || isSkippedURL {
			continue
		}
		to = append(to, r)
	}
	return to
}

// keepBinding keeps a binding as a manifest for the given subjects, which grantRole did not grant the rules to. Without
// subjects, it records that OLM creates the binding. It removes the operator's namespace from the service accounts of a
// RoleBinding, because this namespace is chosen at the installation.
func (a *assembler) keepBinding(o object, subjects []rbacv1.Subject, accounts map[string]bool) {
	if len(subjects) == 0 {
		a.record(o, becomesBinding)
		return
	}
	for i, s := range subjects {
		switch {
		case s.Kind != kindServiceAccount || s.Namespace == "" || s.Namespace != a.namespace:
			// Only the operator's namespace differs between clusters.
		case o.GetKind() == kindRoleBinding:
			subjects[i].Namespace = "" // empty means the namespace of the binding
		case !accounts[s.Name]:
			a.warn("%v stays a manifest: it names service account %s, which is not among the manifests, in namespace "+
				"%s. It works only where the operator is installed into that one", o, s.Name, s.Namespace)
		}
	}
	list := make([]any, 0, len(subjects))
	for _, s := range subjects {
		subject := map[string]any{"kind": s.Kind, "name": s.Name}
		if s.APIGroup != "" {
			subject["apiGroup"] = s.APIGroup
		}
		if s.Namespace != "" {
			subject["namespace"] = s.Namespace
		}
		list = append(list, subject)
	}
	o.Object["subjects"] = list
	a.objects.manifests = append(a.objects.manifests, o)
}

// keepRole keeps a role as a manifest if a binding needs it under its name: a binding that remains in the bundle, or a
// binding that the operator can create at run time. It also keeps a role that no account of the operator has. Other
// roles become permissions only.
func (a *assembler) keepRole(o object, kind string, operatorBinds bool) {
	key := roleKey{kind, o.GetName()}
	switch {
	case !a.permissions.absorbed[key]:
		a.record(o, becomesManifest)
	case a.permissions.kept[key]:
		a.record(o, becomesBoth)
	case operatorBinds:
		a.record(o, becomesBoth)
		a.permissions.bindable = append(a.permissions.bindable, fmt.Sprintf("%s %s", kind, o.GetName()))
	default:
		a.record(o, becomesPermissions)
		a.permissions.renamed = append(a.permissions.renamed, fmt.Sprintf("%s %s", kind, o.GetName()))
		return
	}
	a.objects.manifests = append(a.objects.manifests, o)
}

// canBind reports whether the operator can create bindings, and so can bind any role by its name at run time.
func (p *permissions) canBind() bool {
	for _, rules := range slices.Concat(slices.Collect(maps.Values(p.namespaced)),
		slices.Collect(maps.Values(p.cluster))) {
		for _, r := range rules {
			if hasAny(r.APIGroups, rbacv1.GroupName) && hasAny(r.Resources, "rolebindings", "clusterrolebindings") &&
				hasAny(r.Verbs, "create", "update", "patch") {
				return true
			}
		}
	}
	return false
}

// hasAny reports whether a list of a rule has one of the values, or the wildcard.
func hasAny(list []string, values ...string) bool {
	return slices.ContainsFunc(list,
		func(s string) bool { return s == rbacv1.ResourceAll || slices.Contains(values, s) })
}

// warnAboutNames warns about roles that exist only under OLM's names, and about roles that exist also under their
// own names.
func (a *assembler) warnAboutNames() {
	p := &a.permissions
	if len(p.bindable) > 0 {
		a.warn("also kept as manifests besides the permissions, since the operator may make bindings and could bind "+
			"them by name: %s", strings.Join(p.bindable, ", "))
	}
	if len(p.renamed) > 0 {
		a.warn("OLM gives roles of its permissions names of its own, so nothing else can bind these by name: %s",
			strings.Join(p.renamed, ", "))
	}
}

// warnAboutDefaultAccount warns that other Pods also get the permissions of the account "default", and that it is
// deleted with the operator: OLM makes the ClusterServiceVersion an owner of the account (EnsureServiceAccount in
// pkg/controller/operators/catalog/step_ensurer.go of OLM v0.46).
func (a *assembler) warnAboutDefaultAccount() {
	const account = bundles.DefaultAccount
	if len(a.permissions.namespaced[account])+len(a.permissions.cluster[account]) == 0 {
		return
	}
	reason := "a binding names it"
	for _, d := range a.objects.deployments {
		if bundles.ReadServiceAccount(d.value.Spec.Template.Spec) == account {
			reason = fmt.Sprintf("%v runs as it", d)
		}
	}
	a.warn("the service account default has permissions of the ClusterServiceVersion: %s. Every Pod of the namespace "+
		"that names no account has them too, and the account is deleted with the operator. Use an account of the "+
		"operator's own (serviceAccountName)", reason)
}

// placeAccounts drops the accounts that OLM creates, and keeps other accounts as manifests. It warns about annotations
// and pull secrets of a dropped account.
func (a *assembler) placeAccounts(accounts map[string]bool) {
	for _, o := range a.objects.accounts {
		if !accounts[o.GetName()] {
			a.objects.manifests = append(a.objects.manifests, o)
			continue
		}
		a.record(o, becomesAccount)
		_, hasSecrets := o.Object["imagePullSecrets"]
		if len(o.GetAnnotations()) > 0 || hasSecrets {
			a.warn("%v: its annotations and pull secrets are lost, for OLM makes this account itself", o)
		}
	}
}

// listEmptyPermissions returns permissions without rules for the accounts of Deployments that have no permissions. OLM
// creates only accounts that permissions name, and a bundle must not contain the account of a Deployment.
func (a *assembler) listEmptyPermissions() []operatorsv1alpha1.StrategyDeploymentPermissions {
	var out []operatorsv1alpha1.StrategyDeploymentPermissions
	done := map[string]bool{bundles.DefaultAccount: true}
	for _, d := range a.objects.deployments {
		account := bundles.ReadServiceAccount(d.value.Spec.Template.Spec)
		if done[account] || len(a.permissions.namespaced[account])+len(a.permissions.cluster[account]) > 0 {
			continue
		}
		done[account] = true
		out = append(out, operatorsv1alpha1.StrategyDeploymentPermissions{ServiceAccountName: account,
			Rules: []rbacv1.PolicyRule{}})
		if !slices.ContainsFunc(a.objects.accounts, func(o object) bool { return o.GetName() == account }) {
			a.warn("%v runs as service account %s, which is not among the manifests, nor is a role for it: OLM makes "+
				"the account without permissions", d, account)
		}
	}
	return out
}

// toPermissions converts rules by account to permissions of the CSV, ordered by account.
func toPermissions(from map[string][]rbacv1.PolicyRule) []operatorsv1alpha1.StrategyDeploymentPermissions {
	var out []operatorsv1alpha1.StrategyDeploymentPermissions
	for _, account := range slices.Sorted(maps.Keys(from)) {
		if len(from[account]) > 0 {
			out = append(out, operatorsv1alpha1.StrategyDeploymentPermissions{ServiceAccountName: account,
				Rules: from[account]})
		}
	}
	return out
}
