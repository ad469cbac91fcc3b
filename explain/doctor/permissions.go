// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bellwether-dev/bellwether/explain"
)

// Access is the access to its API server that a component of Bellwether should have.
type Access struct {
	// Role selects the permissions, as the argument of charts.Rules: hub, agent or agent-read.
	Role string
	// namespace and account are the component's ServiceAccount.
	namespace, account string
	// rulesNamespace is the namespace to which the rules of a Role are limited.
	rulesNamespace string
}

// ReadAccess returns the access of a component, hub or agent, according to its Deployment, which must exist.
func ReadAccess(component string, d explain.Deployment) Access {
	if d.ReadFlag("read-only") == "true" { // such an agent has fewer permissions
		component = "agent-read"
	}
	namespace := d.Deployment.Namespace
	return Access{Role: component, namespace: namespace,
		account:        cmp.Or(d.Deployment.Spec.Template.Spec.ServiceAccountName, "default"),
		rulesNamespace: cmp.Or(d.ReadFlag("rules-namespace"), namespace)}
}

// Account returns the ServiceAccount as NAMESPACE/NAME.
func (a Access) Account() string { return a.namespace + "/" + a.account }

// BuildReviews returns a review for each permission that the rules grant: whether the ServiceAccount has it. cluster
// are the rules for all namespaces, and namespaced are those of a Role. The ResourceAttributes of each review are set.
func (a Access) BuildReviews(cluster, namespaced []rbacv1.PolicyRule) []*authorizationv1.SubjectAccessReview {
	var out []*authorizationv1.SubjectAccessReview
	for _, attributes := range listPermissions(cluster, namespaced, a.rulesNamespace) {
		// The API server adds these groups to the requests of each ServiceAccount.
		out = append(out, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + a.namespace + ":" + a.account,
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + a.namespace,
				"system:authenticated"}, ResourceAttributes: &attributes}})
	}
	return out
}

// listPermissions returns each permission that the rules grant, sorted.
// The rules of a Role are limited to the namespace.
func listPermissions(cluster, namespaced []rbacv1.PolicyRule, namespace string) []authorizationv1.ResourceAttributes {
	var out []authorizationv1.ResourceAttributes
	for _, r := range cluster {
		out = append(out, expandRule(r, "")...)
	}
	for _, r := range namespaced {
		out = append(out, expandRule(r, namespace)...)
	}
	slices.SortFunc(out, func(a, b authorizationv1.ResourceAttributes) int {
		return cmp.Or(cmp.Compare(describePermission(a), describePermission(b)), cmp.Compare(a.Verb, b.Verb))
	})
	return out
}

// expandRule returns the permissions of a rule: all combinations of its groups, resources, verbs and names.
func expandRule(r rbacv1.PolicyRule, namespace string) []authorizationv1.ResourceAttributes {
	out := []authorizationv1.ResourceAttributes{{Namespace: namespace}}
	combine := func(values []string, set func(a *authorizationv1.ResourceAttributes, value string)) {
		var next []authorizationv1.ResourceAttributes
		for _, a := range out {
			for _, value := range values {
				set(&a, value)
				next = append(next, a)
			}
		}
		out = next
	}
	combine(r.APIGroups, func(a *authorizationv1.ResourceAttributes, v string) { a.Group = v })
	combine(r.Resources, func(a *authorizationv1.ResourceAttributes, v string) {
		a.Resource, a.Subresource, _ = strings.Cut(v, "/")
	})
	combine(r.Verbs, func(a *authorizationv1.ResourceAttributes, v string) { a.Verb = v })
	if len(r.ResourceNames) > 0 {
		combine(r.ResourceNames, func(a *authorizationv1.ResourceAttributes, v string) { a.Name = v })
	}
	return out
}

// formatPermissions returns one text for each resource, sorted, as in "get, list leases.coordination.k8s.io". The
// verbs are in the order of the permissions.
func formatPermissions(permissions []authorizationv1.ResourceAttributes) []string {
	verbs := map[string][]string{}
	for _, p := range permissions {
		resource := describePermission(p)
		verbs[resource] = append(verbs[resource], p.Verb)
	}
	var out []string
	for _, resource := range slices.Sorted(maps.Keys(verbs)) {
		out = append(out, strings.Join(verbs[resource], ", ")+" "+resource)
	}
	return out
}

// describePermission returns the resource of a permission, as in "operatorrollouts.bellwether.dev/status", followed by
// the name and the namespace to which the permission is limited.
func describePermission(a authorizationv1.ResourceAttributes) string {
	resource := a.Resource
	if a.Group != "" {
		resource += "." + a.Group
	}
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	if a.Name != "" {
		resource += " " + a.Name
	}
	if a.Namespace != "" {
		resource += " in " + a.Namespace
	}
	return resource
}
