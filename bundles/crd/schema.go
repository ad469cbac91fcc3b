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

// comparer compares two schemas field by field. In names of fields, [*] is any
// element of a list or map, and .* any field that is not in the schema.
type comparer struct {
	version string
	root    []any
	changes []Change
}

// location is a place in a schema. It is a linked list towards the root, so
// that places without a change cost nothing.
type location struct {
	parent *location
	// keys are steps of the schema; name is what they mean to a user of the custom resource.
	keys []any
	name string
}

func (l *location) child(name string, keys ...any) location {
	return location{parent: l, keys: keys, name: name}
}

func (l *location) field() string {
	if l == nil {
		return ""
	}
	return l.parent.field() + l.name
}

func (l *location) path() []any {
	if l == nil {
		return nil
	}
	return append(l.parent.path(), l.keys...)
}

func (w *comparer) add(kind Kind, at location, detail string, below ...any) {
	field := at.field()
	if field == "" {
		field = "." // the whole object
	}
	w.changes = append(w.changes, Change{Kind: kind, Version: w.version, Field: field, Detail: detail,
		Path: slices.Concat(w.root, at.path(), below)})
}

// markDoubtful marks the change that was added last.
func (w *comparer) markDoubtful(is bool) { w.changes[len(w.changes)-1].Doubtful = is }

// compare finds what newer breaks for older, at a place and below it.
func (w *comparer) compare(older, newer *apiextensionsv1.JSONSchemaProps, at location) {
	if older == nil || newer == nil || older == newer {
		return
	}
	if !equalWithoutChildren(older, newer) {
		if changed := w.compareType(older, newer, at); changed {
			return // nothing below can be compared
		}
		w.compareValues(older, newer, at)
	}
	w.compareRequired(older, newer, at)
	w.compareProperties(older, newer, at)
	w.compareAdditional(older, newer, at)
	if older.Items != nil && newer.Items != nil {
		w.compare(older.Items.Schema, newer.Items.Schema, at.child("[*]", "items"))
	}
}

// compareType reports a type that does not contain the older one.
func (w *comparer) compareType(older, newer *apiextensionsv1.JSONSchemaProps, at location) bool {
	if isWiderType(older, newer) {
		return false
	}
	if typeName(older) == typeName(newer) && !refuses(typeComparator, older, newer) {
		return false
	}
	w.add(ChangedType, at, fmt.Sprintf("%s becomes %s", typeName(older), typeName(newer)), "type")
	return true
}

// isWiderType says whether every value of the older type is one of the newer.
func isWiderType(older, newer *apiextensionsv1.JSONSchemaProps) bool {
	from, to := typeName(older), typeName(newer)
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

func typeName(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.XIntOrString:
		return "integer or string"
	case s.Type == "":
		return "any"
	}
	return s.Type
}

// compareValues reports values of the field itself that are no longer allowed.
func (w *comparer) compareValues(older, newer *apiextensionsv1.JSONSchemaProps, at location) {
	if len(newer.Enum) > 0 && refuses(enumComparator, older, newer) {
		w.add(NarrowedEnum, at, enumDetail(older, newer), "enum")
	}
	for _, r := range ranges {
		if refuses(r.comparator, older, newer) {
			w.add(NarrowedRange, at, fmt.Sprintf("%s was %s and is %s", r.name, r.value(older), r.value(newer)), r.name)
		}
	}
	w.compareOpenRange(older, newer, at)
	w.compareFormat(older, newer, at)
	w.compareDefault(older, newer, at)
	w.compareRules(older, newer, at)
	w.compareOthers(older, newer, at)
}

func enumDetail(older, newer *apiextensionsv1.JSONSchemaProps) string {
	left := map[string]bool{}
	for _, v := range newer.Enum {
		left[string(v.Raw)] = true
	}
	if len(older.Enum) == 0 {
		return "only " + strings.Join(slices.Sorted(maps.Keys(left)), ", ")
	}
	var gone []string
	for _, v := range older.Enum {
		if !left[string(v.Raw)] {
			gone = append(gone, string(v.Raw))
		}
	}
	return "no longer " + strings.Join(gone, ", ")
}

