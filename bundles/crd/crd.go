// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd compares versions of a CustomResourceDefinition and reports what a newer one breaks for objects and
// clients of an older one.
//
// Its input is definitions from bundles. It does not access a cluster: what clusters may have stored follows from
// every version that was ever published, because no file has status.storedVersions. Callers decide whether a change is
// acceptable. The package is pure, and must not change a definition that it is given.
//
// Single properties are compared by sigs.k8s.io/crdify. The traversal of the schemas is our own: crdify copies every
// subtree once for each of its ancestors, takes a branch of anyOf for the property itself, reports each child of a
// removed field, and does not look at patterns, formats, nullability or CEL rules.
package crd

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bellwether-dev/bellwether/bundles"
)

// Kind classifies a change by what it breaks for users of the older definition.
type Kind string

// The kinds of changes. Harmless changes, such as a new optional field, have none.
const (
	// RemovedStored is a removed version that objects may be stored as: the API server refuses the definition.
	RemovedStored Kind = "RemovedStored"
	// RemovedVersion is a removed version that clients could use.
	RemovedVersion Kind = "RemovedVersion"
	// Unserved is a version that clients could use and that is still defined, but no longer served. It is Doubtful if
	// the older definition marked it as deprecated.
	Unserved Kind = "Unserved"
	// StorageMoved is another version that objects are stored as.
	StorageMoved Kind = "StorageMoved"
	// RemovedField is a field whose content the API server drops.
	RemovedField Kind = "RemovedField"
	// ChangedType is a field whose earlier values now have the wrong type.
	ChangedType Kind = "ChangedType"
	// NarrowedEnum is an enumeration that allows less.
	NarrowedEnum Kind = "NarrowedEnum"
	// NarrowedRange is a bound on a number, a length or a count that allows less.
	NarrowedRange Kind = "NarrowedRange"
	// NarrowedFormat is a pattern, a format or a rule about nulls and duplicates that allows less, or something else.
	NarrowedFormat Kind = "NarrowedFormat"
	// NewRequired is a field that is required now and has no default.
	NewRequired Kind = "NewRequired"
	// NewRule is a new CEL validation rule.
	NewRule Kind = "NewRule"
	// ChangedDefault is a default that was changed or removed.
	ChangedDefault Kind = "ChangedDefault"
	// AddedDefault is a default where there was none.
	AddedDefault Kind = "AddedDefault"
	// ChangedIdentity is another scope or kind: the API server refuses the definition.
	ChangedIdentity Kind = "ChangedIdentity"
	// Other is a change of the schema whose effect cannot be decided in general, such as another anyOf.
	Other Kind = "Other"
)

// Change is one difference between two definitions that may break users of the older one.
type Change struct {
	// CRD is the definition's name.
	CRD  string
	Kind Kind
	// Version is the name of the API version; empty for a change of the definition as a whole.
	Version string
	// Field is the field of the custom resource, as people write it: .spec.parts[*].size; empty for a change of a
	// version or of the definition as a whole.
	Field string
	// Detail says what exactly changed; it is not a sentence. Empty if Kind says everything.
	Detail string
	// Doubtful says that the change may be harmless: whether one pattern contains another cannot be decided, for
	// example.
	Doubtful bool
	// Path is where in the newer definition the change shows: a path for bundles.Object.Position. For something that
	// was removed it is what contained it.
	Path []any
}

