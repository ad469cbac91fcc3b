// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// EventType returns the type of an Event with a reason. The type is Normal if all is well, if work continues or waits
// for something that happens by itself, or if a person made a decision. Every other reason is a failure and has the
// type Warning, including reasons that are not in the list.
func EventType(reason string) string {
	if _, normal := normalReasons[reason]; normal {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// ReadyEventType returns the type of the Event about a change of the condition Ready. The type is Warning for an
// object that is Stalled, whatever its reason, because a person must act.
func ReadyEventType(all []metav1.Condition) string {
	if IsTrue(all, v1alpha1.ConditionStalled) {
		return corev1.EventTypeWarning
	}
	return EventType(Get(all, v1alpha1.ConditionReady).Reason)
}

// normalReasons are the reasons of Events of the type Normal.
var normalReasons = map[string]struct{}{
	v1alpha1.ReasonSucceeded: {}, v1alpha1.ReasonProgressing: {}, v1alpha1.ReasonWaiting: {},
	v1alpha1.ReasonPending: {}, v1alpha1.ReasonPaused: {}, v1alpha1.ReasonDeleting: {}, v1alpha1.ReasonUninstalling: {},
	v1alpha1.ReasonScheduled: {}, v1alpha1.ReasonEnded: {},

	v1alpha1.ReasonLeaseFresh: {}, v1alpha1.ReasonNeverJoined: {}, v1alpha1.ReasonAPIServerReachable: {},
	v1alpha1.ReasonHibernating: {}, v1alpha1.ReasonSourcePaused: {},

	v1alpha1.ReasonGated: {}, v1alpha1.ReasonSoaking: {}, v1alpha1.ReasonVerifying: {},
	string(v1alpha1.DecisionSuperseded): {}, v1alpha1.ReasonNotAdmitted: {}, v1alpha1.ReasonReportPending: {},
	v1alpha1.ReasonWindowClosed: {}, v1alpha1.ReasonClusterBusy: {}, v1alpha1.ReasonDependencyNotMet: {},
	v1alpha1.ReasonVetoed: {}, v1alpha1.ReasonFrozen: {}, v1alpha1.ReasonPreflightPending: {},
	v1alpha1.ReasonBackupPending: {}, v1alpha1.ReasonCorrecting: {}, v1alpha1.ReasonNotCompared: {},
	v1alpha1.ReasonInSync: {}, v1alpha1.ReasonInForce: {}, v1alpha1.ReasonExcluding: {},

	// Other reasons that package rollouts reports.
	v1alpha1.ConditionPlanned: {}, "WaveStarted": {}, "WaveVerified": {}, "PolicyApplied": {}, "PolicyLifted": {},
	"ErrorBudgetLeft": {}, "GatePassed": {}, "GateOverridden": {}, "GateWaiting": {}, "GateUndecided": {},

	// Decisions of people, and decisions of the hub that end something.
	string(v1alpha1.DecisionApproved): {}, string(v1alpha1.DecisionApprovalWithdrawn): {},
	string(v1alpha1.DecisionGateOverrideWithdrawn): {}, string(v1alpha1.DecisionWindowsOverridden): {},
	string(v1alpha1.DecisionWindowOverrideWithdrawn): {}, string(v1alpha1.DecisionResumed): {},
	string(v1alpha1.DecisionRetried): {}, string(v1alpha1.DecisionRollbackRequested): {},
	string(v1alpha1.DecisionBlocked): {}, string(v1alpha1.DecisionUnblocked): {},
	string(v1alpha1.DecisionHoldLifted): {}, string(v1alpha1.DecisionRestartRequested): {},
	string(v1alpha1.DecisionRemovalConfirmed): {}, string(v1alpha1.DecisionPolicyMet): {},

	"StorageMigrated": {}, "ObjectivesEdited": {}, "UpdateAvailable": {},
}
