// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// comparer compares two schemas field by field. In names of fields, [*] is any element of a list or map, and .* any
// field that is not in the schema.
type comparer struct {
	version string
	root    []any
	changes []Change
}

// location is a place in a schema. It is a linked list to the root, so that no path is built for places without
// a change.
type location struct {
	parent *location
	// keys are path elements of the schema; name is the corresponding part of the field name in the custom resource.
	keys []any
	name string
}

// newChild returns the location of a child. name is its part of the field name, keys is its path below the parent.
func (l *location) newChild(name string, keys ...any) location {
	return location{parent: l, keys: keys, name: name}
}

// formatField returns the field name in the custom resource.
func (l *location) formatField() string {
	if l == nil {
		return ""
	}
	return l.parent.formatField() + l.name
}

// listPath returns the path in the schema.
func (l *location) listPath() []any {
	if l == nil {
		return nil
	}
	return append(l.parent.listPath(), l.keys...)
}

// addChange adds a change at a location. below is the path below the location.
func (w *comparer) addChange(kind Kind, at location, detail string, below ...any) {
	field := at.formatField()
	if field == "" {
		field = "." // the whole object
	}
	w.changes = append(w.changes, Change{Kind: kind, Version: w.version, Field: field, Detail: detail,
		Path: slices.Concat(w.root, at.listPath(), below)})
}

// markDoubtful sets Doubtful of the change that was added last.
func (w *comparer) markDoubtful(doubtful bool) { w.changes[len(w.changes)-1].Doubtful = doubtful }

// compare adds the changes that break users of older, at a location and below it. It adds nothing if a schema is nil,
// or if both are the same object, as in an Archive.
func (w *comparer) compare(older, newer *apiextensionsv1.JSONSchemaProps, at location) {
	if older == nil || newer == nil || older == newer {
		return
	}
	if !isEqualWithoutChildren(older, newer) {
		if w.compareType(older, newer, at) {
			return // the children cannot be compared
		}
		w.compareValues(older, newer, at)
	}
	w.compareRequired(older, newer, at)
	w.compareProperties(older, newer, at)
	w.compareAdditional(older, newer, at)
	if older.Items != nil && newer.Items != nil {
		w.compare(older.Items.Schema, newer.Items.Schema, at.newChild("[*]", "items"))
	}
}

// compareType reports a type that does not include the older type. It returns true if it reports a change.
func (w *comparer) compareType(older, newer *apiextensionsv1.JSONSchemaProps, at location) bool {
	if isWiderType(older, newer) {
		return false
	}
	if formatType(older) == formatType(newer) && !isNarrower(typeComparator, older, newer) {
		return false
	}
	w.addChange(ChangedType, at, fmt.Sprintf("%s becomes %s", formatType(older), formatType(newer)), "type")
	return true
}

// isWiderType reports whether every value of the older type is valid for the newer type.
func isWiderType(older, newer *apiextensionsv1.JSONSchemaProps) bool {
	from, to := formatType(older), formatType(newer)
	switch to {
	case "any", from:
		return true
	case "integer or string":
		return from == "integer" || from == "string"
	case "number":
		return from == "integer"
	}
	return false
}

// formatType returns the type of a schema as text.
func formatType(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.XIntOrString:
		return "integer or string"
	case s.Type == "":
		return "any"
	}
	return s.Type
}

// compareValues reports that values of the field itself, without its children, are no longer allowed, and that the
// field has another default.
func (w *comparer) compareValues(older, newer *apiextensionsv1.JSONSchemaProps, at location) {
	if len(newer.Enum) > 0 && isNarrower(enumComparator, older, newer) {
		w.addChange(NarrowedEnum, at, formatEnumChange(older, newer), "enum")
	}
	for _, r := range rangeBounds {
		if isNarrower(r.comparator, older, newer) {
			w.addChange(NarrowedRange, at, fmt.Sprintf("%s was %s and is %s", r.name, r.value(older), r.value(newer)),
				r.name)
		}
	}
	w.compareOpenRange(older, newer, at)
	w.compareFormat(older, newer, at)
	w.compareDefault(older, newer, at)
	w.compareRules(older, newer, at)
	w.compareOthers(older, newer, at)
}

