// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render writes down the Deployment and the Service of an EchoServer as
// they are applied. It only computes.
package render

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	metaac "k8s.io/client-go/applyconfigurations/meta/v1"

	echov1alpha1 "github.com/bellwether-dev/bellwether/testbed/echo/api/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/echo/operator/plan"
)

const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	labelVersion   = "app.kubernetes.io/version"
)

// Desired is what must exist for an EchoServer.
type Desired struct {
	Deployment *appsac.DeploymentApplyConfiguration
	Service    *coreac.ServiceApplyConfiguration
}

// Objects returns the Deployment and the Service that in calls for.
func Objects(in plan.Input) Desired {
	es := in.Server
	labels := plan.Selector(es.Name)
	labels[labelManagedBy] = "echo-operator"
	owner := metaac.OwnerReference().
		WithAPIVersion(echov1alpha1.GroupVersion.String()).WithKind("EchoServer").
		WithName(es.Name).WithUID(es.UID).WithController(true).WithBlockOwnerDeletion(true)

	return Desired{
		Deployment: appsac.Deployment(plan.ChildName(es.Name), es.Namespace).
			WithLabels(labels).WithOwnerReferences(owner).
			WithSpec(appsac.DeploymentSpec().
				WithReplicas(plan.Replicas(es)).
				WithSelector(metaac.LabelSelector().WithMatchLabels(plan.Selector(es.Name))).
				WithTemplate(podTemplate(in, labels))),
		Service: coreac.Service(plan.ChildName(es.Name), es.Namespace).
			WithLabels(labels).WithOwnerReferences(owner).
			WithSpec(coreac.ServiceSpec().
				WithSelector(plan.Selector(es.Name)).
				WithPorts(coreac.ServicePort().WithName("http").WithProtocol(corev1.ProtocolTCP).
					WithPort(plan.ServerPort).WithTargetPort(intstr.FromString("http")))),
	}
}

func podTemplate(in plan.Input, labels map[string]string) *coreac.PodTemplateSpecApplyConfiguration {
	spec := in.Server.Spec
	return coreac.PodTemplateSpec().
		WithLabels(labels).WithLabels(map[string]string{labelVersion: in.Version}).
		WithSpec(coreac.PodSpec().
			WithAutomountServiceAccountToken(false).
			WithContainers(coreac.Container().WithName("server").
				WithImage(plan.ServerImage+":"+in.Version).
				WithEnv(
					env("ECHO_MESSAGE", spec.Message),
					env("ECHO_UPPERCASE", strconv.FormatBool(spec.Uppercase)),
					env("ECHO_VERSION", in.Version),
					env("ECHO_FAULT", string(in.Fault)),
					fieldEnv("POD_NAME", "metadata.name"),
					fieldEnv("POD_IP", "status.podIP"),
				).
				WithPorts(coreac.ContainerPort().WithName("http").
					WithContainerPort(plan.ServerPort).WithProtocol(corev1.ProtocolTCP)).
				WithReadinessProbe(coreac.Probe().WithPeriodSeconds(2).
					WithHTTPGet(coreac.HTTPGetAction().WithPath("/healthz").WithPort(intstr.FromString("http")))).
				WithResources(coreac.ResourceRequirements().WithRequests(corev1.ResourceList{
					corev1.ResourceCPU:    resource.MustParse("5m"),
					corev1.ResourceMemory: resource.MustParse("16Mi"),
				}))))
}

func env(name, value string) *coreac.EnvVarApplyConfiguration {
	return coreac.EnvVar().WithName(name).WithValue(value)
}

func fieldEnv(name, path string) *coreac.EnvVarApplyConfiguration {
	return coreac.EnvVar().WithName(name).WithValueFrom(coreac.EnvVarSource().
		WithFieldRef(coreac.ObjectFieldSelector().WithFieldPath(path)))
}
