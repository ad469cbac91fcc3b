// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentbundle builds the bundle with which OLM installs Bellwether's agent. Its input
// is the chart. The bundle contains the objects that are the same on all clusters, and nothing
// that is not in the chart.
//
// The chart with agent.part=cluster has the other objects: objects that depend on the agent's
// namespace (bindings to roles of the cluster), and objects that the cluster's owner decides on
// (admission policies, the policy for the hub).
package agentbundle

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles/build"
	"github.com/bellwether-dev/bellwether/charts"
)

const (
	// Channel is the only channel.
	Channel = "stable"
	// Namespace is the default namespace in which fleet join stores the agent's credentials. The
	// bundle works in any namespace.
	Namespace = "bellwether-system"

	// crdName is the CRD of the only Bellwether kind that an agent reads on its own cluster.
	crdName = "endpointprobes.bellwether.dev"

	description = "The agent of [Bellwether](https://github.com/bellwether-dev/bellwether), which runs in each " +
		"cluster of a fleet. It installs and upgrades operators on its cluster as the fleet's hub admits them, by " +
		"way of OLM, probes them, and reports to the hub.\n\nIt needs a Secret `bellwether-hub-kubeconfig` in its " +
		"namespace, which `bellwether fleet join` makes."
)

// Build builds the bundle of a release. The same release gives the same bytes. The error wraps
// build.ErrInput if the release cannot be a bundle: its version must be a plain X.Y.Z.
func Build(r charts.Release) (*build.Result, error) {
	var packaged bytes.Buffer
	if err := r.Package(&packaged, time.Time{}); err != nil {
		return nil, fmt.Errorf("package chart: %w", err)
	}
	chart, err := build.ReadChartArchive(&packaged)
	if err != nil {
		return nil, fmt.Errorf("read chart: %w", err)
	}
	rendered, err := chart.Render(build.ChartOptions{Release: v1alpha1.AgentPackage, Namespace: Namespace,
		Values: map[string]any{"agent": map[string]any{"enabled": true, "part": "bundle"}}})
	if err != nil {
		return nil, fmt.Errorf("render chart: %w", err)
	}
	// The chart has all CRDs. The bundle has only one of them, which newAdditionalSources returns.
	var sources []build.Source
	isCRD := func(o *unstructured.Unstructured) bool { return o.GetKind() == "CustomResourceDefinition" }
	for _, s := range rendered.Sources {
		s.Text, err = filterDocuments(s.Text, func(o *unstructured.Unstructured) bool { return !isCRD(o) })
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", s.Name, err)
		}
		if len(s.Text) > 0 {
			sources = append(sources, s)
		}
	}
	additional, err := newAdditionalSources()
	if err != nil {
		return nil, err
	}
	return build.Assemble(append(sources, additional...), build.Options{
		Package: v1alpha1.AgentPackage, Version: r.Version, Channels: []string{Channel},
		About: build.About{
			DisplayName: "Bellwether agent", Description: description, Provider: "Bellwether",
			ProviderURL: "https://github.com/bellwether-dev", Maturity: "alpha", Capabilities: "Seamless Upgrades",
			InstallModes: []operatorsv1alpha1.InstallModeType{operatorsv1alpha1.InstallModeTypeAllNamespaces},
		},
	}.FillDefaults(chart.Defaults()))
}

// newAdditionalSources returns the sources that the rendered chart does not have: the base of
// the ClusterServiceVersion, the CRD, and an example of the CRD's kind.
func newAdditionalSources() ([]build.Source, error) {
	definitions, err := charts.CRDs()
	if err != nil {
		return nil, err
	}
	definition, err := filterDocuments(definitions, func(o *unstructured.Unstructured) bool {
		return o.GetName() == crdName
	})
	if err != nil {
		return nil, fmt.Errorf("read CRDs: %w", err)
	}
	out := []build.Source{{Name: "CRD", Text: definition}}
	for _, object := range []*unstructured.Unstructured{newBaseCSV(), newExampleProbe()} {
		text, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", object.GetKind(), err)
		}
		out = append(out, build.Source{Name: object.GetKind(), Text: text})
	}
	return out, nil
}

// newBaseCSV returns the base of the ClusterServiceVersion. It has only an annotation for which
// build.Options has no field.
func newBaseCSV() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": operatorsv1alpha1.ClusterServiceVersionAPIVersion,
		"kind":       operatorsv1alpha1.ClusterServiceVersionKind,
		"metadata": map[string]any{"name": v1alpha1.AgentPackage,
			"annotations": map[string]any{"operatorframework.io/suggested-namespace": Namespace}},
	}}
}

// newExampleProbe returns the example for the annotation alm-examples.
func newExampleProbe() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "EndpointProbe",
		"metadata": map[string]any{"name": "console"},
		"spec": map[string]any{
			"operator": map[string]any{"namespace": "fleet", "name": "echo"},
			"target":   map[string]any{"service": map[string]any{"name": "console", "port": int64(443)}},
		},
	}}
}

// filterDocuments returns the documents of a YAML stream whose objects are wanted.
func filterDocuments(text []byte, wanted func(*unstructured.Unstructured) bool) ([]byte, error) {
	var out bytes.Buffer
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &o.Object); err != nil {
			return nil, err
		}
		if o.Object == nil || !wanted(o) {
			continue
		}
		out.WriteString("---\n")
		out.Write(document)
	}
}
