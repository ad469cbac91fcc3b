// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what a restore writes to an existing object: the fields that the backup has and the object
// lacks. It never changes an existing value. The package is pure.
package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Schema is the schema of the served version; nil if it is not known.
type Schema = apiextensionsv1.JSONSchemaProps

// Difference has the fields of a saved object that the live object lacks.
type Difference struct {
	// Apply has the fields to restore, with the keys of their list items; nil if there are none.
	Apply map[string]any
	// Restored are the paths of the fields in Apply, sorted.
	Restored []string
	// Kept are the paths where the live object has another value, sorted. These values do not change.
	Kept []string
}

// Compare returns the fields that a saved object has and the live object lacks, and the fields with another value. It
// compares only labels and annotations of the metadata. If the status is a subresource (statusSubresource), its
// difference is the second result; otherwise the second result is empty, and the status is part of the first.
func Compare(saved, live map[string]any, schema *Schema, statusSubresource bool) (object, status Difference) {
	all, state := map[string]any{}, map[string]any{}
	for field, value := range saved {
		switch {
		case field == "apiVersion" || field == "kind":
			// a restore does not change the type of an object
		case field == "metadata":
			all[field] = selectMetadata(value)
		case field == "status" && statusSubresource:
			state[field] = value
		default:
			all[field] = value
		}
	}
	return findDifference(all, live, schema), findDifference(state, live, schema)
}

