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

// header is the type of what all objects have.
var header = reflect.TypeFor[metav1.PartialObjectMetadata]()

// rightsTypes are the types of what gives rights. OLM knows them by their kind, whatever the apiVersion is.
var rightsTypes = map[string]reflect.Type{
	kindCSV:              reflect.TypeFor[operatorsv1alpha1.ClusterServiceVersion](),
	"Role":               reflect.TypeFor[rbacv1.Role](),
	"ClusterRole":        reflect.TypeFor[rbacv1.ClusterRole](),
	"RoleBinding":        reflect.TypeFor[rbacv1.RoleBinding](),
	"ClusterRoleBinding": reflect.TypeFor[rbacv1.ClusterRoleBinding](),
	"ServiceAccount":     reflect.TypeFor[corev1.ServiceAccount](),
	kindSecret:           reflect.TypeFor[corev1.Secret](),
}

// Misspelt returns a field of an object that gives rights, as a path, that only OLM takes for a known one; empty where
// there is none. OLM decodes with encoding/json, for which "Rules" is "rules" too; Objects are decoded as the API
// server does it. No object is read of which that is so for its kind, apiVersion or metadata.
func (o *Object) Misspelt() string {
	t, ok := rightsTypes[o.GetKind()]
	if !ok {
		return ""
	}
	return misspeltIn(o.Object, t)
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func misspeltIn(value any, t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler) {
		return ""
	}
	switch v := value.(type) {
	case []any:
		if t.Kind() != reflect.Slice {
			return ""
		}
		for _, item := range v {
			if found := misspeltIn(item, t.Elem()); found != "" {
				return found
			}
		}
	case map[string]any:
		return misspeltKey(v, t)
	}
	return ""
}

func misspeltKey(object map[string]any, t reflect.Type) string {
	var known map[string]reflect.Type
	if t.Kind() == reflect.Struct {
		known = fieldsOf(t)
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		inner, ok := known[key]
		if t.Kind() == reflect.Map {
			inner, ok = t.Elem(), true
		}
		if !ok {
			if isSimilar(known, key) {
				return key
			}
			continue
		}
		if found := misspeltIn(object[key], inner); found != "" {
			return key + "." + found
		}
	}
	return ""
}

func isSimilar(known map[string]reflect.Type, key string) bool {
	for name := range known {
		if strings.EqualFold(name, key) {
			return true
		}
	}
	return false
}

// fieldsByType are the results of fieldsOf: types are few, and each object has some of them.
var fieldsByType sync.Map

// fieldsOf are the fields of a struct by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if known, ok := fieldsByType.Load(t); ok {
		return known.(map[string]reflect.Type)
	}
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name != "" && name != "-":
			out[name] = f.Type
		case f.Anonymous && name == "":
			maps.Copy(out, fieldsOf(f.Type))
		}
	}
	fieldsByType.Store(t, out)
	return out
}
