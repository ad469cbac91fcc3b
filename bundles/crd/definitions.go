// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bellwether-dev/bellwether/bundles"
)

// Definitions returns every CustomResourceDefinition of a bundle, those of
// v1beta1 converted as the API server does: objects created with them may still
// exist. Definitions that cannot be converted are left out.
func Definitions(b *bundles.Bundle) []*apiextensionsv1.CustomResourceDefinition {
	out := b.CRDs[:len(b.CRDs):len(b.CRDs)]
	for _, o := range b.Objects {
		if o.GroupVersionKind() != apiextensionsv1beta1.SchemeGroupVersion.WithKind("CustomResourceDefinition") {
			continue
		}
		if d, err := convertV1beta1(o); err == nil {
			out = append(out, d)
		}
	}
	return out
}

// Definition returns the one of a name, and nil if the bundle has none.
func Definition(b *bundles.Bundle, name string) *apiextensionsv1.CustomResourceDefinition {
	for _, d := range Definitions(b) {
		if d.Name == name {
			return d
		}
	}
	return nil
}

func convertV1beta1(o *bundles.Object) (*apiextensionsv1.CustomResourceDefinition, error) {
	var old apiextensionsv1beta1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &old); err != nil {
		return nil, fmt.Errorf("decode %s: %w", o.GetName(), err)
	}
	apiextensionsv1beta1.SetDefaults_CustomResourceDefinition(&old)
	var internal apiextensions.CustomResourceDefinition
	convert := apiextensionsv1beta1.Convert_v1beta1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition
	if err := convert(&old, &internal, nil); err != nil {
		return nil, fmt.Errorf("convert %s from v1beta1: %w", o.GetName(), err)
	}
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_apiextensions_CustomResourceDefinition_To_v1_CustomResourceDefinition(&internal,
		d, nil); err != nil {
		return nil, fmt.Errorf("convert %s to v1: %w", o.GetName(), err)
	}
	return d, nil
}

// effectiveSchema is the schema of a version, as objects are pruned by it; nil
// if there is none. A definition that preserves unknown fields keeps fields
// that are not in the schema.
func effectiveSchema(d *apiextensionsv1.CustomResourceDefinition,
	v *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	var schema *apiextensionsv1.JSONSchemaProps
	if v.Schema != nil {
		schema = v.Schema.OpenAPIV3Schema
	}
	if !d.Spec.PreserveUnknownFields {
		return schema
	}
	keep, all := true, apiextensionsv1.JSONSchemaProps{}
	if schema != nil {
		all = *schema
	}
	all.Type, all.XPreserveUnknownFields = "object", &keep
	return &all
}
