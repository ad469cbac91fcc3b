// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/requirements"
)

// listRBACRules returns the rules about the rights of the operator.
func listRBACRules() []Rule {
	return []Rule{{
		ID: "rbac-wildcard", Title: "The operator requests permissions by a wildcard", Severity: Warning,
		Check: checkEachGrant(checkWildcard),
		Why: "A wildcard also grants what does not exist yet: every resource that is installed later, every verb " +
			"that Kubernetes adds. " +
			"An attacker in the operator's Pod has all of these permissions. Many security reviews reject " +
			"wildcards.",
		Fix: "List the groups, resources and verbs that the operator uses. An audit log or audit2rbac shows which " +
			"those are.",
	}, {
		ID: "rbac-escalation", Title: "The operator can give itself any permission", Severity: Warning,
		Check: checkEachGrant(checkEscalation),
		Why: "With `escalate` or `bind` on roles, `impersonate` on users, or tokens of any ServiceAccount, the " +
			"operator's permissions have no limit, regardless of its other rules.",
		Fix: "Grant the operator the rights that it passes on, which lets it bind them without `escalate` or `bind`; " +
			"or restrict the rule by `resourceNames`.",
	}, {
		ID: "rbac-cluster-secrets", Title: "The operator can read every Secret of the cluster", Severity: Warning,
		Check: checkEachGrant(checkSecrets),
		Why: "One Pod can read all credentials of the cluster, and has them in memory if it caches what it " +
			"watches. Rights in " +
			"`permissions` count if the operator can be installed for all namespaces: OLM turns them into " +
			"cluster-wide permissions.",
		Fix: "Read Secrets by name (`resourceNames`), or in namespaces that users choose by a RoleBinding of " +
			"their own.",
	}, {
		ID: "rbac-cluster-pods", Title: "The operator can run Pods as any ServiceAccount", Severity: Warning,
		Check: checkEachGrant(checkPods),
		Why: "A client that can create Pods in every namespace, or run commands in existing ones, can use each " +
			"ServiceAccount and read each Secret that any Pod may use.",
		Fix: "Let Deployments, StatefulSets or Jobs make Pods, in namespaces that the operator owns. Replace " +
			"`pods/exec` by an API of the program that runs there.",
	}, {
		ID: "rbac-removed-api", Title: "The operator requests rights to an API that Kubernetes removed", Severity: Info,
		Check: checkEachGrant(checkRemovedRights),
		Why: "The rights do no harm, but an operator that requests them mostly uses the API as well: it fails on " +
			"every supported version of Kubernetes, or logs errors all the time.",
		Fix: "Delete the rights, and what uses the API.",
	}, {
		ID: "rbac-growth", Title: "The operator requests rights that the previous version did not have",
		Severity: Warning,
		Check:    checkGrowth,
		Why: "OLM grants all rights that a new version requests: approving the upgrade approves the rights. So they " +
			"must be part of the review of the release.",
		Fix: "Check that the operator needs them, say so in the release notes, and waive this finding for the version.",
	}}
}

// grant is one rule of a role that the operator has.
type grant struct {
	rbacv1.PolicyRule
	// cluster is true if the rule is valid in all namespaces in at least one supported install mode; everywhere is
	// true if it is valid in all namespaces in every install mode.
	cluster, everywhere bool
	object              *bundles.Object
	path                []any
}

// listGrants returns the rights of the operator: the permissions in its ClusterServiceVersion, and the roles among the
// manifests that a binding of the bundle grants. Other roles are intended for users and do not count.
func listGrants(b *bundles.Bundle) []grant {
	var out []grant
	forAll := b.SupportsAllNamespaces()
	for _, r := range b.Rights() {
		bound := r.ListBoundHolders()
		g := grant{PolicyRule: r.Rule, object: r.Object, path: r.Path}
		for _, h := range bound {
			g.cluster = g.cluster || h.Scope.IsCluster(forAll)
			g.everywhere = g.everywhere || h.Scope.IsCluster(false)
		}
		if len(bound) > 0 {
			out = append(out, g)
		}
	}
	return out
}

