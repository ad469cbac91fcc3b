// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the API of the sample operator: the EchoServer kind.
// It imports apimachinery only, so that anything may import it.
//
// +kubebuilder:object:generate=true
// +groupName=echo.bellwether.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of EchoServer.
var GroupVersion = schema.GroupVersion{Group: "echo.bellwether.dev", Version: "v1alpha1"}

// Condition types of an EchoServer.
const (
	// ConditionAvailable is True while at least one server of the current
	// generation answers its readiness probe, or none is wanted.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while the servers do not yet all run the
	// wanted template.
	ConditionProgressing = "Progressing"
)

// Reasons of an EchoServer's conditions.
const (
	ReasonServersReady    = "ServersReady"
	ReasonServersNotReady = "ServersNotReady"
	ReasonRollingOut      = "RollingOut"
	ReasonRolledOut       = "RolledOut"
)

// EchoServerSpec says what the servers answer and how many there are.
type EchoServerSpec struct {
	// Message is the text that every server answers with; 1 to 1024 characters.
	Message string `json:"message"`
	// Replicas is the number of servers, 0 to 10; the API server defaults it to 1.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Uppercase makes the servers answer in capital letters. The CRD has this
	// field from version 1.1.0 on; before that the API server prunes it.
	// +optional
	Uppercase bool `json:"uppercase,omitempty"`
}

// EchoServerStatus is what the operator last observed.
type EchoServerStatus struct {
	// ObservedGeneration is the generation that this status speaks of.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ReadyReplicas is the number of servers that answer their readiness probe.
	ReadyReplicas int32 `json:"readyReplicas"`
	// Version is the version of the operator that last reconciled the object.
	Version string `json:"version,omitempty"`
	// Conditions are Available and Progressing.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// EchoServer is a set of small HTTP servers that answer with a message.
//
// +kubebuilder:object:root=true
type EchoServer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   EchoServerSpec   `json:"spec"`
	Status EchoServerStatus `json:"status,omitempty"`
}

// EchoServerList is a list of EchoServers.
//
// +kubebuilder:object:root=true
type EchoServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EchoServer `json:"items"`
}

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &EchoServer{}, &EchoServerList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
