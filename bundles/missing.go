// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// Missing is a ConfigMap or a Secret that the Pods of a Deployment need to start, and that nothing makes.
type Missing struct {
	Kind, Name, Deployment string
	// Path is the place in the Deployment, and Deployments that of the Deployment in the ClusterServiceVersion, as
	// Position takes it.
	Path, Deployments []any
}

const kindConfigMap = "ConfigMap"

// MissingObjects returns the objects that volumes and variables refer to, in the order of the ClusterServiceVersion,
// without those that are optional. What the bundle has, what Kubernetes, OpenShift or OLM make, and what another
// Deployment is told the name of, so that it may make it, are not among them. Each is there once for a Deployment.
func (b *Bundle) MissingObjects() []Missing {
	var out []Missing
	for i, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		for _, r := range b.references(d) {
			isSame := func(m Missing) bool { return m.Kind == r.kind && m.Name == r.name && m.Deployment == d.Name }
			if r.name == "" || r.optional != nil && *r.optional || slices.ContainsFunc(out, isSame) ||
				b.hasObject(r.kind, r.name) || b.isTold(d.Name, r.name) {
				continue
			}
			out = append(out, Missing{Kind: r.kind, Name: r.name, Deployment: d.Name,
				Path:        slices.Concat([]any{"spec", "template", "spec"}, r.path),
				Deployments: []any{"spec", "install", "spec", "deployments", i}})
		}
	}
	return out
}

// reference is one to a ConfigMap or a Secret in the spec of a Pod.
type reference struct {
	kind, name string
	optional   *bool
	path       []any
}

// references of a Deployment, those of volumes that OLM replaces excepted.
func (b *Bundle) references(d operatorsv1alpha1.StrategyDeploymentSpec) []reference {
	pod := d.Spec.Template.Spec
	var out []reference
	for i, v := range pod.Volumes {
		if !b.isServing(d.Name) || !slices.Contains(olmVolumes, v.Name) {
			out = append(out, volumeReferences(v, "volumes", i)...)
		}
	}
	for i, c := range pod.InitContainers {
		out = append(out, containerReferences(c, "initContainers", i)...)
	}
	for i, c := range pod.Containers {
		out = append(out, containerReferences(c, "containers", i)...)
	}
	return out
}

func volumeReferences(v corev1.Volume, path ...any) []reference {
	var out []reference
	if v.ConfigMap != nil {
		out = append(out, reference{kindConfigMap, v.ConfigMap.Name, v.ConfigMap.Optional, path})
	}
	if v.Secret != nil {
		out = append(out, reference{kindSecret, v.Secret.SecretName, v.Secret.Optional, path})
	}
	if v.Projected == nil {
		return out
	}
	for i, s := range v.Projected.Sources {
		at := slices.Concat(path, []any{"projected", "sources", i})
		if s.ConfigMap != nil {
			out = append(out, reference{kindConfigMap, s.ConfigMap.Name, s.ConfigMap.Optional, at})
		}
		if s.Secret != nil {
			out = append(out, reference{kindSecret, s.Secret.Name, s.Secret.Optional, at})
		}
	}
	return out
}

func containerReferences(c corev1.Container, path ...any) []reference {
	var out []reference
	for i, e := range c.EnvFrom {
		at := slices.Concat(path, []any{"envFrom", i})
		if e.ConfigMapRef != nil {
			out = append(out, reference{kindConfigMap, e.ConfigMapRef.Name, e.ConfigMapRef.Optional, at})
		}
		if e.SecretRef != nil {
			out = append(out, reference{kindSecret, e.SecretRef.Name, e.SecretRef.Optional, at})
		}
	}
	for i, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		at := slices.Concat(path, []any{"env", i})
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
			out = append(out, reference{kindConfigMap, r.Name, r.Optional, at})
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil {
			out = append(out, reference{kindSecret, r.Name, r.Optional, at})
		}
	}
	return out
}

// isServing says whether OLM gives a Deployment a certificate.
func (b *Bundle) isServing(deployment string) bool {
	return slices.ContainsFunc(b.CSV.Spec.WebhookDefinitions,
		func(w operatorsv1alpha1.WebhookDescription) bool { return w.DeploymentName == deployment }) ||
		slices.ContainsFunc(b.CSV.Spec.APIServiceDefinitions.Owned,
			func(a operatorsv1alpha1.APIServiceDescription) bool { return a.DeploymentName == deployment })
}

// annotationsOfServing are those of a Service by which OpenShift makes a Secret.
var annotationsOfServing = []string{"service.beta.openshift.io/serving-cert-secret-name",
	"service.alpha.openshift.io/serving-cert-secret-name"}

// hasObject says whether a ConfigMap or a Secret is there once the bundle is installed: the bundle has it, Kubernetes
// or OpenShift make it in every namespace, OpenShift makes it for a Service, or OLM for a webhook (SecretName in
// pkg/controller/install/certresources.go of OLM v0.46).
func (b *Bundle) hasObject(kind, name string) bool {
	if kind == kindConfigMap && (name == "kube-root-ca.crt" || name == "openshift-service-ca.crt") {
		return true
	}
	return slices.ContainsFunc(b.Objects, func(o *Object) bool {
		return o.GetKind() == kind && o.GetName() == name || kind == kindSecret && slices.ContainsFunc(
			annotationsOfServing, func(key string) bool { return o.GetAnnotations()[key] == name })
	}) || kind == kindSecret && slices.ContainsFunc(b.CSV.Spec.WebhookDefinitions,
		func(w operatorsv1alpha1.WebhookDescription) bool { return WebhookService(w)+"-cert" == name })
}

// isTold says whether a flag, an argument or a variable of another Deployment has a name.
func (b *Bundle) isTold(deployment, name string) bool {
	for _, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		if d.Name == deployment {
			continue
		}
		for _, c := range slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers) {
			if slices.ContainsFunc(settingsOf(c), func(s setting) bool {
				return s.value[strings.LastIndex(s.value, "/")+1:] == name
			}) {
				return true
			}
		}
	}
	return false
}
