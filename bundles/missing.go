// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// Missing is a ConfigMap or a Secret that the Pods of a Deployment need to start and that no known component creates.
type Missing struct {
	Kind, Name, Deployment string
	// Path is the place in the Deployment. Deployments is the place of the Deployment in the ClusterServiceVersion.
	// Both have the form that Position takes.
	Path, Deployments []any
}

const kindConfigMap = "ConfigMap"

// MissingObjects returns the ConfigMaps and Secrets that volumes and variables of the Deployments need and that will
// not exist after installation, in the order of the ClusterServiceVersion. Optional references do not count. An object
// whose name is passed to another Deployment does not count either, because that Deployment may create it. Each object
// is returned once for a Deployment.
func (b *Bundle) MissingObjects() []Missing {
	var out []Missing
	for i, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		for _, r := range b.listReferences(d) {
			isSame := func(m Missing) bool { return m.Kind == r.kind && m.Name == r.name && m.Deployment == d.Name }
			isOptional := r.optional != nil && *r.optional
			if r.name == "" || isOptional || slices.ContainsFunc(out, isSame) ||
				b.isPresentAfterInstall(r.kind, r.name) || b.isNamedByOtherDeployment(d.Name, r.name) {
				continue
			}
			out = append(out, Missing{Kind: r.kind, Name: r.name, Deployment: d.Name,
				Path:        slices.Concat([]any{"spec", "template", "spec"}, r.path),
				Deployments: []any{"spec", "install", "spec", "deployments", i}})
		}
	}
	return out
}

// reference is a reference to a ConfigMap or a Secret in the spec of a Pod.
type reference struct {
	kind, name string
	optional   *bool
	path       []any
}

// listReferences returns the references of a Deployment, except in volumes that OLM replaces.
func (b *Bundle) listReferences(d operatorsv1alpha1.StrategyDeploymentSpec) []reference {
	pod := d.Spec.Template.Spec
	var out []reference
	for i, v := range pod.Volumes {
		if !b.hasServingCertificate(d.Name) || !slices.Contains(olmVolumes, v.Name) {
			out = append(out, listVolumeReferences(v, "volumes", i)...)
		}
	}
	for i, c := range pod.InitContainers {
		out = append(out, listContainerReferences(c, "initContainers", i)...)
	}
	for i, c := range pod.Containers {
		out = append(out, listContainerReferences(c, "containers", i)...)
	}
	return out
}

// listVolumeReferences returns the references of a volume. path is the place of the volume in the Pod's spec.
func listVolumeReferences(v corev1.Volume, path ...any) []reference {
	var out []reference
	if v.ConfigMap != nil {
		out = append(out, reference{kind: kindConfigMap, name: v.ConfigMap.Name,
			optional: v.ConfigMap.Optional, path: path})
	}
	if v.Secret != nil {
		out = append(out, reference{kind: kindSecret, name: v.Secret.SecretName,
			optional: v.Secret.Optional, path: path})
	}
	if v.Projected == nil {
		return out
	}
	for i, s := range v.Projected.Sources {
		sourcePath := slices.Concat(path, []any{"projected", "sources", i})
		if s.ConfigMap != nil {
			out = append(out, reference{kind: kindConfigMap, name: s.ConfigMap.Name,
				optional: s.ConfigMap.Optional, path: sourcePath})
		}
		if s.Secret != nil {
			out = append(out, reference{kind: kindSecret, name: s.Secret.Name,
				optional: s.Secret.Optional, path: sourcePath})
		}
	}
	return out
}

// listContainerReferences returns the references in the variables of a container. path is its place in the Pod's spec.
func listContainerReferences(c corev1.Container, path ...any) []reference {
	var out []reference
	for i, e := range c.EnvFrom {
		envPath := slices.Concat(path, []any{"envFrom", i})
		if e.ConfigMapRef != nil {
			out = append(out, reference{kind: kindConfigMap, name: e.ConfigMapRef.Name,
				optional: e.ConfigMapRef.Optional, path: envPath})
		}
		if e.SecretRef != nil {
			out = append(out, reference{kind: kindSecret, name: e.SecretRef.Name,
				optional: e.SecretRef.Optional, path: envPath})
		}
	}
	for i, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		envPath := slices.Concat(path, []any{"env", i})
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
			out = append(out, reference{kind: kindConfigMap, name: r.Name, optional: r.Optional, path: envPath})
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil {
			out = append(out, reference{kind: kindSecret, name: r.Name, optional: r.Optional, path: envPath})
		}
	}
	return out
}

// hasServingCertificate reports whether OLM mounts a certificate into a Deployment, because the Deployment serves a
// webhook or an API.
func (b *Bundle) hasServingCertificate(deployment string) bool {
	return slices.ContainsFunc(b.CSV.Spec.WebhookDefinitions,
		func(w operatorsv1alpha1.WebhookDescription) bool { return w.DeploymentName == deployment }) ||
		slices.ContainsFunc(b.CSV.Spec.APIServiceDefinitions.Owned,
			func(a operatorsv1alpha1.APIServiceDescription) bool { return a.DeploymentName == deployment })
}

// servingCertAnnotations are annotations of a Service that make OpenShift create a Secret with the given name.
var servingCertAnnotations = []string{"service.beta.openshift.io/serving-cert-secret-name",
	"service.alpha.openshift.io/serving-cert-secret-name"}

// isPresentAfterInstall reports whether a ConfigMap or a Secret exists after the bundle is installed. This is the case
// if the bundle contains it, if Kubernetes or OpenShift creates it in every namespace, if OpenShift creates it for a
// Service, or if OLM creates it for a webhook (SecretName in pkg/controller/install/certresources.go of OLM v0.46).
func (b *Bundle) isPresentAfterInstall(kind, name string) bool {
	if kind == kindConfigMap && (name == "kube-root-ca.crt" || name == "openshift-service-ca.crt") {
		return true
	}
	isInBundle := slices.ContainsFunc(b.Objects,
		func(o *Object) bool { return o.GetKind() == kind && o.GetName() == name })
	if isInBundle || kind != kindSecret {
		return isInBundle
	}
	isFromOpenShift := slices.ContainsFunc(b.Objects, func(o *Object) bool {
		return slices.ContainsFunc(servingCertAnnotations,
			func(key string) bool { return o.GetAnnotations()[key] == name })
	})
	isFromOLM := slices.ContainsFunc(b.CSV.Spec.WebhookDefinitions,
		func(w operatorsv1alpha1.WebhookDescription) bool { return WebhookService(w)+"-cert" == name })
	return isFromOpenShift || isFromOLM
}

// isNamedByOtherDeployment reports whether a flag, an argument or a variable of another Deployment has the given name
// as its value, or as the last part of its value.
func (b *Bundle) isNamedByOtherDeployment(deployment, name string) bool {
	for _, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		if d.Name == deployment {
			continue
		}
		for _, c := range slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers) {
			if slices.ContainsFunc(listSettings(c), func(s setting) bool {
				return s.value[strings.LastIndex(s.value, "/")+1:] == name
			}) {
				return true
			}
		}
	}
	return false
}
