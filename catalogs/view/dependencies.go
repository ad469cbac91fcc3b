// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"maps"
	"slices"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// resolveDependencies adds to the operator's own parts one bundle of each package that they need, directly or
// transitively. If several bundles satisfy a requirement, it chooses a bundle that is present on the cluster, or else
// the first bundle in OLM's order: packages by name, the default channel first, and in a channel from the head
// downwards. It also returns the requirements that no bundle satisfies.
func resolveDependencies(own []*part, others []*catalogs.Package, present []string) ([]*part, []string, error) {
	r := &resolution{others: slices.Clone(others), present: present, needs: map[string][]catalogs.Requirement{},
		chosen: map[string]*part{}}
	slices.SortFunc(r.others, func(a, b *catalogs.Package) int { return cmp.Compare(a.Name, b.Name) })
	r.own = own
	unresolved := map[string]bool{}
	for work := slices.Clone(own); len(work) > 0; {
		requirements, err := work[0].bundle.Requirements()
		if err != nil {
			return nil, nil, err
		}
		work = work[1:]
		for _, need := range requirements {
			// Only OLM can evaluate an opaque requirement.
			if need.Opaque != "" || r.isSatisfied(need) {
				continue
			}
			p := r.chooseBundle(need)
			if p == nil {
				unresolved[need.String()] = true
				continue
			}
			work = append(work, p)
		}
	}
	parts := slices.Clone(own)
	for _, name := range slices.Sorted(maps.Keys(r.chosen)) {
		parts = append(parts, r.chosen[name])
		parts = append(parts, r.linkPredecessor(r.chosen[name])...)
	}
	return parts, slices.Sorted(maps.Keys(unresolved)), nil
}

type resolution struct {
	own     []*part
	others  []*catalogs.Package
	present []string
	// needs are all requirements on a package; the chosen version must satisfy each of them.
	needs  map[string][]catalogs.Requirement
	chosen map[string]*part
}

// isSatisfied reports whether a part of the view satisfies the need, and records the need for a chosen bundle.
func (r *resolution) isSatisfied(need catalogs.Requirement) bool {
	for _, p := range r.own {
		if need.SatisfiedBy(p.pkg.Name, p.bundle) {
			return true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.chosen)) {
		if need.SatisfiedBy(name, r.chosen[name].bundle) {
			// A later, stricter need can replace the bundle, but only by a bundle that still satisfies this need.
			r.needs[name] = append(r.needs[name], need)
			return true
		}
	}
	return false
}

// chooseBundle chooses a bundle that satisfies the need, and replaces an earlier choice of the same package if
// necessary. It returns nil if there is none.
func (r *resolution) chooseBundle(need catalogs.Requirement) *part {
	for _, pkg := range r.others {
		if slices.ContainsFunc(r.own, func(p *part) bool { return p.pkg.Name == pkg.Name }) {
			// OLM allows one instance of a package per namespace, and the operator's own bundle was chosen already.
			continue
		}
		needs := append(slices.Clone(r.needs[pkg.Name]), need)
		if p := r.findCandidate(pkg, needs); p != nil {
			r.needs[pkg.Name] = needs
			r.chosen[pkg.Name] = p
			return p
		}
	}
	return nil
}

// findCandidate returns a bundle of a package that satisfies all needs, a present bundle first; nil if there is none.
func (r *resolution) findCandidate(pkg *catalogs.Package, needs []catalogs.Requirement) *part {
	var best *part
	for _, c := range sortChannels(pkg) {
		for _, name := range listChain(c) {
			b := pkg.Bundles[name]
			isUnsatisfied := func(n catalogs.Requirement) bool { return !n.SatisfiedBy(pkg.Name, b) }
			if b == nil || slices.ContainsFunc(needs, isUnsatisfied) {
				continue
			}
			p := &part{pkg: pkg, channel: c.Name, bundle: b}
			if slices.Contains(r.present, name) {
				return p
			}
			if best == nil {
				best = p
			}
		}
	}
	return best
}

// linkPredecessor makes the chosen bundle replace the present bundle of the same package, and returns the part of the
// present bundle. The list is empty if no bundle of the package is present, or if the chosen bundle itself is.
func (r *resolution) linkPredecessor(p *part) []*part {
	if slices.Contains(r.present, p.bundle.Name) {
		return nil
	}
	for _, name := range r.present {
		if b, ok := p.pkg.Bundles[name]; ok {
			p.replaces = name
			return []*part{{pkg: p.pkg, channel: p.channel, bundle: b}}
		}
	}
	return nil
}

// sortChannels returns the channels in OLM's order: the default channel first, then by name.
func sortChannels(pkg *catalogs.Package) []*catalogs.Channel {
	return slices.SortedFunc(maps.Values(pkg.Channels), func(a, b *catalogs.Channel) int {
		if d := rankChannel(pkg, a) - rankChannel(pkg, b); d != 0 {
			return d
		}
		return cmp.Compare(a.Name, b.Name)
	})
}

func rankChannel(pkg *catalogs.Package, c *catalogs.Channel) int {
	if c.Name == pkg.DefaultChannel {
		return 0
	}
	return 1
}

// listChain returns the bundles that OLM considers: from the head along replaces, without skipped bundles.
func listChain(c *catalogs.Channel) []string {
	head, err := c.Head()
	if err != nil {
		return nil
	}
	var names []string
	// The bound on the length ends the loop if replaces runs in a circle.
	for entry, ok := c.Entry(head); ok && len(names) <= len(c.Entries); entry, ok = c.Entry(entry.Replaces) {
		names = append(names, entry.Name)
	}
	return slices.DeleteFunc(names, c.Skips)
}
