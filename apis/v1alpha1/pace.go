// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ErrorBudgetPace slows a rollout down while error budgets of the operator are low. For each objective, the average
// of the budgets of all clusters is computed, and the lowest average is used. At or above fullAbovePercent, the pace
// is full. Below, fewer clusters are changed at a time and waves soak longer, in proportion. If no budget is left, or
// the budget is not known, no cluster is admitted.
//
// The pace is full while no cluster of the rollout has the operator. Rollbacks are never slowed down.
type ErrorBudgetPace struct {
	// FullAbovePercent is the remaining part of the error budget, in percent, from which the pace is full.
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	FullAbovePercent *int32 `json:"fullAbovePercent,omitempty"`

	// Objectives are the SLIs whose budgets are used. Empty means all objectives of the operator.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=100
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.:]*[A-Za-z0-9])?$`
	// +listType=set
	// +optional
	Objectives []string `json:"objectives,omitempty"`
}

// PaceStatus is the pace of a rollout, with its evidence.
type PaceStatus struct {
	// Percent of the full pace. At 0, no cluster is admitted.
	Percent int32 `json:"percent"`
	// Reason why no cluster is admitted; empty if clusters are admitted.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Reason string `json:"reason,omitempty"`
	// Evidence describes the data behind the pace, or what is missing.
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
	// Value is the remaining part of the budget: 1 is all, less than 0 is overspent.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Value string `json:"value,omitempty"`
}
