// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what an EchoServer needs: its Deployment, its Service
// and its status. It is pure: no client, no clock, no logger.
package plan

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	metaac "k8s.io/client-go/applyconfigurations/meta/v1"

	echov1alpha1 "github.com/bellwether-dev/bellwether/testbed/echo/api/v1alpha1"
)

const (
	// ServerImage is the repository of the server's image; its tag is the
	// operator's version.
	ServerImage = "example.com/bellwether/echo-server"
	// ServerPort is the port that every server listens on, at its pod's address.
	ServerPort = 8080

	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelManagedBy = "app.kubernetes.io/managed-by"
	labelVersion   = "app.kubernetes.io/version"
)

// Fault is the fault that an operator was told to have.
type Fault string

const (
	// FaultNone is a good operator.
	FaultNone Fault = ""
	// FaultHalf makes every second reconcile fail and every server answer 500.
	FaultHalf Fault = "half"
)

// ParseFault reads the value of ECHO_FAULT. An unknown value is an error, so
// that a misspelt switch does not pass for a good operator.
func ParseFault(s string) (Fault, error) {
	switch f := Fault(s); f {
	case FaultNone, FaultHalf:
		return f, nil
	default:
		return FaultNone, fmt.Errorf("unknown fault %q, want empty or %q", s, FaultHalf)
	}
}

// Input is all that a decision about one EchoServer rests on.
type Input struct {
	Server  *echov1alpha1.EchoServer
	Version string // of the operator and of the server image
	Fault   Fault
}

// Desired is what must exist for an EchoServer.
type Desired struct {
	Deployment *appsac.DeploymentApplyConfiguration
	Service    *coreac.ServiceApplyConfiguration
}

// ChildName is the name of the Deployment and the Service of the EchoServer
// called name. The suffix keeps them apart from the operator's own Deployment.
func ChildName(name string) string { return name + "-echo" }

// Selector are the labels that select the pods of the EchoServer called name.
func Selector(name string) map[string]string {
	return map[string]string{labelName: "echo-server", labelInstance: name}
}

// Objects returns the Deployment and the Service that in calls for.
func Objects(in Input) Desired {
	es := in.Server
	labels := Selector(es.Name)
	labels[labelManagedBy] = "echo-operator"
	owner := metaac.OwnerReference().
		WithAPIVersion(echov1alpha1.GroupVersion.String()).WithKind("EchoServer").
		WithName(es.Name).WithUID(es.UID).WithController(true).WithBlockOwnerDeletion(true)

	return Desired{
		Deployment: appsac.Deployment(ChildName(es.Name), es.Namespace).
			WithLabels(labels).WithOwnerReferences(owner).
			WithSpec(appsac.DeploymentSpec().
				WithReplicas(replicas(es)).
				WithSelector(metaac.LabelSelector().WithMatchLabels(Selector(es.Name))).
				WithTemplate(podTemplate(in, labels))),
		Service: coreac.Service(ChildName(es.Name), es.Namespace).
			WithLabels(labels).WithOwnerReferences(owner).
			WithSpec(coreac.ServiceSpec().
				WithSelector(Selector(es.Name)).
				WithPorts(coreac.ServicePort().WithName("http").WithProtocol(corev1.ProtocolTCP).
					WithPort(ServerPort).WithTargetPort(intstr.FromString("http")))),
	}
}

func podTemplate(in Input, labels map[string]string) *coreac.PodTemplateSpecApplyConfiguration {
	spec := in.Server.Spec
	return coreac.PodTemplateSpec().
		WithLabels(labels).WithLabels(map[string]string{labelVersion: in.Version}).
		WithSpec(coreac.PodSpec().
			WithAutomountServiceAccountToken(false).
			WithContainers(coreac.Container().WithName("server").
				WithImage(ServerImage+":"+in.Version).
				WithEnv(
					env("ECHO_MESSAGE", spec.Message),
					env("ECHO_UPPERCASE", strconv.FormatBool(spec.Uppercase)),
					env("ECHO_VERSION", in.Version),
					env("ECHO_FAULT", string(in.Fault)),
					fieldEnv("POD_NAME", "metadata.name"),
					fieldEnv("POD_IP", "status.podIP"),
				).
				WithPorts(coreac.ContainerPort().WithName("http").
					WithContainerPort(ServerPort).WithProtocol(corev1.ProtocolTCP)).
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

func replicas(es *echov1alpha1.EchoServer) int32 {
	if es.Spec.Replicas == nil {
		return 1
	}
	return *es.Spec.Replicas
}

// Servers is what the API server says of the Deployment, right after it was
// applied.
type Servers struct {
	Generation, ObservedGeneration   int64
	Total, Updated, Ready, Available int32
}

// Status returns the status of in.Server given its servers as observed.
// Transition times are kept where a condition did not change.
func Status(in Input, got Servers) echov1alpha1.EchoServerStatus {
	want := replicas(in.Server)
	st := *in.Server.Status.DeepCopy()
	st.ObservedGeneration = in.Server.Generation
	st.Version = in.Version
	st.ReadyReplicas = got.Ready

	rolledOut := got.ObservedGeneration >= got.Generation &&
		got.Updated == want && got.Total == want && got.Available == want
	available := want == 0 || got.Available > 0
	ready := fmt.Sprintf("%d of %d servers are ready", got.Ready, want)

	apimeta.SetStatusCondition(&st.Conditions, condition(in.Server, echov1alpha1.ConditionAvailable, available,
		echov1alpha1.ReasonServersReady, echov1alpha1.ReasonServersNotReady, ready))
	apimeta.SetStatusCondition(&st.Conditions, condition(in.Server, echov1alpha1.ConditionProgressing, !rolledOut,
		echov1alpha1.ReasonRollingOut, echov1alpha1.ReasonRolledOut, ready))
	return st
}

func condition(es *echov1alpha1.EchoServer, kind string, holds bool, yes, no, message string) metav1.Condition {
	c := metav1.Condition{
		Type: kind, Status: metav1.ConditionFalse, Reason: no,
		Message: message, ObservedGeneration: es.Generation,
	}
	if holds {
		c.Status, c.Reason = metav1.ConditionTrue, yes
	}
	return c
}
