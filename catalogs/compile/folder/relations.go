// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package folder

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// toBundles returns bundles that have only the properties that they provide and need.
func toBundles(in []compile.Relation) ([]*catalogs.Bundle, error) {
	out := make([]*catalogs.Bundle, 0, len(in))
	for _, r := range in {
		version, err := semver.Parse(r.Version)
		if err != nil {
			return nil, fmt.Errorf("read version of bundle %s: %w", r.Name, err)
		}
		out = append(out, &catalogs.Bundle{Name: r.Name, Version: version, Properties: r.Properties})
	}
	return out, nil
}

// noteMissingRequirements adds a note to a package for each requirement of its bundles that no package of the catalog
// satisfies. Another catalog of a cluster might satisfy the requirement. A requirement that only OLM can evaluate is
// treated as satisfied.
func noteMissingRequirements(packages []Package) {
	provided := map[string]bool{} // by requirement, because many bundles have the same requirements
	isSatisfied := func(need catalogs.Requirement) bool {
		text := need.String()
		if _, isCached := provided[text]; !isCached {
			provided[text] = isOpaque(need) || isProvided(packages, need)
		}
		return provided[text]
	}
	for i := range packages {
		p := &packages[i]
		missing := map[string][]string{}
		for _, b := range p.relations {
			for _, need := range readRequirements(p, b) {
				if !isSatisfied(need) {
					missing[need.String()] = append(missing[need.String()], b.VersionString())
				}
			}
		}
		for _, need := range slices.Sorted(maps.Keys(missing)) {
			versions := phrase.First(missing[need], maxVersions)
			p.Notes = append(p.Notes, fmt.Sprintf("no package of this catalog provides %s, which %s needs: OLM "+
				"installs it only where another catalog does", need, versions))
		}
	}
}

// readRequirements returns the requirements of a bundle. If they cannot be read, it adds a note to the package.
func readRequirements(p *Package, b *catalogs.Bundle) []catalogs.Requirement {
	needs, err := b.Requirements()
	if err != nil {
		p.Notes = append(p.Notes, err.Error())
	}
	return needs
}

// maxVersions bounds how many versions a note names.
const maxVersions = 5

// isOpaque reports whether only OLM can evaluate a requirement, or a part of it.
func isOpaque(need catalogs.Requirement) bool {
	return need.Opaque != "" || slices.ContainsFunc(slices.Concat(need.All, need.Any), isOpaque)
}

func isProvided(packages []Package, need catalogs.Requirement) bool {
	return slices.ContainsFunc(packages, func(p Package) bool {
		return slices.ContainsFunc(p.relations, func(b *catalogs.Bundle) bool { return need.SatisfiedBy(p.Name, b) })
	})
}

// noteSharedKinds adds notes about kinds that several packages own, because OLM refuses to install both on
// one cluster.
func noteSharedKinds(packages []Package) {
	owners := map[schema.GroupKind][]int{}
	for i, p := range packages {
		for _, b := range p.relations {
			for _, gvk := range b.Provides() {
				kind := schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind}
				if !slices.Contains(owners[kind], i) {
					owners[kind] = append(owners[kind], i)
				}
			}
		}
	}
	for _, kind := range slices.SortedFunc(maps.Keys(owners), func(a, b schema.GroupKind) int {
		return strings.Compare(a.String(), b.String())
	}) {
		noteSharedKind(packages, kind, owners[kind])
	}
}

// noteSharedKind adds notes to the packages that own a kind: one note for each other owner. owners are indexes.
func noteSharedKind(packages []Package, kind schema.GroupKind, owners []int) {
	for _, i := range owners {
		for _, other := range owners {
			if other != i {
				packages[i].Notes = append(packages[i].Notes, fmt.Sprintf("package %s also owns kind %s: OLM "+
					"does not install both on one cluster", packages[other].Name, kind))
			}
		}
	}
}
