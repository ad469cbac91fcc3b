// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"slices"
	"strings"
)

// Add adds to the fields that a restore applies those that an earlier restore
// applied: an apply removes the fields of its manager that it leaves out. Owned
// are the earlier fields, as Owned returns them.
func Add(owned, apply any, schema *Schema) any {
	switch apply := apply.(type) {
	case map[string]any:
		if owned, ok := owned.(map[string]any); ok {
			return addFields(owned, apply, schema)
		}
	case []any:
		if owned, ok := owned.([]any); ok && listType(schema) != "atomic" {
			return addItems(owned, apply, schema)
		}
	case nil:
		return owned
	}
	return apply
}

func addFields(owned, apply map[string]any, schema *Schema) map[string]any {
	out := map[string]any{}
	for key, value := range owned {
		out[key] = value
	}
	for key, value := range apply {
		out[key] = Add(owned[key], value, property(schema, key))
	}
	return out
}

func addItems(owned, apply []any, schema *Schema) []any {
	out := slices.Clone(apply)
	for _, item := range owned {
		i := slices.IndexFunc(out, func(other any) bool { return isSameItem(item, other, schema) })
		if i < 0 {
			out = append(out, item)
			continue
		}
		out[i] = Add(item, out[i], element(schema))
	}
	return out
}

// Owned returns those fields of a live value that a field manager owns, by the
// fieldsV1 of its entry in metadata.managedFields; nil if it owns none.
func Owned(live any, fieldsV1 []byte) (any, error) {
	var fields map[string]any
	if err := json.Unmarshal(fieldsV1, &fields); err != nil {
		return nil, err
	}
	value, ok := owned(live, fields)
	if !ok {
		return nil, nil
	}
	return value, nil
}

func owned(live any, fields map[string]any) (any, bool) {
	if len(fields) == 0 {
		return live, true
	}
	switch live := live.(type) {
	case map[string]any:
		return ownedFields(live, fields)
	case []any:
		return ownedItems(live, fields)
	}
	return nil, false
}

func ownedFields(live, fields map[string]any) (any, bool) {
	out := map[string]any{}
	for name, below := range fields {
		key, ok := strings.CutPrefix(name, "f:")
		value, there := live[key]
		if !ok || !there {
			continue
		}
		inner, _ := below.(map[string]any)
		if v, ok := owned(value, inner); ok {
			out[key] = v
		}
	}
	return out, len(out) > 0
}

func ownedItems(live []any, fields map[string]any) (any, bool) {
	var out []any
	for _, item := range live {
		for name, below := range fields {
			if !isItem(item, name) {
				continue
			}
			inner, _ := below.(map[string]any)
			if v, ok := owned(item, inner); ok {
				out = append(out, v)
			}
		}
	}
	return out, len(out) > 0
}

// isItem tells whether the name of a managed field is that of a list's item.
func isItem(item any, name string) bool {
	if encoded, ok := strings.CutPrefix(name, "v:"); ok {
		var value any
		return json.Unmarshal([]byte(encoded), &value) == nil && equal(item, value)
	}
	encoded, ok := strings.CutPrefix(name, "k:")
	if !ok {
		return false
	}
	var keys map[string]any
	fields, isObject := item.(map[string]any)
	if !isObject || json.Unmarshal([]byte(encoded), &keys) != nil {
		return false
	}
	for key, value := range keys {
		if text(fields[key]) != text(value) {
			return false
		}
	}
	return true
}
