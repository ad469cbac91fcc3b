// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// ErrNotInBundle means that a bundle does not have the object that is to be corrected.
var ErrNotInBundle = errors.New("the bundle does not have the object")

// CorrectDrift returns the spec of a live object with the differing fields set to the values of the bundle. All fields
// must belong to this object. All other fields keep their values. csv is the bundle's CSV, and config is what OLM
// applies to its Deployments. CorrectDrift does not change live.
func CorrectDrift(csv *operatorsv1alpha1.ClusterServiceVersion, config *v1alpha1.OperatorConfig, fields []DriftField,
	live map[string]any) (map[string]any, error) {
	if len(fields) == 0 {
		return live, nil
	}
	expected, err := readExpectedSpec(csv, config, fields[0])
	if err != nil {
		return nil, err
	}
	c := correctedPaths{}
	for _, f := range fields {
		c = append(c, f.Path)
	}
	spec, _ := c.correctValue("spec", expected, live).(map[string]any)
	return spec, nil
}

// readExpectedSpec returns the spec that the object of a field should have.
func readExpectedSpec(csv *operatorsv1alpha1.ClusterServiceVersion, config *v1alpha1.OperatorConfig,
	f DriftField) (any, error) {
	if f.Kind == KindCSV {
		return toPlain(csv.Spec)
	}
	for _, d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		if d.Name == f.Name {
			spec := *d.Spec.DeepCopy()
			if spec.Replicas == nil {
				replicas := countReplicas(nil)
				spec.Replicas = &replicas
			}
			applyConfig(&spec.Template.Spec, config)
			return toPlain(spec)
		}
	}
	return nil, fmt.Errorf("%w: %s %s", ErrNotInBundle, f.Kind, f.Name)
}

// correctedPaths are the paths of the fields that are corrected.
type correctedPaths []string

// hasFieldAt reports whether the value at a path is, or contains, a field that is corrected.
func (c correctedPaths) hasFieldAt(path string) bool {
	return slices.ContainsFunc(c, func(field string) bool {
		rest, ok := strings.CutPrefix(field, path)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// correctValue returns the live value at a path with the corrected fields in it. It returns the whole expected value if
// the value is compared as a whole or must be corrected as a whole (isUnion).
func (c correctedPaths) correctValue(path string, expected, live any) any {
	if !c.hasFieldAt(path) {
		return live
	}
	if _, ok := splitValue(path, expected); !ok || isUnion(path) {
		return expected
	}
	switch expected := expected.(type) {
	case map[string]any:
		return c.correctMap(path, expected, live)
	case []any:
		return c.correctList(path, expected, live)
	}
	return expected
}

// correctMap returns a copy of a live map with the corrected fields in it.
func (c correctedPaths) correctMap(path string, expected map[string]any, live any) any {
	liveFields, _ := live.(map[string]any)
	out := maps.Clone(liveFields)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range expected {
		if child := path + "." + key; c.hasFieldAt(child) {
			out[key] = c.correctValue(child, value, liveFields[key])
		}
	}
	return out
}

// correctList returns a copy of a live list with the corrected fields in it. It keeps the order of the live elements,
// and the elements that the bundle does not have.
func (c correctedPaths) correctList(path string, expected []any, live any) any {
	liveItems, _ := live.([]any)
	out := slices.Clone(liveItems)
	keys, _ := findKeys(expected)
	present, _ := findKeys(liveItems)
	for i, key := range keys {
		child := path + "[" + key + "]"
		index := slices.Index(present, key)
		switch {
		case !c.hasFieldAt(child):
			// the element does not differ
		case index >= 0:
			out[index] = c.correctValue(child, expected[i], liveItems[index])
		default:
			out = append(out, c.correctValue(child, expected[i], nil))
		}
	}
	return out
}

// isUnion reports whether only one of the fields of a value may be set, for instance the source of an environment
// variable. Such a value is corrected as a whole, because the API server refuses the bundle's field together with
// another field.
func isUnion(path string) bool {
	lastElement := path[strings.LastIndexByte(path, '.')+1:]
	name, _, isElement := strings.Cut(lastElement, "[")
	switch name {
	case "env", "volumes":
		return isElement
	case "strategy": // of a Deployment, and not the install strategy of a CSV
		return !strings.HasSuffix(path, "spec.install.strategy")
	case "livenessProbe", "readinessProbe", "startupProbe":
		return true
	}
	return false
}
