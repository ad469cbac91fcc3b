// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wrong has a marker that is not written as it must be.
package wrong

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SnackSpec is the wanted state.
type SnackSpec struct {
	// +operator-sdk:csv:customresourcedefinitions:type=metadata
	Size int32 `json:"size"`
}

// Snack is a kind.
type Snack struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              SnackSpec `json:"spec,omitempty"`
}
