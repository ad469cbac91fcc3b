// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentbundle makes the bundle with which OLM installs Bellwether's agent. Its input is the chart, of which a
// bundle carries the part that is the same on all clusters; OLM gets nothing that the chart does not say.
//
// What depends on the agent's namespace (bindings to roles that the cluster gathers or has) and what is the cluster
// owner's to say (admission policies, the policy for the hub) is the chart's other part, agent.part=cluster.
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

	"github.com/bellwether-dev/bellwether/apis/own"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles/build"
	"github.com/bellwether-dev/bellwether/bundles/build/helmchart"
	"github.com/bellwether-dev/bellwether/charts"
)

const (
	// Channel is the only one.
	Channel = "stable"
	// Namespace is where fleet join puts the agent's credentials unless asked otherwise. The bundle works in any.
	Namespace = "bellwether-system"

	// crd is the only kind of Bellwether's that an agent reads on its own cluster.
	crd = "endpointprobes.bellwether.dev"

	description = "The agent of [Bellwether](https://github.com/bellwether-dev/bellwether), which runs in each " +
		"cluster of a fleet. It installs and upgrades operators on its cluster as the fleet's hub admits them, by " +
		"way of OLM, probes them, and reports to the hub.\n\nIt needs a Secret `bellwether-hub-kubeconfig` in its " +
		"namespace, which `bellwether fleet join` makes."
)

// Build makes the bundle of a release. The same release gives the same bytes. Errors wrap build.ErrInput where the
// release cannot be a bundle: its version must be a plain X.Y.Z.
func Build(r charts.Release) (*build.Result, error) {
	var packaged bytes.Buffer
	if err := r.Package(&packaged, time.Time{}); err != nil {
		return nil, fmt.Errorf("package chart: %w", err)
	}
	chart, err := helmchart.ReadArchive(&packaged)
	if err != nil {
		return nil, fmt.Errorf("read chart: %w", err)
	}
	rendered, err := chart.Render(helmchart.Options{Release: own.AgentPackage, Namespace: Namespace,
		Values: map[string]any{"agent": map[string]any{"enabled": true, "part": "bundle"}}})
	if err != nil {
		return nil, fmt.Errorf("render chart: %w", err)
	}
	var sources []build.Source
	isCRD := func(o *unstructured.Unstructured) bool { return o.GetKind() == "CustomResourceDefinition" }
	for _, s := range rendered.Sources {
		if s.Text, err = keep(s.Text, func(o *unstructured.Unstructured) bool { return !isCRD(o) }); err != nil {
			return nil, fmt.Errorf("read %s: %w", s.Name, err)
		}
		if len(s.Text) > 0 {
			sources = append(sources, s)
		}
	}
	more, err := additions()
	if err != nil {
		return nil, err
	}
	return build.Assemble(append(sources, more...), build.Options{
		Package: own.AgentPackage, Version: r.Version, Channels: []string{Channel},
		About: build.About{
			DisplayName: "Bellwether agent", Description: description, Provider: "Bellwether",
			ProviderURL: "https://github.com/bellwether-dev", Maturity: "alpha", Capabilities: "Seamless Upgrades",
			InstallModes: []operatorsv1alpha1.InstallModeType{operatorsv1alpha1.InstallModeTypeAllNamespaces},
		},
	}.Or(chart.Defaults()))
}

// additions are what the rendered chart does not have: the base of the ClusterServiceVersion, the CRD, and an example
// of it.
func additions() ([]build.Source, error) {
	definitions, err := charts.CRDs()
	if err != nil {
		return nil, err
	}
	definition, err := keep(definitions, func(o *unstructured.Unstructured) bool { return o.GetName() == crd })
	if err != nil {
		return nil, fmt.Errorf("read CRDs: %w", err)
	}
	out := []build.Source{{Name: "CRD", Text: definition}}
	for _, object := range []*unstructured.Unstructured{base(), example()} {
		text, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", object.GetKind(), err)
		}
		out = append(out, build.Source{Name: object.GetKind(), Text: text})
	}
	return out, nil
}

// base has what an annotation of the ClusterServiceVersion says, and no option.
func base() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": operatorsv1alpha1.ClusterServiceVersionAPIVersion,
		"kind":       operatorsv1alpha1.ClusterServiceVersionKind,
		"metadata": map[string]any{"name": own.AgentPackage,
			"annotations": map[string]any{"operatorframework.io/suggested-namespace": Namespace}},
	}}
}

// example is the one in alm-examples.
func example() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "EndpointProbe",
		"metadata": map[string]any{"name": "console"},
		"spec": map[string]any{
			"operator": map[string]any{"namespace": "fleet", "name": "echo"},
			"target":   map[string]any{"service": map[string]any{"name": "console", "port": int64(443)}},
		},
	}}
}

// keep returns those documents of a stream of YAML whose objects are to be kept.
func keep(text []byte, wanted func(*unstructured.Unstructured) bool) ([]byte, error) {
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
