// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bellwether-dev/bellwether/backups/restore/plan"
	"github.com/bellwether-dev/bellwether/internal/tools/long"
)

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("decode %s: %v", text, err)
	}
	return out
}

func ptr(s string) *string { return &s }

func list(listType string, keys []string, item *plan.Schema) plan.Schema {
	return plan.Schema{Type: "array", XListType: ptr(listType), XListMapKeys: keys,
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: item}}
}

// schema has a list of each kind.
func schema() *plan.Schema {
	return &plan.Schema{Properties: map[string]plan.Schema{"spec": {Properties: map[string]plan.Schema{
		"ports":  list("map", []string{"name"}, &plan.Schema{}),
		"tags":   list("set", nil, &plan.Schema{}),
		"steps":  list("atomic", nil, &plan.Schema{}),
		"atomic": {XMapType: ptr("atomic")},
	}}}}
}

func TestCompare(t *testing.T) {
	for name, test := range map[string]struct {
		saved, live string
		apply       string // empty: nothing
		restored    []string
		kept        []string
	}{
		"nothing is lost": {saved: `{"spec":{"a":1}}`, live: `{"spec":{"a":1,"b":2}}`},
		"a lost field comes back": {saved: `{"spec":{"a":1,"b":{"c":2}}}`, live: `{"spec":{"a":1}}`,
			apply: `{"spec":{"b":{"c":2}}}`, restored: []string{"spec.b"}},
		"a changed value stays": {saved: `{"spec":{"a":1,"b":2}}`, live: `{"spec":{"a":7}}`,
			apply: `{"spec":{"b":2}}`, restored: []string{"spec.b"}, kept: []string{"spec.a"}},
		"another type stays":       {saved: `{"spec":{"a":{"b":1}}}`, live: `{"spec":{"a":3}}`, kept: []string{"spec.a"}},
		"null brings nothing back": {saved: `{"spec":{"a":null}}`, live: `{"spec":{}}`},
		"an item with a key": {saved: `{"spec":{"ports":[{"name":"x","n":1,"p":2},{"name":"y","n":3}]}}`,
			live: `{"spec":{"ports":[{"name":"x","n":9}]}}`, kept: []string{`spec.ports[name="x"].n`},
			apply:    `{"spec":{"ports":[{"name":"x","p":2},{"name":"y","n":3}]}}`,
			restored: []string{`spec.ports[name="x"].p`, `spec.ports[name="y"]`}},
		"an element of a set": {saved: `{"spec":{"tags":["a","b"]}}`, live: `{"spec":{"tags":["b","c"]}}`,
			apply: `{"spec":{"tags":["a"]}}`, restored: []string{`spec.tags["a"]`}},
		"fields lost in an atomic list": {saved: `{"spec":{"steps":[{"a":1,"b":2},{"a":3}]}}`,
			live: `{"spec":{"steps":[{"a":1},{"a":3,"new":4}]}}`, restored: []string{"spec.steps[0].b"},
			apply: `{"spec":{"steps":[{"a":1,"b":2},{"a":3,"new":4}]}}`},
		"an atomic list that was changed": {saved: `{"spec":{"steps":[{"a":1,"b":2}]}}`,
			live: `{"spec":{"steps":[{"a":5}]}}`, kept: []string{"spec.steps"}},
		"an atomic list of another length": {saved: `{"spec":{"steps":[1,2]}}`, live: `{"spec":{"steps":[1]}}`,
			kept: []string{"spec.steps"}},
		"a list without a schema": {saved: `{"spec":{"other":[{"a":1,"b":2}]}}`, live: `{"spec":{"other":[{"a":1}]}}`,
			apply: `{"spec":{"other":[{"a":1,"b":2}]}}`, restored: []string{"spec.other[0].b"}},
		"an atomic map": {saved: `{"spec":{"atomic":{"a":1,"b":2}}}`, live: `{"spec":{"atomic":{"a":7}}}`,
			apply: `{"spec":{"atomic":{"a":7,"b":2}}}`, restored: []string{"spec.atomic.b"},
			kept: []string{"spec.atomic.a"}},
		"of the metadata only labels and annotations": {
			saved: `{"metadata":{"name":"x","finalizers":["f"],"labels":{"a":"1"},"annotations":{"b":"2"}}}`,
			live:  `{"metadata":{"name":"x","annotations":{"b":"3"}}}`, apply: `{"metadata":{"labels":{"a":"1"}}}`,
			restored: []string{"metadata.labels"}, kept: []string{"metadata.annotations.b"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, status := plan.Compare(decode(t, test.saved), decode(t, test.live), schema(), true)
			want := plan.Difference{Restored: test.restored, Kept: test.kept}
			if test.apply != "" {
				want.Apply = decode(t, test.apply)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("difference (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(plan.Difference{}, status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheStatusIsComparedApart(t *testing.T) {
	saved, live := decode(t, `{"spec":{"a":1},"status":{"b":2}}`), decode(t, `{"spec":{}}`)
	object, status := plan.Compare(saved, live, nil, true)
	if diff := cmp.Diff([]string{"spec.a"}, object.Restored); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"status": map[string]any{"b": 2.0}}, status.Apply); diff != "" {
		t.Error(diff)
	}
	object, status = plan.Compare(saved, live, nil, false)
	if len(object.Restored) != 2 || status.Apply != nil {
		t.Errorf("without a subresource the status is part of the object: %+v, %+v", object, status)
	}
}

func TestOwnedFieldsAreAppliedAgain(t *testing.T) {
	live := decode(t, `{"spec":{"mine":1,"theirs":2,"ports":[{"name":"x","n":1,"p":2},{"name":"y"}],"tags":["<a>","b"]}}`)
	owned, err := plan.SelectOwned(live,
		[]byte(`{"f:spec":{"f:mine":{},"f:gone":{},"f:tags":{"v:\"\\u003ca\\u003e\"":{}},
		"f:ports":{"k:{\"name\":\"x\"}":{".":{},"f:name":{},"f:p":{}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := decode(t, `{"spec":{"mine":1,"tags":["<a>"],"ports":[{"name":"x","p":2}]}}`)
	if diff := cmp.Diff(any(want), owned); diff != "" {
		t.Errorf("owned (-want +got):\n%s", diff)
	}
	apply := decode(t, `{"spec":{"lost":3,"tags":["c"],"ports":[{"name":"x","q":4},{"name":"z"}]}}`)
	want = decode(t, `{"spec":{"mine":1,"lost":3,"tags":["c","<a>"],
		"ports":[{"name":"x","p":2,"q":4},{"name":"z"}]}}`)
	if diff := cmp.Diff(any(want), plan.AddOwned(owned, apply, schema())); diff != "" {
		t.Errorf("apply (-want +got):\n%s", diff)
	}
}

// TestLostFieldsComeBackAndChangedOnesStay loses and changes random fields of random
// objects. A checker compares the result field by field.
func TestLostFieldsComeBackAndChangedOnesStay(t *testing.T) {
	for seed := range uint64(long.Cases(2_000, 50_000)) {
		r := rand.New(rand.NewPCG(seed, 1))
		saved := map[string]any{"spec": randomSpec(r)}
		live, _ := damage(r, saved, true).(map[string]any)
		difference, _ := plan.Compare(saved, live, schema(), false)
		after := any(live)
		if difference.Apply != nil {
			after = applied(live, difference.Apply, schema())
		}
		if problem := check("", saved, live, after, schema()); problem != "" {
			t.Fatalf("seed %d: %s\nsaved: %s\nlive:  %s\nafter: %s", seed, problem, encode(saved), encode(live),
				encode(after))
		}
		if again, _ := plan.Compare(saved, after.(map[string]any), schema(), false); again.Apply != nil {
			t.Fatalf("seed %d: a second restore would still write %s", seed, encode(again.Apply))
		}
	}
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func randomSpec(r *rand.Rand) map[string]any {
	spec := randomMap(r, 3)
	var ports, steps, tags []any
	for i := range r.IntN(4) {
		port := randomMap(r, 1)
		port["name"] = fmt.Sprint("p", i)
		ports, steps, tags = append(ports, port), append(steps, randomMap(r, 1)), append(tags, fmt.Sprint("t", i))
	}
	spec["ports"], spec["steps"], spec["tags"] = ports, steps, tags
	spec["atomic"] = randomMap(r, 1)
	return spec
}

func randomMap(r *rand.Rand, depth int) map[string]any {
	out := map[string]any{}
	for i := range 1 + r.IntN(4) {
		key := fmt.Sprint("f", i)
		if depth > 0 && r.IntN(2) == 0 {
			out[key] = randomMap(r, depth-1)
		} else {
			out[key] = float64(r.IntN(3))
		}
	}
	return out
}

// damage removes and changes some fields, and adds new ones. Keys of items stay.
func damage(r *rand.Rand, value any, isMap bool) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, v := range value {
			if key != "name" && r.IntN(6) == 0 {
				continue
			}
			out[key] = damage(r, v, key != "name")
		}
		if r.IntN(5) == 0 {
			out["new"] = "x"
		}
		return out
	case []any:
		out := []any{}
		for _, v := range value {
			if r.IntN(10) > 0 {
				out = append(out, damage(r, v, isMap))
			}
		}
		return out
	default:
		if isMap && r.IntN(8) == 0 {
			return "changed"
		}
		return value
	}
}

// applied returns the result of a server-side apply, by the rules of the lists.
func applied(live, apply any, s *plan.Schema) any { return plan.AddOwned(live, apply, s) }

// check compares a value after a restore with the values before. It returns what is wrong.
func check(path string, saved, live, after any, s *plan.Schema) string {
	switch live := live.(type) {
	case map[string]any:
		return checkMap(path, saved, live, after, s)
	case []any:
		return checkList(path, saved, live, after, s)
	}
	if encode(live) != encode(after) {
		return path + ": the live value changed"
	}
	return ""
}

func checkMap(path string, saved any, live map[string]any, after any, s *plan.Schema) string {
	result, ok := after.(map[string]any)
	if !ok {
		return path + ": it is no object any more"
	}
	wanted, _ := saved.(map[string]any)
	for key, v := range live {
		if problem := check(path+"."+key, wanted[key], v, result[key], below(s, key)); problem != "" {
			return problem
		}
	}
	for key, v := range wanted {
		if _, there := live[key]; !there && encode(result[key]) != encode(v) {
			return path + "." + key + ": the lost field is not as it was saved"
		}
	}
	return ""
}

func below(s *plan.Schema, key string) *plan.Schema {
	if s == nil {
		return nil
	}
	if p, ok := s.Properties[key]; ok {
		return &p
	}
	return nil
}

func checkList(path string, saved any, live []any, after any, s *plan.Schema) string {
	result, ok := after.([]any)
	if !ok {
		return path + ": it is no list any more"
	}
	named := func(all []any, item any) any {
		for _, other := range all {
			if encode(other) == encode(item) {
				return other
			}
			a, isObject := other.(map[string]any)
			b, bothAre := item.(map[string]any)
			if isObject && bothAre && a["name"] != nil && encode(a["name"]) == encode(b["name"]) {
				return other
			}
		}
		return nil
	}
	wanted, _ := saved.([]any)
	if s == nil || s.XListType == nil || *s.XListType == "atomic" {
		if len(result) != len(live) {
			return path + ": an atomic list has another length"
		}
		for i := range live {
			var was any
			if i < len(wanted) && len(wanted) == len(live) {
				was = live[i] // fields of it may come back, but need not
			}
			if problem := check(fmt.Sprint(path, i), was, live[i], result[i], nil); problem != "" {
				return problem
			}
		}
		return ""
	}
	for _, item := range live {
		if problem := check(path+"[]", named(wanted, item), item, named(result, item), nil); problem != "" {
			return problem
		}
	}
	for _, item := range wanted {
		if named(result, item) == nil {
			return path + ": a lost item did not come back"
		}
	}
	return ""
}