// quantityPattern is what controller-gen writes for a resource.Quantity since v0.3. Earlier releases wrote no pattern
// for the same Go type, so objects of operators that could read them at all match it.
const quantityPattern = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|` +
	`([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

// MustBeQuantity is the detail of a NarrowedFormat for the pattern of Kubernetes' quantities on a field that had no
// pattern. It is Doubtful.
const MustBeQuantity = "it must be a quantity, such as 500m or 1Gi"

// compareOpenRange reports what crdify does not compare.
func (w *comparer) compareOpenRange(older, newer *apiextensionsv1.JSONSchemaProps, at location) {
	if newer.ExclusiveMinimum && !older.ExclusiveMinimum && equal(older.Minimum, newer.Minimum) {
		w.add(NarrowedRange, at, fmt.Sprintf("the minimum %v is exclusive", *newer.Minimum), "exclusiveMinimum")
	}
	if newer.ExclusiveMaximum && !older.ExclusiveMaximum && equal(older.Maximum, newer.Maximum) {
		w.add(NarrowedRange, at, fmt.Sprintf("the maximum %v is exclusive", *newer.Maximum), "exclusiveMaximum")
	}
	if newer.MultipleOf != nil && (older.MultipleOf == nil || *older.MultipleOf != *newer.MultipleOf) {
		w.add(NarrowedRange, at, fmt.Sprintf("multipleOf was %s and is %s", number(older.MultipleOf),
			number(newer.MultipleOf)), "multipleOf")
	}
}

func equal(a, b *float64) bool { return a != nil && b != nil && *a == *b }

func (w *comparer) compareFormat(older, newer *apiextensionsv1.JSONSchemaProps, at location) {
	switch {
	case newer.Pattern == "" || older.Pattern == newer.Pattern:
	case newer.Pattern == quantityPattern && newer.XIntOrString && older.Pattern == "":
		w.add(NarrowedFormat, at, MustBeQuantity, "pattern")
		w.markDoubtful(true)
	default:
		w.add(NarrowedFormat, at, fmt.Sprintf("pattern was %s and is %s", quoted(older.Pattern), quoted(newer.Pattern)),
			"pattern")
		w.markDoubtful(older.Pattern != "")
	}
	// int64 holds every int32, and "" everything.
	if newer.Format != "" && older.Format != newer.Format && (older.Format != "int32" || newer.Format != "int64") {
		w.add(NarrowedFormat, at, fmt.Sprintf("format was %s and is %s", quoted(older.Format), quoted(newer.Format)),
			"format")
		w.markDoubtful(true) // few formats are validated
	}
	if older.Nullable && !newer.Nullable {
		w.add(NarrowedFormat, at, "it was nullable", "nullable")
		w.markDoubtful(true) // a null becomes the default, or nothing
	}
	if newer.UniqueItems && !older.UniqueItems {
		w.add(NarrowedFormat, at, "items must be unique", "uniqueItems")
	}
	if kind := listType(newer); kind != listType(older) && kind != "atomic" {
		w.add(NarrowedFormat, at, fmt.Sprintf("the list becomes a %s, which refuses duplicates", kind),
			"x-kubernetes-list-type")
		w.markDoubtful(true) // few lists have duplicates
	}
}

func quoted(s string) string {
	if s == "" {
		return "none"
	}
	return fmt.Sprintf("%q", s)
}

// listType tells which duplicates a list refuses.
func listType(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.XListType == nil:
		return "atomic"
	case *s.XListType == "map":
		return "map by " + strings.Join(s.XListMapKeys, " and ")
	}
	return *s.XListType
}

func (w *comparer) compareDefault(older, newer *apiextensionsv1.JSONSchemaProps, at location) {
	if !refuses(defaultComparator, older, newer) {
		return
	}
	switch {
	case older.Default == nil:
		w.add(AddedDefault, at, string(newer.Default.Raw), "default")
	case newer.Default == nil:
		w.add(ChangedDefault, at, fmt.Sprintf("it was %s and was removed", older.Default.Raw))
	default:
		w.add(ChangedDefault, at, fmt.Sprintf("it was %s and is %s", older.Default.Raw, newer.Default.Raw), "default")
	}
}

func (w *comparer) compareRules(older, newer *apiextensionsv1.JSONSchemaProps, at location) {
	for i, rule := range newer.XValidations {
		known := slices.ContainsFunc(older.XValidations,
			func(r apiextensionsv1.ValidationRule) bool { return r.Rule == rule.Rule })
		if !known {
			w.add(NewRule, at, rule.Rule, "x-kubernetes-validations", i)
			w.markDoubtful(strings.Contains(rule.Rule,
				"oldSelf")) // it is about changes; stored objects do not violate it
		}
	}
}

// compareOthers reports changed anyOf, allOf, oneOf and not. Removing one is
// harmless, and so is the anyOf that describes integer-or-string.
func (w *comparer) compareOthers(older, newer *apiextensionsv1.JSONSchemaProps, at location) {
	for _, o := range []struct {
		name   string
		was    []apiextensionsv1.JSONSchemaProps
		is     []apiextensionsv1.JSONSchemaProps
		spells bool
	}{
		{name: "allOf", was: older.AllOf, is: newer.AllOf},
		{name: "anyOf", was: older.AnyOf, is: newer.AnyOf, spells: newer.XIntOrString},
		{name: "oneOf", was: older.OneOf, is: newer.OneOf},
		{name: "not", was: asList(older.Not), is: asList(newer.Not)},
	} {
		if len(o.is) > 0 && !o.spells && !equalWithoutText(o.was, o.is) {
			w.add(Other, at, o.name+" changed", o.name)
		}
	}
	if newer.XEmbeddedResource && !older.XEmbeddedResource {
		w.add(Other, at, "it must be a whole Kubernetes object", "x-kubernetes-embedded-resource")
	}
}

func asList(s *apiextensionsv1.JSONSchemaProps) []apiextensionsv1.JSONSchemaProps {
	if s == nil {
		return nil
	}
	return []apiextensionsv1.JSONSchemaProps{*s}
}

// compareRequired reports optional fields that are required now. A default is
// set before validation.
func (w *comparer) compareRequired(older, newer *apiextensionsv1.JSONSchemaProps, at location) {
	if len(newer.Required) == 0 || !refuses(requiredComparator, older, newer) {
		return
	}
	for _, name := range newer.Required {
		if slices.Contains(older.Required, name) || newer.Properties[name].Default != nil {
			continue
		}
		w.add(NewRequired, at.child("."+name), "", "properties", name)
	}
}

func (w *comparer) compareProperties(older, newer *apiextensionsv1.JSONSchemaProps, at location) {
	if isSameMap(older.Properties, newer.Properties) {
		return
	}
	for name, was := range older.Properties {
		if at.parent == nil && at.name == "" && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue // the API server has its own schema for them
		}
		is, ok := newer.Properties[name]
		if ok {
			w.compare(&was, &is, at.child("."+name, "properties", name))
			continue
		}
		if keepsUnknown(newer) {
			continue
		}
		if values := newer.AdditionalProperties; values != nil && values.Schema != nil {
			w.compare(&was, values.Schema, at.child("."+name, "additionalProperties"))
			continue
		}
		gone := at.child("." + name)
		w.add(RemovedField, gone, "", "properties")
	}
}

