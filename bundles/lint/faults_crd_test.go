// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

var rootPath = []any{"schema", "openAPIV3Schema"}

// servedVersions are the served versions of CustomResourceDefinitions that have a schema.
func servedVersions(d *draft) []spot {
	var out []spot
	for _, s := range d.crds() {
		for _, v := range d.each(s, "spec", "versions") {
			if d.get(v, "served") == true && d.fields(v, rootPath...) != nil {
				out = append(out, v)
			}
		}
	}
	return out
}

// fieldSpots are the fields of all schemas of a type, those near the root first.
func fieldSpots(kind string) func(*draft) []spot {
	return func(d *draft) []spot {
		var out []spot
		for _, v := range servedVersions(d) {
			root := v.below(rootPath...)
			for _, name := range slices.Sorted(maps.Keys(d.fields(root, "properties"))) {
				if name != "apiVersion" && name != "kind" && name != "metadata" && !keeps(d, root) {
					out = append(out, fieldsBelow(d, root.below("properties", name))...)
				}
			}
		}
		out = slices.DeleteFunc(out, func(s spot) bool { return d.text(s, "type") != kind })
		slices.SortStableFunc(out, func(a, b spot) int { return len(a.path) - len(b.path) })
		return out
	}
}

// keeps says whether an object keeps fields that the schema does not name.
func keeps(d *draft, s spot) bool { return d.get(s, "x-kubernetes-preserve-unknown-fields") == true }

// fieldsBelow returns a field and those below it.
func fieldsBelow(d *draft, s spot) []spot {
	out := []spot{s}
	if keeps(d, s) {
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(d.fields(s, "properties"))) {
		out = append(out, fieldsBelow(d, s.below("properties", name))...)
	}
	if items := s.below("items"); d.fields(items) != nil {
		for _, name := range slices.Sorted(maps.Keys(d.fields(items, "properties"))) {
			out = append(out, fieldsBelow(d, items.below("properties", name))...)
		}
	}
	return out
}

// newVersion adds a version v99 to the definition of another version. It is a copy of that one, not stored.
func newVersion(d *draft, s spot) spot {
	version := runtime.DeepCopyJSON(d.fields(s))
	version["name"], version["storage"], version["served"] = "v99", false, true
	definition := s.above(3)
	return d.add(definition, version, "spec", "versions")
}

func crdFaults() []injector {
	isConverted := func(d *draft, s spot) bool { return d.get(s.above(3), "spec", "conversion") != nil }
	return []injector{
		{"crd-no-validation", "a schema names no fields", only(servedVersions, having("schema",
			"openAPIV3Schema", "properties")), setting(map[string]any{"type": "object"}, rootPath...)},
		{"crd-no-validation", "a schema names no fields of .spec", only(servedVersions, having("schema",
			"openAPIV3Schema", "properties", "spec")), setting(map[string]any{"type": "object"}, "schema",
			"openAPIV3Schema", "properties", "spec")},
		{"crd-no-status", "there is no status subresource", only(servedVersions, having("subresources", "status")),
			func(d *draft, s spot) spot { return d.set(s, nil, "subresources", "status").above(1) }},
		{"crd-no-printer-columns", "there are no columns", only(servedVersions, having("additionalPrinterColumns")),
			removing("additionalPrinterColumns")},
		{"crd-no-conversion", "another version has one more field, and nothing converts",
			only(only(servedVersions, isStored), func(d *draft, s spot) bool { return !isConverted(d, s) }),
			func(d *draft, s spot) spot {
				v := newVersion(d, s)
				d.set(v, map[string]any{"type": "string"}, "schema", "openAPIV3Schema", "properties", "planted")
				return v
			}},
		{"crd-changed-identity", "the scope changes", (*draft).crds, func(d *draft, s spot) spot {
			scope := "Cluster"
			if d.text(s, "spec", "scope") == scope {
				scope = "Namespaced"
			}
			return d.set(s, scope, "spec", "scope")
		}},
		{"crd-changed-identity", "the kind changes", (*draft).crds, setting("Planted", "spec", "names", "kind")},
		{"crd-storage-moved", "another version is stored", only(servedVersions, isStored),
			func(d *draft, s spot) spot {
				v := newVersion(d, s)
				d.set(s, false, "storage")
				return d.set(v, true, "storage")
			}},
		{"crd-removed-version", "a served version is gone", servedVersions, func(d *draft, s spot) spot {
			return d.set(s, "v99", "name").above(2)
		}},
		{"crd-unserved-version", "a version is no longer served", servedVersions, setting(false, "served")},
		{"crd-schema-invalid", "a field has no type", fieldSpots("string"), setting(nil, "type")},
		{"crd-schema-invalid", "a default has another type than its field", only(fieldSpots("string"),
			lacking("default")), setting(int64(5), "default")},
	}
}

