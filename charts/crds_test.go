// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// TestCRDsAreAdmitted validates the CRDs as an API server does, with the cost of their
// rules in CEL.
func TestCRDsAreAdmitted(t *testing.T) {
	files, err := filepath.Glob("bellwether/files/crds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			crd, internal := &apiextensionsv1.CustomResourceDefinition{}, &apiextensions.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict(text, crd); err != nil {
				t.Fatal(err)
			}
			apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
			convert := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition
			if err := convert(crd, internal, nil); err != nil {
				t.Fatal(err)
			}
			internal.Status.StoredVersions = []string{"v1alpha1"}
			for _, problem := range validation.ValidateCustomResourceDefinition(t.Context(), internal) {
				t.Error(problem)
			}
		})
	}
}

// TestWhatAgentsWriteIsBounded finds texts and numbers without a limit in the statuses that
// agents write. For the types of Kubernetes, a CEL rule must refuse a long text.
func TestWhatAgentsWriteIsBounded(t *testing.T) {
	for _, kind := range []string{"operatorinstalls", "operatorbackups", "operatorscans"} {
		text, err := os.ReadFile("bellwether/files/crds/bellwether.dev_" + kind + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			t.Fatal(err)
		}
		s := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
		c := bounds{kind: kind, validator: newValidator(t, s)}
		c.check(t, "status", s, func(value any) any { return value })
	}
}

// isOnlyCopied reports whether a number is in a type of Kubernetes and is
// not used in computations.
func isOnlyCopied(path string) bool {
	return strings.HasSuffix(path, ".conditions[].observedGeneration") || strings.HasSuffix(path, ".tolerationSeconds")
}

// bounds checks the schema of one status.
type bounds struct {
	kind      string
	validator *cel.Validator
}

func newValidator(t *testing.T, s apiextensionsv1.JSONSchemaProps) *cel.Validator {
	t.Helper()
	_, structural := convertSchema(t, s)
	return cel.NewValidator(structural, false, celconfig.PerCallLimit)
}

// convertSchema returns a schema in the two forms in which an API server uses it.
func convertSchema(t *testing.T, s apiextensionsv1.JSONSchemaProps) (*apiextensions.JSONSchemaProps,
	*structuralschema.Structural) {
	t.Helper()
	internal := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&s, internal, nil)
	if err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		t.Fatal(err)
	}
	return internal, structural
}

// check walks the schema at a path. The function in puts a value there, into a status that has all that is required.
func (b bounds) check(t *testing.T, path string, s apiextensionsv1.JSONSchemaProps, in func(any) any) {
	t.Helper()
	switch {
	case s.Type == "string" || s.XIntOrString:
		if s.MaxLength == nil && s.Enum == nil && s.Format == "" {
			b.refuses(t, path+" without maxLength", in(strings.Repeat("x", 100<<10)))
		}
	case s.Type == "integer":
		if (s.Minimum == nil || s.Maximum == nil) && !isOnlyCopied(path) {
			t.Errorf("%s: %s has no minimum and maximum", b.kind, path)
		}
	case s.Type == "array":
		one := func(value any) any { return in([]any{value}) }
		if s.MaxItems == nil {
			b.refuses(t, path+" without maxItems", in(slices.Repeat([]any{minimal(*s.Items.Schema)}, 1000)))
		}
		b.check(t, path+"[]", *s.Items.Schema, one)
	case s.AdditionalProperties != nil:
		b.checkMap(t, path, s, in)
	}
	for name, property := range s.Properties {
		b.check(t, path+"."+name, property, func(value any) any {
			object := minimal(s).(map[string]any)
			object[name] = value
			return in(object)
		})
	}
}

func (b bounds) checkMap(t *testing.T, path string, s apiextensionsv1.JSONSchemaProps, in func(any) any) {
	t.Helper()
	value := minimal(*s.AdditionalProperties.Schema)
	b.refuses(t, path+" with a long key", in(map[string]any{strings.Repeat("x", 100<<10): value}))
	if s.MaxProperties == nil {
		many := map[string]any{}
		for i := range 1000 {
			many[strconv.Itoa(i)] = value
		}
		b.refuses(t, path+" without maxProperties", in(many))
	}
	b.check(t, path+"{}", *s.AdditionalProperties.Schema, func(value any) any { return in(map[string]any{"a": value}) })
}

// refuses verifies that one of the rules about maximum sizes refuses a status.
func (b bounds) refuses(t *testing.T, what string, status any) {
	t.Helper()
	problems, _ := b.validator.Validate(t.Context(), field.NewPath("status"), nil, status, nil,
		celconfig.RuntimeCELCostBudget)
	for _, p := range problems {
		if strings.Contains(p.Detail, "at most") || strings.Contains(p.Detail, "characters") {
			return
		}
	}
	t.Errorf("%s: %s is not bounded: %v", b.kind, what, problems)
}

// minimal is the least value of a schema: all that is required, and nothing in it.
func minimal(s apiextensionsv1.JSONSchemaProps) any {
	switch {
	case s.Type == "object" || s.Properties != nil:
		object := map[string]any{}
		for _, name := range s.Required {
			object[name] = minimal(s.Properties[name])
		}
		return object
	case s.Type == "array":
		return []any{}
	case s.Type == "boolean":
		return false
	case s.Type == "integer":
		return int64(1)
	case s.Format == "date-time":
		return "2026-11-21T10:00:00Z"
	default:
		return "a"
	}
}
