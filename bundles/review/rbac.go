// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bellwether-dev/bellwether/bundles"
)

// anyName is the wildcard of RBAC.
const anyName = "*"

// right is a permission for one verb on one resource. If unknown is true, resource is the reason why the right
// is unknown.
type right struct {
	group, resource, name, verb string
	unknown                     bool
}

// allRights is the right to all resources. It also covers unknown rights.
var allRights = right{group: anyName, resource: anyName, verb: anyName}

// covers reports whether r permits everything that o permits. An unknown right is covered only by an equal right and by
// allRights.
func (r right) covers(o right) bool {
	if r.unknown || o.unknown {
		return r == o || r == allRights
	}
	matches := func(have, want string) bool { return have == anyName || have == want }
	coversResource := matches(r.resource, o.resource)
	if _, subresource, ok := strings.Cut(r.resource, "*/"); ok { // a subresource of any resource
		coversResource = coversResource || strings.HasSuffix(o.resource, "/"+subresource)
	}
	coversName := r.name == "" || r.name == o.name
	return coversResource && coversName && matches(r.group, o.group) && matches(r.verb, o.verb)
}

// comparePermissions returns the rights that the operator gains and loses.
func comparePermissions(from, to *bundles.Bundle) []Change {
	out := findAdditions(from, to)
	current := listGrants(to, true)
	for g, rights := range listGrants(from, false) {
		out = append(out, formatRights(g, Removed, findUncovered(rights, listHeldRights(current, g)))...)
	}
	return out
}

// listHeldRights returns all rights of a holder with at least the reach of g.
func listHeldRights(all map[grant][]right, g grant) []right {
	var out []right
	for ; g.reach <= unknownReach; g.reach++ {
		out = append(out, all[g]...)
	}
	return out
}

// expandRule returns the rights that a rule contains.
func expandRule(rule rbacv1.PolicyRule) []right {
	var out []right
	for _, verb := range rule.Verbs {
		for _, url := range rule.NonResourceURLs {
			out = append(out, right{resource: url, verb: verb})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range listNames(rule.ResourceNames) {
					out = append(out, right{group: group, resource: resource, name: name, verb: verb})
				}
			}
		}
	}
	return out
}

// listNames returns names, or a list with an empty name, which means all names.
func listNames(names []string) []string {
	if len(names) == 0 {
		return []string{""}
	}
	return names
}

// findUncovered returns the rights that no right of covering covers, each only once.
func findUncovered(rights, covering []right) []right {
	isListed := map[right]bool{}
	var out []right
	for _, r := range rights {
		if isListed[r] || slices.ContainsFunc(covering, func(c right) bool { return c.covers(r) }) {
			continue
		}
		isListed[r] = true
		out = append(out, r)
	}
	return out
}

// formatRights returns changes of the given kind about rights of a holder. Resources of one API group with the same
// verbs are combined into one change. Added rights need attention, and have a note if they are especially powerful.
func formatRights(g grant, kind Kind, rights []right) []Change {
	type target struct{ group, resource string }
	verbs := map[target][]string{}
	out := formatUnknownRights(g, kind, rights)
	for _, r := range rights {
		if r.unknown {
			continue
		}
		t := target{r.group, r.resource}
		if r.name != "" {
			t.resource += " " + r.name
		}
		verbs[t] = append(verbs[t], r.verb)
	}
	type line struct{ group, verbs string }
	lines := map[line][]string{}
	for t, v := range verbs {
		slices.Sort(v)
		l := line{t.group, strings.Join(v, ", ")}
		lines[l] = append(lines[l], t.resource)
	}
	for _, l := range slices.SortedFunc(maps.Keys(lines),
		func(a, b line) int { return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.verbs, b.verbs)) }) {
		resources := lines[l]
		slices.Sort(resources)
		c := Change{Kind: kind, Subject: g.String(), Path: strings.Join(resources, ", ")}
		if l.group != "" {
			c.Path += " (" + l.group + ")"
		}
		if kind == Added {
			c.To, c.Weight, c.Note = l.verbs, Attention, formatDanger(g, l.group, resources, l.verbs)
		} else {
			c.From = l.verbs
		}
		out = append(out, c)
	}
	return out
}

// formatUnknownRights returns a change with the reason for each unknown right.
func formatUnknownRights(g grant, kind Kind, rights []right) []Change {
	var out []Change
	for _, r := range rights {
		if !r.unknown {
			continue
		}
		c := Change{Kind: kind, Subject: g.String(), Path: "rights that cannot be known: " + r.resource}
		if kind == Added {
			c.Weight = Attention
		}
		out = append(out, c)
	}
	return out
}

// formatDanger returns a note about a right that is especially powerful; empty for other rights.
func formatDanger(g grant, group string, resources []string, verbs string) string {
	hasResource := func(resource string) bool {
		return slices.Contains(resources, resource) || slices.Contains(resources, anyName)
	}
	hasVerb := func(names ...string) bool {
		return slices.ContainsFunc(strings.Split(verbs, ", "),
			func(v string) bool { return v == anyName || slices.Contains(names, v) })
	}
	canRead := hasVerb("get", "list", "watch")
	hasIdentity := hasResource("users") || hasResource("groups") || hasResource("serviceaccounts")
	switch {
	case g == webhookGrant && hasVerb("create", "update", "patch"):
		return "they see and change what others write"
	case g == webhookGrant:
		return "they see what others write"
	case g.reach == unknownReach:
		return "" // other subjects have the right, not the operator
	case slices.Contains(resources, anyName) && verbs == anyName:
		return "everything there is in this API group"
	case group == rbacv1.GroupName && hasVerb("escalate", "bind"):
		return "it can give itself any right"
	case hasVerb("impersonate") && hasIdentity:
		return "it can act as others"
	case group == "" && hasResource("secrets") && g.reach == inAll && canRead:
		return "it reads the secrets of all namespaces"
	case group == "" && (hasResource("pods/exec") || hasResource("nodes/proxy")):
		return "it can run commands in other pods"
	default:
		return ""
	}
}
