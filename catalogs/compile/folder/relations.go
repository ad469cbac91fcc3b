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
	"github.com/bellwether-dev/bellwether/phrase"
)

// relatedBundles are bundles that have nothing but what they provide to others and need of them.
func relatedBundles(in []compile.Relation) ([]*catalogs.Bundle, error) {
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

// noteUnprovided notes what bundles need and no package of the catalog provides. Another catalog of a cluster may
// provide it.
func noteUnprovided(packages []Package) {
	provided := map[string]bool{} // by requirement, since many bundles have the same ones
	has := func(need catalogs.Requirement) bool {
		text := need.String()
		if _, known := provided[text]; !known {
			provided[text] = isOpaque(need) || isProvided(packages, need)
		}
		return provided[text]
	}
	for i := range packages {
		p := &packages[i]
		missing := map[string][]string{}
		for _, b := range p.relations {
			for _, need := range requirementsOf(p, b) {
				if !has(need) {
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

// requirementsOf notes it if the requirements of a bundle cannot be read.
func requirementsOf(p *Package, b *catalogs.Bundle) []catalogs.Requirement {
	needs, err := b.Requirements()
	if err != nil {
		p.Notes = append(p.Notes, err.Error())
	}
	return needs
}

// maxVersions bounds how many versions a note names.
const maxVersions = 5

// isOpaque tells whether only OLM can judge a requirement, or a part of it.
func isOpaque(need catalogs.Requirement) bool {
	return need.Opaque != "" || slices.ContainsFunc(slices.Concat(need.All, need.Any), isOpaque)
}

func isProvided(packages []Package, need catalogs.Requirement) bool {
	return slices.ContainsFunc(packages, func(p Package) bool {
		return slices.ContainsFunc(p.relations, func(b *catalogs.Bundle) bool { return need.SatisfiedBy(p.Name, b) })
	})
}

// noteSharedKinds notes kinds that several packages own: OLM refuses to install one where the other is.
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
