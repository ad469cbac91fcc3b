// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "slices"

// Fill returns a live value with the fields that a restore brings back, as Compare
// returns them. The items of lists stay in the order in which they are.
func Fill(live, fields any, schema *Schema) any {
	switch fields := fields.(type) {
	case map[string]any:
		if live, ok := live.(map[string]any); ok {
			return fillFields(live, fields, schema)
		}
	case []any:
		if live, ok := live.([]any); ok && listType(schema) != "atomic" {
			return fillItems(live, fields, schema)
		}
	case nil:
		return live
	}
	return fields
}

func fillFields(live, fields map[string]any, schema *Schema) map[string]any {
	out := map[string]any{}
	for key, value := range live {
		out[key] = value
	}
	for key, value := range fields {
		out[key] = Fill(live[key], value, property(schema, key))
	}
	return out
}

func fillItems(live, fields []any, schema *Schema) []any {
	out := slices.Clone(live)
	for _, item := range fields {
		i := slices.IndexFunc(out, func(other any) bool { return isSameItem(item, other, schema) })
		if i < 0 {
			out = append(out, item)
			continue
		}
		out[i] = Fill(out[i], item, element(schema))
	}
	return out
}

// isSameItem tells whether two items of a list are about the same.
func isSameItem(a, b any, schema *Schema) bool {
	if listType(schema) == "map" {
		return keyOf(a, schema.XListMapKeys) == keyOf(b, schema.XListMapKeys)
	}
	return equal(a, b)
}
