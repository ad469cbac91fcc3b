// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"strings"

	"github.com/blang/semver/v4"
	libversion "github.com/operator-framework/api/pkg/lib/version"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	echov1alpha1 "github.com/bellwether-dev/bellwether/testbed/echo/api/v1alpha1"
)

const serviceAccount = "echo-operator"

// example is the EchoServer that the CSV shows to its readers.
const example = `[{"apiVersion":"echo.bellwether.dev/v1alpha1","kind":"EchoServer",` +
	`"metadata":{"name":"hello"},"spec":{"message":"hello","replicas":1}}]`

// csv returns the ClusterServiceVersion of release r.
func csv(r Release) *operatorsv1alpha1.ClusterServiceVersion {
	spec := description(r)
	spec.Version = libversion.OperatorVersion{Version: semver.MustParse(r.Version)}
	spec.MinKubeVersion = "1.30.0"
	if r.Replaces != "" {
		spec.Replaces = CSVName(r.Replaces)
	}
	for _, v := range r.Skips {
		spec.Skips = append(spec.Skips, CSVName(v))
	}
	spec.InstallModes = installModes()
	spec.CustomResourceDefinitions = operatorsv1alpha1.CustomResourceDefinitions{
		Owned: []operatorsv1alpha1.CRDDescription{{
			Name: "echoservers." + echov1alpha1.GroupVersion.Group, Version: echov1alpha1.GroupVersion.Version,
			Kind: "EchoServer", DisplayName: "Echo Server",
			Description: "A set of small HTTP servers that answer with a message.",
		}},
	}
	spec.InstallStrategy = operatorsv1alpha1.NamedInstallStrategy{
		StrategyName: operatorsv1alpha1.InstallStrategyNameDeployment,
		StrategySpec: operatorsv1alpha1.StrategyDetailsDeployment{
			DeploymentSpecs: []operatorsv1alpha1.StrategyDeploymentSpec{{Name: "echo-operator",
				Spec: deployment(r)}},
			ClusterPermissions: []operatorsv1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: serviceAccount,
				Rules: clusterRules()}},
			Permissions: []operatorsv1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: serviceAccount,
				Rules: namespaceRules()}},
		},
	}
	spec.RelatedImages = []operatorsv1alpha1.RelatedImage{
		{Name: "echo-operator", Image: OperatorImage + ":" + r.Version},
	}
	return &operatorsv1alpha1.ClusterServiceVersion{
		TypeMeta: metav1.TypeMeta{APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(),
			Kind: operatorsv1alpha1.ClusterServiceVersionKind},
		ObjectMeta: metav1.ObjectMeta{
			Name: CSVName(r.Version),
			Annotations: map[string]string{
				"alm-examples":   example,
				"capabilities":   "Seamless Upgrades",
				"categories":     "Developer Tools",
				"containerImage": OperatorImage + ":" + r.Version,
				"description":    "Deploys small HTTP servers that answer with a message.",
				"repository":     "https://github.com/bellwether-dev/bellwether",
				"support":        "The Bellwether Authors",
			},
		},
		Spec: spec,
	}
}

func description(r Release) operatorsv1alpha1.ClusterServiceVersionSpec {
	return operatorsv1alpha1.ClusterServiceVersionSpec{
		DisplayName: "Echo Operator",
		Description: strings.Join([]string{
			"The sample operator of Bellwether's testbed. It deploys small HTTP servers that answer with a message.",
			"## This version", r.Notes,
		}, "\n\n"),
		Keywords: []string{"echo", "sample", "testbed"},
		Maturity: "stable",
		Provider: operatorsv1alpha1.AppLink{Name: "The Bellwether Authors",
			URL: "https://github.com/bellwether-dev/bellwether"},
		Maintainers: []operatorsv1alpha1.Maintainer{{Name: "The Bellwether Authors",
			Email: "maintainers@bellwether.dev"}},
		Links: []operatorsv1alpha1.AppLink{{Name: "Source", URL: "https://github.com/bellwether-dev/bellwether"}},
		Icon:  []operatorsv1alpha1.Icon{{Data: iconSVG, MediaType: "image/svg+xml"}},
	}
}

