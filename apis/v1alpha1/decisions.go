// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Decision is what a person or the hub decided about an operator or one of its
// rollouts.
type Decision struct {
	// At is when it was decided where that is recorded, otherwise when the hub saw it.
	At metav1.Time `json:"at"`
	// By is the user name of whoever signed it, or "hub". It is empty where nobody has
	// to sign: the audit log of the API server has the name.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	By   string         `json:"by,omitempty"`
	What DecisionReason `json:"what"`
	// Rollout that it is about; empty for the operator.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Rollout string `json:"rollout,omitempty"`
	// On says what it is about, such as a gate of a wave, or a version.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	On string `json:"on,omitempty"`
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Reason string `json:"reason,omitempty"`
}

// DecisionReason says what was decided.
//
// +kubebuilder:validation:MaxLength=63
type DecisionReason string

// What people and the hub decide.
const (
	DecisionApproved              DecisionReason = "Approved"
	DecisionApprovalWithdrawn     DecisionReason = "ApprovalWithdrawn"
	DecisionGateOverridden        DecisionReason = "GateOverridden"
	DecisionGateOverrideWithdrawn DecisionReason = "GateOverrideWithdrawn"
	// DecisionWindowsOverridden says that a rollout may ignore ChangeWindows.
	DecisionWindowsOverridden       DecisionReason = "WindowsOverridden"
	DecisionWindowOverrideWithdrawn DecisionReason = "WindowOverrideWithdrawn"
	DecisionPaused                  DecisionReason = "Paused"
	DecisionResumed                 DecisionReason = "Resumed"
	// DecisionRetried says that clusters that failed are admitted again.
	DecisionRetried    DecisionReason = "Retried"
	DecisionAborted    DecisionReason = "Aborted"
	DecisionSuperseded DecisionReason = "Superseded"
	// DecisionRollbackRequested says that a person asked for a rollback, and
	// DecisionRollbackStarted that the hub started one.
	DecisionRollbackRequested DecisionReason = "RollbackRequested"
	DecisionRollbackStarted   DecisionReason = "RollbackStarted"
	// DecisionBlocked says that the rollout's version is blocked.
	DecisionBlocked     DecisionReason = "Blocked"
	DecisionUnblocked   DecisionReason = "Unblocked"
	DecisionVersionHeld DecisionReason = "VersionHeld"
	DecisionHoldLifted  DecisionReason = "HoldLifted"
	// DecisionRestartRequested says that another rollout of the same release was asked
	// for.
	DecisionRestartRequested DecisionReason = "RestartRequested"
	// DecisionRemovalConfirmed says that the operator may be uninstalled from many
	// clusters.
	DecisionRemovalConfirmed DecisionReason = "RemovalConfirmed"
	// DecisionPolicyNotMet says that a rollout admits nothing because of a
	// RolloutPolicy, and DecisionPolicyMet that it goes on.
	DecisionPolicyNotMet DecisionReason = "PolicyNotMet"
	DecisionPolicyMet    DecisionReason = "PolicyMet"
)

// DecidedByHub is who decided where no person did.
const DecidedByHub = "hub"

// DecisionLog is the newest decisions.
type DecisionLog struct {
	// Entries, the newest first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Entries []Decision `json:"entries,omitempty"`
	// Dropped counts the older entries that had no place any more.
	// +optional
	Dropped int64 `json:"dropped,omitempty"`
	// InForce is what was recorded and holds now, so that nothing is recorded twice.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=300
	// +kubebuilder:validation:items:MaxLength=512
	// +optional
	InForce []string `json:"inForce,omitempty"`
}