func isStored(d *draft, s spot) bool { return d.get(s, "storage") == true }

// schemaFaults are about fields that users of published versions may have set.
func schemaFaults() []injector {
	strings, numbers, lists, flags := fieldSpots("string"), fieldSpots("integer"), fieldSpots("array"),
		fieldSpots("boolean")
	planted := []any{map[string]any{"rule": "false", "message": "planted"}}
	return []injector{
		{"crd-removed-field", "a text field is gone", strings, removedField},
		{"crd-removed-field", "an object is gone", fieldSpots("object"), removedField},
		{"crd-removed-field", "a list is gone", lists, removedField},
		{"crd-changed-type", "a text becomes a number", strings, setting("integer", "type")},
		{"crd-changed-type", "a number becomes a text", numbers, setting("string", "type")},
		{"crd-changed-type", "a boolean becomes a text", flags, setting("string", "type")},
		{"crd-changed-type", "a list becomes an object", lists, setting("object", "type")},
		{"crd-narrowed-enum", "a text is limited to one value", only(strings, lacking("enum")),
			setting([]any{"planted"}, "enum")},
		{"crd-narrowed-enum", "a value of an enumeration is gone", only(strings, having("enum", 1)),
			func(d *draft, s spot) spot { return d.set(s, d.list(s, "enum")[1:], "enum") }},
		{"crd-narrowed-range", "a number has a maximum", only(numbers, lacking("maximum")),
			setting(int64(5), "maximum")},
		{"crd-narrowed-range", "a number has a minimum", only(numbers, lacking("minimum")),
			setting(int64(5), "minimum")},
		{"crd-narrowed-range", "a number has a divisor", numbers, setting(int64(7), "multipleOf")},
		{"crd-narrowed-range", "a text has a maximum length", only(strings, lacking("maxLength")),
			setting(int64(3), "maxLength")},
		{"crd-narrowed-range", "a text has a minimum length", only(strings, lacking("minLength")),
			setting(int64(3), "minLength")},
		{"crd-narrowed-range", "a list has a maximum length", only(lists, lacking("maxItems")),
			setting(int64(1), "maxItems")},
		{"crd-narrowed-format", "a text has a pattern", only(strings, lacking("pattern")),
			setting("^planted$", "pattern")},
		{"crd-narrowed-format", "a pattern changes", only(strings, having("pattern")),
			setting("^planted$", "pattern")},
		{"crd-narrowed-format", "a text has a format", only(strings, lacking("format")), setting("date", "format")},
		{"crd-narrowed-format", "a list becomes a set", only(lists, lacking("x-kubernetes-list-type")),
			setting("set", "x-kubernetes-list-type")},
		{"crd-new-required-field", "a text is required", only(strings, isOptional), require},
		{"crd-new-required-field", "an object is required", only(fieldSpots("object"), isOptional), require},
		{"crd-new-validation-rule", "a text has a rule", only(strings, lacking("x-kubernetes-validations")),
			func(d *draft, s spot) spot { return d.set(s, planted, "x-kubernetes-validations") }},
		{"crd-new-validation-rule", "an object has a rule", only(fieldSpots("object"),
			lacking("x-kubernetes-validations")),
			func(d *draft, s spot) spot { return d.set(s, planted, "x-kubernetes-validations") }},
		{"crd-new-default", "a text has a default", only(strings, lacking("default")), setting("planted", "default")},
		{"crd-changed-default", "a default changes", only(strings, having("default")), setting("planted", "default")},
		{"crd-changed-default", "a default is gone", only(strings, having("default")), removing("default")},
		{"crd-changed-schema", "something is forbidden by not", strings, setting(map[string]any{
			"enum": []any{"planted"}}, "not")},
		{"crd-changed-schema", "anyOf limits what is allowed", only(strings, lacking("anyOf")),
			setting([]any{map[string]any{
				"minLength": int64(3)}, map[string]any{"pattern": "^planted"}}, "anyOf")},
	}
}

// removedField takes a field out of its object. The rule reports it at the fields that are left.
func removedField(d *draft, s spot) spot {
	name := s.path[len(s.path)-1].(string)
	object := s.above(2)
	if required := d.list(object, "required"); required != nil {
		d.set(object, slices.DeleteFunc(slices.Clone(required), func(r any) bool { return r == name }), "required")
	}
	return d.set(s.above(1), nil, name).above(1)
}

// isOptional says whether an object need not have the field, and the field has no default.
func isOptional(d *draft, s spot) bool {
	return !slices.Contains(d.list(s.above(2), "required"), s.path[len(s.path)-1]) && d.get(s, "default") == nil
}

func require(d *draft, s spot) spot {
	d.add(s.above(2), fmt.Sprint(s.path[len(s.path)-1]), "required")
	return s
}
