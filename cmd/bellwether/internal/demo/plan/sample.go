// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/blang/semver/v4"
	libversion "github.com/operator-framework/api/pkg/lib/version"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

const (
	// Package is the package of the sample operator, and the namespace that it is installed into.
	Package = "bellwether-sample"
	// Operator is the name of the sample operator's ManagedOperator.
	Operator = "sample"
	// Before is the version that is installed first.
	Before = "1.0.0"
	// After is the version that the demo upgrades to.
	After = "1.1.0"
	// Catalog is the name of the OperatorCatalog, and of the Service and Deployment that serve the catalog.
	Catalog = "demo-catalog"
	// CatalogPort is the port of the Service Catalog.
	CatalogPort = 5000

	channel     = "stable"
	catalogFile = "catalog.json"
)

// buildNamespaces returns the namespaces that the demo creates, with its label. They are applied first, so that the
// removal finds the label even if a later step fails.
func buildNamespaces() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, name := range markedNamespaces {
		out = append(out, toUnstructured(&corev1.Namespace{
			TypeMeta:   newTypeMeta(corev1.SchemeGroupVersion.String(), "Namespace"),
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{Label: "true"}}}))
	}
	return out
}

// buildCatalogServer returns the objects that serve the sample catalog in the cluster: a registry without push, to
// which only pods of the namespace of hub and agent can connect.
func buildCatalogServer(image string) []*unstructured.Unstructured {
	content := BuildCatalog(image)
	meta := metav1.ObjectMeta{Namespace: Namespace, Name: Catalog}
	selector := map[string]string{"app.kubernetes.io/name": Catalog}
	volume := corev1.Volume{Name: "catalog"}
	volume.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: Catalog}}
	container := buildRegistryContainer(image, "--catalog=/catalog")
	container.ReadinessProbe.HTTPGet.Path = "/v2/catalog/tags/list"
	container.VolumeMounts = []corev1.VolumeMount{{Name: "catalog", MountPath: "/catalog", ReadOnly: true}}
	return []*unstructured.Unstructured{
		toUnstructured(&corev1.ConfigMap{TypeMeta: newTypeMeta("v1", "ConfigMap"), ObjectMeta: meta,
			Data: map[string]string{catalogFile: string(content)}}),
		toUnstructured(&corev1.Service{TypeMeta: newTypeMeta("v1", "Service"), ObjectMeta: meta,
			Spec: corev1.ServiceSpec{
				Selector: selector,
				Ports: []corev1.ServicePort{{Name: "registry", Port: CatalogPort,
					TargetPort: intstr.FromInt32(CatalogPort), Protocol: corev1.ProtocolTCP}}}}),
		toUnstructured(&networkingv1.NetworkPolicy{
			TypeMeta:   newTypeMeta(networkingv1.SchemeGroupVersion.String(), "NetworkPolicy"),
			ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{
				PodSelector: metav1.LabelSelector{MatchLabels: selector},
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
				Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{
					NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
						corev1.LabelMetadataName: SystemNamespace}}}}}}}}),
		toUnstructured(&appsv1.Deployment{TypeMeta: newTypeMeta(appsv1.SchemeGroupVersion.String(), "Deployment"),
			ObjectMeta: meta, Spec: buildDeploymentSpec(selector, map[string]string{
				// A changed catalog restarts the pod.
				Label + "-catalog": fmt.Sprintf("%x", sha256.Sum256(content))}, container, volume)}),
	}
}

// buildOperator returns the objects that a user would write: the catalog, and the version of the operator to install.
func buildOperator(catalogAddress, version string) []*unstructured.Unstructured {
	api := v1alpha1.SchemeGroupVersion.String()
	return []*unstructured.Unstructured{
		toUnstructured(&v1alpha1.OperatorCatalog{TypeMeta: newTypeMeta(api, "OperatorCatalog"),
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Catalog},
			Spec: v1alpha1.OperatorCatalogSpec{Source: v1alpha1.CatalogSource{
				Image: catalogAddress + "/catalog:latest", Insecure: true}}}),
		toUnstructured(&v1alpha1.ManagedOperator{TypeMeta: newTypeMeta(api, "ManagedOperator"),
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Operator},
			Spec: v1alpha1.ManagedOperatorSpec{Package: Package, Catalog: v1alpha1.LocalReference{Name: Catalog},
				Version: version, RemovalPolicy: v1alpha1.RemovalUninstall,
				ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"stage": "demo"}},
				Strategy: v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{{Name: "all",
					Soak: &metav1.Duration{Duration: 5 * time.Second}}}}}}),
	}
}

// listOLMLeftovers returns the object that OLM creates for a package in a
// namespace and does not delete with the package.
func listOLMLeftovers() []*unstructured.Unstructured {
	leftover := &unstructured.Unstructured{}
	leftover.SetGroupVersionKind(operatorsv1.GroupVersion.WithKind("Operator"))
	leftover.SetName(Package + "." + Package)
	return []*unstructured.Unstructured{leftover}
}

