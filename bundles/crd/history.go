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
	// OperatorVersion is the version of the operator.
	OperatorVersion string
	Bundle          *bundles.Bundle
	Definition      *apiextensionsv1.CustomResourceDefinition
}

// Break is a change and the published versions whose users it breaks.
type Break struct {
	Change
	// Versions are versions of the operator, the oldest first.
	Versions []string
}

// ListBreaks compares a definition with every published definition of the same name; history is ordered from the
// oldest. A change that breaks users of several versions is one Break, with the detail of the newest version. Breaks
// are in the order of Compare, with changes from older definitions first.
func ListBreaks(history []Published, newer *apiextensionsv1.CustomResourceDefinition) []Break {
	type key struct {
		kind           Kind
		version, field string
		path           string // distinguishes two bounds of one field
	}
	var breaks []Break
	indexes := map[key]int{}
	compared := map[*apiextensionsv1.CustomResourceDefinition][]Change{} // an Archive shares equal definitions
	for _, p := range history {
		changes, ok := compared[p.Definition]
		if !ok {
			changes = Compare(p.Definition, newer)
			compared[p.Definition] = changes
		}
		for _, c := range changes {
			k := key{kind: c.Kind, version: c.Version, field: c.Field, path: readLastStep(c.Path)}
			// A definition can have several changes of these kinds at the same place.
			if c.Kind == ChangedIdentity || c.Kind == NewRule {
				k.field += c.Detail
			}
			i, ok := indexes[k] // in breaks
			if !ok {
				i = len(breaks)
				indexes[k] = i
				breaks = append(breaks, Break{})
			}
			breaks[i] = Break{Change: c, Versions: append(breaks[i].Versions, p.OperatorVersion)}
		}
	}
	return dropDuplicateRemovals(breaks)
}

// dropDuplicateRemovals drops RemovedVersion changes if there is a RemovedStored change for the same version.
func dropDuplicateRemovals(breaks []Break) []Break {
	return slices.DeleteFunc(breaks, func(b Break) bool {
		return b.Kind == RemovedVersion && slices.ContainsFunc(breaks, func(c Break) bool {
			return c.Kind == RemovedStored && c.Version == b.Version
		})
	})
}

// readLastStep returns the last element of a path if it is a string; empty otherwise.
func readLastStep(path []any) string {
	if len(path) == 0 {
		return ""
	}
	last, _ := path[len(path)-1].(string)
	return last
}

// Divergence is a served version whose objects lose fields when the API server converts them to or from the
// storage version.
type Divergence struct {
	Version, Storage string
	// Index is the index of the version in spec.versions.
	Index int
	// Fields are the fields that only one of the two versions has, or whose types differ; sorted.
	Fields []string
}

// ListDivergences returns the served versions that need a conversion webhook because their fields differ from those of
// the storage version. Without a webhook, the API server changes only apiVersion and drops fields that the other
// version does not have. The result is nil if there is no storage version.
func ListDivergences(d *apiextensionsv1.CustomResourceDefinition) []Divergence {
	storageIndex := findVersion(d, StorageVersion(d))
	if storageIndex < 0 {
		return nil
	}
	store := &d.Spec.Versions[storageIndex]
	var out []Divergence
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		if i == storageIndex || !v.Served {
			continue
		}
		fields := findLostFields(readEffectiveSchema(d, store), readEffectiveSchema(d, v))
		fields = append(fields, findLostFields(readEffectiveSchema(d, v), readEffectiveSchema(d, store))...)
		slices.SortFunc(fields, strings.Compare)
		if fields = slices.Compact(fields); len(fields) > 0 {
			out = append(out, Divergence{Version: v.Name, Storage: store.Name, Index: i, Fields: fields})
		}
	}
	slices.SortStableFunc(out, func(a, b Divergence) int { return cmp.Compare(a.Index, b.Index) })
	return out
}

// Refusal is a version that refuses objects which are valid in another version.
type Refusal struct {
	// Version refuses objects that are valid in ValidVersion.
	Version, ValidVersion string
	// Changes are the fields that are required or narrower in Version, ordered by field; their paths are in Version.
	Changes []Change
}

// ListRefusals returns the versions that need a conversion webhook because their validation differs. Without a
// webhook, an object that was written in one version can be read but not written in the other version, and OLM refuses
// to install a definition for which stored objects are invalid. Unserved versions count only if they are in stored,
// the versions that objects may be stored as.
func ListRefusals(d *apiextensionsv1.CustomResourceDefinition, stored ...string) []Refusal {
	versions := d.Spec.Versions
	// All versions are compared with the served storage version, or else with the first served version.
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
		canHoldObjects := versions[i].Served || slices.Contains(stored, versions[i].Name)
		if i == base || !canHoldObjects {
			continue
		}
		out = append(out, findRefusals(d, i, base)...)
		if versions[i].Served { // clients can write objects in this version
			out = append(out, findRefusals(d, base, i)...)
		}
	}
	return out
}

// findRefusals returns the refusal of objects of version from by version to, given as indexes; nil if there is none.
func findRefusals(d *apiextensionsv1.CustomResourceDefinition, from, to int) []Refusal {
	valid, version := &d.Spec.Versions[from], &d.Spec.Versions[to]
	w := comparer{version: version.Name, root: []any{"spec", "versions", to, "schema", "openAPIV3Schema"}}
	w.compare(readEffectiveSchema(d, valid), readEffectiveSchema(d, version), location{})
	changes := slices.DeleteFunc(w.changes, func(c Change) bool {
		return c.Kind != NewRequired && c.Kind != NarrowedEnum && c.Kind != NarrowedRange && c.Kind != NarrowedFormat
	})
	if len(changes) == 0 {
		return nil
	}
	for i, c := range changes {
		changes[i].CRD = d.Name
		// A pattern that differs refuses some values in one of the two directions, so it is not doubtful.
		changes[i].Doubtful = c.Doubtful && (readLastStep(c.Path) != "pattern" || c.Detail == MustBeQuantity)
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.Field, b.Field) })
	return []Refusal{{Version: version.Name, ValidVersion: valid.Name, Changes: changes}}
}

// ListLostFields returns the fields of a version whose content the API server drops when it stores an object as
// another version without a conversion webhook. It returns nil if the definition does not have one of the versions.
func ListLostFields(d *apiextensionsv1.CustomResourceDefinition, version, storage string) []string {
	from, to := findVersion(d, version), findVersion(d, storage)
	if from < 0 || to < 0 {
		return nil
	}
	return findLostFields(readEffectiveSchema(d, &d.Spec.Versions[from]), readEffectiveSchema(d, &d.Spec.Versions[to]))
}

// findLostFields returns the fields of one schema that another schema drops or cannot hold.
func findLostFields(from, to *apiextensionsv1.JSONSchemaProps) []string {
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

// FindPublished returns the definition with the given name from each bundle that has it, in the order of the bundles.
func FindPublished(history []*bundles.Bundle, name string) []Published {
	var found []Published
	for _, b := range history {
		if d := Definition(b, name); d != nil {
			found = append(found, Published{OperatorVersion: b.Version.String(), Bundle: b, Definition: d})
		}
	}
	return found
}