// selectMetadata returns the labels and annotations of an object's metadata.
func selectMetadata(metadata any) map[string]any {
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

// findDifference returns the difference of two objects, with sorted paths.
func findDifference(saved, live map[string]any, schema *Schema) Difference {
	var c comparison
	apply, _ := c.compareObject("", saved, live, schema)
	slices.Sort(c.restored)
	slices.Sort(c.kept)
	return Difference{Apply: apply, Restored: c.restored, Kept: c.kept}
}

// comparison collects the paths of restored and kept fields.
type comparison struct{ restored, kept []string }

// compareValue returns the part of a saved value that must be applied to the live value; false if there is none. It
// records the paths of restored fields, and of fields with another value.
func (c *comparison) compareValue(path string, saved, live any, schema *Schema) (any, bool) {
	switch saved := saved.(type) {
	case map[string]any:
		if live, ok := live.(map[string]any); ok {
			return c.compareObject(path, saved, live, schema)
		}
	case []any:
		if live, ok := live.([]any); ok {
			return c.compareList(path, saved, live, schema)
		}
	}
	if !isEqual(saved, live) {
		c.kept = append(c.kept, path)
	}
	return nil, false
}

// compareObject returns the fields of a saved object that the live object lacks; false if it lacks none. If the object
// is atomic in the schema, it returns the whole merged object, because the API server replaces an atomic object as a
// whole.
func (c *comparison) compareObject(path string, saved, live map[string]any, schema *Schema) (map[string]any, bool) {
	out, found := map[string]any{}, false
	for _, key := range slices.Sorted(maps.Keys(saved)) {
		childPath := joinPath(path, key)
		current, exists := live[key]
		switch {
		case !exists && saved[key] == nil: // null is the same as a missing field
		case !exists:
			c.restored = append(c.restored, childPath)
			out[key], found = saved[key], true
		default:
			if value, ok := c.compareValue(childPath, saved[key], current, findProperty(schema, key)); ok {
				out[key], found = value, true
			}
		}
	}
	if !found {
		return nil, false
	}
	if schema != nil && schema.XMapType != nil && *schema.XMapType == "atomic" {
		return mergeMaps(saved, live), true
	}
	return out, true
}

// compareList returns the part of a saved list that must be applied; false if there is none. What can be added
// depends on the type of the list in the schema.
func (c *comparison) compareList(path string, saved, live []any, schema *Schema) (any, bool) {
	switch readListType(schema) {
	case "map":
		return c.compareKeyed(path, saved, live, schema)
	case "set":
		return c.compareSet(path, saved, live)
	default:
		return c.compareAtomic(path, saved, live, schema)
	}
}

// compareKeyed returns the items of a list with keys that the live list lacks, and the missing fields of the items that
// both lists have; false if the live list lacks nothing. Such items have their keys too, because an apply finds an item
// by its keys.
func (c *comparison) compareKeyed(path string, saved, live []any, schema *Schema) (any, bool) {
	var out []any
	for _, item := range saved {
		key := formatKey(item, schema.XListMapKeys)
		childPath := path + "[" + key + "]"
		i := slices.IndexFunc(live, func(l any) bool { return formatKey(l, schema.XListMapKeys) == key })
		if i < 0 {
			c.restored = append(c.restored, childPath)
			out = append(out, item)
			continue
		}
		value, ok := c.compareValue(childPath, item, live[i], findElement(schema))
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

// compareSet returns the items of a list without an order that the live list lacks.
func (c *comparison) compareSet(path string, saved, live []any) (any, bool) {
	var out []any
	for _, item := range saved {
		if !slices.ContainsFunc(live, func(l any) bool { return isEqual(item, l) }) {
			c.restored = append(c.restored, fmt.Sprintf("%s[%s]", path, encode(item)))
			out = append(out, item)
		}
	}
	return out, len(out) > 0
}

// compareAtomic compares lists that are written as a whole. It returns the merged list only if the live list has the
// same items and some items lack fields, so that no value of the live list changes. Otherwise the live list is kept.
func (c *comparison) compareAtomic(path string, saved, live []any, schema *Schema) (any, bool) {
	if len(saved) != len(live) {
		c.kept = append(c.kept, path)
		return nil, false
	}
	var items comparison
	found := false
	for i := range saved {
		_, ok := items.compareValue(fmt.Sprintf("%s[%d]", path, i), saved[i], live[i], findElement(schema))
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
	return mergeValues(saved, live), true
}

// mergeValues returns a value with the fields of both values. It uses the live value of a field that both have.
func mergeValues(saved, live any) any {
	switch saved := saved.(type) {
	case map[string]any:
		if live, ok := live.(map[string]any); ok {
			return mergeMaps(saved, live)
		}
	case []any:
		live, ok := live.([]any)
		if !ok || len(live) != len(saved) {
			break
		}
		out := slices.Clone(live)
		for i := range out {
			out[i] = mergeValues(saved[i], live[i])
		}
		return out
	}
	return live
}

// mergeMaps returns a map with the fields of both maps. It uses the live value of a field that both have.
func mergeMaps(saved, live map[string]any) map[string]any {
	out := maps.Clone(live)
	for key, value := range saved {
		if current, exists := live[key]; exists {
			out[key] = mergeValues(value, current)
		} else {
			out[key] = value
		}
	}
	return out
}

// readListType returns the type of a list; "atomic" if the schema does not say.
func readListType(schema *Schema) string {
	if schema == nil || schema.XListType == nil {
		return "atomic"
	}
	return *schema.XListType
}

// findProperty returns the schema of a field; nil if it is not known.
func findProperty(schema *Schema, key string) *Schema {
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

// findElement returns the schema of the items of a list; nil if it is not known.
func findElement(schema *Schema) *Schema {
	if schema == nil || schema.Items == nil {
		return nil
	}
	return schema.Items.Schema
}

// formatKey returns the key of a list item as text.
func formatKey(item any, keys []string) string {
	fields, _ := item.(map[string]any)
	out := ""
	for i, key := range keys {
		if i > 0 {
			out += ","
		}
		out += key + "=" + encode(fields[key])
	}
	return out
}

// encode returns a value as JSON.
func encode(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil { // JSON always marshals
		panic(fmt.Sprintf("marshal value: %v", err))
	}
	return string(encoded)
}

// isEqual compares JSON values. Numbers are equal even if one was decoded as an integer and the other was not.
func isEqual(a, b any) bool {
	return reflect.DeepEqual(a, b) || encode(a) == encode(b)
}

// joinPath appends a key to a path.
func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
