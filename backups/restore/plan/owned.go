// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"slices"
	"strings"
)

// AddOwned adds the fields of an earlier restore to the fields that a restore applies, because an apply removes owned
// fields that it leaves out. owned are the earlier fields, as SelectOwned returns them.
func AddOwned(owned, apply any, schema *Schema) any {
	switch apply := apply.(type) {
	case map[string]any:
		if owned, ok := owned.(map[string]any); ok {
			return addFields(owned, apply, schema)
		}
	case []any:
		if owned, ok := owned.([]any); ok && readListType(schema) != "atomic" {
			return addItems(owned, apply, schema)
		}
	case nil:
		return owned
	}
	return apply
}

// addFields returns the applied fields of an object together with the owned fields. It uses the applied value of a
// field that both have.
func addFields(owned, apply map[string]any, schema *Schema) map[string]any {
	out := map[string]any{}
	for key, value := range owned {
		out[key] = value
	}
	for key, value := range apply {
		out[key] = AddOwned(owned[key], value, findProperty(schema, key))
	}
	return out
}

// addItems returns the applied items of a list together with the owned items.
func addItems(owned, apply []any, schema *Schema) []any {
	out := slices.Clone(apply)
	for _, item := range owned {
		i := slices.IndexFunc(out, func(other any) bool { return isSameItem(item, other, schema) })
		if i < 0 {
			out = append(out, item)
			continue
		}
		out[i] = AddOwned(item, out[i], findElement(schema))
	}
	return out
}

// SelectOwned returns the fields of a live value that a field manager owns; nil if it owns none. fieldsV1 is the
// field with this name in the manager's entry in metadata.managedFields, as JSON.
func SelectOwned(live any, fieldsV1 []byte) (any, error) {
	var fields map[string]any
	if err := json.Unmarshal(fieldsV1, &fields); err != nil {
		return nil, err
	}
	value, ok := selectOwned(live, fields)
	if !ok {
		return nil, nil
	}
	return value, nil
}

// selectOwned returns the owned part of a value; false if there is none.
func selectOwned(live any, fields map[string]any) (any, bool) {
	if len(fields) == 0 { // no nested fields: the manager owns the whole value
		return live, true
	}
	switch live := live.(type) {
	case map[string]any:
		return selectOwnedFields(live, fields)
	case []any:
		return selectOwnedItems(live, fields)
	}
	return nil, false
}

// selectOwnedFields returns the owned fields of an object.
func selectOwnedFields(live, fields map[string]any) (any, bool) {
	out := map[string]any{}
	for name, nested := range fields {
		key, ok := strings.CutPrefix(name, "f:")
		value, exists := live[key]
		if !ok || !exists { // not a field, or a field that was removed
			continue
		}
		inner, _ := nested.(map[string]any)
		if v, ok := selectOwned(value, inner); ok {
			out[key] = v
		}
	}
	return out, len(out) > 0
}

// selectOwnedItems returns the owned items of a list.
func selectOwnedItems(live []any, fields map[string]any) (any, bool) {
	var out []any
	for _, item := range live {
		for name, nested := range fields {
			if !isItem(item, name) {
				continue
			}
			inner, _ := nested.(map[string]any)
			if v, ok := selectOwned(item, inner); ok {
				out = append(out, v)
			}
		}
	}
	return out, len(out) > 0
}

// isItem reports whether the name of a managed field names a list item: by its value ("v:" with JSON) or by its keys
// ("k:" with JSON).
func isItem(item any, name string) bool {
	if encoded, ok := strings.CutPrefix(name, "v:"); ok {
		var value any
		return json.Unmarshal([]byte(encoded), &value) == nil && isEqual(item, value)
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
		if encode(fields[key]) != encode(value) {
			return false
		}
	}
	return true
}
