// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "slices"

// Fill returns a live value with the fields that a restore adds, as Compare returns them. A list that is written as a
// whole is replaced, because Compare returns the merged list. The items of other lists keep their order. Fill does not
// change live.
func Fill(live, fields any, schema *Schema) any {
	switch fields := fields.(type) {
	case map[string]any:
		if live, ok := live.(map[string]any); ok {
			return fillFields(live, fields, schema)
		}
	case []any:
		if live, ok := live.([]any); ok && readListType(schema) != "atomic" {
			return fillItems(live, fields, schema)
		}
	case nil:
		return live
	}
	return fields
}

// fillFields adds fields to an object.
func fillFields(live, fields map[string]any, schema *Schema) map[string]any {
	out := map[string]any{}
	for key, value := range live {
		out[key] = value
	}
	for key, value := range fields {
		out[key] = Fill(live[key], value, findProperty(schema, key))
	}
	return out
}

// fillItems adds items to a list, or fields to existing items.
func fillItems(live, fields []any, schema *Schema) []any {
	out := slices.Clone(live)
	for _, item := range fields {
		i := slices.IndexFunc(out, func(other any) bool { return isSameItem(item, other, schema) })
		if i < 0 {
			out = append(out, item)
			continue
		}
		out[i] = Fill(out[i], item, findElement(schema))
	}
	return out
}

// isSameItem reports whether two list items have the same key, or are equal in a list without keys.
func isSameItem(a, b any, schema *Schema) bool {
	if readListType(schema) == "map" {
		return formatKey(a, schema.XListMapKeys) == formatKey(b, schema.XListMapKeys)
	}
	return isEqual(a, b)
}