// isSameMap says whether two maps are one in memory, as an Archive keeps what is equal.
func isSameMap(a, b map[string]apiextensionsv1.JSONSchemaProps) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}

// compareAdditional compares maps, and objects that allowed any field.
func (w *comparer) compareAdditional(older, newer *apiextensionsv1.JSONSchemaProps, at location) {
	switch {
	case keepsUnknown(newer):
	case keepsUnknown(older):
		w.add(RemovedField, at.child(".*"), "")
	case older.AdditionalProperties == nil || older.AdditionalProperties.Schema == nil:
	case newer.AdditionalProperties == nil || newer.AdditionalProperties.Schema == nil:
		w.add(RemovedField, at.child("[*]"), "")
	default:
		w.compare(older.AdditionalProperties.Schema, newer.AdditionalProperties.Schema,
			at.child("[*]", "additionalProperties"))
	}
}

// keepsUnknown says whether fields that are not in the schema are kept.
func keepsUnknown(s *apiextensionsv1.JSONSchemaProps) bool {
	if s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields {
		return true
	}
	return s.AdditionalProperties != nil && s.AdditionalProperties.Schema == nil && s.AdditionalProperties.Allows
}

// equalWithoutChildren says whether two schemas are equal but for what is below them and
// for what only people read. Most are, so it must be quick.
func equalWithoutChildren(a, b *apiextensionsv1.JSONSchemaProps) bool {
	x, y := withoutChildren(a), withoutChildren(b)
	return reflect.DeepEqual(&x, &y)
}

func withoutChildren(s *apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	c := *s
	c.Properties, c.Items, c.AdditionalProperties, c.Required = nil, nil, nil, nil
	c.Description, c.Title, c.Example, c.ExternalDocs = "", "", nil, nil
	return c
}

// equalWithoutText compares schemas that are no fields of their own.
func equalWithoutText(a, b []apiextensionsv1.JSONSchemaProps) bool {
	return reflect.DeepEqual(withoutText(a), withoutText(b))
}

func withoutText(schemas []apiextensionsv1.JSONSchemaProps) []apiextensionsv1.JSONSchemaProps {
	out := make([]apiextensionsv1.JSONSchemaProps, 0, len(schemas))
	for i := range schemas {
		s := *schemas[i].DeepCopy()
		s.Description, s.Title, s.Example, s.ExternalDocs = "", "", nil, nil
		out = append(out, s)
	}
	return out
}
