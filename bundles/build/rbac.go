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
	for _, b := range a.objects.roleBindings {
		b.value.Subjects = a.bind(b.object, b.value.RoleRef, b.value.Subjects, accounts, p.namespaced)
		a.keepBinding(b.object, b.value.Subjects)
	}
	for _, b := range a.objects.clusterRoleBindings {
		b.value.Subjects = a.bind(b.object, b.value.RoleRef, b.value.Subjects, accounts, p.cluster)
		a.keepBinding(b.object, b.value.Subjects)
	}
	binds := p.mayBind()
	for _, r := range a.objects.roles {
		a.keepRole(r.object, kindRole, binds)
	}
	for _, r := range a.objects.clusterRoles {
		a.keepRole(r.object, kindClusterRole, binds)
	}
	a.warnAboutNames()
	a.placeAccounts(accounts)
}

// accounts are those that OLM makes: the operator's, and further ones that bindings name in the author's namespace. A
// binding in the bundle would name that namespace on every cluster, whereas OLM makes the accounts of permissions where
// the operator is.
func (a *assembly) accounts() map[string]bool {
	out := map[string]bool{}
	for _, d := range a.objects.deployments {
		out[bundles.AccountOf(d.value.Spec.Template.Spec)] = true
	}
	for _, name := range a.options.ServiceAccounts {
		out[name] = true
	}
	for _, o := range a.objects.accounts {
		if a.isBoundHere(o.GetName()) {
			out[o.GetName()] = true
		}
	}
	return out
}

// isBoundHere says whether a binding grants rules to an account in the author's namespace, which it names.
func (a *assembly) isBoundHere(account string) bool {
	binds := func(ref rbacv1.RoleRef, subjects []rbacv1.Subject) bool {
		rules, _ := a.rules(roleKey{ref.Kind, ref.Name})
		return len(rules) > 0 && slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
			return s.Kind == kindServiceAccount && s.Name == account && s.Namespace != "" && s.Namespace == a.namespace
		})
	}
	for _, b := range a.objects.roleBindings {
		if binds(b.value.RoleRef, b.value.Subjects) {
			return true
		}
	}
	for _, b := range a.objects.clusterRoleBindings {
		if binds(b.value.RoleRef, b.value.Subjects) {
			return true
		}
	}
	return false
}

// bind grants a role to those subjects of a binding that are accounts of the operator, and returns the others.
func (a *assembly) bind(binding object, ref rbacv1.RoleRef, subjects []rbacv1.Subject, accounts map[string]bool,
	into map[string][]rbacv1.PolicyRule) []rbacv1.Subject {
	mine := func(s rbacv1.Subject) bool {
		return s.Kind == kindServiceAccount && accounts[s.Name] &&
			(s.Namespace == "" || a.namespace == "" || s.Namespace == a.namespace)
	}
	key := roleKey{ref.Kind, ref.Name}
	rules, known := a.rules(key)
	own := slices.IndexFunc(subjects, mine)
	if own < 0 || !known {
		if own >= 0 {
			a.warn("%v stays a manifest: it binds %s %s, whose rules are not among the manifests, so they cannot be "+
				"in the ClusterServiceVersion. "+
				"It works only where the operator is installed into namespace %q", binding, ref.Kind, ref.Name,
				cmp.Or(subjects[own].Namespace, a.namespace))
		}
		a.permissions.kept[key] = true
		return subjects
	}
	if !a.permissions.absorbed[key] {
		a.warnAboutAggregation(key)
	}
	a.permissions.absorbed[key] = true
	var others []rbacv1.Subject
	for _, s := range subjects {
		if !mine(s) {
			others = append(others, s)
			continue
		}
		into[s.Name] = appendRules(into[s.Name], rules, binding.GetKind() == "RoleBinding")
	}
	if len(others) > 0 {
		a.permissions.kept[key] = true
	}
	return others
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
func (a *assembly) keepBinding(o object, subjects []rbacv1.Subject) {
	if len(subjects) == 0 {
		a.record(o, becomesBinding)
		return
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
