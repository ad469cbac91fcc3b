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

// rbacRules are about what the operator may do.
func rbacRules() []Rule {
	return []Rule{{
		ID: "rbac-wildcard", Title: "The operator requests permissions by a wildcard", Severity: Warning,
		Check: eachGrant(checkWildcard),
		Why: "A wildcard also grants what does not exist yet: every resource that is installed later, every verb " +
			"that Kubernetes adds. " +
			"An attacker in the operator's Pod has all of these permissions. Many security reviews reject " +
			"wildcards.",
		Fix: "List the groups, resources and verbs that the operator uses. An audit log or audit2rbac shows which " +
			"those are.",
	}, {
		ID: "rbac-escalation", Title: "The operator can give itself any permission", Severity: Warning,
		Check: eachGrant(checkEscalation),
		Why: "With `escalate` or `bind` on roles, `impersonate` on users, or tokens of any ServiceAccount, the " +
			"operator's permissions have no limit, regardless of its other rules.",
		Fix: "Grant the operator the rights that it passes on, which lets it bind them without `escalate` or `bind`; " +
			"or restrict the rule by `resourceNames`.",
	}, {
		ID: "rbac-cluster-secrets", Title: "The operator can read every Secret of the cluster", Severity: Warning,
		Check: eachGrant(checkSecrets),
		Why: "One Pod can read all credentials of the cluster, and has them in memory if it caches what it " +
			"watches. Rights in " +
			"`permissions` count if the operator can be installed for all namespaces: OLM turns them into " +
			"cluster-wide permissions.",
		Fix: "Read Secrets by name (`resourceNames`), or in namespaces that users choose by a RoleBinding of " +
			"their own.",
	}, {
		ID: "rbac-cluster-pods", Title: "The operator can run Pods as any ServiceAccount", Severity: Warning,
		Check: eachGrant(checkPods),
		Why: "A client that can create Pods in every namespace, or run commands in existing ones, can use each " +
			"ServiceAccount and read each Secret that any Pod may use.",
		Fix: "Let Deployments, StatefulSets or Jobs make Pods, in namespaces that the operator owns. Replace " +
			"`pods/exec` by an API of the program that runs there.",
	}, {
		ID: "rbac-removed-api", Title: "The operator requests rights to an API that Kubernetes removed", Severity: Info,
		Check: eachGrant(checkRemovedRights),
		Why: "The rights do no harm, but an operator that asks for them mostly uses the API as well: it fails on " +
			"every " +
			"supported version of Kubernetes, or logs errors all the time.",
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

// grant is one rule of one of the operator's roles.
type grant struct {
	rbacv1.PolicyRule
	// cluster says whether it can hold in all namespaces; everywhere, whether it does so in every install mode.
	cluster, everywhere bool
	object              *bundles.Object
	path                []any
}

// grants are the rights of the operator: what its ClusterServiceVersion asks for, and the roles among the manifests
// that a binding there grants. Other roles are for users to bind.
func grants(b *bundles.Bundle) []grant {
	var out []grant
	forAll := b.SupportsAllNamespaces()
	for _, r := range b.Rights() {
		bound := r.Bound()
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

func eachGrant(check func(grant) string) func(*Input) []Finding {
	return func(in *Input) []Finding {
		var out []Finding
		for _, g := range grants(in.Bundle) {
			if message := check(g); message != "" {
				out = append(out, at(g.object, message, g.path...))
			}
		}
		return out
	}
}

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
	return fmt.Sprintf("a wildcard in %s: %s", strings.Join(fields, " and "), clip(describe(g.PolicyRule)))
}

func checkEscalation(g grant) string {
	if len(g.ResourceNames) > 0 {
		return ""
	}
	for _, right := range []tuple{
		{group: rbacv1.GroupName, resource: "clusterroles", verb: "escalate"},
		{group: rbacv1.GroupName, resource: "roles", verb: "escalate"},
		{group: rbacv1.GroupName, resource: "clusterroles", verb: "bind"},
		{group: rbacv1.GroupName, resource: "roles", verb: "bind"},
		{resource: "users", verb: "impersonate"}, {resource: "groups", verb: "impersonate"},
		{resource: "serviceaccounts", verb: "impersonate"},
		{resource: "serviceaccounts/token", verb: "create"},
	} {
		if covers(g, right) {
			return fmt.Sprintf("it may %s %s", right.verb, right.resource)
		}
	}
	return ""
}

// checkRemovedRights leaves wildcards alone: they are about all that exists.
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

// Rights returns the rules of all roles that the operator is granted by its bundle.
func Rights(b *bundles.Bundle) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, g := range grants(b) {
		out = append(out, g.PolicyRule)
	}
	return out
}

func checkSecrets(g grant) string {
	if !g.cluster || len(g.ResourceNames) > 0 {
		return ""
	}
	var verbs []string
	for _, verb := range []string{"get", "list", "watch"} {
		if covers(g, tuple{resource: "secrets", verb: verb}) {
			verbs = append(verbs, verb)
		}
	}
	if len(verbs) == 0 {
		return ""
	}
	return fmt.Sprintf("it may %s secrets in all namespaces", strings.Join(verbs, ", "))
}

func checkPods(g grant) string {
	if !g.cluster || len(g.ResourceNames) > 0 {
		return ""
	}
	for _, right := range []tuple{
		{resource: "pods", verb: "create"}, {resource: "pods/exec", verb: "create"},
		{resource: "pods/exec", verb: "get"},
		{resource: "pods/attach", verb: "create"}, {resource: "pods/ephemeralcontainers", verb: "patch"},
		{resource: "pods/ephemeralcontainers", verb: "update"}, {resource: "nodes/proxy", verb: "create"},
		{resource: "nodes/proxy", verb: "get"},
	} {
		if covers(g, right) {
			return fmt.Sprintf("it may %s %s in all namespaces", right.verb, right.resource)
		}
	}
	return ""
}

// tuple is one right: a verb on a resource, or on a URL.
type tuple struct {
	cluster                    bool
	group, resource, url, verb string
	// name is that of the one object; empty means all.
	name string
}

// covers says whether a grant includes a right, by the rules of RBAC; the scope is not looked at.
func covers(g grant, t tuple) bool {
	if !has(g.Verbs, t.verb) {
		return false
	}
	if t.url != "" {
		return slices.ContainsFunc(g.NonResourceURLs, func(url string) bool {
			prefix, wild := strings.CutSuffix(url, "*")
			return url == t.url || wild && strings.HasPrefix(t.url, prefix)
		})
	}
	_, sub, _ := strings.Cut(t.resource, "/")
	return has(g.APIGroups, t.group) && (has(g.Resources, t.resource) || sub != "" &&
		slices.Contains(g.Resources, "*/"+sub)) &&
		(len(g.ResourceNames) == 0 || slices.Contains(g.ResourceNames, t.name))
}

func has(list []string, what string) bool {
	return slices.Contains(list, what) || slices.Contains(list, "*")
}

// tuples are all the rights of a grant.
func (g grant) tuples() []tuple {
	var out []tuple
	names := g.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range g.Verbs {
		for _, url := range g.NonResourceURLs {
			out = append(out, tuple{cluster: true, url: url, verb: verb})
		}
		for _, group := range g.APIGroups {
			for _, resource := range g.Resources {
				for _, name := range names {
					out = append(out, tuple{cluster: g.cluster, group: group, resource: resource, verb: verb,
						name: name})
				}
			}
		}
	}
	return out
}

func checkGrowth(in *Input) []Finding {
	if in.Predecessor == nil {
		return nil
	}
	old := grants(in.Predecessor)
	var out []Finding
	for _, g := range grants(in.Bundle) {
		added := slices.DeleteFunc(g.tuples(), func(t tuple) bool {
			return slices.ContainsFunc(old, func(o grant) bool {
				return (o.cluster || !t.cluster) && (o.everywhere || !g.everywhere) && covers(o, t)
			})
		})
		if len(added) == 0 {
			continue
		}
		out = append(out, at(g.object, fmt.Sprintf("new since %s%s: %s", in.Predecessor.Version, where(g),
			clip(compact(added))), g.path...))
	}
	return out
}

func where(g grant) string {
	if g.cluster {
		return ", in all namespaces"
	}
	return ""
}

// describe writes down a rule: verbs on resources.
func describe(r rbacv1.PolicyRule) string { return compact(grant{PolicyRule: r}.tuples()) }

// compact writes down rights, the verbs of each resource together.
func compact(rights []tuple) string {
	verbs := map[string][]string{}
	for _, t := range rights {
		what := cmp.Or(t.url, t.resource)
		if t.group != "" {
			what += "." + t.group
		}
		if t.name != "" {
			what += " " + t.name
		}
		if !slices.Contains(verbs[what], t.verb) {
			verbs[what] = append(verbs[what], t.verb)
		}
	}
	// Resources with the same verbs belong together.
	resources := map[string][]string{}
	for _, what := range slices.Sorted(maps.Keys(verbs)) {
		key := strings.Join(verbs[what], ", ")
		resources[key] = append(resources[key], what)
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(resources)) {
		parts = append(parts, fmt.Sprintf("%s on %s", key, strings.Join(resources[key], ", ")))
	}
	return strings.Join(parts, "; ")
}
