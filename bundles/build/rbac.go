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

// permissions are what OLM grants to the operator's accounts, by the account's name, and the RBAC manifests that are
// left.
type permissions struct {
	namespaced, cluster map[string][]rbacv1.PolicyRule
	// absorbed are roles that are in the CSV now; kept are those that a remaining binding needs all the same.
	absorbed, kept map[roleKey]bool
	// renamed are roles that exist under other names only; bindable are those that exist under both.
	renamed, bindable []string
}

type roleKey struct{ kind, name string }

// permit turns the roles that are bound to the operator's accounts into permissions of the CSV, as OLM makes these
// accounts, their roles and bindings itself. What is bound to anybody else stays a manifest.
func (a *assembly) permit() {
	p := &a.permissions
	p.namespaced, p.cluster = map[string][]rbacv1.PolicyRule{}, map[string][]rbacv1.PolicyRule{}
	p.absorbed, p.kept = map[roleKey]bool{}, map[roleKey]bool{}
	accounts := a.accounts()
	for _, b := range a.bindings() {
		into := p.cluster
		if b.GetKind() == kindRoleBinding {
			into = p.namespaced
		}
		a.keepBinding(b.object, a.bind(b, accounts, into), accounts)
	}
	binds := p.mayBind()
	for _, r := range a.objects.roles {
		a.keepRole(r.object, kindRole, binds)
	}
	for _, r := range a.objects.clusterRoles {
		a.keepRole(r.object, kindClusterRole, binds)
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

// bindings are the RoleBindings, and then the ClusterRoleBindings.
func (a *assembly) bindings() []binding {
	var out []binding
	for _, b := range a.objects.roleBindings {
		out = append(out, binding{b.object, b.value.RoleRef, b.value.Subjects})
	}
	for _, b := range a.objects.clusterRoleBindings {
		out = append(out, binding{b.object, b.value.RoleRef, b.value.Subjects})
	}
	return out
}

// accounts are those that OLM makes: the operator's, and further ones that bindings name in the author's namespace. A
// binding in the bundle would name that namespace on every cluster, whereas OLM makes the accounts of permissions where
// the operator is.
func (a *assembly) accounts() map[string]bool {
	out := a.ownAccounts()
	if len(a.objects.deployments) == 0 {
		return out // the install strategy of the base stays as it is
	}
	further := []string{bundles.DefaultAccount} // which every namespace has
	for _, o := range a.objects.accounts {
		further = append(further, o.GetName())
	}
	for _, name := range further {
		if a.isBoundHere(name) {
			out[name] = true
		}
	}
	return out
}

// ownAccounts are those that Deployments run as, and those of Options.ServiceAccounts.
func (a *assembly) ownAccounts() map[string]bool {
	out := map[string]bool{}
	for _, d := range a.objects.deployments {
		out[bundles.AccountOf(d.value.Spec.Template.Spec)] = true
	}
	for _, name := range a.options.ServiceAccounts {
		out[name] = true
	}
	return out
}

// isBoundHere says whether a binding grants rules to an account in the namespace of the operator.
func (a *assembly) isBoundHere(account string) bool {
	return slices.ContainsFunc(a.bindings(), func(b binding) bool {
		rules, _ := a.rules(roleKey{b.ref.Kind, b.ref.Name})
		return len(rules) > 0 && slices.ContainsFunc(b.subjects, func(s rbacv1.Subject) bool {
			return s.Kind == kindServiceAccount && s.Name == account && a.isHere(s.Namespace)
		})
	})
}

// bind grants a role to those subjects of a binding that are accounts of the operator, and returns the others.
func (a *assembly) bind(b binding, accounts map[string]bool, into map[string][]rbacv1.PolicyRule) []rbacv1.Subject {
	mine := func(s rbacv1.Subject) bool {
		return s.Kind == kindServiceAccount && accounts[s.Name] && a.isHere(s.Namespace)
	}
	key := roleKey{b.ref.Kind, b.ref.Name}
	rules, known := a.rules(key)
	own := slices.IndexFunc(b.subjects, mine)
	if own < 0 || !known {
		if own >= 0 {
			a.warnAboutUnknownRole(b, b.subjects[own])
		}
		a.permissions.kept[key] = true
		return b.subjects
	}
	if !a.permissions.absorbed[key] {
		a.warnAboutAggregation(key)
	}
	a.permissions.absorbed[key] = true
	var others []rbacv1.Subject
	for _, s := range b.subjects {
		if !mine(s) {
			others = append(others, s)
			continue
		}
		into[s.Name] = appendRules(into[s.Name], rules, b.GetKind() == kindRoleBinding)
	}
	if len(others) > 0 {
		a.permissions.kept[key] = true
	}
	return others
}

// warnAboutUnknownRole tells that a binding of one of the operator's accounts stays, and where it works.
func (a *assembly) warnAboutUnknownRole(b binding, account rbacv1.Subject) {
	where := ""
	if b.GetKind() != kindRoleBinding {
		where = fmt.Sprintf(". It works only where the operator is installed into namespace %q",
			cmp.Or(account.Namespace, a.namespace))
	}
	a.warn("%v stays a manifest: it binds %s %s, whose rules are not among the manifests, so they cannot be in the "+
		"ClusterServiceVersion%s", b.object, b.ref.Kind, b.ref.Name, where)
}

// rules of a role among the manifests. A cluster writes those of an aggregated one: they are those of the roles among
// the manifests that it selects, and not known where it selects none.
func (a *assembly) rules(key roleKey) ([]rbacv1.PolicyRule, bool) {
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
			rules, from := a.aggregatedRules(r.value.AggregationRule)
			return rules, len(from) > 0
		}
	}
	return nil, false
}

