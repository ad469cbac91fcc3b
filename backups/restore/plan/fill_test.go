// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bellwether-dev/bellwether/backups/restore/plan"
)

// TestFill checks that a live object gets its missing fields, and keeps its values and the order of its lists.
func TestFill(t *testing.T) {
	type fields = map[string]any
	item := func(key, value string) any {
		if value == "" {
			return fields{"name": key}
		}
		return fields{"name": key, "to": value}
	}
	list := func(kind string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "array", XListType: ptr(kind), XListMapKeys: []string{"name"}}
	}
	schema := &plan.Schema{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"keyed": list("map"), "set": {Type: "array", XListType: ptr("set")},
		"atomic": {Type: "array", XListType: ptr("atomic")}}}
	saved := fields{
		"kept": "old", "lost": "1", "nested": fields{"kept": "1", "lost": "2"},
		"keyed": []any{item("a", "1"), item("b", "2"), item("c", "3")}, "set": []any{"x", "y"},
		"atomic": []any{fields{"a": "1", "b": "2"}},
	}
	live := fields{
		"kept": "new", "nested": fields{"kept": "1", "new": "3"},
		"keyed": []any{item("c", "other"), item("a", "")}, "set": []any{"z", "y"}, "atomic": []any{fields{"a": "1"}},
	}
	want := fields{
		"kept": "new", "lost": "1", "nested": fields{"kept": "1", "lost": "2", "new": "3"},
		"keyed": []any{item("c", "other"), item("a", "1"), item("b", "2")}, "set": []any{"z", "y", "x"},
		"atomic": []any{fields{"a": "1", "b": "2"}},
	}
	missing, _ := plan.Compare(saved, live, schema, false)
	if diff := cmp.Diff(want, plan.Fill(live, missing.Apply, schema)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
