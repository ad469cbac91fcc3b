// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	echov1alpha1 "github.com/bellwether-dev/bellwether/testbed/echo/api/v1alpha1"
)

// crd returns the CustomResourceDefinition of EchoServer as of release r.
func crd(r Release) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(),
			Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "echoservers." + echov1alpha1.GroupVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: echov1alpha1.GroupVersion.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: "EchoServer", ListKind: "EchoServerList",
				Plural: "echoservers", Singular: "echoserver", ShortNames: []string{"es"},
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{
					Name:    echov1alpha1.GroupVersion.Version,
					Served:  true,
					Storage: true,
					Subresources: &apiextensionsv1.CustomResourceSubresources{
						Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
					},
					AdditionalPrinterColumns: printerColumns(),
					Schema: &apiextensionsv1.CustomResourceValidation{
						OpenAPIV3Schema: ptr.To(rootSchema(r)),
					},
				},
			},
		},
	}
}

func printerColumns() []apiextensionsv1.CustomResourceColumnDefinition {
	return []apiextensionsv1.CustomResourceColumnDefinition{
		{Name: "Ready", Type: "integer", JSONPath: ".status.readyReplicas"},
		{Name: "Version", Type: "string", JSONPath: ".status.version"},
		{Name: "Available", Type: "string", JSONPath: `.status.conditions[?(@.type=="Available")].status`},
		{Name: "Message", Type: "string", JSONPath: ".spec.message", Priority: 1},
		{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
	}
}

type schema = apiextensionsv1.JSONSchemaProps

func rootSchema(r Release) schema {
	return schema{
		Type:        "object",
		Description: "EchoServer is a set of small HTTP servers that answer with a message.",
		Required:    []string{"spec"},
		XValidations: apiextensionsv1.ValidationRules{{
			// The Service is called <name>-echo, and a Service's name ends at 63.
			Rule:    "self.metadata.name.size() <= 58",
			Message: "the name may have at most 58 characters",
		}},
		Properties: map[string]schema{
			"apiVersion": {Type: "string",
				Description: "APIVersion is the version of this representation of the object."},
			"kind":     {Type: "string", Description: "Kind is the REST resource that this object represents."},
			"metadata": {Type: "object"},
			"spec":     specSchema(r),
			"status":   statusSchema(),
		},
	}
}

func specSchema(r Release) schema {
	s := schema{
		Type:        "object",
		Description: "EchoServerSpec says what the servers answer and how many there are.",
		Required:    []string{"message"},
		Properties: map[string]schema{
			"message": {
				Type: "string", MinLength: ptr.To[int64](1), MaxLength: ptr.To[int64](1024),
				Description: "Message is the text that every server answers with.",
			},
			"replicas": {
				Type: "integer", Format: "int32", Minimum: ptr.To(0.0), Maximum: ptr.To(10.0),
				Default:     &apiextensionsv1.JSON{Raw: []byte("1")},
				Description: "Replicas is the number of servers.",
			},
		},
	}
	if r.Uppercase {
		s.Properties["uppercase"] = schema{
			Type: "boolean", Description: "Uppercase makes the servers answer in capital letters.",
		}
	}
	return s
}

func statusSchema() schema {
	return schema{
		Type:        "object",
		Description: "EchoServerStatus is what the operator last observed.",
		Properties: map[string]schema{
			"observedGeneration": {
				Type: "integer", Format: "int64",
				Description: "ObservedGeneration is the generation that this status speaks of.",
			},
			"readyReplicas": {
				Type: "integer", Format: "int32",
				Description: "ReadyReplicas is the number of servers that answer their readiness probe.",
			},
			"version": {
				Type:        "string",
				Description: "Version is the version of the operator that last reconciled the object.",
			},
			"conditions": {
				Type: "array", XListType: ptr.To("map"), XListMapKeys: []string{"type"},
				Description: "Conditions are Available and Progressing.",
				Items:       &apiextensionsv1.JSONSchemaPropsOrArray{Schema: ptr.To(conditionSchema())},
			},
		},
	}
}

func conditionSchema() schema {
	return schema{
		Type:     "object",
		Required: []string{"lastTransitionTime", "message", "reason", "status", "type"},
		Properties: map[string]schema{
			"type": {Type: "string", MaxLength: ptr.To[int64](316)},
			"status": {Type: "string",
				Enum: []apiextensionsv1.JSON{{Raw: []byte(`"True"`)}, {Raw: []byte(`"False"`)},
					{Raw: []byte(`"Unknown"`)}}},
			"observedGeneration": {Type: "integer", Format: "int64", Minimum: ptr.To(0.0)},
			"lastTransitionTime": {Type: "string", Format: "date-time"},
			"reason":             {Type: "string", MinLength: ptr.To[int64](1), MaxLength: ptr.To[int64](1024)},
			"message":            {Type: "string", MaxLength: ptr.To[int64](32768)},
		},
	}
}
