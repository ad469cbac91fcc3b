// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hubchart renders what the chart installs for a hub, for hubs that run as processes or in tests.
package hubchart

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/charts"
)

// Objects returns the objects of the release "bellwether" in a namespace, but for its Deployments, its test and the
// CRDs: access, admission policies and what else the hub needs. The values are those of the chart's key hub; enabled is
// set here.
func Objects(namespace string, hub map[string]any) ([]*unstructured.Unstructured, error) {
	enabled := map[string]any{"enabled": true}
	maps.Copy(enabled, hub)
	objects, err := Render(namespace, map[string]any{"hub": enabled, "crds": map[string]any{"enabled": false}})
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "Deployment" || o.GetAnnotations()["helm.sh/hook"] != ""
	}), err
}

// Render returns all objects of the release "bellwether" in a namespace, for these values.
func Render(namespace string, given map[string]any) ([]*unstructured.Unstructured, error) {
	loaded, err := charts.Load()
	if err != nil {
		return nil, err
	}
	values, err := chartutil.ToRenderValues(loaded, given,
		chartutil.ReleaseOptions{Name: "bellwether", Namespace: namespace, IsInstall: true, Revision: 1},
		chartutil.DefaultCapabilities)
	if err != nil {
		return nil, fmt.Errorf("read chart's values: %w", err)
	}
	rendered, err := engine.Render(loaded, values)
	if err != nil {
		return nil, fmt.Errorf("render chart: %w", err)
	}
	var objects []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if path.Ext(name) != ".yaml" {
			continue
		}
		manifests := releaseutil.SplitManifests(rendered[name])
		for _, key := range slices.Sorted(maps.Keys(manifests)) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(manifests[key]), object); err != nil {
				return nil, fmt.Errorf("decode %s: %w", name, err)
			}
			if object.Object != nil {
				objects = append(objects, object)
			}
		}
	}
	return objects, nil
}
