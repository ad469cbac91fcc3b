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

// The comparators of crdify that this package uses. They have no state.
var (
	scopeComparator  = newComparator[definitionComparator](scope.Register, nil)
	storedComparator = newComparator[definitionComparator](storedversionremoval.Register, nil)
	enumComparator   = newComparator[propertyComparator](property.RegisterEnum,
		map[string]any{"additionPolicy": string(property.AdditionPolicyAllow)})
	typeComparator     = newComparator[propertyComparator](property.RegisterType, nil)
	requiredComparator = newComparator[propertyComparator](property.RegisterRequired, nil)
	defaultComparator  = newComparator[propertyComparator](property.RegisterDefault, nil)

	// rangeBounds are the bounds, in the order in which they are reported.
	rangeBounds = []bound{
		{name: "minimum", comparator: newComparator[propertyComparator](property.RegisterMinimum, nil),
			value: func(s *apiextensionsv1.JSONSchemaProps) string { return formatNumber(s.Minimum) }},
		{name: "maximum", comparator: newComparator[propertyComparator](property.RegisterMaximum, nil),
			value: func(s *apiextensionsv1.JSONSchemaProps) string { return formatNumber(s.Maximum) }},
		{name: "minLength", comparator: newComparator[propertyComparator](property.RegisterMinLength, nil),
			value: func(s *apiextensionsv1.JSONSchemaProps) string { return formatNumber(s.MinLength) }},
		{name: "maxLength", comparator: newComparator[propertyComparator](property.RegisterMaxLength, nil),
			value: func(s *apiextensionsv1.JSONSchemaProps) string { return formatNumber(s.MaxLength) }},
		{name: "minItems", comparator: newComparator[propertyComparator](property.RegisterMinItems, nil),
			value: func(s *apiextensionsv1.JSONSchemaProps) string { return formatNumber(s.MinItems) }},
		{name: "maxItems", comparator: newComparator[propertyComparator](property.RegisterMaxItems, nil),
			value: func(s *apiextensionsv1.JSONSchemaProps) string { return formatNumber(s.MaxItems) }},
		{name: "minProperties", comparator: newComparator[propertyComparator](property.RegisterMinProperties, nil),
			value: func(s *apiextensionsv1.JSONSchemaProps) string { return formatNumber(s.MinProperties) }},
		{name: "maxProperties", comparator: newComparator[propertyComparator](property.RegisterMaxProperties, nil),
			value: func(s *apiextensionsv1.JSONSchemaProps) string { return formatNumber(s.MaxProperties) }},
	}
)

// bound is a limit on a number, a length or a count.
type bound struct {
	name       string
	comparator propertyComparator
	value      func(*apiextensionsv1.JSONSchemaProps) string
}

// formatNumber returns a number as text, or "none" for nil.
func formatNumber[T int64 | float64](n *T) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprint(*n)
}

// newComparator returns the comparator that register registers. It panics if crdify does not accept the settings,
// because this is a programming error.
func newComparator[T any](register func(validations.Registry), settings map[string]any) T {
	registry := validations.NewRegistry()
	register(registry)
	v, err := registry.Validation(registry.Registered()[0], settings)
	if err != nil {
		panic(fmt.Sprintf("configure crdify: %v", err))
	}
	v.SetEnforcement(config.EnforcementPolicyError)
	return v.(T)
}

// isNarrower reports whether the comparator finds that the newer schema allows fewer values. It passes copies, because
// comparators clear the fields that they have compared.
func isNarrower(c propertyComparator, older, newer *apiextensionsv1.JSONSchemaProps) bool {
	olderCopy, newerCopy := *older, *newer
	return len(c.Compare(&olderCopy, &newerCopy).Errors) > 0
}
