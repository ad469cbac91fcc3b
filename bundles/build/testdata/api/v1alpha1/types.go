// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 has types with markers, for tests.
package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SnackSpec is the wanted state.
type SnackSpec struct {
	// Size is how many pieces
	// there are.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Pieces",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount","urn:alm:descriptor:io.kubernetes:custom"},order=1
	Size int32 `json:"size"`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,xDescriptors="urn:a,urn:b"
	HTTPPort int32     `json:"httpPort,omitempty"`
	Toppings []Topping `json:"toppings,omitempty"`
	Common   `json:",inline"`
	Ignored  string `json:"-"`
}

// Topping may contain another one.
type Topping struct {
	// Name of the topping.
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Name string   `json:"name"`
	Next *Topping `json:"next,omitempty"`
}

// Common is embedded.
type Common struct {
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Paused"
	Paused bool `json:"paused,omitempty"`
}

// SnackStatus is the state.
type SnackStatus struct {
	// +operator-sdk:csv:customresourcedefinitions:type=status
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Snack is something
// to eat.
// +operator-sdk:csv:customresourcedefinitions:displayName="A Snack"
// +operator-sdk:csv:customresourcedefinitions:resources={{Deployment,v1,"snack"},{Service,v1}}
type Snack struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SnackSpec   `json:"spec,omitempty"`
	Status SnackStatus `json:"status,omitempty"`
}

// SnackList has no marker.
type SnackList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Snack `json:"items"`
}
