// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestBuild(t *testing.T) {
	dir := write(t, map[string]string{
		"base/kustomization.yaml":    "resources: [map.yaml]\n",
		"base/map.yaml":              "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n",
		"overlay/kustomization.yaml": "resources: [../base]\nnamespace: ns\nnamePrefix: a-\n",
	})
	overlay := filepath.Join(dir, "overlay")
	if !Is(overlay) || Is(dir) {
		t.Errorf("a kustomization is seen in the overlay: %t, and above: %t", Is(overlay), Is(dir))
	}
	s, err := Build(overlay)
	if want := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a-m\n  namespace: ns\n"; err != nil ||
		string(s.Text) != want {
		t.Errorf("got %q, %v, want %q", s.Text, err, want)
	}
	if s.Name != "kustomize build overlay" {
		t.Errorf("the source is called %q", s.Name)
	}
}

func TestBuildRefuses(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"no kustomization": {"x.yaml": ""},
		"broken YAML":      {"kustomization.yaml": "a: ["},
		"unknown field":    {"kustomization.yaml": "resorces: []"},
		"missing resource": {"kustomization.yaml": "resources: [none.yaml]"},
		"a file outside":   {"kustomization.yaml": "configMapGenerator: [{name: m, files: [/etc/passwd]}]"},
	} {
		if s, err := Build(write(t, files)); !errors.Is(err, ErrKustomization) {
			t.Errorf("%s: got %q, %v, want ErrKustomization", name, s.Text, err)
		}
	}
}
