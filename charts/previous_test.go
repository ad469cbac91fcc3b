// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles/crd"
)

// removedValues are the values of the previous chart that the current one refuses. docs/releases says what to do.
var removedValues = [][]string{{"hub", "paging", "secretNamespaces"}}

// previousChart returns the chart of the previous release.
func previousChart(t *testing.T) *chart.Chart {
	t.Helper()
	files, err := filepath.Glob("testdata/previous/*.tgz")
	if err != nil || len(files) != 1 {
		t.Fatalf("%d charts of a previous release: %v", len(files), err)
	}
	loaded, err := loader.Load(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// definitionsOf returns the CRDs of a chart by their kinds.
func definitionsOf(t *testing.T, c *chart.Chart) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	found := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, f := range c.Files {
		if !strings.HasPrefix(f.Name, "files/crds/") {
			continue
		}
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(f.Data, d); err != nil {
			t.Fatal(err)
		}
		found[d.Spec.Names.Kind] = d
	}
	return found
}

// TestPreviousDefinitions compares the CRDs of the previous release with the current ones: each kind is still there,
// and is served and stored by the same versions.
func TestPreviousDefinitions(t *testing.T) {
	current := definitionsOf(t, load(t))
	older := definitionsOf(t, previousChart(t))
	if len(older) == 0 {
		t.Fatal("the chart of the previous release has no CRDs")
	}
	breaking := []crd.Kind{crd.RemovedStored, crd.RemovedVersion, crd.Unserved, crd.StorageMoved, crd.ChangedIdentity}
	for kind, definition := range older {
		if current[kind] == nil {
			t.Errorf("the chart has no CRD of %s", kind)
			continue
		}
		for _, c := range crd.Compare(definition, current[kind]) {
			if slices.Contains(breaking, c.Kind) {
				t.Errorf("%s: %s", kind, c)
			}
		}
	}
}

// TestPreviousObjects validates objects that the previous release wrote, one of each of its kinds, as an API server
// with the current CRDs does, and reads them with the current types: no field is lost.
func TestPreviousObjects(t *testing.T) {
	text, err := os.ReadFile("testdata/previous/objects.yaml")
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	current := definitionsOf(t, load(t))
	missing := definitionsOf(t, previousChart(t))
	for document := range strings.SplitSeq(strings.TrimPrefix(string(text), "---\n"), "\n---\n") {
		text, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{} // which has whole numbers as integers, as an API server has them
		if err := o.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		t.Run(o.GetKind(), func(t *testing.T) {
			delete(missing, o.GetKind())
			validate(t, current[o.GetKind()], o)
			typed, err := scheme.New(o.GroupVersionKind())
			if err != nil {
				t.Fatal(err)
			}
			if err := yaml.UnmarshalStrict([]byte(document), typed); err != nil {
				t.Error(err)
			}
		})
	}
	for kind := range missing {
		t.Errorf("there is no object of %s", kind)
	}
}

// validate reports what an API server with the definition objects to, and the fields that it drops.
func validate(t *testing.T, definition *apiextensionsv1.CustomResourceDefinition, o *unstructured.Unstructured) {
	t.Helper()
	schema := definition.Spec.Versions[slices.IndexFunc(definition.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == o.GroupVersionKind().Version
		})].Schema.OpenAPIV3Schema
	internal, structural := convertSchema(t, *schema)
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		t.Fatal(err)
	}
	problems := validation.ValidateCustomResource(nil, o.Object, validator)
	rules, _ := cel.NewValidator(structural, true, celconfig.PerCallLimit).Validate(t.Context(), nil, structural,
		o.Object,
		nil, celconfig.RuntimeCELCostBudget)
	for _, problem := range append(problems, rules...) {
		t.Error(problem)
	}
	kept := o.DeepCopy()
	pruning.Prune(kept.Object, structural, true)
	if diff := cmp.Diff(o.Object, kept.Object); diff != "" {
		t.Errorf("fields are dropped (-written +kept):\n%s", diff)
	}
}

// TestPreviousValues renders the current chart for a user who has set all values of the previous one but removedValues.
func TestPreviousValues(t *testing.T) {
	for _, component := range []string{"hub", "agent"} {
		values := previousChart(t).Values
		for _, path := range removedValues {
			if _, found, _ := unstructured.NestedFieldNoCopy(values, path...); !found {
				t.Errorf("the previous chart has no value %v", path)
			}
			unstructured.RemoveNestedField(values, path...)
		}
		for path, value := range map[string]any{"hub": component == "hub", "agent": component == "agent"} {
			if err := unstructured.SetNestedField(values, value, path, "enabled"); err != nil {
				t.Fatal(err)
			}
		}
		if err := unstructured.SetNestedField(values, "prod", "agent", "cluster"); err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		manifests, err := render(t, load(t), string(text))
		if err != nil || len(manifests) == 0 {
			t.Errorf("render %s with the previous release's values: %d manifests: %v", component, len(manifests), err)
		}
	}
}