// InStatus says whether the change is of a field that the operator writes, and can write again.
func (c Change) InStatus() bool {
	rest, ok := strings.CutPrefix(c.Field, ".status")
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// String says what changed, as part of a sentence.
func (c Change) String() string {
	text := phrases[c.Kind]
	if c.Kind == RemovedField && strings.HasSuffix(c.Field, ".*") {
		text = "fields of {version} at {field} that are not in the schema were kept and are dropped now"
	}
	for placeholder, value := range map[string]string{"{field}": c.Field, "{version}": c.Version,
		"{detail}": c.Detail} {
		text = strings.ReplaceAll(text, placeholder, value)
	}
	return text
}

var phrases = map[Kind]string{
	RemovedStored:   "version {version}, which objects may be stored as, was removed",
	RemovedVersion:  "version {version} was removed",
	Unserved:        "version {version} is no longer served",
	StorageMoved:    "objects are stored as {version} now: {detail}",
	RemovedField:    "field {field} of {version} was removed: stored values are dropped",
	ChangedType:     "field {field} of {version} changes its type: {detail}",
	NarrowedEnum:    "field {field} of {version} allows fewer values: {detail}",
	NarrowedRange:   "field {field} of {version} allows a smaller range: {detail}",
	NarrowedFormat:  "field {field} of {version} allows less: {detail}",
	NewRequired:     "field {field} of {version} is required now and has no default",
	NewRule:         "field {field} of {version} has a new validation rule: {detail}",
	ChangedDefault:  "the default of field {field} of {version} changes: {detail}",
	AddedDefault:    "field {field} of {version} has a default now: {detail}",
	ChangedIdentity: "{detail}",
	Other:           "the schema of field {field} of {version} changes: {detail}",
}

// Compare returns what the newer definition breaks for users of the older one: in the order of the older one's
// versions, then of the fields. With swapped arguments it returns what a rollback would break.
func Compare(older, newer *apiextensionsv1.CustomResourceDefinition) []Change {
	// Most versions of an operator do not change most of their definitions.
	if reflect.DeepEqual(&older.Spec, &newer.Spec) {
		return nil
	}
	changes := compareIdentity(older, newer)
	for i := range older.Spec.Versions {
		changes = append(changes, compareVersion(older, &older.Spec.Versions[i], newer)...)
	}
	changes = append(changes, compareStorageVersion(older, newer)...)
	for i := range changes {
		changes[i].CRD = newer.Name
	}
	return changes
}

// compareIdentity finds what can never change once the definition is established.
func compareIdentity(older, newer *apiextensionsv1.CustomResourceDefinition) []Change {
	var changes []Change
	if result := scopeComparator.Compare(older, newer); len(result.Errors) > 0 {
		changes = append(changes, Change{Kind: ChangedIdentity, Path: []any{"spec", "scope"},
			Detail: fmt.Sprintf("the scope changes from %s to %s", older.Spec.Scope, newer.Spec.Scope)})
	}
	if older.Spec.Names.Kind != newer.Spec.Names.Kind {
		changes = append(changes, Change{Kind: ChangedIdentity, Path: []any{"spec", "names", "kind"},
			Detail: fmt.Sprintf("the kind changes from %s to %s", older.Spec.Names.Kind, newer.Spec.Names.Kind)})
	}
	return changes
}

func compareVersion(from *apiextensionsv1.CustomResourceDefinition,
	older *apiextensionsv1.CustomResourceDefinitionVersion,
	newer *apiextensionsv1.CustomResourceDefinition,
) []Change {
	if removed := removedStored(older, newer); removed {
		return []Change{{Kind: RemovedStored, Version: older.Name, Path: []any{"spec", "versions"}}}
	}
	i := versionIndex(newer, older.Name)
	if i < 0 {
		if !older.Served {
			return nil // neither clients nor objects can rely on it
		}
		return []Change{{Kind: RemovedVersion, Version: older.Name, Path: []any{"spec", "versions"}}}
	}
	var changes []Change
	version := &newer.Spec.Versions[i]
	if older.Served && !version.Served {
		changes = append(changes, Change{Kind: Unserved, Version: older.Name, Doubtful: older.Deprecated,
			Path: []any{"spec", "versions", i, "served"}})
	}
	w := comparer{version: older.Name, root: []any{"spec", "versions", i, "schema", "openAPIV3Schema"}}
	w.compare(effectiveSchema(from, older), effectiveSchema(newer, version), location{})
	slices.SortStableFunc(w.changes, func(a, b Change) int { return cmp.Compare(a.Field, b.Field) })
	return append(changes, w.changes...)
}

// removedStored calls crdify, which reads status.storedVersions: a version is in it once objects were stored as it.
func removedStored(older *apiextensionsv1.CustomResourceDefinitionVersion,
	newer *apiextensionsv1.CustomResourceDefinition) bool {
	if !older.Storage {
		return false
	}
	cluster := &apiextensionsv1.CustomResourceDefinition{
		Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{older.Name}},
	}
	return len(storedComparator.Compare(cluster, newer).Errors) > 0
}

func compareStorageVersion(older, newer *apiextensionsv1.CustomResourceDefinition) []Change {
	was, is := StorageVersion(older), StorageVersion(newer)
	if was == is || was == "" || is == "" {
		return nil
	}
	return []Change{{Kind: StorageMoved, Version: is, Detail: "it was " + was,
		Path: []any{"spec", "versions", versionIndex(newer, is), "storage"}}}
}

// Converted says whether a webhook converts between the versions of a
// definition: the definition says so, or the bundle's ClusterServiceVersion, by
// which OLM completes it.
func Converted(b *bundles.Bundle, d *apiextensionsv1.CustomResourceDefinition) bool {
	if d.Spec.Conversion != nil && d.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
		return true
	}
	return slices.ContainsFunc(b.CSV.Spec.WebhookDefinitions, func(w operatorsv1alpha1.WebhookDescription) bool {
		return w.Type == operatorsv1alpha1.ConversionWebhook && slices.Contains(w.ConversionCRDs, d.Name)
	})
}

// StorageVersion is the name of the version that new objects are stored as.
func StorageVersion(d *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range d.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// Versions are the names of all versions that the definition has.
func Versions(d *apiextensionsv1.CustomResourceDefinition) []string {
	names := make([]string, 0, len(d.Spec.Versions))
	for _, v := range d.Spec.Versions {
		names = append(names, v.Name)
	}
	return names
}

func versionIndex(d *apiextensionsv1.CustomResourceDefinition, name string) int {
	return slices.IndexFunc(d.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name })
}
