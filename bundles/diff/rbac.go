// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bellwether-dev/bellwether/bundles"
)

const everything = "*"

// right is one thing that somebody may do. Of one that is not known the resource says why.
type right struct {
	group, resource, name, verb string
	unknown                     bool
}

// anything is the right to all resources, which covers whatever is not known.
var anything = right{group: everything, resource: everything, verb: everything}

// covers reports whether r permits everything that o permits.
func (r right) covers(o right) bool {
	if r.unknown || o.unknown {
		return r == o || r == anything
	}
	match := func(have, want string) bool { return have == everything || have == want }
	resource := match(r.resource, o.resource)
	if _, sub, ok := strings.Cut(r.resource, "*/"); ok { // any resource, of one subresource
		resource = resource || strings.HasSuffix(o.resource, "/"+sub)
	}
	return resource && match(r.group, o.group) && match(r.verb, o.verb) && (r.name == "" || r.name == o.name)
}

// permissions lists by how much the operator's rights grow and shrink.
func permissions(from, to *bundles.Bundle) []Change {
	out := additions(from, to)
	now := grants(to, true)
	for g, rights := range grants(from, false) {
		out = append(out, rightChanges(g, Removed, beyond(rights, held(now, g)))...)
	}
	return out
}

// held returns all rights of a holder that reach as far, or further.
func held(all map[grant][]right, g grant) []right {
	var out []right
	for ; g.reach <= unsaid; g.reach++ {
		out = append(out, all[g]...)
	}
	return out
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
					out = append(out, right{group: group, resource: resource, name: name, verb: verb})
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
	out := unknownChanges(g, kind, rights)
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
			c.To, c.Weight, c.Note = l.verbs, Attention, danger(g, l.group, resources, l.verbs)
		} else {
			c.From = l.verbs
		}
		out = append(out, c)
	}
	return out
}

// unknownChanges says of each right that is not known why that is so.
func unknownChanges(g grant, kind Kind, rights []right) []Change {
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

// danger says what is more than usual about a right.
func danger(g grant, group string, resources []string, verbs string) string {
	has := func(resource string) bool {
		return slices.Contains(resources, resource) || slices.Contains(resources, everything)
	}
	verb := func(names ...string) bool {
		return slices.ContainsFunc(strings.Split(verbs, ", "),
			func(v string) bool { return v == everything || slices.Contains(names, v) })
	}
	reads := verb("get", "list", "watch")
	switch {
	case g == webhookGrant && verb("create", "update", "patch"):
		return "they see and change what others write"
	case g == webhookGrant:
		return "they see what others write"
	case g.reach == unsaid:
		return "" // it is not the operator that has it
	case slices.Contains(resources, everything) && verbs == everything:
		return "everything there is in this API group"
	case group == rbacv1.GroupName && verb("escalate", "bind"):
		return "it can give itself any right"
	case verb("impersonate") && (has("users") || has("groups") || has("serviceaccounts")):
		return "it can act as others"
	case group == "" && has("secrets") && g.reach == inAll && reads:
		return "it reads the secrets of all namespaces"
	case group == "" && (has("pods/exec") || has("nodes/proxy")):
		return "it can run commands in other pods"
	default:
		return ""
	}
}
