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
	// Package is the sample operator's package, and the namespace that it is installed into.
	Package = "bellwether-sample"
	// Operator is the name of its ManagedOperator.
	Operator = "sample"
	// Before is the version that is installed first.
	Before = "1.0.0"
	// After is the version that it is upgraded to.
	After = "1.1.0"
	// Catalog is the name of the OperatorCatalog, and of what serves the catalog.
	Catalog = "demo-catalog"
	// CatalogPort is the port of the Service of that name.
	CatalogPort = 5000

	channel     = "stable"
	catalogFile = "catalog.json"
)

// namespaces are marked before anything else is done, so that the removal knows them.
func namespaces() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, name := range marked {
		out = append(out, object(&corev1.Namespace{TypeMeta: typeMeta(corev1.SchemeGroupVersion.String(), "Namespace"),
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{Label: "true"}}}))
	}
	return out
}

// catalogServer serves the sample catalog within the cluster. It is a registry that nobody can push to.
func catalogServer(image string) []*unstructured.Unstructured {
	content := FBC(image)
	of := metav1.ObjectMeta{Namespace: Namespace, Name: Catalog}
	selector := map[string]string{"app.kubernetes.io/name": Catalog}
	volume := corev1.Volume{Name: "catalog"}
	volume.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: Catalog}}
	container := registry(image, "--catalog=/catalog")
	container.ReadinessProbe.HTTPGet.Path = "/v2/catalog/tags/list"
	container.VolumeMounts = []corev1.VolumeMount{{Name: "catalog", MountPath: "/catalog", ReadOnly: true}}
	return []*unstructured.Unstructured{
		object(&corev1.ConfigMap{TypeMeta: typeMeta("v1", "ConfigMap"), ObjectMeta: of,
			Data: map[string]string{catalogFile: string(content)}}),
		object(&corev1.Service{TypeMeta: typeMeta("v1", "Service"), ObjectMeta: of, Spec: corev1.ServiceSpec{
			Selector: selector,
			Ports: []corev1.ServicePort{{Name: "registry", Port: CatalogPort,
				TargetPort: intstr.FromInt32(CatalogPort), Protocol: corev1.ProtocolTCP}}}}),
		object(&networkingv1.NetworkPolicy{
			TypeMeta:   typeMeta(networkingv1.SchemeGroupVersion.String(), "NetworkPolicy"),
			ObjectMeta: of, Spec: networkingv1.NetworkPolicySpec{
				PodSelector: metav1.LabelSelector{MatchLabels: selector},
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
				Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{
					NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
						corev1.LabelMetadataName: SystemNamespace}}}}}}}}),
		object(&appsv1.Deployment{TypeMeta: typeMeta(appsv1.SchemeGroupVersion.String(), "Deployment"), ObjectMeta: of,
			Spec: deployment(selector, map[string]string{
				// A changed catalog restarts the pod.
				Label + "-catalog": fmt.Sprintf("%x", sha256.Sum256(content))}, container, volume)}),
	}
}

// operator is what the user would write: where the catalog is, and which version runs where.
func operator(catalogAddress, version string) []*unstructured.Unstructured {
	api := v1alpha1.SchemeGroupVersion.String()
	return []*unstructured.Unstructured{
		object(&v1alpha1.OperatorCatalog{TypeMeta: typeMeta(api, "OperatorCatalog"),
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Catalog},
			Spec: v1alpha1.OperatorCatalogSpec{Source: v1alpha1.CatalogSource{
				Image: catalogAddress + "/catalog:latest", Insecure: true}}}),
		object(&v1alpha1.ManagedOperator{TypeMeta: typeMeta(api, "ManagedOperator"),
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Operator},
			Spec: v1alpha1.ManagedOperatorSpec{Package: Package, Catalog: v1alpha1.LocalReference{Name: Catalog},
				Version: version, RemovalPolicy: v1alpha1.RemovalUninstall,
				ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"stage": "demo"}},
				Strategy: v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{{Name: "all",
					Soak: &metav1.Duration{Duration: 5 * time.Second}}}}}}),
	}
}

// leftByOLM is what OLM makes for the package in a namespace, and does not remove with it.
func leftByOLM() []*unstructured.Unstructured {
	left := &unstructured.Unstructured{}
	left.SetGroupVersionKind(operatorsv1.GroupVersion.WithKind("Operator"))
	left.SetName(Package + "." + Package)
	return []*unstructured.Unstructured{left}
}