// checkEachGrant returns a check of the bundle that calls check for each grant. check returns a message; an empty
// message means no finding.
func checkEachGrant(check func(grant) string) func(*Input) []Finding {
	return func(in *Input) []Finding {
		var out []Finding
		for _, g := range listGrants(in.Bundle) {
			if message := check(g); message != "" {
				out = append(out, newObjectFinding(g.object, message, g.path...))
			}
		}
		return out
	}
}

// checkWildcard reports a grant with a wildcard.
func checkWildcard(g grant) string {
	var fields []string
	for _, f := range []struct {
		name   string
		values []string
	}{{"apiGroups", g.APIGroups}, {"resources", g.Resources}, {"verbs", g.Verbs},
		{"nonResourceURLs", g.NonResourceURLs}} {
		if slices.Contains(f.values, "*") {
			fields = append(fields, f.name)
		}
	}
	if len(fields) == 0 {
		return ""
	}
	return fmt.Sprintf("a wildcard in %s: %s", strings.Join(fields, " and "), clip(formatRule(g.PolicyRule)))
}

// checkEscalation reports a grant by which the operator can get any right.
func checkEscalation(g grant) string {
	if len(g.ResourceNames) > 0 { // a grant for single objects is limited
		return ""
	}
	for _, dangerous := range []permission{
		{group: rbacv1.GroupName, resource: "clusterroles", verb: "escalate"},
		{group: rbacv1.GroupName, resource: "roles", verb: "escalate"},
		{group: rbacv1.GroupName, resource: "clusterroles", verb: "bind"},
		{group: rbacv1.GroupName, resource: "roles", verb: "bind"},
		{resource: "users", verb: "impersonate"}, {resource: "groups", verb: "impersonate"},
		{resource: "serviceaccounts", verb: "impersonate"},
		{resource: "serviceaccounts/token", verb: "create"},
	} {
		if hasPermission(g, dangerous) {
			return fmt.Sprintf("it may %s %s", dangerous.verb, dangerous.resource)
		}
	}
	return ""
}

// checkRemovedRights reports rights to removed APIs. Wildcards do not count, because they match only resources
// that exist.
func checkRemovedRights(g grant) string {
	var found []string
	for _, r := range requirements.RemovedResources(g.PolicyRule) {
		found = append(found, fmt.Sprintf("%s (removed in Kubernetes %s)", r, r.In))
	}
	if len(found) == 0 {
		return ""
	}
	return "rights to " + strings.Join(found, ", ")
}

// ListRights returns the rules of all roles that the bundle grants to its operator.
func ListRights(b *bundles.Bundle) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, g := range listGrants(b) {
		out = append(out, g.PolicyRule)
	}
	return out
}

// checkSecrets reports a right to read all Secrets of the cluster. A right to Secrets with certain names is
// not reported.
func checkSecrets(g grant) string {
	if !g.cluster || len(g.ResourceNames) > 0 {
		return ""
	}
	var verbs []string
	for _, verb := range []string{"get", "list", "watch"} {
		if hasPermission(g, permission{resource: "secrets", verb: verb}) {
			verbs = append(verbs, verb)
		}
	}
	if len(verbs) == 0 {
		return ""
	}
	return fmt.Sprintf("it may %s secrets in all namespaces", strings.Join(verbs, ", "))
}

// checkPods reports a right to run Pods, or commands in Pods, in all namespaces. A right to Pods with certain names is
// not reported.
func checkPods(g grant) string {
	if !g.cluster || len(g.ResourceNames) > 0 {
		return ""
	}
	for _, dangerous := range []permission{
		{resource: "pods", verb: "create"}, {resource: "pods/exec", verb: "create"},
		{resource: "pods/exec", verb: "get"},
		{resource: "pods/attach", verb: "create"}, {resource: "pods/ephemeralcontainers", verb: "patch"},
		{resource: "pods/ephemeralcontainers", verb: "update"}, {resource: "nodes/proxy", verb: "create"},
		{resource: "nodes/proxy", verb: "get"},
	} {
		if hasPermission(g, dangerous) {
			return fmt.Sprintf("it may %s %s in all namespaces", dangerous.verb, dangerous.resource)
		}
	}
	return ""
}

