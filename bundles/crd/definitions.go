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

// Definitions returns every CustomResourceDefinition of a bundle. Definitions of v1beta1 are converted as in the
// API server, because objects that were created with them may still exist. Definitions that cannot be converted
// are omitted.
func Definitions(b *bundles.Bundle) []*apiextensionsv1.CustomResourceDefinition {
	out := b.CRDs[:len(b.CRDs):len(b.CRDs)] // append must not change the array of the bundle
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

// Definition returns the definition with the given name, or nil if the bundle has none.
func Definition(b *bundles.Bundle, name string) *apiextensionsv1.CustomResourceDefinition {
	for _, d := range Definitions(b) {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// convertV1beta1 decodes a definition of v1beta1 and converts it to v1.
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

// readEffectiveSchema returns the schema of a version that the API server uses to drop unknown fields; nil if there is
// none. If the definition has preserveUnknownFields, the schema keeps unknown fields.
func readEffectiveSchema(d *apiextensionsv1.CustomResourceDefinition,
	v *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	var schema *apiextensionsv1.JSONSchemaProps
	if v.Schema != nil {
		schema = v.Schema.OpenAPIV3Schema
	}
	if !d.Spec.PreserveUnknownFields {
		return schema
	}
	keep, open := true, apiextensionsv1.JSONSchemaProps{}
	if schema != nil {
		open = *schema
	}
	open.Type, open.XPreserveUnknownFields = "object", &keep
	return &open
}