// formatEnumChange returns a text about the values that an enumeration no longer allows. If the enumeration is new, the
// text lists the values that it allows.
func formatEnumChange(older, newer *apiextensionsv1.JSONSchemaProps) string {
	allowed := map[string]bool{}
	for _, v := range newer.Enum {
		allowed[string(v.Raw)] = true
	}
	if len(older.Enum) == 0 {
		return "only " + strings.Join(slices.Sorted(maps.Keys(allowed)), ", ")
	}
	var removed []string
	for _, v := range older.Enum {
		if !allowed[string(v.Raw)] {
			removed = append(removed, string(v.Raw))
		}
	}
	return "no longer " + strings.Join(removed, ", ")
}

// quantityPattern is the pattern that controller-gen writes for a resource.Quantity since v0.3. Earlier releases wrote
// no pattern for the same Go type. All objects that an operator could decode match the pattern.
const quantityPattern = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|` +
	`([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

// MustBeQuantity is the detail of a NarrowedFormat for a field without a pattern that gets the pattern of Kubernetes'
// quantities. Such a change is Doubtful.
const MustBeQuantity = "it must be a quantity, such as 500m or 1Gi"

// compareOpenRange reports bounds that become exclusive and a new or changed multipleOf, which crdify does not compare.
func (w *comparer) compareOpenRange(older, newer *apiextensionsv1.JSONSchemaProps, at location) {
	if newer.ExclusiveMinimum && !older.ExclusiveMinimum && isEqualBound(older.Minimum, newer.Minimum) {
		w.addChange(NarrowedRange, at, fmt.Sprintf("the minimum %v is exclusive", *newer.Minimum), "exclusiveMinimum")
	}
	if newer.ExclusiveMaximum && !older.ExclusiveMaximum && isEqualBound(older.Maximum, newer.Maximum) {
		w.addChange(NarrowedRange, at, fmt.Sprintf("the maximum %v is exclusive", *newer.Maximum), "exclusiveMaximum")
	}
	if newer.MultipleOf != nil && (older.MultipleOf == nil || *older.MultipleOf != *newer.MultipleOf) {
		w.addChange(NarrowedRange, at, fmt.Sprintf("multipleOf was %s and is %s", formatNumber(older.MultipleOf),
			formatNumber(newer.MultipleOf)), "multipleOf")
	}
}

// isEqualBound reports whether two bounds are set and equal.
func isEqualBound(a, b *float64) bool { return a != nil && b != nil && *a == *b }

// compareFormat reports changes of the pattern, the format, nullability and uniqueness that can make a value invalid.
// Changes that affect few or no stored values are marked as doubtful.
func (w *comparer) compareFormat(older, newer *apiextensionsv1.JSONSchemaProps, at location) {
	switch {
	case newer.Pattern == "" || older.Pattern == newer.Pattern: // the pattern allows the same or more values
	case newer.Pattern == quantityPattern && newer.XIntOrString && older.Pattern == "":
		w.addChange(NarrowedFormat, at, MustBeQuantity, "pattern")
		w.markDoubtful(true)
	default:
		w.addChange(NarrowedFormat, at, fmt.Sprintf("pattern was %s and is %s", quote(older.Pattern),
			quote(newer.Pattern)), "pattern")
		w.markDoubtful(older.Pattern != "") // the new pattern may allow everything that the old one did
	}
	// An empty format includes everything.
	isWiderInteger := older.Format == "int32" && newer.Format == "int64"
	if newer.Format != "" && older.Format != newer.Format && !isWiderInteger {
		w.addChange(NarrowedFormat, at, fmt.Sprintf("format was %s and is %s", quote(older.Format),
			quote(newer.Format)), "format")
		w.markDoubtful(true) // few formats are validated
	}
	if older.Nullable && !newer.Nullable {
		w.addChange(NarrowedFormat, at, "it was nullable", "nullable")
		w.markDoubtful(true) // the API server replaces null by the default or removes it
	}
	if newer.UniqueItems && !older.UniqueItems {
		w.addChange(NarrowedFormat, at, "items must be unique", "uniqueItems")
	}
	if kind := formatListType(newer); kind != formatListType(older) && kind != "atomic" {
		w.addChange(NarrowedFormat, at, fmt.Sprintf("the list becomes a %s, which refuses duplicates", kind),
			"x-kubernetes-list-type")
		w.markDoubtful(true) // few lists have duplicates
	}
}

// quote returns a text in quotes, or "none" if it is empty.
func quote(s string) string {
	if s == "" {
		return "none"
	}
	return fmt.Sprintf("%q", s)
}

// formatListType returns the list type as text, with the keys of a map. It is "atomic", which allows duplicates, if the
// schema has no list type.
func formatListType(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.XListType == nil:
		return "atomic"
	case *s.XListType == "map":
		return "map by " + strings.Join(s.XListMapKeys, " and ")
	}
	return *s.XListType
}

// compareDefault reports a new, changed or removed default.
func (w *comparer) compareDefault(older, newer *apiextensionsv1.JSONSchemaProps, at location) {
	if !isNarrower(defaultComparator, older, newer) {
		return
	}
	switch {
	case older.Default == nil:
		w.addChange(AddedDefault, at, string(newer.Default.Raw), "default")
	case newer.Default == nil:
		w.addChange(ChangedDefault, at, fmt.Sprintf("it was %s and was removed", older.Default.Raw))
	default:
		w.addChange(ChangedDefault, at, fmt.Sprintf("it was %s and is %s", older.Default.Raw, newer.Default.Raw),
			"default")
	}
}

// compareRules reports new validation rules.
func (w *comparer) compareRules(older, newer *apiextensionsv1.JSONSchemaProps, at location) {
	for i, rule := range newer.XValidations {
		exists := slices.ContainsFunc(older.XValidations,
			func(r apiextensionsv1.ValidationRule) bool { return r.Rule == rule.Rule })
		if !exists {
			w.addChange(NewRule, at, rule.Rule, "x-kubernetes-validations", i)
			// A rule with oldSelf is about changes, so stored objects do not violate it.
			w.markDoubtful(strings.Contains(rule.Rule, "oldSelf"))
		}
	}
}

// compareOthers reports changes of anyOf, allOf, oneOf and not, and a field that becomes an embedded resource. It does
// not report removed schemas, nor the anyOf that describes integer-or-string, because these changes are harmless.
func (w *comparer) compareOthers(older, newer *apiextensionsv1.JSONSchemaProps, at location) {
	for _, o := range []struct {
		name          string
		older         []apiextensionsv1.JSONSchemaProps
		newer         []apiextensionsv1.JSONSchemaProps
		isIntOrString bool
	}{
		{name: "allOf", older: older.AllOf, newer: newer.AllOf},
		{name: "anyOf", older: older.AnyOf, newer: newer.AnyOf, isIntOrString: newer.XIntOrString},
		{name: "oneOf", older: older.OneOf, newer: newer.OneOf},
		{name: "not", older: toList(older.Not), newer: toList(newer.Not)},
	} {
		if len(o.newer) > 0 && !o.isIntOrString && !isEqualWithoutText(o.older, o.newer) {
			w.addChange(Other, at, o.name+" changed", o.name)
		}
	}
	if newer.XEmbeddedResource && !older.XEmbeddedResource {
		w.addChange(Other, at, "it must be a whole Kubernetes object", "x-kubernetes-embedded-resource")
	}
}

// toList returns a list with the schema; nil if the schema is nil.
func toList(s *apiextensionsv1.JSONSchemaProps) []apiextensionsv1.JSONSchemaProps {
	if s == nil {
		return nil
	}
	return []apiextensionsv1.JSONSchemaProps{*s}
}

// compareRequired reports optional fields that become required. Fields with a default are not reported, because the
// default is set before validation.
func (w *comparer) compareRequired(older, newer *apiextensionsv1.JSONSchemaProps, at location) {
	if len(newer.Required) == 0 || !isNarrower(requiredComparator, older, newer) {
		return
	}
	for _, name := range newer.Required {
		if slices.Contains(older.Required, name) || newer.Properties[name].Default != nil {
			continue
		}
		w.addChange(NewRequired, at.newChild("."+name), "", "properties", name)
	}
}

// compareProperties compares the fields of an object. A field without a schema in newer is removed, unless newer keeps
// unknown fields or is a map, whose schema of values then applies to the field.
func (w *comparer) compareProperties(older, newer *apiextensionsv1.JSONSchemaProps, at location) {
	if isSameMap(older.Properties, newer.Properties) {
		return
	}
	for name, oldField := range older.Properties {
		isRoot := at.parent == nil && at.name == ""
		if isRoot && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue // the API server has a separate schema for them
		}
		newField, ok := newer.Properties[name]
		if ok {
			w.compare(&oldField, &newField, at.newChild("."+name, "properties", name))
			continue
		}
		if canHoldUnknown(newer) {
			continue // the field is not lost
		}
		if values := newer.AdditionalProperties; values != nil && values.Schema != nil {
			w.compare(&oldField, values.Schema, at.newChild("."+name, "additionalProperties"))
			continue
		}
		removed := at.newChild("." + name)
		w.addChange(RemovedField, removed, "", "properties")
	}
}

