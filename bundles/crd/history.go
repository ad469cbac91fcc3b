// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"cmp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bellwether-dev/bellwether/bundles"
)

// Published is a definition in a published version of the operator.
type Published struct {
	// By is the operator's version.
	By         string
	Bundle     *bundles.Bundle
	Definition *apiextensionsv1.CustomResourceDefinition
}

// Break is a change, and the published versions whose users it breaks.
type Break struct {
	Change
	// Versions are the operator's versions, the oldest first.
	Versions []string
}

// Breaks compares a definition with every published definition of that name,
// the oldest first. A change that breaks users of several of them is one Break,
// with the detail of the newest of them. Breaks are in the order in which
// Compare finds them, those of older definitions first.
func Breaks(history []Published, newer *apiextensionsv1.CustomResourceDefinition) []Break {
	type key struct {
		kind           Kind
		version, field string
		path           string // distinguishes two bounds of one field
	}
	var breaks []Break
	known := map[key]int{}
	compared := map[*apiextensionsv1.CustomResourceDefinition][]Change{} // an Archive keeps equal ones once
	for _, p := range history {
		changes, ok := compared[p.Definition]
		if !ok {
			changes = Compare(p.Definition, newer)
			compared[p.Definition] = changes
		}
		for _, c := range changes {
			k := key{kind: c.Kind, version: c.Version, field: c.Field, path: lastStep(c.Path)}
			if c.Kind == ChangedIdentity || c.Kind == NewRule {
				k.field += c.Detail
			}
			i, ok := known[k]
			if !ok {
				i = len(breaks)
				known[k] = i
				breaks = append(breaks, Break{})
			}
			breaks[i] = Break{Change: c, Versions: append(breaks[i].Versions, p.By)}
		}
	}
	return dropDuplicateRemovals(breaks)
}

// dropDuplicateRemovals drops RemovedVersion if there is RemovedStored for the
// same version.
func dropDuplicateRemovals(breaks []Break) []Break {
	return slices.DeleteFunc(breaks, func(b Break) bool {
		return b.Kind == RemovedVersion && slices.ContainsFunc(breaks, func(c Break) bool {
			return c.Kind == RemovedStored && c.Version == b.Version
		})
	})
}

func lastStep(path []any) string {
	if len(path) == 0 {
		return ""
	}
	last, _ := path[len(path)-1].(string)
	return last
}

// Divergence is a served version whose objects lose fields when the API server
// converts them to or from the storage version.
type Divergence struct {
	Version, Storage string
	// Index is the version's place in spec.versions.
	Index int
	// Fields are those that only one of the two has, or that have another type
	// in the other; sorted.
	Fields []string
}

// Divergences finds the versions that need a conversion webhook: without one,
// the API server only rewrites apiVersion, and drops what the other version
// does not know.
func Divergences(d *apiextensionsv1.CustomResourceDefinition) []Divergence {
	at := versionIndex(d, StorageVersion(d))
	if at < 0 {
		return nil
	}
	store := &d.Spec.Versions[at]
	var out []Divergence
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		if i == at || !v.Served {
			continue
		}
		fields := lostFields(effectiveSchema(d, store), effectiveSchema(d, v))
		fields = append(fields, lostFields(effectiveSchema(d, v), effectiveSchema(d, store))...)
		slices.SortFunc(fields, strings.Compare)
		if fields = slices.Compact(fields); len(fields) > 0 {
			out = append(out, Divergence{Version: v.Name, Storage: store.Name, Index: i, Fields: fields})
		}
	}
	slices.SortStableFunc(out, func(a, b Divergence) int { return cmp.Compare(a.Index, b.Index) })
	return out
}

// Refusal is a served version that refuses objects which are valid in another version.
type Refusal struct {
	// Version refuses what is valid in Of.
	Version, Of string
	// Changes are what is required or narrower in Version, in the order of the fields; their paths are in Version.
	Changes []Change
}

// Refusals finds the versions that need a conversion webhook because they validate differently: without one, an object
// that was written through one version is read through another as it is, and cannot be written through that one, nor
// can OLM install a definition by which it is invalid. A version that is not served counts if it is in stored, the
// versions that objects may have been stored as.
func Refusals(d *apiextensionsv1.CustomResourceDefinition, stored ...string) []Refusal {
	versions := d.Spec.Versions
	base := slices.IndexFunc(versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Served && v.Storage
	})
	if base < 0 {
		base = slices.IndexFunc(versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Served
		})
	}
	if base < 0 {
		return nil
	}
	var out []Refusal
	for i := range versions {
		if i == base || !versions[i].Served && !slices.Contains(stored, versions[i].Name) {
			continue
		}
		out = append(out, refusals(d, i, base)...)
		if versions[i].Served {
			out = append(out, refusals(d, base, i)...)
		}
	}
	return out
}

// refusals returns what one version refuses of another, by their indexes.
func refusals(d *apiextensionsv1.CustomResourceDefinition, from, to int) []Refusal {
	valid, version := &d.Spec.Versions[from], &d.Spec.Versions[to]
	w := comparer{version: version.Name, root: []any{"spec", "versions", to, "schema", "openAPIV3Schema"}}
	w.compare(effectiveSchema(d, valid), effectiveSchema(d, version), location{})
	changes := slices.DeleteFunc(w.changes, func(c Change) bool {
		return c.Kind != NewRequired && c.Kind != NarrowedEnum && c.Kind != NarrowedRange && c.Kind != NarrowedFormat
	})
	if len(changes) == 0 {
		return nil
	}
	for i, c := range changes {
		changes[i].CRD = d.Name
		// Whatever a pattern allows that the other one does not is refused in one direction or the other.
		changes[i].Doubtful = c.Doubtful && (lastStep(c.Path) != "pattern" || c.Detail == MustBeQuantity)
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.Field, b.Field) })
	return []Refusal{{Version: version.Name, Of: valid.Name, Changes: changes}}
}

// Lost returns the fields of a version whose content the API server drops when it
// stores an object as another version without a conversion webhook; nil where the
// definition does not have one of the two.
func Lost(d *apiextensionsv1.CustomResourceDefinition, version, storage string) []string {
	from, to := versionIndex(d, version), versionIndex(d, storage)
	if from < 0 || to < 0 {
		return nil
	}
	return lostFields(effectiveSchema(d, &d.Spec.Versions[from]), effectiveSchema(d, &d.Spec.Versions[to]))
}

// lostFields are the fields of one schema that another drops or cannot hold.
func lostFields(from, to *apiextensionsv1.JSONSchemaProps) []string {
	var w comparer
	w.compare(from, to, location{})
	var fields []string
	for _, c := range w.changes {
		if c.Kind == RemovedField || c.Kind == ChangedType {
			fields = append(fields, c.Field)
		}
	}
	return fields
}

// Find returns the definition of a name in each bundle that has it, in the order of the bundles.
func Find(history []*bundles.Bundle, name string) []Published {
	var found []Published
	for _, b := range history {
		if d := Definition(b, name); d != nil {
			found = append(found, Published{By: b.Version.String(), Bundle: b, Definition: d})
		}
	}
	return found
}
