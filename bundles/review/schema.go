// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bellwether-dev/bellwether/bundles"
)

const stillUsedNote = "it may still be used"

// compareCRDs returns the changes of all CRDs.
func compareCRDs(from, to *bundles.Bundle) []Change {
	var out []Change
	old, current := indexCRDs(from), indexCRDs(to)
	for name, crd := range old {
		if current[name] == nil {
			out = append(out, Change{Kind: Removed, Weight: Breaking, Subject: name,
				Note: "its objects stay, and are no longer reconciled"})
			continue
		}
		out = append(out, compareCRD(name, crd, current[name])...)
	}
	for name := range current {
		if old[name] == nil {
			out = append(out, Change{Kind: Added, Subject: name})
		}
	}
	return out
}

// indexCRDs returns the CRDs of a bundle by name.
func indexCRDs(b *bundles.Bundle) map[string]*apiextensionsv1.CustomResourceDefinition {
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range b.CRDs {
		out[crd.Name] = crd
	}
	return out
}

// compareCRD returns the changes of one CRD.
func compareCRD(name string, from, to *apiextensionsv1.CustomResourceDefinition) []Change {
	var out []Change
	if from.Spec.Scope != to.Spec.Scope {
		out = append(out, Change{Kind: Changed, Weight: Breaking, Subject: name, Path: "scope",
			From: string(from.Spec.Scope), To: string(to.Spec.Scope),
			Note: "Kubernetes refuses to change it"})
	}
	out = append(out, compareTrees(name, "names", toTree(from.Spec.Names), toTree(to.Spec.Names))...)
	oldConversion := cmp.Or(from.Spec.Conversion, &apiextensionsv1.CustomResourceConversion{})
	newConversion := cmp.Or(to.Spec.Conversion, &apiextensionsv1.CustomResourceConversion{})
	oldStrategy := cmp.Or(oldConversion.Strategy, apiextensionsv1.NoneConverter)
	newStrategy := cmp.Or(newConversion.Strategy, apiextensionsv1.NoneConverter)
	if oldStrategy != newStrategy {
		out = append(out, Change{Kind: Changed, Weight: Attention, Subject: name, Path: "conversion",
			From: string(oldStrategy), To: string(newStrategy)})
	}
	old, current := listVersions(from), listVersions(to)
	for v, version := range old {
		if current[v] == nil {
			out = append(out, Change{Kind: Removed, Weight: Breaking, Subject: name + " " + v,
				Note: "objects may be stored in it, and programs may use it"})
			continue
		}
		out = append(out, compareVersion(name+" "+v, version, current[v])...)
	}
	for v := range current {
		if old[v] == nil {
			out = append(out, Change{Kind: Added, Subject: name + " " + v})
		}
	}
	return out
}

// listVersions returns the API versions of a CRD by name.
func listVersions(
	crd *apiextensionsv1.CustomResourceDefinition,
) map[string]*apiextensionsv1.CustomResourceDefinitionVersion {
	out := map[string]*apiextensionsv1.CustomResourceDefinitionVersion{}
	for i := range crd.Spec.Versions {
		out[crd.Spec.Versions[i].Name] = &crd.Spec.Versions[i]
	}
	return out
}

// compareVersion returns the changes of one API version.
func compareVersion(subject string, from, to *apiextensionsv1.CustomResourceDefinitionVersion) []Change {
	out := compareTrees(subject, "printerColumns", toTree(from.AdditionalPrinterColumns),
		toTree(to.AdditionalPrinterColumns))
	out = append(out, compareTrees(subject, "subresources", toTree(from.Subresources), toTree(to.Subresources))...)
	for _, flag := range []struct {
		path     string
		from, to bool
		weight   Weight
		note     string
	}{
		{"served", from.Served, to.Served, Breaking, stillUsedNote},
		{"storage", from.Storage, to.Storage, Attention,
			"an older operator might not be able to read objects that are written from now on"},
		{"deprecated", from.Deprecated, to.Deprecated, "", ""},
	} {
		if flag.from == flag.to {
			continue
		}
		c := Change{Kind: Changed, Weight: flag.weight, Subject: subject, Path: flag.path,
			From: strconv.FormatBool(flag.from), To: strconv.FormatBool(flag.to), Note: flag.note}
		if flag.path == "served" && flag.to {
			c.Weight, c.Note = "", "" // to serve a version again breaks no client
		}
		out = append(out, c)
	}
	d := schemaComparer{subject: subject}
	d.compare("", readSchema(from), readSchema(to))
	return append(out, d.changes...)
}

// readSchema returns the schema of an API version; nil if it has none.
func readSchema(v *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if v.Schema == nil {
		return nil
	}
	return v.Schema.OpenAPIV3Schema
}

// schemaComparer collects the changes of a schema. It ignores descriptions.
type schemaComparer struct {
	subject string
	changes []Change
}

// addChange adds a change of the subject.
func (d *schemaComparer) addChange(kind Kind, w Weight, path, from, to, note string) {
	d.changes = append(d.changes, Change{Kind: kind, Weight: w, Subject: d.subject, Path: path, From: from, To: to,
		Note: note})
}

