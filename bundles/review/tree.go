// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// compareTrees compares two decoded JSON values. Lists of objects with names are compared by name, and other lists as
// sets, so that an additional element is one change. A value that is added or removed as a whole is also one change.
func compareTrees(subject, path string, from, to any) []Change {
	if reflect.DeepEqual(from, to) {
		return nil
	}
	if isEmpty(from) && isEmpty(to) {
		return nil
	}
	switch a := from.(type) {
	case map[string]any:
		if b, ok := to.(map[string]any); ok {
			return compareMaps(subject, path, a, b)
		}
	case []any:
		if b, ok := to.([]any); ok {
			return compareLists(subject, path, a, b)
		}
	}
	return []Change{newChange(subject, path, from, to)}
}

// newChange returns a change of a value; nil means no value.
func newChange(subject, path string, from, to any) Change {
	c := Change{Kind: Changed, Subject: subject, Path: path, From: formatValue(from), To: formatValue(to)}
	switch {
	case from == nil:
		c.Kind = Added
	case to == nil:
		c.Kind = Removed
	}
	return c
}

// isEmpty reports whether Kubernetes treats a value as not set.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// compareMaps compares two objects field by field.
func compareMaps(subject, path string, from, to map[string]any) []Change {
	keys := slices.Collect(maps.Keys(from))
	for key := range to {
		if _, ok := from[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var out []Change
	for _, key := range keys {
		out = append(out, compareTrees(subject, appendField(path, key), from[key], to[key])...)
	}
	return out
}

// appendField returns the path of a field below a path.
func appendField(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./[] "):
		return path + "[" + key + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

// compareLists compares two lists: by name if the elements of both lists have unique names, and as sets otherwise.
func compareLists(subject, path string, from, to []any) []Change {
	oldItems, isFromNamed := indexByName(from)
	newItems, isToNamed := indexByName(to)
	if isFromNamed && isToNamed {
		var out []Change
		names := slices.Collect(maps.Keys(oldItems))
		for name := range newItems {
			if _, ok := oldItems[name]; !ok {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			out = append(out, compareTrees(subject, path+"["+name+"]", oldItems[name], newItems[name])...)
		}
		return out
	}
	return compareSets(subject, path, from, to)
}

// indexByName returns the elements of a list by name. It returns false unless all elements have different names.
func indexByName(list []any) (map[string]any, bool) {
	out := map[string]any{}
	for _, item := range list {
		m, _ := item.(map[string]any)
		name, ok := m["name"].(string)
		if _, isDuplicate := out[name]; !ok || isDuplicate {
			return nil, false
		}
		out[name] = m
	}
	return out, true
}

// compareSets compares lists whose elements have no names. A changed element looks like one removed and one added
// element. These two are compared with each other only if all other elements are equal.
func compareSets(subject, path string, from, to []any) []Change {
	removed, added := findMissing(from, to), findMissing(to, from)
	switch {
	case len(removed) == 0 && len(added) == 0:
		return []Change{newChange(subject, path, from, to)} // the order differs, which may matter
	case len(removed) == 1 && len(added) == 1 && !isScalar(removed[0]) && !isScalar(added[0]):
		return compareTrees(subject, path+"[]", removed[0], added[0])
	}
	var out []Change
	for _, v := range removed {
		out = append(out, newChange(subject, path+"[]", v, nil))
	}
	for _, v := range added {
		out = append(out, newChange(subject, path+"[]", nil, v))
	}
	return out
}

// isScalar reports whether a value is neither an object nor a list.
func isScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// findMissing returns the elements of a that are not in b. Duplicates count separately.
func findMissing(a, b []any) []any {
	counts := map[string]int{}
	for _, v := range b {
		counts[formatValue(v)]++
	}
	var out []any
	for _, v := range a {
		if key := formatValue(v); counts[key] > 0 {
			counts[key]--
		} else {
			out = append(out, v)
		}
	}
	return out
}

// formatValue returns a value as text, for a change.
func formatValue(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "" // a decoded JSON value can always be encoded
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// toTree converts a typed value to a decoded JSON value.
func toTree(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil // the types of Kubernetes have a JSON form
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil
	}
	return out
}
