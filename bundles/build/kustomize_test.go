// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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
	if !IsKustomization(overlay) || IsKustomization(dir) {
		t.Errorf("a kustomization is seen in the overlay: %t, and above: %t", IsKustomization(overlay),
			IsKustomization(dir))
	}
	s, err := BuildKustomization(overlay)
	if err != nil || len(s) != 1 {
		t.Fatalf("got %d objects, %v", len(s), err)
	}
	if want := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a-m\n  namespace: ns\n"; string(s[0].Text) != want {
		t.Errorf("got %q, want %q", s[0].Text, want)
	}
}

// Messages name the file that the user wrote, because users do not have the output of kustomize.
func TestBuildNamesFiles(t *testing.T) {
	dir := write(t, map[string]string{
		"base/kustomization.yaml": "resources: [all.yaml]\nconfigMapGenerator: [{name: made, literals: [a=b]}]\n",
		"base/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n---\n" +
			"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n",
		"overlay/kustomization.yaml": "resources: [../base, own.yaml]\nnamePrefix: a-\n",
		"overlay/own.yaml":           "apiVersion: v1\nkind: Secret\nmetadata: {name: own, annotations: {k: v}}\n",
		"asked/kustomization.yaml":   "resources: [../base]\nbuildMetadata: [originAnnotations]\n",
	})
	s, err := BuildKustomization(filepath.Join(dir, "overlay"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, one := range s {
		found[one.Where] = true
		if strings.Contains(string(one.Text), "config.kubernetes.io") {
			t.Errorf("what was added to find the file is in the object:\n%s", one.Text)
		}
	}
	for _, want := range []string{"base/all.yaml, line 1", "base/all.yaml, line 4", "base/kustomization.yaml",
		"overlay/own.yaml, line 1"} {
		if !found[filepath.Join(dir, want)] {
			t.Errorf("no object is from %s, but from %v", want, found)
		}
	}
	if s, err = BuildKustomization(filepath.Join(dir, "asked")); err != nil ||
		!strings.Contains(string(s[0].Text), "config.kubernetes.io/origin") {
		t.Errorf("the annotations that the user asks for are missing: %+v, %v", s, err)
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
		if s, err := BuildKustomization(write(t, files)); !errors.Is(err, ErrKustomization) {
			t.Errorf("%s: got %q, %v, want ErrKustomization", name, s, err)
		}
	}
}
