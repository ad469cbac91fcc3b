// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// refusedByAPI are the names that a rule of the API refuses in a field of an
// OperatorSLO's spec.
func refusedByAPI(t *testing.T, field string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "charts", "bellwether", "files", "crds",
		"bellwether.dev_operatorslos.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, version := range crd.Spec.Versions {
		spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
		for _, rule := range spec.Properties[field].XValidations {
			list := regexp.MustCompile(`name in \[([^]]*)\]`).FindStringSubmatch(rule.Rule)
			if list == nil {
				continue
			}
			for _, name := range regexp.MustCompile(`'([^']*)'`).FindAllStringSubmatch(list[1], -1) {
				out = append(out, name[1])
			}
		}
	}
	return slices.Sorted(slices.Values(out))
}

// TestReservedNames has the API refuse what the rules have: otherwise a text of an
// operator would take the place of ours, or an object would be accepted that makes no
// rules.
func TestReservedNames(t *testing.T) {
	for field, ours := range map[string][]string{"alertLabels": reservedLabels,
		"alertAnnotations": reservedAnnotations} {
		if diff := cmp.Diff(slices.Sorted(slices.Values(ours)), refusedByAPI(t, field)); diff != "" {
			t.Errorf("%s: names of the rules and of the API differ (-rules +API):\n%s", field, diff)
		}
	}
	used := map[string]bool{}
	for name, set := range sets() {
		for i := range set.Operators {
			set.Operators[i].Annotations = nil
		}
		for _, g := range build(t, set).All() {
			for _, r := range g.Rules {
				for annotation := range r.Annotations {
					used[annotation] = true
					if !slices.Contains(reservedAnnotations, annotation) {
						t.Errorf("%s: %s has the annotation %s, which is not in the list", name, r.Alert, annotation)
					}
				}
			}
		}
	}
	if got := len(slices.Collect(maps.Keys(used))); got != len(reservedAnnotations) {
		t.Errorf("alerts have %d annotations, and the list %d", got, len(reservedAnnotations))
	}
}
