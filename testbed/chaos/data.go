// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Objects are custom resources by name.
type Objects map[string]*unstructured.Unstructured

// Lost compares what is stored with what the users of the custom resources were told is stored, field by field, and
// returns each difference. It compares everything but what the API server counts (resourceVersion and managedFields)
// and the status, which belongs to the operator; a new UID or generation is a difference, since it says that somebody
// else created or changed the object.
func Lost(want, got Objects) []string {
	var lost []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		found, ok := got[name]
		if !ok {
			lost = append(lost, name+" is gone")
			continue
		}
		for _, d := range differences("", content(want[name]), content(found)) {
			lost = append(lost, name+": "+d)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			lost = append(lost, name+" was created by somebody else")
		}
	}
	return lost
}

// content is what of an object is compared.
func content(object *unstructured.Unstructured) map[string]any {
	o := object.DeepCopy()
	o.SetResourceVersion("")
	o.SetManagedFields(nil)
	unstructured.RemoveNestedField(o.Object, "status")
	return o.Object
}

// differences lists the fields in which two values differ, by their paths.
func differences(path string, want, got any) []string {
	var found []string
	a, isMap := want.(map[string]any)
	b, areMaps := got.(map[string]any)
	if isMap && areMaps {
		names := maps.Clone(a)
		maps.Copy(names, b)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			was, had := a[name]
			is, has := b[name]
			switch field := path + "." + name; {
			case !has:
				found = append(found, fmt.Sprintf("%s is gone, it was %v", field, was))
			case !had:
				found = append(found, fmt.Sprintf("%s is new: %v", field, is))
			default:
				found = append(found, differences(field, was, is)...)
			}
		}
		return found
	}
	c, isList := want.([]any)
	d, areLists := got.([]any)
	if isList && areLists && len(c) == len(d) {
		for i := range c {
			found = append(found, differences(path+"["+strconv.Itoa(i)+"]", c[i], d[i])...)
		}
		return found
	}
	if !reflect.DeepEqual(want, got) {
		found = append(found, fmt.Sprintf("%s is %v, it was %v", path, got, want))
	}
	return found
}
