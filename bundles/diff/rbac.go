// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bellwether-dev/bellwether/bundles"
)

const everything = "*"

// right is one thing that a service account may do.
type right struct {
	group, resource, name, verb string
}

// covers reports whether r permits everything that o permits.
func (r right) covers(o right) bool {
	match := func(have, want string) bool { return have == everything || have == want }
	resource := match(r.resource, o.resource)
	if _, sub, ok := strings.Cut(r.resource, "*/"); ok { // any resource, of one subresource
		resource = resource || strings.HasSuffix(o.resource, "/"+sub)
	}
	return resource && match(r.group, o.group) && match(r.verb, o.verb) && (r.name == "" || r.name == o.name)
}

// grant is what an account has in one scope.
type grant struct {
	account string
	cluster bool
}

func (g grant) String() string {
	if g.cluster {
		return "service account " + g.account + ", in all namespaces"
	}
	return "service account " + g.account + ", in its namespaces"
}

// permissions lists by how much the operator's rights grow and shrink.
func permissions(from, to *bundles.Bundle) []Change {
	old, now := grants(from), grants(to)
	var out []Change
	for g, rights := range now {
		out = append(out, rightChanges(g, Added, beyond(rights, held(old, g)))...)
	}
	for g, rights := range old {
		out = append(out, rightChanges(g, Removed, beyond(rights, held(now, g)))...)
	}
	return out
}

func grants(b *bundles.Bundle) map[grant][]right {
	spec := b.CSV.Spec.InstallStrategy.StrategySpec
	out := map[grant][]right{}
	collect := func(list []operatorsv1alpha1.StrategyDeploymentPermissions, cluster bool) {
		for _, p := range list {
			g := grant{p.ServiceAccountName, cluster}
			for _, rule := range p.Rules {
				out[g] = append(out[g], expand(rule)...)
			}
		}
	}
	collect(spec.Permissions, false)
	collect(spec.ClusterPermissions, true)
	return out
}

// held returns all permissions of an account in a scope, including its
// cluster-wide ones.
func held(all map[grant][]right, g grant) []right {
	if g.cluster {
		return all[g]
	}
	return slices.Concat(all[g], all[grant{g.account, true}])
}

func expand(rule rbacv1.PolicyRule) []right {
	var out []right
	for _, verb := range rule.Verbs {
		for _, url := range rule.NonResourceURLs {
			out = append(out, right{resource: url, verb: verb})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range orOne(rule.ResourceNames) {
					out = append(out, right{group, resource, name, verb})
				}
			}
		}
	}
	return out
}

func orOne(names []string) []string {
	if len(names) == 0 {
		return []string{""}
	}
	return names
}

// beyond are the rights that others do not cover, each once.
func beyond(rights, others []right) []right {
	seen := map[right]bool{}
	var out []right
	for _, r := range rights {
		if seen[r] || slices.ContainsFunc(others, func(o right) bool { return o.covers(r) }) {
			continue
		}
		seen[r] = true
		out = append(out, r)
	}
	return out
}

// rightChanges says it shortly: resources of a group that go with the same verbs are one change.
func rightChanges(g grant, kind Kind, rights []right) []Change {
	type target struct{ group, resource string }
	verbs := map[target][]string{}
	for _, r := range rights {
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
	var out []Change
	for _, l := range slices.SortedFunc(maps.Keys(lines),
		func(a, b line) int { return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.verbs, b.verbs)) }) {
		resources := lines[l]
		slices.Sort(resources)
		c := Change{Kind: kind, Subject: g.String(), Path: strings.Join(resources, ", ")}
		if l.group != "" {
			c.Path += " (" + l.group + ")"
		}
		if kind == Added {
			c.To, c.Weight, c.Note = l.verbs, Attention, danger(g, l.group, resources, l.verbs)
		} else {
			c.From = l.verbs
		}
		out = append(out, c)
	}
	return out
}

// danger says what is more than usual about a right.
func danger(g grant, group string, resources []string, verbs string) string {
	has := func(resource string) bool {
		return slices.Contains(resources, resource) || slices.Contains(resources, everything)
	}
	verb := func(names ...string) bool {
		for v := range strings.SplitSeq(verbs, ", ") {
			if v == everything || slices.Contains(names, v) {
				return true
			}
		}
		return false
	}
	reads := verb("get", "list", "watch")
	switch {
	case slices.Contains(resources, everything) && verbs == everything:
		return "everything there is in this API group"
	case group == rbacv1.GroupName && verb("escalate", "bind"):
		return "it can give itself any right"
	case verb("impersonate") && (has("users") || has("groups") || has("serviceaccounts")):
		return "it can act as others"
	case group == "" && has("secrets") && g.cluster && reads:
		return "it reads the secrets of all namespaces"
	case group == "" && (has("pods/exec") || has("nodes/proxy")):
		return "it can run commands in other pods"
	default:
		return ""
	}
}
