// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what an EchoServer's status says and what its parts are
// called. It is pure: no client, no clock, no logger.
package plan

import (
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	echov1alpha1 "github.com/bellwether-dev/bellwether/testbed/echo/api/v1alpha1"
)

const (
	// ServerImage is the repository of the server's image; its tag is the
	// operator's version.
	ServerImage = "example.com/bellwether/echo-server"
	// ServerPort is the port that every server listens on, at its pod's address.
	ServerPort = 8080
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

// ChildName is the name of the Deployment and the Service of the EchoServer
// called name. The suffix keeps them apart from the operator's own Deployment.
func ChildName(name string) string { return name + "-echo" }

// Selector are the labels that select the pods of the EchoServer called name.
func Selector(name string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":     "echo-server",
		"app.kubernetes.io/instance": name,
	}
}

// Replicas is the number of servers that es asks for.
func Replicas(es *echov1alpha1.EchoServer) int32 {
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
	want := Replicas(in.Server)
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
