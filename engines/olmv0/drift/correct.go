// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// ErrNotInBundle says that a bundle does not have the object that is to be
// corrected.
var ErrNotInBundle = errors.New("the bundle does not have the object")

// Correct returns the spec of a live object with the fields put back that differ;
// they are all of this object. Every other field stays as it is. csv is the
// bundle's, and config what OLM applies to its Deployments. It does not change
// live.
func Correct(csv *operatorsv1alpha1.ClusterServiceVersion, config *v1alpha1.OperatorConfig, fields []Field,
	live map[string]any) (map[string]any, error) {
	if len(fields) == 0 {
		return live, nil
	}
	expected, err := specOf(csv, config, fields[0])
	if err != nil {
		return nil, err
	}
	c := correction{}
	for _, f := range fields {
		c = append(c, f.Path)
	}
	spec, _ := c.put("spec", expected, live).(map[string]any)
	return spec, nil
}

// specOf returns the spec that the object of a field should have.
func specOf(csv *operatorsv1alpha1.ClusterServiceVersion, config *v1alpha1.OperatorConfig, f Field) (any, error) {
	if f.Kind == KindCSV {
		return plain(csv.Spec)
	}
	for _, d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		if d.Name == f.Name {
			spec := *d.Spec.DeepCopy()
			if spec.Replicas == nil {
				one := replicasOf(nil)
				spec.Replicas = &one
			}
			configure(&spec.Template.Spec, config)
			return plain(spec)
		}
	}
	return nil, fmt.Errorf("%w: %s %s", ErrNotInBundle, f.Kind, f.Name)
}

// correction holds the paths of the fields that are put back.
type correction []string

// isAt tells whether a value is, or contains, a field that is put back.
func (c correction) isAt(path string) bool {
	return slices.ContainsFunc(c, func(field string) bool {
		rest, ok := strings.CutPrefix(field, path)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// put returns the live value with the fields put back that are in it.
func (c correction) put(path string, expected, live any) any {
	if !c.isAt(path) {
		return live
	}
	if _, ok := partsOf(path, expected); !ok || isUnion(path) {
		return expected
	}
	switch expected := expected.(type) {
	case map[string]any:
		return c.putMap(path, expected, live)
	case []any:
		return c.putList(path, expected, live)
	}
	return expected
}

func (c correction) putMap(path string, expected map[string]any, live any) any {
	before, _ := live.(map[string]any)
	out := maps.Clone(before)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range expected {
		if child := path + "." + key; c.isAt(child) {
			out[key] = c.put(child, value, before[key])
		}
	}
	return out
}

// putList keeps the order of the live elements, and those that the bundle does not
// have.
func (c correction) putList(path string, expected []any, live any) any {
	before, _ := live.([]any)
	out := slices.Clone(before)
	keys, _ := keysOf(expected)
	present, _ := keysOf(before)
	for i, key := range keys {
		child := path + "[" + key + "]"
		at := slices.Index(present, key)
		switch {
		case !c.isAt(child):
		case at >= 0:
			out[at] = c.put(child, expected[i], before[at])
		default:
			out = append(out, c.put(child, expected[i], nil))
		}
	}
	return out
}

// isUnion tells whether only one of the fields of a value may be set, such as the
// source of a variable. Such a value is put back as a whole, because the API server
// refuses the bundle's field beside another one.
func isUnion(path string) bool {
	last := path[strings.LastIndexByte(path, '.')+1:]
	name, _, isElement := strings.Cut(last, "[")
	switch name {
	case "env", "volumes":
		return isElement
	case "strategy":
		return !strings.HasSuffix(path, "spec.install.strategy")
	case "livenessProbe", "readinessProbe", "startupProbe":
		return true
	}
	return false
}
