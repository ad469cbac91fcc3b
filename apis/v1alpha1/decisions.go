// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Decision is a decision of a person or the hub about an operator or one of its rollouts.
type Decision struct {
	// At is when the decision was made if that is recorded, otherwise when the hub observed it.
	At metav1.Time `json:"at"`
	// By is the user name of the person who signed the decision, or "hub". It is empty if no signature is required:
	// the audit log of the API server has the name.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	By   string         `json:"by,omitempty"`
	What DecisionReason `json:"what"`
	// Rollout is the rollout that the decision is about; empty for the operator.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Rollout string `json:"rollout,omitempty"`
	// On is the subject of the decision, such as a gate of a wave, or a version.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	On string `json:"on,omitempty"`
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Reason string `json:"reason,omitempty"`
}

// DecisionReason is the kind of a decision.
//
// +kubebuilder:validation:MaxLength=63
type DecisionReason string

// The decisions of people and the hub.
const (
	DecisionApproved              DecisionReason = "Approved"
	DecisionApprovalWithdrawn     DecisionReason = "ApprovalWithdrawn"
	DecisionGateOverridden        DecisionReason = "GateOverridden"
	DecisionGateOverrideWithdrawn DecisionReason = "GateOverrideWithdrawn"
	// DecisionWindowsOverridden means that a rollout may ignore ChangeWindows.
	DecisionWindowsOverridden       DecisionReason = "WindowsOverridden"
	DecisionWindowOverrideWithdrawn DecisionReason = "WindowOverrideWithdrawn"
	DecisionPaused                  DecisionReason = "Paused"
	DecisionResumed                 DecisionReason = "Resumed"
	// DecisionRetried means that failed clusters are admitted again.
	DecisionRetried    DecisionReason = "Retried"
	DecisionAborted    DecisionReason = "Aborted"
	DecisionSuperseded DecisionReason = "Superseded"
	// DecisionRollbackRequested means that a person requested a rollback, and DecisionRollbackStarted that the hub
	// started one.
	DecisionRollbackRequested DecisionReason = "RollbackRequested"
	DecisionRollbackStarted   DecisionReason = "RollbackStarted"
	// DecisionBlocked means that the rollout's version is blocked.
	DecisionBlocked     DecisionReason = "Blocked"
	DecisionUnblocked   DecisionReason = "Unblocked"
	DecisionVersionHeld DecisionReason = "VersionHeld"
	DecisionHoldLifted  DecisionReason = "HoldLifted"
	// DecisionRestartRequested means that another rollout of the same release was requested.
	DecisionRestartRequested DecisionReason = "RestartRequested"
	// DecisionRemovalConfirmed means that the operator may be uninstalled from many clusters.
	DecisionRemovalConfirmed DecisionReason = "RemovalConfirmed"
	// DecisionPolicyNotMet means that a rollout admits no cluster because of a RolloutPolicy, and DecisionPolicyMet
	// that it continues.
	DecisionPolicyNotMet DecisionReason = "PolicyNotMet"
	DecisionPolicyMet    DecisionReason = "PolicyMet"
)

// DecidedByHub is the name in Decision.By for decisions of the hub.
const DecidedByHub = "hub"

// DecisionLog has the newest decisions.
type DecisionLog struct {
	// Entries are the decisions, the newest first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Entries []Decision `json:"entries,omitempty"`
	// Dropped counts the older decisions that were removed.
	// +optional
	Dropped int64 `json:"dropped,omitempty"`
	// InForce are the recorded decisions that are in force now, so that no decision is recorded twice.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=300
	// +kubebuilder:validation:items:MaxLength=512
	// +optional
	InForce []string `json:"inForce,omitempty"`
}
