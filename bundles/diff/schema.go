// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bellwether-dev/bellwether/bundles"
)

const notGone = "it may still be used"

func crds(from, to *bundles.Bundle) []Change {
	var out []Change
	old, now := crdsByName(from), crdsByName(to)
	for name, crd := range old {
		if now[name] == nil {
			out = append(out, Change{Kind: Removed, Weight: Breaking, Subject: name,
				Note: "its objects stay, and are no longer reconciled"})
			continue
		}
		out = append(out, crd1(name, crd, now[name])...)
	}
	for name := range now {
		if old[name] == nil {
			out = append(out, Change{Kind: Added, Subject: name})
		}
	}
	return out
}

func crdsByName(b *bundles.Bundle) map[string]*apiextensionsv1.CustomResourceDefinition {
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range b.CRDs {
		out[crd.Name] = crd
	}
	return out
}

func crd1(name string, from, to *apiextensionsv1.CustomResourceDefinition) []Change {
	var out []Change
	if from.Spec.Scope != to.Spec.Scope {
		out = append(out, Change{Kind: Changed, Weight: Breaking, Subject: name, Path: "scope",
			From: string(from.Spec.Scope), To: string(to.Spec.Scope),
			Note: "Kubernetes refuses to change it"})
	}
	out = append(out, tree(name, "names", asTree(from.Spec.Names), asTree(to.Spec.Names))...)
	a, b := cmp.Or(from.Spec.Conversion, &apiextensionsv1.CustomResourceConversion{}),
		cmp.Or(to.Spec.Conversion, &apiextensionsv1.CustomResourceConversion{})
	if x, y := cmp.Or(a.Strategy, apiextensionsv1.NoneConverter),
		cmp.Or(b.Strategy, apiextensionsv1.NoneConverter); x != y {
		out = append(out, Change{Kind: Changed, Weight: Attention, Subject: name, Path: "conversion", From: string(x),
			To: string(y)})
	}
	old, now := crdVersions(from), crdVersions(to)
	for v, version := range old {
		if now[v] == nil {
			out = append(out, Change{Kind: Removed, Weight: Breaking, Subject: name + " " + v,
				Note: "objects may be stored in it, and programs may use it"})
			continue
		}
		out = append(out, crdVersion(name+" "+v, version, now[v])...)
	}
	for v := range now {
		if old[v] == nil {
			out = append(out, Change{Kind: Added, Subject: name + " " + v})
		}
	}
	return out
}

func crdVersions(
	crd *apiextensionsv1.CustomResourceDefinition,
) map[string]*apiextensionsv1.CustomResourceDefinitionVersion {
	out := map[string]*apiextensionsv1.CustomResourceDefinitionVersion{}
	for i := range crd.Spec.Versions {
		out[crd.Spec.Versions[i].Name] = &crd.Spec.Versions[i]
	}
	return out
}

func crdVersion(subject string, from, to *apiextensionsv1.CustomResourceDefinitionVersion) []Change {
	out := tree(subject, "printerColumns", asTree(from.AdditionalPrinterColumns), asTree(to.AdditionalPrinterColumns))
	out = append(out, tree(subject, "subresources", asTree(from.Subresources), asTree(to.Subresources))...)
	for _, flag := range []struct {
		path     string
		from, to bool
		weight   Weight
		note     string
	}{
		{"served", from.Served, to.Served, Breaking, notGone},
		{"storage", from.Storage, to.Storage, Attention, "an older operator may not read what is stored from now on"},
		{"deprecated", from.Deprecated, to.Deprecated, "", ""},
	} {
		if flag.from == flag.to {
			continue
		}
		c := Change{Kind: Changed, Weight: flag.weight, Subject: subject, Path: flag.path,
			From: strconv.FormatBool(flag.from), To: strconv.FormatBool(flag.to), Note: flag.note}
		if flag.path == "served" && flag.to {
			c.Weight, c.Note = "", ""
		}
		out = append(out, c)
	}
	d := schemas{subject: subject}
	d.compare("", rootSchema(from), rootSchema(to))
	return append(out, d.changes...)
}

func rootSchema(v *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if v.Schema == nil {
		return nil
	}
	return v.Schema.OpenAPIV3Schema
}

// schemas collects how a schema changed. Descriptions do not count.
type schemas struct {
	subject string
	changes []Change
}

