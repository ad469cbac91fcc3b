// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ErrorBudgetPace slows a rollout down while error budgets of the operator are low.
// What counts is, of each objective, the average of the budgets of all clusters, and
// of these averages the lowest. From fullAbovePercent on the pace is full. Below,
// fewer clusters are changed at a time and waves soak longer, in proportion. Where
// nothing is left, or that is not known, no cluster is admitted.
//
// The pace is full while no cluster of the rollout has the operator. Rollbacks are
// never slowed down.
type ErrorBudgetPace struct {
	// FullAbovePercent is the part of the error budget that is left, in percent, from
	// which the pace is full.
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	FullAbovePercent *int32 `json:"fullAbovePercent,omitempty"`

	// Objectives are the SLIs whose budgets count. Empty: all objectives of the
	// operator.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=100
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.:]*[A-Za-z0-9])?$`
	// +listType=set
	// +optional
	Objectives []string `json:"objectives,omitempty"`
}

// PaceStatus is the pace of a rollout, and what it rests on.
type PaceStatus struct {
	// Percent of the full pace. At 0 nothing is admitted.
	Percent int32 `json:"percent"`
	// Reason why nothing is admitted; empty where something is.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Reason string `json:"reason,omitempty"`
	// Evidence says what the pace rests on, or what is missing.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Evidence string `json:"evidence,omitempty"`
	// At is when the budgets were measured; empty if they were not.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
	// Query in PromQL.
	// +kubebuilder:validation:MaxLength=2560
	// +optional
	Query string `json:"query,omitempty"`
	// Value is the part of the budget that is left: 1 is all, less than 0 overspent.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Value string `json:"value,omitempty"`
}