// iconSVG is a bell, base64 as the CSV wants it:
// <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path d="M8 1a5 5 0 0 0-5 5v4l-2 2h14l-2-2V6a5 5 0 0
// 0-5-5zM6 13a2 2 0 0 0 4 0z"/></svg>
const iconSVG = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCAxNiAxNiI+PHBhdGggZD0iTTggMWE1" +
	"IDUgMCAwIDAtNSA1djRsLTIgMmgxNGwtMi0yVjZhNSA1IDAgMCAwLTUtNXpNNiAxM2EyIDIgMCAwIDAgNCAweiIvPjwvc3ZnPg=="

func installModes() []operatorsv1alpha1.InstallMode {
	return []operatorsv1alpha1.InstallMode{
		{Type: operatorsv1alpha1.InstallModeTypeOwnNamespace, Supported: true},
		{Type: operatorsv1alpha1.InstallModeTypeSingleNamespace, Supported: true},
		{Type: operatorsv1alpha1.InstallModeTypeMultiNamespace, Supported: false},
		{Type: operatorsv1alpha1.InstallModeTypeAllNamespaces, Supported: true},
	}
}

// clusterRules are needed wherever an EchoServer may be.
func clusterRules() []rbacv1.PolicyRule {
	group := []string{echov1alpha1.GroupVersion.Group}
	return []rbacv1.PolicyRule{
		{APIGroups: group, Resources: []string{"echoservers"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: group, Resources: []string{"echoservers/status"}, Verbs: []string{"patch"}},
		{APIGroups: group, Resources: []string{"echoservers/finalizers"}, Verbs: []string{"update"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"},
			Verbs: []string{"create", "get", "list", "patch", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"services"},
			Verbs: []string{"create", "get", "list", "patch", "watch"}},
	}
}

// namespaceRules are what leader election needs in the operator's own namespace.
func namespaceRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
			Verbs: []string{"create", "get", "update"}},
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}

func deployment(r Release) appsv1.DeploymentSpec {
	labels := map[string]string{"app.kubernetes.io/name": "echo-operator"}
	podLabels := map[string]string{"app.kubernetes.io/name": "echo-operator", "app.kubernetes.io/version": r.Version}
	return appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](1),
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: podLabels},
			Spec: corev1.PodSpec{
				ServiceAccountName: serviceAccount,
				SecurityContext: &corev1.PodSecurityContext{
					RunAsNonRoot:   ptr.To(true),
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
				TerminationGracePeriodSeconds: ptr.To[int64](10),
				Containers:                    []corev1.Container{container(r)},
			},
		},
	}
}

func container(r Release) corev1.Container {
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{PeriodSeconds: 5, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("health")},
		}}
	}
	return corev1.Container{
		Name:    "manager",
		Image:   OperatorImage + ":" + r.Version,
		Command: []string{"/echo-operator"},
		Args: []string{
			"--metrics-bind-address=$(POD_IP):8080",
			"--health-probe-bind-address=$(POD_IP):8081",
			"--leader-elect",
		},
		Env: environment(r),
		Ports: []corev1.ContainerPort{
			{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP},
			{Name: "health", ContainerPort: healthPort, Protocol: corev1.ProtocolTCP},
		},
		LivenessProbe:  probe("/healthz"),
		ReadinessProbe: probe("/readyz"),
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("10m"),
			corev1.ResourceMemory: resource.MustParse("64Mi"),
		}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false),
			ReadOnlyRootFilesystem:   ptr.To(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

func environment(r Release) []corev1.EnvVar {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name,
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	env := []corev1.EnvVar{
		{Name: "ECHO_VERSION", Value: r.Version},
		field("POD_IP", "status.podIP"),
		field("POD_NAMESPACE", "metadata.namespace"),
		field("WATCH_NAMESPACE", "metadata.annotations['olm.targetNamespaces']"),
	}
	if r.Fault != "" {
		env = append(env, corev1.EnvVar{Name: "ECHO_FAULT", Value: string(r.Fault)})
	}
	return env
}