// isSameMap reports whether two maps share the same memory. An Archive shares equal maps.
func isSameMap(a, b map[string]apiextensionsv1.JSONSchemaProps) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}

// compareAdditional compares the schemas of the values of a map. It reports a removed field if a map becomes an object
// with fixed fields, or if an object no longer keeps unknown fields.
func (w *comparer) compareAdditional(older, newer *apiextensionsv1.JSONSchemaProps, at location) {
	switch {
	case canHoldUnknown(newer): // no field is lost
	case canHoldUnknown(older):
		w.addChange(RemovedField, at.newChild(".*"), "")
	case older.AdditionalProperties == nil || older.AdditionalProperties.Schema == nil: // it was not a map
	case newer.AdditionalProperties == nil || newer.AdditionalProperties.Schema == nil:
		w.addChange(RemovedField, at.newChild("[*]"), "")
	default:
		w.compare(older.AdditionalProperties.Schema, newer.AdditionalProperties.Schema,
			at.newChild("[*]", "additionalProperties"))
	}
}

// canHoldUnknown reports whether the API server keeps fields that are not in the schema.
func canHoldUnknown(s *apiextensionsv1.JSONSchemaProps) bool {
	if s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields {
		return true
	}
	return s.AdditionalProperties != nil && s.AdditionalProperties.Schema == nil && s.AdditionalProperties.Allows
}

