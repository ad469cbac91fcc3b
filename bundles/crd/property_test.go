// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bellwether-dev/bellwether/bundles/crd"
)

// schema is a random structural schema.
func schema(r *rand.Rand, depth int) apiextensionsv1.JSONSchemaProps {
	kinds := []string{"string", "integer", "boolean"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "object", "array", "map")
	}
	switch kind := kinds[r.IntN(len(kinds))]; kind {
	case "object":
		s := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
		for i := range 1 + r.IntN(4) {
			s.Properties[fmt.Sprintf("f%d", i)] = schema(r, depth-1)
		}
		if r.IntN(3) == 0 {
			s.Required = slices.Sorted(maps.Keys(s.Properties))[:1]
		}
		return s
	case "array":
		items := schema(r, depth-1)
		return apiextensionsv1.JSONSchemaProps{Type: "array",
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}}
	case "map":
		values := schema(r, depth-1)
		return apiextensionsv1.JSONSchemaProps{Type: "object",
			AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &values}}
	case "integer":
		most := float64(r.IntN(100))
		return apiextensionsv1.JSONSchemaProps{Type: kind, Maximum: &most}
	default:
		return apiextensionsv1.JSONSchemaProps{Type: kind}
	}
}

// objects are all schemas with properties, below and including one, with the field that each is.
func objects(s *apiextensionsv1.JSONSchemaProps, field string,
	visit func(s *apiextensionsv1.JSONSchemaProps, field string)) {
	if s.Properties != nil {
		visit(s, field)
	}
	for name, p := range s.Properties {
		objects(&p, field+"."+name, visit)
	}
	if s.Items != nil {
		objects(s.Items.Schema, field+"[*]", visit)
	}
	if s.AdditionalProperties != nil {
		objects(s.AdditionalProperties.Schema, field+"[*]", visit)
	}
}

func random(seed uint64) (*rand.Rand, apiextensionsv1.JSONSchemaProps) {
	r := rand.New(rand.NewPCG(seed, 1))
	root := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for i := range 1 + r.IntN(4) {
		root.Properties[fmt.Sprintf("r%d", i)] = schema(r, 4)
	}
	return r, root
}

func FuzzSchemas(f *testing.F) {
	for seed := range uint64(150) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r, older := random(seed)
		if changes := crd.Compare(withSpec(older), withSpec(*older.DeepCopy())); len(changes) > 0 {
			t.Fatalf("an equal schema: %v", texts(changes))
		}
		testAddition(t, older)
		testRemoval(t, r, older)
		_, other := random(seed + 1)
		testOrder(t, withSpec(older), withSpec(other))
	})
}

// New optional fields break no user.
func testAddition(t *testing.T, older apiextensionsv1.JSONSchemaProps) {
	newer := *older.DeepCopy()
	objects(&newer, "", func(s *apiextensionsv1.JSONSchemaProps, _ string) {
		s.Properties["added"] = apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: new(int64)}
	})
	if changes := crd.Compare(withSpec(older), withSpec(newer)); len(changes) > 0 {
		t.Errorf("optional fields were added: %v", texts(changes))
	}
}

// A removed field is found once, and no other change is found.
func testRemoval(t *testing.T, r *rand.Rand, older apiextensionsv1.JSONSchemaProps) {
	type place struct {
		object *apiextensionsv1.JSONSchemaProps
		field  string
	}
	newer := *older.DeepCopy()
	var places []place
	objects(&newer, ".spec", func(s *apiextensionsv1.JSONSchemaProps, field string) {
		for name := range s.Properties {
			if slices.Contains(s.Required, name) {
				continue
			}
			places = append(places, place{s, field + "." + name})
		}
	})
	slices.SortFunc(places, func(a, b place) int { return strings.Compare(a.field, b.field) })
	gone := places[r.IntN(len(places))]
	delete(gone.object.Properties, gone.field[strings.LastIndex(gone.field, ".")+1:])
	got := crd.Compare(withSpec(older), withSpec(newer))
	if len(got) != 1 || got[0].Kind != crd.RemovedField || got[0].Field != gone.field {
		t.Errorf("%s was removed, and found was %v", gone.field, texts(got))
	}
}

// Repeating a comparison gives the same result in the same order.
func testOrder(t *testing.T, older, newer *apiextensionsv1.CustomResourceDefinition) {
	if diff := cmp.Diff(crd.Compare(older, newer), crd.Compare(older, newer)); diff != "" {
		t.Errorf("twice (-once +again):\n%s", diff)
	}
}
