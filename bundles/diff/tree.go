// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// tree compares two values as JSON has them. Lists of things with names are compared by name, other lists as sets, so
// that one more element is one change. What appears or disappears as a whole is one change too.
func tree(subject, path string, from, to any) []Change {
	if reflect.DeepEqual(from, to) {
		return nil
	}
	if empty(from) && empty(to) {
		return nil
	}
	switch a := from.(type) {
	case map[string]any:
		if b, ok := to.(map[string]any); ok {
			return treeMap(subject, path, a, b)
		}
	case []any:
		if b, ok := to.([]any); ok {
			return treeList(subject, path, a, b)
		}
	}
	return []Change{change(subject, path, from, to)}
}

func change(subject, path string, from, to any) Change {
	c := Change{Kind: Changed, Subject: subject, Path: path, From: text(from), To: text(to)}
	switch {
	case from == nil:
		c.Kind = Added
	case to == nil:
		c.Kind = Removed
	}
	return c
}

// empty tells values that Kubernetes does not tell from absent ones.
func empty(v any) bool {
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

func treeMap(subject, path string, from, to map[string]any) []Change {
	keys := slices.Collect(maps.Keys(from))
	for key := range to {
		if _, ok := from[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var out []Change
	for _, key := range keys {
		out = append(out, tree(subject, field(path, key), from[key], to[key])...)
	}
	return out
}

// field appends a field to a path.
func field(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./[] "):
		return path + "[" + key + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

func treeList(subject, path string, from, to []any) []Change {
	a, aNamed := byName(from)
	b, bNamed := byName(to)
	if aNamed && bNamed {
		var out []Change
		names := slices.Collect(maps.Keys(a))
		for name := range b {
			if _, ok := a[name]; !ok {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			out = append(out, tree(subject, path+"["+name+"]", a[name], b[name])...)
		}
		return out
	}
	return treeSet(subject, path, from, to)
}

// byName indexes a list of things that all have different names.
func byName(list []any) (map[string]any, bool) {
	out := map[string]any{}
	for _, item := range list {
		m, _ := item.(map[string]any)
		name, ok := m["name"].(string)
		if _, twice := out[name]; !ok || twice {
			return nil, false
		}
		out[name] = m
	}
	return out, true
}

// treeSet compares lists whose elements have no names. An element of which only a part changed cannot be told from one
// that went and another that came, unless all others are the same.
func treeSet(subject, path string, from, to []any) []Change {
	gone, come := missing(from, to), missing(to, from)
	switch {
	case len(gone) == 0 && len(come) == 0:
		return []Change{change(subject, path, from, to)} // another order, which may matter
	case len(gone) == 1 && len(come) == 1 && !scalar(gone[0]) && !scalar(come[0]):
		return tree(subject, path+"[]", gone[0], come[0])
	}
	var out []Change
	for _, v := range gone {
		out = append(out, change(subject, path+"[]", v, nil))
	}
	for _, v := range come {
		out = append(out, change(subject, path+"[]", nil, v))
	}
	return out
}

func scalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// missing are the elements of a that b has not, each as often as it is missing.
func missing(a, b []any) []any {
	left := map[string]int{}
	for _, v := range b {
		left[text(v)]++
	}
	var out []any
	for _, v := range a {
		if key := text(v); left[key] > 0 {
			left[key]--
		} else {
			out = append(out, v)
		}
	}
	return out
}

// text is a value as a change shows it.
func text(v any) string {
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
		return "" // what came out of JSON goes back into it
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// asTree is a typed value as JSON has it.
func asTree(v any) any {
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