// warnAboutAggregation says whose rules an aggregated role has in the bundle.
func (a *assembly) warnAboutAggregation(key roleKey) {
	for _, r := range a.objects.clusterRoles {
		if key != (roleKey{kindClusterRole, r.GetName()}) || r.value.AggregationRule == nil {
			continue
		}
		_, from := a.aggregatedRules(r.value.AggregationRule)
		a.warn("%v is aggregated: the rules of %s are in the ClusterServiceVersion; what other roles of a cluster "+
			"would add is not granted", r.object, strings.Join(from, ", "))
	}
}

// aggregatedRules are the rules of the roles that an aggregation selects among the manifests, and the names of those
// roles. A selected role that is aggregated itself has rules of its own only once the cluster wrote them.
func (a *assembly) aggregatedRules(rule *rbacv1.AggregationRule) (rules []rbacv1.PolicyRule, from []string) {
	visited := map[string]bool{}
	var add func(*rbacv1.AggregationRule)
	add = func(rule *rbacv1.AggregationRule) {
		for _, r := range a.objects.clusterRoles {
			if visited[r.GetName()] || !selects(rule, r.GetLabels()) {
				continue
			}
			visited[r.GetName()] = true
			if r.value.AggregationRule != nil {
				add(r.value.AggregationRule)
				continue
			}
			rules, from = appendRules(rules, r.value.Rules, false), append(from, r.GetName())
		}
	}
	add(rule)
	return rules, from
}

// selects says whether an aggregation takes in a role with these labels. A selector that cannot be read takes in none.
func selects(rule *rbacv1.AggregationRule, roleLabels map[string]string) bool {
	return slices.ContainsFunc(rule.ClusterRoleSelectors, func(s metav1.LabelSelector) bool {
		selector, err := metav1.LabelSelectorAsSelector(&s)
		return err == nil && selector.Matches(labels.Set(roleLabels))
	})
}

// appendRules adds the rules that are not there yet. In a namespace, rules about URLs grant nothing, and the Role that
// OLM would make of them is refused.
func appendRules(to, rules []rbacv1.PolicyRule, namespaced bool) []rbacv1.PolicyRule {
	for _, r := range rules {
		there := slices.ContainsFunc(to, func(have rbacv1.PolicyRule) bool {
			return equality.Semantic.DeepEqual(have,
				r)
		})
		if there || namespaced && len(r.NonResourceURLs) > 0 {
			continue
		}
		to = append(to, r)
	}
	return to
}