// BuildCatalog returns the file-based catalog of the sample operator: a stream of JSON documents. It contains the
// manifests, so that only the image of the operator's Deployment must be pulled.
func BuildCatalog(image string) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	entries := []map[string]any{{"name": formatCSVName(Before)},
		{"name": formatCSVName(After), "replaces": formatCSVName(Before)}}
	for _, document := range []map[string]any{
		{"schema": "olm.package", "name": Package, "defaultChannel": channel},
		{"schema": "olm.channel", "package": Package, "name": channel, "entries": entries},
		buildBundle(image, Before, ""),
		buildBundle(image, After, Before),
	} {
		if err := e.Encode(document); err != nil {
			panic(err) // maps of strings always marshal
		}
	}
	return out.Bytes()
}

func formatCSVName(version string) string { return Package + ".v" + version }

// buildBundle returns the catalog's document for a version. replaces is empty for the first version.
func buildBundle(image, version, replaces string) map[string]any {
	raw, err := toUnstructured(buildCSV(image, version, replaces)).MarshalJSON()
	if err != nil {
		panic(err) // a typed object with a kind always marshals
	}
	return map[string]any{"schema": "olm.bundle", "package": Package, "name": formatCSVName(version),
		"properties": []map[string]any{
			{"type": "olm.package", "value": map[string]string{"packageName": Package, "version": version}},
			{"type": "olm.bundle.object", "value": map[string]any{"data": raw}},
		},
		"relatedImages": []map[string]string{{"name": "registry", "image": image}}}
}

const description = "A stand-in for an operator of yours: OLM installs and upgrades it like any other, but it has no " +
	"kind of its own. It runs an empty OCI registry out of Bellwether's own image, so that nothing else has to be " +
	"pulled."

// buildCSV returns the ClusterServiceVersion of a version of the sample operator.
func buildCSV(image, version, replaces string) *operatorsv1alpha1.ClusterServiceVersion {
	modes := []operatorsv1alpha1.InstallMode{
		{Type: operatorsv1alpha1.InstallModeTypeOwnNamespace, Supported: true},
		{Type: operatorsv1alpha1.InstallModeTypeSingleNamespace, Supported: true},
		{Type: operatorsv1alpha1.InstallModeTypeMultiNamespace},
		{Type: operatorsv1alpha1.InstallModeTypeAllNamespaces, Supported: true},
	}
	if replaces != "" {
		replaces = formatCSVName(replaces)
	}
	return &operatorsv1alpha1.ClusterServiceVersion{
		TypeMeta: newTypeMeta(operatorsv1alpha1.SchemeGroupVersion.String(),
			operatorsv1alpha1.ClusterServiceVersionKind),
		ObjectMeta: metav1.ObjectMeta{Name: formatCSVName(version), Annotations: map[string]string{
			"capabilities": "Basic Install", "containerImage": image}},
		Spec: operatorsv1alpha1.ClusterServiceVersionSpec{
			DisplayName: "Bellwether Sample", Description: description, Replaces: replaces, InstallModes: modes,
			Version:  libversion.OperatorVersion{Version: semver.MustParse(version)},
			Provider: operatorsv1alpha1.AppLink{Name: "The Bellwether Authors"},
			InstallStrategy: operatorsv1alpha1.NamedInstallStrategy{
				StrategyName: operatorsv1alpha1.InstallStrategyNameDeployment,
				StrategySpec: operatorsv1alpha1.StrategyDetailsDeployment{
					DeploymentSpecs: []operatorsv1alpha1.StrategyDeploymentSpec{{Name: Package,
						Spec: buildDeploymentSpec(map[string]string{"app.kubernetes.io/name": Package},
							map[string]string{"app.kubernetes.io/version": version}, buildRegistryContainer(image))}}}},
		},
	}
}

// buildDeploymentSpec returns a Deployment with one pod that meets the restricted level of Pod Security.
func buildDeploymentSpec(selector, annotations map[string]string, c corev1.Container,
	volumes ...corev1.Volume) appsv1.DeploymentSpec {
	return appsv1.DeploymentSpec{Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: selector},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: selector, Annotations: annotations},
			Spec: corev1.PodSpec{AutomountServiceAccountToken: ptr.To(false), Volumes: volumes,
				SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true),
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
				Containers: []corev1.Container{c}},
		}}
}

// buildRegistryContainer returns a container that runs `bellwether registry serve`. It listens on the pod's own
// address, so that it also works with IPv6.
func buildRegistryContainer(image string, extraArgs ...string) corev1.Container {
	return corev1.Container{Name: "registry", Image: image,
		Args: append([]string{"registry", "serve", "--addr=[$(POD_IP)]:" + strconv.Itoa(CatalogPort)}, extraArgs...),
		Env: []corev1.EnvVar{{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}},
		Ports: []corev1.ContainerPort{{Name: "registry", ContainerPort: CatalogPort}},
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 2, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/v2/", Port: intstr.FromInt32(CatalogPort)}}},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")}},
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false),
			ReadOnlyRootFilesystem: ptr.To(true), Capabilities: &corev1.Capabilities{
				Drop: []corev1.Capability{"ALL"}}},
	}
}

func newTypeMeta(version, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}

// toUnstructured converts a typed object for a server-side apply: it removes the status and the empty fields.
func toUnstructured(typed any) *unstructured.Unstructured {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		panic(err) // types of Kubernetes and Bellwether always convert
	}
	delete(fields, "status")
	return &unstructured.Unstructured{Object: fields}
}
