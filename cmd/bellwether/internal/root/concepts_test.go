// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package root

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestConceptsHaveEveryKind compares the table of kinds with the CustomResourceDefinitions: each kind has a row, with
// its short name and its scope.
func TestConceptsHaveEveryKind(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(tree, "docs/concepts.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(tree, "charts/bellwether/files/crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no CustomResourceDefinitions: %v", err)
	}
	for _, file := range files {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		manifest, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(manifest, crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		names := crd.Spec.Names
		start := "| `" + names.Kind + "` (`" + names.ShortNames[0] + "`) | "
		if crd.Spec.Scope == apiextensionsv1.ClusterScoped {
			start += "hub, cluster-scoped |"
		}
		if !strings.Contains(string(text), "\n"+start) {
			t.Errorf("docs/concepts.md has no row that begins with %q", start)
		}
	}
}
