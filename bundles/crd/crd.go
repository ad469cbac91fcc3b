// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd compares versions of a CustomResourceDefinition and reports what a newer one breaks for objects and
// clients of an older one.
//
// Its input is definitions from bundles. It does not access a cluster. Every version that was ever published is assumed
// to be stored in a cluster, because no file has status.storedVersions. Callers decide whether a change is acceptable.
// The package must not change a definition that is passed to it.
//
// Single properties are compared by sigs.k8s.io/crdify. The package itself traverses the schemas, because crdify copies
// every subtree once for each of its ancestors, confuses a branch of anyOf with the property itself, reports each child
// of a removed field, and does not compare patterns, formats, nullability or CEL rules.
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

// Kind is the effect of a change on users of the older definition.
type Kind string

// The kinds of changes. Harmless changes, such as a new optional field, are not reported.
const (
	// RemovedStored is a removed version that objects may be stored as. The API server refuses the new definition.
	RemovedStored Kind = "RemovedStored"
	// RemovedVersion is a removed version that clients could use.
	RemovedVersion Kind = "RemovedVersion"
	// Unserved is a version that is still defined but no longer served. It is Doubtful if the older definition marked
	// the version as deprecated.
	Unserved Kind = "Unserved"
	// StorageMoved is a change of the version that objects are stored as.
	StorageMoved Kind = "StorageMoved"
	// RemovedField is a removed field. The API server drops its content.
	RemovedField Kind = "RemovedField"
	// ChangedType is a field whose old values have the wrong type.
	ChangedType Kind = "ChangedType"
	// NarrowedEnum is an enumeration that allows fewer values.
	NarrowedEnum Kind = "NarrowedEnum"
	// NarrowedRange is a bound on a number, a length or a count that allows fewer values.
	NarrowedRange Kind = "NarrowedRange"
	// NarrowedFormat is a pattern, a format, or a rule about nulls and duplicates that allows fewer or other values.
	NarrowedFormat Kind = "NarrowedFormat"
	// NewRequired is a field that becomes required and has no default.
	NewRequired Kind = "NewRequired"
	// NewRule is a new CEL validation rule.
	NewRule Kind = "NewRule"
	// ChangedDefault is a default that is changed or removed.
	ChangedDefault Kind = "ChangedDefault"
	// AddedDefault is a new default of a field that had none.
	AddedDefault Kind = "AddedDefault"
	// ChangedIdentity is a change of the scope or kind. The API server refuses the new definition.
	ChangedIdentity Kind = "ChangedIdentity"
	// Other is a change of the schema whose effect cannot be determined in general, such as a changed anyOf.
	Other Kind = "Other"
)

// Change is a difference between two definitions that may break users of the older definition.
type Change struct {
	// CRD is the name of the definition.
	CRD  string
	Kind Kind
	// Version is the name of the API version; empty for a change of the whole definition.
	Version string
	// Field is the field of the custom resource, such as .spec.parts[*].size; empty for a change of a version or of the
	// whole definition.
	Field string
	// Detail describes the change; it is not a sentence. It is empty if Kind is sufficient.
	Detail string
	// Doubtful is true if the change may be harmless. For example, it cannot be determined whether one pattern allows
	// everything that another pattern allows.
	Doubtful bool
	// Path is the place of the change in the newer definition, in the form that bundles.Object.Position takes. For a
	// removed element, it is the place of its parent.
	Path []any
}

// InStatus reports whether the change is in a field of .status. The operator can write such a field again.
func (c Change) InStatus() bool {
	rest, ok := strings.CutPrefix(c.Field, ".status")
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// String describes the change as part of a sentence.
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

// Compare returns the changes in the newer definition that break users of the older definition, ordered by the
// versions of the older definition and then by field. With swapped arguments, it returns the changes that a rollback
// would break.
func Compare(older, newer *apiextensionsv1.CustomResourceDefinition) []Change {
	// Most definitions do not change between versions of an operator.
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

// compareIdentity returns changes of fields that the API server refuses to change.
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

// compareVersion returns the changes of one API version: older is a version of the definition from, which is compared
// with the version of the same name in newer. If that version was removed, the removal is the only change.
func compareVersion(from *apiextensionsv1.CustomResourceDefinition,
	older *apiextensionsv1.CustomResourceDefinitionVersion,
	newer *apiextensionsv1.CustomResourceDefinition,
) []Change {
	if isStoredVersionRemoved(older, newer) {
		return []Change{{Kind: RemovedStored, Version: older.Name, Path: []any{"spec", "versions"}}}
	}
	i := findVersion(newer, older.Name)
	if i < 0 {
		if !older.Served {
			return nil // clients and objects cannot use it
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
	w.compare(readEffectiveSchema(from, older), readEffectiveSchema(newer, version), location{})
	slices.SortStableFunc(w.changes, func(a, b Change) int { return cmp.Compare(a.Field, b.Field) })
	return append(changes, w.changes...)
}

// isStoredVersionRemoved reports whether the newer definition lacks a version that objects may be stored as. crdify
// reads this from status.storedVersions, which contains every version that was a storage version.
func isStoredVersionRemoved(older *apiextensionsv1.CustomResourceDefinitionVersion,
	newer *apiextensionsv1.CustomResourceDefinition) bool {
	if !older.Storage {
		return false
	}
	cluster := &apiextensionsv1.CustomResourceDefinition{
		Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{older.Name}},
	}
	return len(storedComparator.Compare(cluster, newer).Errors) > 0
}

// compareStorageVersion returns a change if objects are stored as another version; nil if a definition has no storage
// version.
func compareStorageVersion(older, newer *apiextensionsv1.CustomResourceDefinition) []Change {
	oldVersion, newVersion := StorageVersion(older), StorageVersion(newer)
	if oldVersion == newVersion || oldVersion == "" || newVersion == "" {
		return nil
	}
	return []Change{{Kind: StorageMoved, Version: newVersion, Detail: "it was " + oldVersion,
		Path: []any{"spec", "versions", findVersion(newer, newVersion), "storage"}}}
}

// IsConverted reports whether a webhook converts between the versions of a definition. Either the definition declares
// the webhook, or the ClusterServiceVersion, from which OLM adds it to the definition.
func IsConverted(b *bundles.Bundle, d *apiextensionsv1.CustomResourceDefinition) bool {
	if d.Spec.Conversion != nil && d.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
		return true
	}
	return slices.ContainsFunc(b.CSV.Spec.WebhookDefinitions, func(w operatorsv1alpha1.WebhookDescription) bool {
		return w.Type == operatorsv1alpha1.ConversionWebhook && slices.Contains(w.ConversionCRDs, d.Name)
	})
}

// StorageVersion returns the name of the version that new objects are stored as; empty if there is none.
func StorageVersion(d *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range d.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// Versions returns the names of all versions of the definition.
func Versions(d *apiextensionsv1.CustomResourceDefinition) []string {
	names := make([]string, 0, len(d.Spec.Versions))
	for _, v := range d.Spec.Versions {
		names = append(names, v.Name)
	}
	return names
}

// findVersion returns the index of a version in spec.versions, or -1.
func findVersion(d *apiextensionsv1.CustomResourceDefinition, name string) int {
	return slices.IndexFunc(d.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name })
}
