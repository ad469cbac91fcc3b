// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/crd/scope"
	"sigs.k8s.io/crdify/pkg/validations/crd/storedversionremoval"
	"sigs.k8s.io/crdify/pkg/validations/property"
)

type (
	definitionComparator = validations.Comparator[apiextensionsv1.CustomResourceDefinition]
	propertyComparator   = validations.Comparator[apiextensionsv1.JSONSchemaProps]
)

// The comparators of crdify that judge. They hold no state of a comparison.
var (
	scopeComparator  = comparator[definitionComparator](scope.Register, nil)
	storedComparator = comparator[definitionComparator](storedversionremoval.Register, nil)
	enumComparator   = comparator[propertyComparator](property.RegisterEnum,
		map[string]any{"additionPolicy": string(property.AdditionPolicyAllow)})
	typeComparator     = comparator[propertyComparator](property.RegisterType, nil)
	requiredComparator = comparator[propertyComparator](property.RegisterRequired, nil)
	defaultComparator  = comparator[propertyComparator](property.RegisterDefault, nil)

	// ranges are the bounds, in the order in which they are reported.
	ranges = []bound{
		{"minimum", comparator[propertyComparator](property.RegisterMinimum, nil),
			func(s *apiextensionsv1.JSONSchemaProps) string { return number(s.Minimum) }},
		{"maximum", comparator[propertyComparator](property.RegisterMaximum, nil),
			func(s *apiextensionsv1.JSONSchemaProps) string { return number(s.Maximum) }},
		{"minLength", comparator[propertyComparator](property.RegisterMinLength, nil),
			func(s *apiextensionsv1.JSONSchemaProps) string { return number(s.MinLength) }},
		{"maxLength", comparator[propertyComparator](property.RegisterMaxLength, nil),
			func(s *apiextensionsv1.JSONSchemaProps) string { return number(s.MaxLength) }},
		{"minItems", comparator[propertyComparator](property.RegisterMinItems, nil),
			func(s *apiextensionsv1.JSONSchemaProps) string { return number(s.MinItems) }},
		{"maxItems", comparator[propertyComparator](property.RegisterMaxItems, nil),
			func(s *apiextensionsv1.JSONSchemaProps) string { return number(s.MaxItems) }},
		{"minProperties", comparator[propertyComparator](property.RegisterMinProperties, nil),
			func(s *apiextensionsv1.JSONSchemaProps) string { return number(s.MinProperties) }},
		{"maxProperties", comparator[propertyComparator](property.RegisterMaxProperties, nil),
			func(s *apiextensionsv1.JSONSchemaProps) string { return number(s.MaxProperties) }},
	}
)

// bound is a limit on a number, a length or a count.
type bound struct {
	name       string
	comparator propertyComparator
	value      func(*apiextensionsv1.JSONSchemaProps) string
}

func number[T int64 | float64](n *T) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprint(*n)
}

// comparator makes the one comparator that register registers. It panics on
// what crdify does not know, which is an error in this file.
func comparator[T any](register func(validations.Registry), settings map[string]any) T {
	registry := validations.NewRegistry()
	register(registry)
	v, err := registry.Validation(registry.Registered()[0], settings)
	if err != nil {
		panic(fmt.Sprintf("configure crdify: %v", err))
	}
	v.SetEnforcement(config.EnforcementPolicyError)
	return v.(T)
}

// refuses says whether the comparator finds the newer schema to allow less. It
// gives it copies, because comparators clear what they have looked at.
func refuses(c propertyComparator, older, newer *apiextensionsv1.JSONSchemaProps) bool {
	a, b := *older, *newer
	return len(c.Compare(&a, &b).Errors) > 0
}
