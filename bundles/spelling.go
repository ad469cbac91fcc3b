// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// headerType is the type of the fields that all objects have.
var headerType = reflect.TypeFor[metav1.PartialObjectMetadata]()

// rightsTypes maps the kinds of objects that give rights to their types. OLM uses the kind and ignores the apiVersion.
var rightsTypes = map[string]reflect.Type{
	kindCSV:              reflect.TypeFor[operatorsv1alpha1.ClusterServiceVersion](),
	"Role":               reflect.TypeFor[rbacv1.Role](),
	"ClusterRole":        reflect.TypeFor[rbacv1.ClusterRole](),
	"RoleBinding":        reflect.TypeFor[rbacv1.RoleBinding](),
	"ClusterRoleBinding": reflect.TypeFor[rbacv1.ClusterRoleBinding](),
	"ServiceAccount":     reflect.TypeFor[corev1.ServiceAccount](),
	kindSecret:           reflect.TypeFor[corev1.Secret](),
}

// FindMisspeltField returns the path of a field with a wrong letter case, in an object that gives rights; empty if
// there is none. OLM decodes with encoding/json, which treats "Rules" as "rules". The API server ignores such a
// field, and so does this package. A wrong letter case in kind, apiVersion or metadata is already an error when a
// bundle is read.
func (o *Object) FindMisspeltField() string {
	t, ok := rightsTypes[o.GetKind()]
	if !ok {
		return ""
	}
	return findMisspeltField(o.Object, t)
}

var unmarshalerType = reflect.TypeFor[json.Unmarshaler]()

// findMisspeltField returns the path of the first field in value whose name differs from a field of type t in its
// letter case only. Types with their own JSON decoder are skipped.
func findMisspeltField(value any, t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Implements(unmarshalerType) || reflect.PointerTo(t).Implements(unmarshalerType) {
		return ""
	}
	switch v := value.(type) {
	case []any:
		if t.Kind() != reflect.Slice {
			return ""
		}
		for _, item := range v {
			if found := findMisspeltField(item, t.Elem()); found != "" {
				return found
			}
		}
	case map[string]any:
		return findMisspeltKey(v, t)
	}
	return ""
}

// findMisspeltKey returns the path of the first field below a JSON object whose name differs from a field of type t in
// its letter case only; empty if there is none. t is a struct or a map.
func findMisspeltKey(object map[string]any, t reflect.Type) string {
	var fields map[string]reflect.Type // nil if t is a map
	if t.Kind() == reflect.Struct {
		fields = listFields(t)
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		fieldType, ok := fields[key]
		if t.Kind() == reflect.Map {
			fieldType, ok = t.Elem(), true // a map can have any key
		}
		if !ok {
			if isSimilar(fields, key) {
				return key
			}
			continue
		}
		if found := findMisspeltField(object[key], fieldType); found != "" {
			return key + "." + found
		}
	}
	return ""
}

// isSimilar reports whether key equals the name of a field when letter case is ignored.
func isSimilar(fields map[string]reflect.Type, key string) bool {
	for name := range fields {
		if strings.EqualFold(name, key) {
			return true
		}
	}
	return false
}

// fieldsByType caches the results of listFields. There are few types, and each of them is used for many objects.
var fieldsByType sync.Map

// listFields returns the types of the fields of a struct by their JSON names. Callers must not change the map.
func listFields(t reflect.Type) map[string]reflect.Type {
	if cached, ok := fieldsByType.Load(t); ok {
		return cached.(map[string]reflect.Type)
	}
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name != "" && name != "-":
			out[name] = f.Type
		case f.Anonymous && name == "": // the fields of an embedded struct are fields of t
			maps.Copy(out, listFields(f.Type))
		}
	}
	fieldsByType.Store(t, out)
	return out
}