// keepBinding keeps a binding for those subjects that are not the operator's.
func (a *assembly) keepBinding(o object, subjects []rbacv1.Subject, accounts map[string]bool) {
	if len(subjects) == 0 {
		a.record(o, becomesBinding)
		return
	}
	for i, s := range subjects {
		switch {
		case s.Kind != kindServiceAccount || s.Namespace == "" || s.Namespace != a.namespace:
		case o.GetKind() == kindRoleBinding:
			subjects[i].Namespace = "" // then it is that of the binding
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

// keepRole keeps a role that some binding needs under its name: one that remains in the bundle, or one that the
// operator makes when it runs.
func (a *assembly) keepRole(o object, kind string, operatorBinds bool) {
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

// mayBind reports whether the operator may make bindings, and so may bind any role by its name when it runs.
func (p *permissions) mayBind() bool {
	for _, rules := range slices.Concat(slices.Collect(maps.Values(p.namespaced)),
		slices.Collect(maps.Values(p.cluster))) {
		for _, r := range rules {
			if names(r.APIGroups, rbacv1.GroupName) && names(r.Resources, "rolebindings", "clusterrolebindings") &&
				names(r.Verbs, "create", "update", "patch") {
				return true
			}
		}
	}
	return false
}

// names reports whether a list of a rule has one of the values, or the wildcard.
func names(list []string, values ...string) bool {
	return slices.ContainsFunc(list,
		func(s string) bool { return s == rbacv1.ResourceAll || slices.Contains(values, s) })
}

// warnAboutNames tells which roles are not found under their name once the bundle is installed, and which are.
func (a *assembly) warnAboutNames() {
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

// warnAboutDefaultAccount tells that others have the permissions too. OLM makes the ClusterServiceVersion an owner of
// the account (EnsureServiceAccount in pkg/controller/operators/catalog/step_ensurer.go of OLM v0.46).
func (a *assembly) warnAboutDefaultAccount() {
	const account = bundles.DefaultAccount
	if len(a.permissions.namespaced[account])+len(a.permissions.cluster[account]) == 0 {
		return
	}
	because := "a binding names it"
	for _, d := range a.objects.deployments {
		if bundles.AccountOf(d.value.Spec.Template.Spec) == account {
			because = fmt.Sprintf("%v runs as it", d)
		}
	}
	a.warn("the service account default has permissions of the ClusterServiceVersion: %s. Every Pod of the namespace "+
		"that names no account has them too, and the account is deleted with the operator. Use an account of the "+
		"operator's own (serviceAccountName)", because)
}

// placeAccounts drops the accounts that OLM makes.
func (a *assembly) placeAccounts(accounts map[string]bool) {
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

// withoutRules are permissions without a rule for accounts of Deployments to which nothing is granted: OLM makes the
// accounts that permissions name and no others, and a bundle must not bring an account that a Deployment has.
func (a *assembly) withoutRules() []operatorsv1alpha1.StrategyDeploymentPermissions {
	var out []operatorsv1alpha1.StrategyDeploymentPermissions
	done := map[string]bool{bundles.DefaultAccount: true}
	for _, d := range a.objects.deployments {
		account := bundles.AccountOf(d.value.Spec.Template.Spec)
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

// grants are permissions as the CSV has them, ordered by account.
func grants(from map[string][]rbacv1.PolicyRule) []operatorsv1alpha1.StrategyDeploymentPermissions {
	var out []operatorsv1alpha1.StrategyDeploymentPermissions
	for _, account := range slices.Sorted(maps.Keys(from)) {
		if len(from[account]) > 0 {
			out = append(out, operatorsv1alpha1.StrategyDeploymentPermissions{ServiceAccountName: account,
				Rules: from[account]})
		}
	}
	return out
}
