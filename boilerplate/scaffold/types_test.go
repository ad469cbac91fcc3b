// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const goodTypes = `// Package v1 is an API.
// +groupName=tenancy.example.org
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

var AddToScheme = builder.AddToScheme

// TenantSpec is what is wanted.
type TenantSpec struct{ Owner string }

type TenantStatus struct {
	ObservedGeneration int64
	Conditions         []metav1.Condition
}

// +kubebuilder:subresource:status
// +kubebuilder:resource:path=tenantry,scope=Cluster

// Tenant is a tenant.
type Tenant struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   TenantSpec
	Status TenantStatus
}

type TenantList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []Tenant
}
`

func writeTypes(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"types.go": text, "types_test.go": "no Go",
		"tool.go": "//go:build ignore\n\npackage main\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReadTypes(t *testing.T) {
	for name, test := range map[string]struct {
		kind, from, to string
		want           string // part of the error
	}{
		"good": {},
		"conditions in an embedded type": {from: "	Conditions         []metav1.Condition\n}",
			to: "	Common\n}\ntype Common struct { Conditions []metav1.Condition }"},
		"a generic type beside": {from: "type TenantSpec", to: "type Object[T any] struct {\n\tmetav1.TypeMeta\n" +
			"\tmetav1.ObjectMeta\n\tSpec T\n}\n\ntype TenantSpec"},
		"types that embed each other": {from: "	Conditions         []metav1.Condition\n}",
			to: "	Common\n}\ntype Common struct { TenantStatus }", want: "Conditions []metav1.Condition"},
		"by name":      {kind: "Tenant"},
		"no such kind": {kind: "Echo", want: "has no kind Echo; it has Tenant"},
		"no Go":        {from: "package v1", to: "pack age", want: "expected 'package'"},
		"no group":     {from: "+groupName", to: "+nothing", want: "+groupName"},
		"no scheme":    {from: "AddToScheme =", to: "Other =", want: "AddToScheme"},
		"no kinds":     {from: "metav1.ObjectMeta", to: "metav1.Other", want: "no type"},
		"two kinds": {from: "metav1.ListMeta", to: "metav1.ObjectMeta",
			want: "several kinds (Tenant, TenantList): choose one with --kind"},
		"no conditions": {from: "[]metav1.Condition", to: "[]string", want: "Conditions []metav1.Condition"},
		"no status":     {from: "Status TenantStatus", to: "State TenantStatus", want: "Spec and Status"},
		"no subresource": {from: "subresource:status", to: "subresource:scale",
			want: "+kubebuilder:subresource:status"},
	} {
		t.Run(name, func(t *testing.T) {
			types, err := ReadTypes(writeTypes(t, strings.Replace(goodTypes, test.from, test.to, 1)), test.kind)
			if test.want != "" {
				if !errors.Is(err, ErrTypes) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v, want %q", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if types.Group != "tenancy.example.org" || types.Version != "v1" || types.Kind != "Tenant" ||
				types.Plural != "tenantry" || !types.Cluster || !types.ObservedGeneration || len(types.Files) != 1 {
				t.Errorf("%+v", types)
			}
		})
	}
	if _, err := ReadTypes(t.TempDir(), ""); !errors.Is(err, ErrTypes) {
		t.Errorf("an empty folder: %v", err)
	}
}