// compare adds the changes between two schemas and their children. Either schema can be nil, which allows everything.
// If the type changes, the children are not compared.
func (d *schemaComparer) compare(path string, from, to *apiextensionsv1.JSONSchemaProps) {
	switch {
	case from == nil && to == nil:
		return
	case from == nil:
		d.addChange(Added, Attention, path, "", describeField(to), "what was free is now checked")
		return
	case to == nil:
		d.addChange(Removed, "", path, describeField(from), "", "")
		return
	}
	if from.Type != to.Type || from.XIntOrString != to.XIntOrString {
		d.addChange(Changed, Breaking, path, describeField(from), describeField(to),
			"objects that exist have the other type")
		return
	}
	d.compareProperties(path, from, to)
	d.compareLimits(path, from, to)
	if from.Items != nil && to.Items != nil {
		d.compare(path+"[]", from.Items.Schema, to.Items.Schema)
	}
	if a, b := from.AdditionalProperties, to.AdditionalProperties; a != nil && b != nil {
		d.compare(path+"{}", a.Schema, b.Schema)
	}
}

// compareProperties compares the fields of an object, which of them are required, and whether it keeps unknown fields.
func (d *schemaComparer) compareProperties(path string, from, to *apiextensionsv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(from.Properties)) {
		oldField := from.Properties[name]
		if newField, ok := to.Properties[name]; ok {
			d.compare(appendField(path, name), &oldField, &newField)
			continue
		}
		w, note := Breaking, "what is in it is lost"
		if canHoldUnknown(to) {
			w, note = "", ""
		}
		d.addChange(Removed, w, appendField(path, name), describeField(&oldField), "", note)
	}
	for _, name := range slices.Sorted(maps.Keys(to.Properties)) {
		if _, ok := from.Properties[name]; ok {
			continue
		}
		newField := to.Properties[name]
		w, note := Weight(""), ""
		if slices.Contains(to.Required, name) && newField.Default == nil {
			w, note = Breaking, "it is required, and objects that exist do not have it"
		}
		d.addChange(Added, w, appendField(path, name), "", describeField(&newField), note)
	}
	d.compareRequired(path, from, to)
	if canHoldUnknown(from) && !canHoldUnknown(to) {
		d.addChange(Changed, Breaking, path, "keeps unknown fields", "drops unknown fields", "what is in them is lost")
	}
}

// compareRequired compares which fields must be set. It considers only fields that exist in both schemas.
func (d *schemaComparer) compareRequired(path string, from, to *apiextensionsv1.JSONSchemaProps) {
	for _, name := range to.Required {
		_, had := from.Properties[name]
		if newField := to.Properties[name]; had && !slices.Contains(from.Required, name) && newField.Default == nil {
			d.addChange(Changed, Breaking, appendField(path, name), "optional", "required",
				"objects that exist may lack it")
		}
	}
	for _, name := range from.Required {
		if _, has := to.Properties[name]; has && !slices.Contains(to.Required, name) {
			d.addChange(Changed, "", appendField(path, name), "required", "optional", "")
		}
	}
}

// canHoldUnknown reports whether a schema keeps fields that are not in its properties.
func canHoldUnknown(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields || s.AdditionalProperties != nil
}

// compareLimits compares the values that a field can have: its enumeration, bounds, pattern, format, null, default and
// validation rules.
func (d *schemaComparer) compareLimits(path string, from, to *apiextensionsv1.JSONSchemaProps) {
	d.compareEnum(path, from.Enum, to.Enum)
	for _, l := range []struct {
		name     string
		from, to *float64
		upper    bool
	}{
		{"minimum", from.Minimum, to.Minimum, false}, {"maximum", from.Maximum, to.Maximum, true},
		{"minLength", toFloat(from.MinLength), toFloat(to.MinLength), false},
		{"maxLength", toFloat(from.MaxLength), toFloat(to.MaxLength), true},
		{"minItems", toFloat(from.MinItems), toFloat(to.MinItems), false},
		{"maxItems", toFloat(from.MaxItems), toFloat(to.MaxItems), true},
		{"minProperties", toFloat(from.MinProperties), toFloat(to.MinProperties), false},
		{"maxProperties", toFloat(from.MaxProperties), toFloat(to.MaxProperties), true},
	} {
		if c, ok := compareLimit(l.from, l.to, l.upper); ok {
			c.Subject, c.Path = d.subject, path+" "+l.name
			d.changes = append(d.changes, c)
		}
	}
	if from.Pattern != to.Pattern {
		d.reportRule(path+" pattern", from.Pattern, to.Pattern)
	}
	if from.Format != to.Format {
		d.reportRule(path+" format", from.Format, to.Format)
	}
	if from.Nullable && !to.Nullable {
		d.addChange(Changed, Breaking, path, "nullable", "not nullable", "objects that exist may have null there")
	}
	d.compareDefaults(path, formatRaw(from.Default), formatRaw(to.Default))
	d.compareValidations(path, from, to)
}

