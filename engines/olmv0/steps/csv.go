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

// annotationProperties is the annotation that OLM adds to a ClusterServiceVersion: its properties in the catalog.
const annotationProperties = "operatorframework.io/properties"

// csv is the content of a ClusterServiceVersion in a form that can be compared.
//
// OLM encodes a ClusterServiceVersion with its own types. The types of an older OLM lack fields of newer bundles, so
// the CSV in a plan may have fewer fields than the served CSV, but not other fields.
type csv struct {
	*operatorsv1alpha1.ClusterServiceVersion
	// replaces is spec.replaces. It is compared only for a bundle that is installed for the first time or next.
	replaces string
	// facts are the hashes of the values with their paths, sorted.
	facts []uint64
	// unknown are the fields that our types lack. They are compared without their values.
	unknown []string
}

// readCSV returns the comparable content of a manifest: the facts leave out the namespace, the creation time, the
// status, spec.replaces and the properties, because OLM sets or removes them.
func readCSV(manifest []byte) (csv, error) {
	out := csv{ClusterServiceVersion: &operatorsv1alpha1.ClusterServiceVersion{}}
	if err := json.Unmarshal(manifest, out.ClusterServiceVersion); err != nil {
		return csv{}, err
	}
	var err error
	if out.unknown, err = listUnknownFields(manifest); err != nil {
		return csv{}, err
	}
	out.replaces = out.Spec.Replaces
	out.Namespace, out.CreationTimestamp, out.Spec.Replaces = "", metav1.Time{}, ""
	out.Status = operatorsv1alpha1.ClusterServiceVersionStatus{}
	delete(out.Annotations, annotationProperties)
	err = out.walkFacts(func(fact uint64, _ string) { out.facts = append(out.facts, fact) })
	slices.Sort(out.facts)
	return out, err
}

// listUnknownFields returns the fields of a manifest that our types lack. It ignores empty fields, because a newer
// OLM encodes all its fields.
func listUnknownFields(manifest []byte) ([]string, error) {
	var content map[string]any
	if err := json.Unmarshal(manifest, &content); err != nil {
		return nil, err
	}
	removeEmpty(content)
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

// removeEmpty removes the empty fields of a value, and reports whether the value is not empty after that. It removes no
// items of a list, so that the other items keep their indexes.
func removeEmpty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, child any) bool { return !removeEmpty(child) })
		return len(v) > 0
	case []any:
		for _, child := range v {
			removeEmpty(child)
		}
		return len(v) > 0
	default:
		return v != nil && v != false && v != 0.0 && v != ""
	}
}

// findExtra returns the first path, in alphabetical order, of a value that this ClusterServiceVersion has and the
// other does not have; empty if there is none. For a field that our types lack, it returns an error text that names
// the field.
func (c csv) findExtra(other csv) (string, error) {
	for _, u := range c.unknown {
		if !slices.Contains(other.unknown, u) {
			return u, nil
		}
	}
	var firstPath string
	err := c.walkFacts(func(fact uint64, path string) {
		if _, found := slices.BinarySearch(other.facts, fact); !found && (firstPath == "" || path < firstPath) {
			firstPath = path
		}
	})
	return firstPath, err
}

// walkFacts calls visit for each fact of the ClusterServiceVersion.
func (c csv) walkFacts(visit func(fact uint64, path string)) error {
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
	walkValue(0, "", content, visit)
	return nil
}

// hashSeed is random, so that no one can construct another value with the same hash.
var hashSeed = maphash.MakeSeed()

type (
	// placedPart is a part of a value at a place that has a hash: a field, an item or the length of a list, or a
	// scalar. kind is the type of the part, because a hash does not include the type of a value in an interface.
	placedPart struct {
		place uint64
		kind  string
		value any
	}
	field      string
	item       int
	listLength int
)

// hashAt returns the hash of a part at a place.
func hashAt(place uint64, value any) uint64 {
	return maphash.Comparable(hashSeed, placedPart{place, reflect.TypeOf(value).String(), value})
}

// walkValue calls visit for each scalar in a JSON value, and for the length of each list that is not empty.
// place is the hash of the path of the value, and fact that of a scalar or length together with its place.
func walkValue(place uint64, path string, value any, visit func(fact uint64, path string)) {
	switch v := value.(type) {
	case nil:
		// the same as a missing field
	case map[string]any:
		for name, child := range v {
			childPath := name
			if path != "" {
				childPath = path + "." + name
			}
			walkValue(hashAt(place, field(name)), childPath, child, visit)
		}
	case []any:
		if len(v) > 0 {
			visit(hashAt(place, listLength(len(v))), path)
		}
		for i, child := range v {
			walkValue(hashAt(place, item(i)), fmt.Sprintf("%s[%d]", path, i), child, visit)
		}
	default:
		visit(hashAt(place, v), path)
	}
}
