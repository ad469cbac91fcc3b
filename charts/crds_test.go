// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
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

// TestStringsThatAgentsWriteAreBounded looks for text in the statuses that agents write. What is in Kubernetes' own
// types, which the agent gives back as the hub wrote it, is not bounded.
func TestStringsThatAgentsWriteAreBounded(t *testing.T) {
	for _, kind := range []string{"operatorinstalls", "operatorbackups"} {
		text, err := os.ReadFile("bellwether/files/crds/bellwether.dev_" + kind + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			t.Fatal(err)
		}
		status := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
		unbounded(t, kind+".status", status)
	}
}

func unbounded(t *testing.T, path string, s apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	if strings.HasSuffix(path, ".install.config") {
		return
	}
	if s.Type == "string" && s.MaxLength == nil && s.Enum == nil && s.Format == "" {
		t.Errorf("%s has no maxLength", path)
	}
	if s.Type == "array" && s.MaxItems == nil {
		t.Errorf("%s has no maxItems", path)
	}
	if s.Items != nil {
		unbounded(t, path+"[]", *s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		t.Errorf("%s is a map", path)
	}
	for name, property := range s.Properties {
		unbounded(t, path+"."+name, property)
	}
}