// compareDefaults reports a new, changed or removed default.
func (d *schemaComparer) compareDefaults(path, from, to string) {
	if from == to {
		return
	}
	w, note := Attention, "objects without a value get the new default"
	if from == "" && slices.Contains([]string{`""`, "0", "false", "[]", "{}"}, to) {
		// Most programs treat an empty value like a missing value.
		w, note = "", ""
	}
	d.addChange(toKind(from, to), w, path+" default", from, to, note)
}

// compareValidations compares the validation rules. A new rule needs attention; a changed rule is a new and a
// removed rule.
func (d *schemaComparer) compareValidations(path string, from, to *apiextensionsv1.JSONSchemaProps) {
	rules := map[string]bool{}
	for _, r := range from.XValidations {
		rules[r.Rule] = true
	}
	for _, r := range to.XValidations {
		if !rules[r.Rule] {
			d.addChange(Added, Attention, path+" validation", "", r.Rule, "objects that exist might not satisfy it")
		}
		delete(rules, r.Rule)
	}
	for _, r := range slices.Sorted(maps.Keys(rules)) {
		d.addChange(Removed, "", path+" validation", r, "", "")
	}
}

// reportRule reports a changed pattern or format, which needs attention because it cannot be determined whether the new
// value is narrower. A removed pattern or format is harmless.
func (d *schemaComparer) reportRule(path, from, to string) {
	w, note := Attention, "objects that exist might not satisfy it"
	if to == "" {
		w, note = "", ""
	}
	d.addChange(toKind(from, to), w, path, from, to, note)
}

// compareEnum compares the values of an enumeration. A new enumeration and a removed value are breaking.
func (d *schemaComparer) compareEnum(path string, from, to []apiextensionsv1.JSON) {
	values := func(list []apiextensionsv1.JSON) []string {
		var out []string
		for _, v := range list {
			out = append(out, string(v.Raw))
		}
		return out
	}
	oldValues, newValues := values(from), values(to)
	if len(oldValues) == 0 && len(newValues) > 0 {
		d.addChange(Added, Breaking, path+" enum", "", fmt.Sprint(newValues),
			"objects that exist may have another value")
		return
	}
	if len(oldValues) > 0 && len(newValues) == 0 {
		d.addChange(Removed, "", path+" enum", fmt.Sprint(oldValues), "", "")
		return
	}
	for _, v := range oldValues {
		if !slices.Contains(newValues, v) {
			d.addChange(Removed, Breaking, path+" enum", v, "", "objects that exist may have this value")
		}
	}
	for _, v := range newValues {
		if !slices.Contains(oldValues, v) {
			d.addChange(Added, "", path+" enum", "", v, "")
		}
	}
}

// compareLimit returns the change of a bound, without its place, or false if the bound is equal; nil means no bound. A
// tighter bound is breaking. upper is true for a maximum and false for a minimum.
func compareLimit(from, to *float64, upper bool) (Change, bool) {
	isEqual := from == nil && to == nil || from != nil && to != nil && *from == *to
	switch {
	case isEqual:
		return Change{}, false
	case to == nil:
		return Change{Kind: Removed, From: formatNumber(from)}, true
	}
	c := Change{Kind: Changed, From: formatNumber(from), To: formatNumber(to)}
	if from == nil {
		c.Kind = Added
	}
	isTighter := from == nil || upper && *to < *from || !upper && *to > *from
	if isTighter {
		c.Weight, c.Note = Breaking, "objects that exist may be outside"
	}
	return c, true
}

// toFloat converts an integer; nil stays nil.
func toFloat(i *int64) *float64 {
	if i == nil {
		return nil
	}
	f := float64(*i)
	return &f
}

// formatNumber returns a number as text; empty for nil.
func formatNumber(f *float64) string {
	if f == nil {
		return ""
	}
	return strconv.FormatFloat(*f, 'g', -1, 64)
}

// formatRaw returns a JSON value as text; empty for nil.
func formatRaw(j *apiextensionsv1.JSON) string {
	if j == nil {
		return ""
	}
	return string(j.Raw)
}

// toKind returns the kind of a change between two values; empty means no value.
func toKind(from, to string) Kind {
	switch {
	case from == "":
		return Added
	case to == "":
		return Removed
	default:
		return Changed
	}
}

// describeField returns the type of a field, and the number of fields below it.
func describeField(s *apiextensionsv1.JSONSchemaProps) string {
	name := cmp.Or(s.Type, "any")
	switch {
	case s.XIntOrString:
		name = "integer or string"
	case s.Type == "array" && s.Items != nil && s.Items.Schema != nil:
		name = "list of " + cmp.Or(s.Items.Schema.Type, "any")
	case s.Type == "object" && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		name = "map of " + cmp.Or(s.AdditionalProperties.Schema.Type, "any")
	}
	if n := countFields(s); n > 0 {
		return fmt.Sprintf("%s, %d fields", name, n)
	}
	return name
}

// countFields returns the number of fields below a schema.
func countFields(s *apiextensionsv1.JSONSchemaProps) int {
	if s == nil {
		return 0
	}
	n := len(s.Properties)
	for _, p := range s.Properties {
		n += countFields(&p)
	}
	if s.Items != nil {
		n += countFields(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		n += countFields(s.AdditionalProperties.Schema)
	}
	return n
}
