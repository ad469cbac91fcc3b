// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"reflect"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// annotationProperties is what OLM adds to a ClusterServiceVersion: the properties that the catalog has of it.
const annotationProperties = "operatorframework.io/properties"

// csv is what a ClusterServiceVersion says.
//
// OLM encodes it by its own types, and those of an older version lack fields of newer bundles. So what is in a plan may
// say less than what is served, and nothing else.
type csv struct {
	*operatorsv1alpha1.ClusterServiceVersion
	// replaces is not OLM's to say only where the bundle is installed for the first time or next.
	replaces string
	// facts are sorted.
	facts []uint64
	// unknown says which of its fields our types lack. They are compared without their values.
	unknown []string
}

func csvOf(manifest []byte) (csv, error) {
	out := csv{ClusterServiceVersion: &operatorsv1alpha1.ClusterServiceVersion{}}
	if err := json.Unmarshal(manifest, out.ClusterServiceVersion); err != nil {
		return csv{}, err
	}
	var err error
	if out.unknown, err = unknownIn(manifest); err != nil {
		return csv{}, err
	}
	out.replaces = out.Spec.Replaces
	out.Namespace, out.CreationTimestamp, out.Spec.Replaces = "", metav1.Time{}, ""
	out.Status = operatorsv1alpha1.ClusterServiceVersionStatus{}
	delete(out.Annotations, annotationProperties)
	err = out.walk(func(fact uint64, _ string) { out.facts = append(out.facts, fact) })
	slices.Sort(out.facts)
	return out, err
}

// unknownIn ignores fields that say nothing: a newer OLM has them in all that it encodes.
func unknownIn(manifest []byte) ([]string, error) {
	var content map[string]any
	if err := json.Unmarshal(manifest, &content); err != nil {
		return nil, err
	}
	withoutEmpty(content)
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	problems, err := kjson.UnmarshalStrict(text, &operatorsv1alpha1.ClusterServiceVersion{})
	out := make([]string, 0, len(problems))
	for _, p := range problems {
		out = append(out, p.Error())
	}
	return out, err
}

// withoutEmpty removes the fields that say nothing, and tells whether anything is left.
func withoutEmpty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, child any) bool { return !withoutEmpty(child) })
		return len(v) > 0
	case []any:
		for _, child := range v {
			withoutEmpty(child)
		}
		return len(v) > 0
	default:
		return v != nil && v != false && v != 0.0 && v != ""
	}
}

// beyond returns the path of something that a ClusterServiceVersion says and another one does not; empty for nothing.
func (c csv) beyond(other csv) (string, error) {
	for _, u := range c.unknown {
		if !slices.Contains(other.unknown, u) {
			return u, nil
		}
	}
	var first string
	err := c.walk(func(fact uint64, path string) {
		if _, found := slices.BinarySearch(other.facts, fact); !found && (first == "" || path < first) {
			first = path
		}
	})
	return first, err
}

func (c csv) walk(visit func(fact uint64, path string)) error {
	text, err := json.Marshal(c.ClusterServiceVersion)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var content map[string]any
	if err := decoder.Decode(&content); err != nil {
		return err
	}
	walk(0, "", content, visit)
	return nil
}

// seed keeps others from finding another value with the same hash.
var seed = maphash.MakeSeed()

type (
	// under is something at a place that has a hash: a field, an item or a length of a list, or a scalar. Its kind is
	// there because a hash does not depend on the type of what is in an interface.
	under struct {
		place uint64
		kind  string
		what  any
	}
	field  string
	item   int
	length int
)

func hash(place uint64, what any) uint64 {
	return maphash.Comparable(seed, under{place, reflect.TypeOf(what).String(), what})
}

// walk visits what a JSON value says: each scalar, and the length of each list that is not empty.
func walk(place uint64, path string, value any, visit func(fact uint64, path string)) {
	switch v := value.(type) {
	case nil:
	case map[string]any:
		for name, child := range v {
			at := name
			if path != "" {
				at = path + "." + name
			}
			walk(hash(place, field(name)), at, child, visit)
		}
	case []any:
		if len(v) > 0 {
			visit(hash(place, length(len(v))), path)
		}
		for i, child := range v {
			walk(hash(place, item(i)), fmt.Sprintf("%s[%d]", path, i), child, visit)
		}
	default:
		visit(hash(place, v), path)
	}
}