func (d *schemas) add(kind Kind, w Weight, path, from, to, note string) {
	d.changes = append(d.changes, Change{Kind: kind, Weight: w, Subject: d.subject, Path: path, From: from, To: to,
		Note: note})
}

func (d *schemas) compare(path string, from, to *apiextensionsv1.JSONSchemaProps) {
	switch {
	case from == nil && to == nil:
		return
	case from == nil:
		d.add(Added, Attention, path, "", describe(to), "what was free is now checked")
		return
	case to == nil:
		d.add(Removed, "", path, describe(from), "", "")
		return
	}
	if from.Type != to.Type || from.XIntOrString != to.XIntOrString {
		d.add(Changed, Breaking, path, describe(from), describe(to), "objects that exist have the other type")
		return
	}
	d.properties(path, from, to)
	d.limits(path, from, to)
	if from.Items != nil && to.Items != nil {
		d.compare(path+"[]", from.Items.Schema, to.Items.Schema)
	}
	if a, b := from.AdditionalProperties, to.AdditionalProperties; a != nil && b != nil {
		d.compare(path+"{}", a.Schema, b.Schema)
	}
}

func (d *schemas) properties(path string, from, to *apiextensionsv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(from.Properties)) {
		old := from.Properties[name]
		if now, ok := to.Properties[name]; ok {
			d.compare(field(path, name), &old, &now)
			continue
		}
		w, note := Breaking, "what is in it is lost"
		if keepsUnknown(to) {
			w, note = "", ""
		}
		d.add(Removed, w, field(path, name), describe(&old), "", note)
	}
	for _, name := range slices.Sorted(maps.Keys(to.Properties)) {
		if _, ok := from.Properties[name]; ok {
			continue
		}
		now := to.Properties[name]
		w, note := Weight(""), ""
		if slices.Contains(to.Required, name) && now.Default == nil {
			w, note = Breaking, "it is required, and objects that exist do not have it"
		}
		d.add(Added, w, field(path, name), "", describe(&now), note)
	}
	d.required(path, from, to)
	if keepsUnknown(from) && !keepsUnknown(to) {
		d.add(Changed, Breaking, path, "keeps unknown fields", "drops unknown fields", "what is in them is lost")
	}
}

// required compares which of the fields that were and are there must be set.
func (d *schemas) required(path string, from, to *apiextensionsv1.JSONSchemaProps) {
	for _, name := range to.Required {
		_, had := from.Properties[name]
		if now := to.Properties[name]; had && !slices.Contains(from.Required, name) && now.Default == nil {
			d.add(Changed, Breaking, field(path, name), "optional", "required", "objects that exist may lack it")
		}
	}
	for _, name := range from.Required {
		if _, has := to.Properties[name]; has && !slices.Contains(to.Required, name) {
			d.add(Changed, "", field(path, name), "required", "optional", "")
		}
	}
}

func keepsUnknown(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields || s.AdditionalProperties != nil
}

// limits compares what a value may be.
func (d *schemas) limits(path string, from, to *apiextensionsv1.JSONSchemaProps) {
	d.enum(path, from.Enum, to.Enum)
	for _, l := range []struct {
		name     string
		from, to *float64
		upper    bool
	}{
		{"minimum", from.Minimum, to.Minimum, false}, {"maximum", from.Maximum, to.Maximum, true},
		{"minLength", float(from.MinLength), float(to.MinLength), false},
		{"maxLength", float(from.MaxLength), float(to.MaxLength), true},
		{"minItems", float(from.MinItems), float(to.MinItems), false},
		{"maxItems", float(from.MaxItems), float(to.MaxItems), true},
		{"minProperties", float(from.MinProperties), float(to.MinProperties), false},
		{"maxProperties", float(from.MaxProperties), float(to.MaxProperties), true},
	} {
		if c, ok := limit(l.from, l.to, l.upper); ok {
			c.Subject, c.Path = d.subject, path+" "+l.name
			d.changes = append(d.changes, c)
		}
	}
	if from.Pattern != to.Pattern {
		d.rule(path+" pattern", from.Pattern, to.Pattern)
	}
	if from.Format != to.Format {
		d.rule(path+" format", from.Format, to.Format)
	}
	if from.Nullable && !to.Nullable {
		d.add(Changed, Breaking, path, "nullable", "not nullable", "objects that exist may have null there")
	}
	d.defaults(path, raw(from.Default), raw(to.Default))
	d.validations(path, from, to)
}