// isEqualWithoutChildren reports whether two schemas are equal except for their children and descriptions. Most schemas
// are equal, so this must be fast.
func isEqualWithoutChildren(a, b *apiextensionsv1.JSONSchemaProps) bool {
	x, y := copyWithoutChildren(a), copyWithoutChildren(b)
	return reflect.DeepEqual(&x, &y)
}

// copyWithoutChildren returns a copy of a schema without children and descriptions.
func copyWithoutChildren(s *apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	c := *s
	c.Properties, c.Items, c.AdditionalProperties, c.Required = nil, nil, nil, nil
	c.Description, c.Title, c.Example, c.ExternalDocs = "", "", nil, nil
	return c
}

// isEqualWithoutText reports whether two lists of schemas are equal except for descriptions.
func isEqualWithoutText(a, b []apiextensionsv1.JSONSchemaProps) bool {
	return reflect.DeepEqual(copyWithoutText(a), copyWithoutText(b))
}

// copyWithoutText returns copies of schemas without descriptions.
func copyWithoutText(schemas []apiextensionsv1.JSONSchemaProps) []apiextensionsv1.JSONSchemaProps {
	out := make([]apiextensionsv1.JSONSchemaProps, 0, len(schemas))
	for i := range schemas {
		s := *schemas[i].DeepCopy()
		s.Description, s.Title, s.Example, s.ExternalDocs = "", "", nil, nil
		out = append(out, s)
	}
	return out
}
