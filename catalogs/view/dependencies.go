// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"maps"
	"slices"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// resolve adds to the operator's own parts one bundle of each package that they need, and that those need in turn.
// Where several would do it takes what is present on the cluster, else the first in OLM's order: packages by name, the
// default channel first, and in a channel from the head downwards.
func resolve(own []*part, others []*catalogs.Package, present []string) ([]*part, []string, error) {
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
			if need.Opaque != "" || r.satisfied(need) {
				continue
			}
			p := r.choose(need)
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
		parts = append(parts, r.predecessor(r.chosen[name])...)
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

func (r *resolution) satisfied(need catalogs.Requirement) bool {
	for _, p := range r.own {
		if need.SatisfiedBy(p.pkg.Name, p.bundle) {
			return true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.chosen)) {
		if need.SatisfiedBy(name, r.chosen[name].bundle) {
			// A later, stricter need may exchange the bundle, but only for one that keeps this promise.
			r.needs[name] = append(r.needs[name], need)
			return true
		}
	}
	return false
}

// choose picks a bundle for the need, exchanging an earlier choice of the same package if it must.
func (r *resolution) choose(need catalogs.Requirement) *part {
	for _, pkg := range r.others {
		if slices.ContainsFunc(r.own, func(p *part) bool { return p.pkg.Name == pkg.Name }) {
			// OLM allows one instance of a package per namespace.
			continue
		}
		needs := append(slices.Clone(r.needs[pkg.Name]), need)
		if p := r.candidate(pkg, needs); p != nil {
			r.needs[pkg.Name] = needs
			r.chosen[pkg.Name] = p
			return p
		}
	}
	return nil
}

func (r *resolution) candidate(pkg *catalogs.Package, needs []catalogs.Requirement) *part {
	var best *part
	for _, c := range channelsInOrder(pkg) {
		for _, name := range bundlesInOrder(c) {
			b := pkg.Bundles[name]
			if b == nil || slices.ContainsFunc(needs,
				func(n catalogs.Requirement) bool { return !n.SatisfiedBy(pkg.Name, b) }) {
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

// predecessor returns the present bundle that the chosen one of the same package has to replace, if there is any.
func (r *resolution) predecessor(p *part) []*part {
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

func channelsInOrder(pkg *catalogs.Package) []*catalogs.Channel {
	return slices.SortedFunc(maps.Values(pkg.Channels), func(a, b *catalogs.Channel) int {
		if d := rank(pkg, a) - rank(pkg, b); d != 0 {
			return d
		}
		return cmp.Compare(a.Name, b.Name)
	})
}

func rank(pkg *catalogs.Package, c *catalogs.Channel) int {
	if c.Name == pkg.DefaultChannel {
		return 0
	}
	return 1
}

// bundlesInOrder are the bundles that OLM considers: from the head along replaces, without those that are skipped.
func bundlesInOrder(c *catalogs.Channel) []string {
	head, err := c.Head()
	if err != nil {
		return nil
	}
	var names []string
	for at, ok := c.Entry(head); ok && len(names) <= len(c.Entries); at, ok = c.Entry(at.Replaces) {
		names = append(names, at.Name)
	}
	return slices.DeleteFunc(names, c.Skips)
}