// FBC is the file-based catalog of the sample operator: a stream of JSON documents with the manifests in them, so that
// nothing but the image of its Deployment has to be pulled.
func FBC(image string) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	entries := []map[string]any{{"name": csvName(Before)}, {"name": csvName(After), "replaces": csvName(Before)}}
	for _, document := range []map[string]any{
		{"schema": "olm.package", "name": Package, "defaultChannel": channel},
		{"schema": "olm.channel", "package": Package, "name": channel, "entries": entries},
		bundle(image, Before, ""),
		bundle(image, After, Before),
	} {
		if err := e.Encode(document); err != nil {
			panic(err) // maps of strings always marshal
		}
	}
	return out.Bytes()
}

func csvName(version string) string { return Package + ".v" + version }

func bundle(image, version, replaces string) map[string]any {
	raw, err := object(csv(image, version, replaces)).MarshalJSON()
	if err != nil {
		panic(err) // it was made of an object with a kind
	}
	return map[string]any{"schema": "olm.bundle", "package": Package, "name": csvName(version),
		"properties": []map[string]any{
			{"type": "olm.package", "value": map[string]string{"packageName": Package, "version": version}},
			{"type": "olm.bundle.object", "value": map[string]any{"data": raw}},
		},
		"relatedImages": []map[string]string{{"name": "registry", "image": image}}}
}

const description = "A stand-in for an operator of yours: OLM installs and upgrades it like any other, but it has no " +
	"kind of its own. It runs an empty OCI registry out of Bellwether's own image, so that nothing else has to be " +
	"pulled."

func csv(image, version, replaces string) *operatorsv1alpha1.ClusterServiceVersion {
	modes := []operatorsv1alpha1.InstallMode{
		{Type: operatorsv1alpha1.InstallModeTypeOwnNamespace, Supported: true},
		{Type: operatorsv1alpha1.InstallModeTypeSingleNamespace, Supported: true},
		{Type: operatorsv1alpha1.InstallModeTypeMultiNamespace},
		{Type: operatorsv1alpha1.InstallModeTypeAllNamespaces, Supported: true},
	}
	if replaces != "" {
		replaces = csvName(replaces)
	}
	return &operatorsv1alpha1.ClusterServiceVersion{
		TypeMeta: typeMeta(operatorsv1alpha1.SchemeGroupVersion.String(), operatorsv1alpha1.ClusterServiceVersionKind),
		ObjectMeta: metav1.ObjectMeta{Name: csvName(version), Annotations: map[string]string{
			"capabilities": "Basic Install", "containerImage": image}},
		Spec: operatorsv1alpha1.ClusterServiceVersionSpec{
			DisplayName: "Bellwether Sample", Description: description, Replaces: replaces, InstallModes: modes,
			Version:  libversion.OperatorVersion{Version: semver.MustParse(version)},
			Provider: operatorsv1alpha1.AppLink{Name: "The Bellwether Authors"},
			InstallStrategy: operatorsv1alpha1.NamedInstallStrategy{
				StrategyName: operatorsv1alpha1.InstallStrategyNameDeployment,
				StrategySpec: operatorsv1alpha1.StrategyDetailsDeployment{
					DeploymentSpecs: []operatorsv1alpha1.StrategyDeploymentSpec{{Name: Package,
						Spec: deployment(map[string]string{"app.kubernetes.io/name": Package}, map[string]string{
							"app.kubernetes.io/version": version}, registry(image))}}}},
		},
	}
}

// deployment runs a container in one pod, as restricted as Pod Security knows.
func deployment(selector, annotations map[string]string, c corev1.Container,
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

// registry is a container with `bellwether registry serve`. It listens on the pod's own address, also where that is one
// of IPv6.
func registry(image string, more ...string) corev1.Container {
	return corev1.Container{Name: "registry", Image: image,
		Args: append([]string{"registry", "serve", "--addr=[$(POD_IP)]:" + strconv.Itoa(CatalogPort)}, more...),
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

func typeMeta(version, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}

// object is what is applied of a typed object: no status, and no fields that only look set.
func object(typed any) *unstructured.Unstructured {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		panic(err) // types of Kubernetes and of ours always convert
	}
	delete(fields, "status")
	return &unstructured.Unstructured{Object: fields}
}