func (d *schemas) defaults(path, from, to string) {
	if from == to {
		return
	}
	w, note := Attention, "who does not set it gets the new one"
	if from == "" && slices.Contains([]string{`""`, "0", "false", "[]", "{}"}, to) { // programs take it for not set
		w, note = "", ""
	}
	d.add(kindOf(from, to), w, path+" default", from, to, note)
}

func (d *schemas) validations(path string, from, to *apiextensionsv1.JSONSchemaProps) {
	rules := map[string]bool{}
	for _, r := range from.XValidations {
		rules[r.Rule] = true
	}
	for _, r := range to.XValidations {
		if !rules[r.Rule] {
			d.add(Added, Attention, path+" validation", "", r.Rule, "objects that exist may not satisfy it")
		}
		delete(rules, r.Rule)
	}
	for _, r := range slices.Sorted(maps.Keys(rules)) {
		d.add(Removed, "", path+" validation", r, "", "")
	}
}

// rule reports a pattern or a format, of which nobody can reports whether the new one is narrower.
func (d *schemas) rule(path, from, to string) {
	w, note := Attention, "objects that exist may not satisfy it"
	if to == "" {
		w, note = "", ""
	}
	d.add(kindOf(from, to), w, path, from, to, note)
}

func (d *schemas) enum(path string, from, to []apiextensionsv1.JSON) {
	values := func(list []apiextensionsv1.JSON) []string {
		var out []string
		for _, v := range list {
			out = append(out, string(v.Raw))
		}
		return out
	}
	a, b := values(from), values(to)
	if len(a) == 0 && len(b) > 0 {
		d.add(Added, Breaking, path+" enum", "", fmt.Sprint(b), "objects that exist may have another value")
		return
	}
	if len(a) > 0 && len(b) == 0 {
		d.add(Removed, "", path+" enum", fmt.Sprint(a), "", "")
		return
	}
	for _, v := range a {
		if !slices.Contains(b, v) {
			d.add(Removed, Breaking, path+" enum", v, "", "objects that exist may have this value")
		}
	}
	for _, v := range b {
		if !slices.Contains(a, v) {
			d.add(Added, "", path+" enum", "", v, "")
		}
	}
}

// limit compares a bound; it is breaking where it gets tighter.
func limit(from, to *float64, upper bool) (Change, bool) {
	switch {
	case from == nil && to == nil, from != nil && to != nil && *from == *to:
		return Change{}, false
	case to == nil:
		return Change{Kind: Removed, From: number(from)}, true
	}
	c := Change{Kind: Changed, From: number(from), To: number(to)}
	if from == nil {
		c.Kind = Added
	}
	if from == nil || upper && *to < *from || !upper && *to > *from {
		c.Weight, c.Note = Breaking, "objects that exist may be outside"
	}
	return c, true
}

func float(i *int64) *float64 {
	if i == nil {
		return nil
	}
	f := float64(*i)
	return &f
}

func number(f *float64) string {
	if f == nil {
		return ""
	}
	return strconv.FormatFloat(*f, 'g', -1, 64)
}

func raw(j *apiextensionsv1.JSON) string {
	if j == nil {
		return ""
	}
	return string(j.Raw)
}

func kindOf(from, to string) Kind {
	switch {
	case from == "":
		return Added
	case to == "":
		return Removed
	default:
		return Changed
	}
}

// describe is the type of a field, and how much is below it.
func describe(s *apiextensionsv1.JSONSchemaProps) string {
	name := cmp.Or(s.Type, "any")
	switch {
	case s.XIntOrString:
		name = "integer or string"
	case s.Type == "array" && s.Items != nil && s.Items.Schema != nil:
		name = "list of " + cmp.Or(s.Items.Schema.Type, "any")
	case s.Type == "object" && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		name = "map of " + cmp.Or(s.AdditionalProperties.Schema.Type, "any")
	}
	if n := fields(s); n > 0 {
		return fmt.Sprintf("%s, %d fields", name, n)
	}
	return name
}

// fields counts the fields below.
func fields(s *apiextensionsv1.JSONSchemaProps) int {
	if s == nil {
		return 0
	}
	n := len(s.Properties)
	for _, p := range s.Properties {
		n += fields(&p)
	}
	if s.Items != nil {
		n += fields(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		n += fields(s.AdditionalProperties.Schema)
	}
	return n
}