// permission is a verb on a resource or on a URL.
type permission struct {
	cluster                    bool
	group, resource, url, verb string
	// name is the name of the only object that is permitted; empty means all objects.
	name string
}

// hasPermission reports whether a grant includes a permission under the rules of RBAC. It does not compare the scopes.
func hasPermission(g grant, p permission) bool {
	if !hasValue(g.Verbs, p.verb) {
		return false
	}
	if p.url != "" {
		return slices.ContainsFunc(g.NonResourceURLs, func(url string) bool {
			prefix, isPrefix := strings.CutSuffix(url, "*")
			return url == p.url || isPrefix && strings.HasPrefix(p.url, prefix)
		})
	}
	_, subresource, _ := strings.Cut(p.resource, "/")
	includesResource := hasValue(g.Resources, p.resource) ||
		subresource != "" && slices.Contains(g.Resources, "*/"+subresource)
	includesName := len(g.ResourceNames) == 0 || slices.Contains(g.ResourceNames, p.name)
	return hasValue(g.APIGroups, p.group) && includesResource && includesName
}

// hasValue reports whether a list contains a value or a wildcard.
func hasValue(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}

// listPermissions returns each permission of a grant: every combination of verb, group, resource and name, and of verb
// and URL. URLs are always cluster-wide.
func (g grant) listPermissions() []permission {
	var out []permission
	names := g.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range g.Verbs {
		for _, url := range g.NonResourceURLs {
			out = append(out, permission{cluster: true, url: url, verb: verb})
		}
		for _, group := range g.APIGroups {
			for _, resource := range g.Resources {
				for _, name := range names {
					out = append(out, permission{cluster: g.cluster, group: group, resource: resource, verb: verb,
						name: name})
				}
			}
		}
	}
	return out
}

// checkGrowth reports permissions that the predecessor did not have, or had in fewer namespaces or install modes.
func checkGrowth(in *Input) []Finding {
	if in.Predecessor == nil {
		return nil
	}
	old := listGrants(in.Predecessor)
	var out []Finding
	for _, g := range listGrants(in.Bundle) {
		added := slices.DeleteFunc(g.listPermissions(), func(p permission) bool {
			return slices.ContainsFunc(old, func(o grant) bool {
				hasNamespaces := o.cluster || !p.cluster
				hasInstallModes := o.everywhere || !g.everywhere
				return hasNamespaces && hasInstallModes && hasPermission(o, p)
			})
		})
		if len(added) == 0 {
			continue
		}
		out = append(out, newObjectFinding(g.object, fmt.Sprintf("new since %s%s: %s", in.Predecessor.Version,
			formatScope(g), clip(formatPermissions(added))), g.path...))
	}
	return out
}

// formatScope returns a text about the scope of a grant for a message; empty if the grant is limited to namespaces.
func formatScope(g grant) string {
	if g.cluster {
		return ", in all namespaces"
	}
	return ""
}

// formatRule returns a text about a rule: verbs on resources.
func formatRule(r rbacv1.PolicyRule) string {
	return formatPermissions(grant{PolicyRule: r}.listPermissions())
}

// formatPermissions returns a text about permissions, such as "get, list on pods, secrets; create on jobs.batch". The
// verbs of a resource, and resources with the same verbs, are combined.
func formatPermissions(permissions []permission) string {
	verbs := map[string][]string{}
	for _, p := range permissions {
		object := cmp.Or(p.url, p.resource)
		if p.group != "" {
			object += "." + p.group
		}
		if p.name != "" {
			object += " " + p.name
		}
		if !slices.Contains(verbs[object], p.verb) {
			verbs[object] = append(verbs[object], p.verb)
		}
	}
	// Combine resources with the same verbs.
	resources := map[string][]string{}
	for _, object := range slices.Sorted(maps.Keys(verbs)) {
		key := strings.Join(verbs[object], ", ")
		resources[key] = append(resources[key], object)
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(resources)) {
		parts = append(parts, fmt.Sprintf("%s on %s", key, strings.Join(resources[key], ", ")))
	}
	return strings.Join(parts, "; ")
}
