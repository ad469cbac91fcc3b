// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what a restore writes to an object that exists: the fields
// that the backup has and the object lacks. A value that the object has is never
// changed. The package is pure.
package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Schema is that of the served version; nil where it is not known.
type Schema = apiextensionsv1.JSONSchemaProps

// Difference is what a saved object has that the live one lacks.
type Difference struct {
	// Apply holds the fields to bring back, with the keys of their list items. It is
	// nil if there are none.
	Apply map[string]any
	// Restored are the paths of these fields, sorted.
	Restored []string
	// Kept are the paths where the live object has another value, sorted. It stays.
	Kept []string
}

// Compare compares a saved object with the live one. Of the metadata only labels
// and annotations are compared. The second result is about the status; it is empty
// unless that is a subresource.
func Compare(saved, live map[string]any, schema *Schema, statusSubresource bool) (object, status Difference) {
	all, state := map[string]any{}, map[string]any{}
	for field, value := range saved {
		switch {
		case field == "apiVersion" || field == "kind":
		case field == "metadata":
			all[field] = comparedMetadata(value)
		case field == "status" && statusSubresource:
			state[field] = value
		default:
			all[field] = value
		}
	}
	return difference(all, live, schema), difference(state, live, schema)
}

func comparedMetadata(metadata any) map[string]any {
	out := map[string]any{}
	if all, ok := metadata.(map[string]any); ok {
		for _, field := range []string{"labels", "annotations"} {
			if value, ok := all[field]; ok {
				out[field] = value
			}
		}
	}
	return out
}

func difference(saved, live map[string]any, schema *Schema) Difference {
	var c comparison
	apply, _ := c.object("", saved, live, schema)
	slices.Sort(c.restored)
	slices.Sort(c.kept)
	return Difference{Apply: apply, Restored: c.restored, Kept: c.kept}
}

type comparison struct{ restored, kept []string }

// value returns what of a saved value has to be applied to a live one, and false
// if nothing has to.
func (c *comparison) value(path string, saved, live any, schema *Schema) (any, bool) {
	switch saved := saved.(type) {
	case map[string]any:
		if live, ok := live.(map[string]any); ok {
			return c.object(path, saved, live, schema)
		}
	case []any:
		if live, ok := live.([]any); ok {
			return c.list(path, saved, live, schema)
		}
	}
	if !equal(saved, live) {
		c.kept = append(c.kept, path)
	}
	return nil, false
}

func (c *comparison) object(path string, saved, live map[string]any, schema *Schema) (map[string]any, bool) {
	out, found := map[string]any{}, false
	for _, key := range slices.Sorted(maps.Keys(saved)) {
		at := join(path, key)
		now, there := live[key]
		switch {
		case !there && saved[key] == nil: // null says nothing
		case !there:
			c.restored = append(c.restored, at)
			out[key], found = saved[key], true
		default:
			if value, ok := c.value(at, saved[key], now, property(schema, key)); ok {
				out[key], found = value, true
			}
		}
	}
	if !found {
		return nil, false
	}
	if schema != nil && schema.XMapType != nil && *schema.XMapType == "atomic" {
		return unionOf(saved, live), true
	}
	return out, true
}

func (c *comparison) list(path string, saved, live []any, schema *Schema) (any, bool) {
	switch listType(schema) {
	case "map":
		return c.keyed(path, saved, live, schema)
	case "set":
		return c.set(path, saved, live)
	default:
		return c.atomic(path, saved, live, schema)
	}
}

// keyed compares lists whose items have keys.
func (c *comparison) keyed(path string, saved, live []any, schema *Schema) (any, bool) {
	var out []any
	for _, item := range saved {
		key := keyOf(item, schema.XListMapKeys)
		at := path + "[" + key + "]"
		i := slices.IndexFunc(live, func(l any) bool { return keyOf(l, schema.XListMapKeys) == key })
		if i < 0 {
			c.restored = append(c.restored, at)
			out = append(out, item)
			continue
		}
		value, ok := c.value(at, item, live[i], element(schema))
		if !ok {
			continue
		}
		if fields, ok := value.(map[string]any); ok {
			for _, k := range schema.XListMapKeys {
				if v, ok := item.(map[string]any)[k]; ok {
					fields[k] = v
				}
			}
		}
		out = append(out, value)
	}
	return out, len(out) > 0
}

// set compares lists without an order.
func (c *comparison) set(path string, saved, live []any) (any, bool) {
	var out []any
	for _, item := range saved {
		if !slices.ContainsFunc(live, func(l any) bool { return equal(item, l) }) {
			c.restored = append(c.restored, fmt.Sprintf("%s[%s]", path, text(item)))
			out = append(out, item)
		}
	}
	return out, len(out) > 0
}

// atomic compares lists that are written as a whole. One is brought back only if
// its items are those of the live one with fields lost: then no value of the live
// list changes.
func (c *comparison) atomic(path string, saved, live []any, schema *Schema) (any, bool) {
	if len(saved) != len(live) {
		c.kept = append(c.kept, path)
		return nil, false
	}
	var items comparison
	found := false
	for i := range saved {
		_, ok := items.value(fmt.Sprintf("%s[%d]", path, i), saved[i], live[i], element(schema))
		found = found || ok
	}
	switch {
	case len(items.kept) > 0:
		c.kept = append(c.kept, path)
		return nil, false
	case !found:
		return nil, false
	}
	c.restored = append(c.restored, items.restored...)
	return union(saved, live), true
}

// union has the fields of both; where both have one, the live value.
func union(saved, live any) any {
	switch saved := saved.(type) {
	case map[string]any:
		if live, ok := live.(map[string]any); ok {
			return unionOf(saved, live)
		}
	case []any:
		live, ok := live.([]any)
		if !ok || len(live) != len(saved) {
			break
		}
		out := slices.Clone(live)
		for i := range out {
			out[i] = union(saved[i], live[i])
		}
		return out
	}
	return live
}

func unionOf(saved, live map[string]any) map[string]any {
	out := maps.Clone(live)
	for key, value := range saved {
		if now, there := live[key]; there {
			out[key] = union(value, now)
		} else {
			out[key] = value
		}
	}
	return out
}

func listType(schema *Schema) string {
	if schema == nil || schema.XListType == nil {
		return "atomic"
	}
	return *schema.XListType
}

func property(schema *Schema, key string) *Schema {
	if schema == nil {
		return nil
	}
	if p, ok := schema.Properties[key]; ok {
		return &p
	}
	if schema.AdditionalProperties != nil {
		return schema.AdditionalProperties.Schema
	}
	return nil
}

func element(schema *Schema) *Schema {
	if schema == nil || schema.Items == nil {
		return nil
	}
	return schema.Items.Schema
}

// keyOf is the key of a list's item, as text.
func keyOf(item any, keys []string) string {
	fields, _ := item.(map[string]any)
	out := ""
	for i, key := range keys {
		if i > 0 {
			out += ","
		}
		out += key + "=" + text(fields[key])
	}
	return out
}

func text(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil { // JSON always marshals
		panic(fmt.Sprintf("marshal value: %v", err))
	}
	return string(encoded)
}

// equal compares JSON values. Numbers are equal whether they were decoded as
// integers or not.
func equal(a, b any) bool {
	return reflect.DeepEqual(a, b) || text(a) == text(b)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
