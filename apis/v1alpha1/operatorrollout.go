// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OperatorRollout is one change of one operator across the fleet. Its plan is frozen; only paused, abort, retries,
// approvals, overrides, windowOverride and blocked can be changed.
//
// The wave of each cluster is in the labels of its OperatorInstall (bellwether.dev/rollout and bellwether.dev/wave),
// and not in this object.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=or,categories=bellwether
// +kubebuilder:printcolumn:name="Operator",type=string,JSONPath=`.spec.operator.name`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.release.version`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Wave",type=string,JSONPath=`.status.currentWave`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clusters.total`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.clusters.succeeded`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.clusters.failed`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="a rollout's name becomes the value of a label: at most 63 characters"
type OperatorRollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OperatorRolloutSpec `json:"spec"`
	// +optional
	Status OperatorRolloutStatus `json:"status,omitempty"`
}

// OperatorRolloutSpec has the frozen plan, the fields that a person may change (paused, abort, retries, approvals,
// overrides), and the reason why the version is blocked, which the hub writes.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.abort) || has(self.abort)",message="an aborted rollout stays aborted: change the ManagedOperator to start another one"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.retries) || oldSelf.retries == 0 || has(self.retries)",message="retries can only be raised, not removed"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.rollback) == has(self.rollback)",message="a rollout cannot become a rollback: roll it back with bellwether rollout rollback"
// +kubebuilder:validation:XValidation:rule="!has(self.rollback) || !has(self.abort) || !has(self.abort.rollback)",message="a rollback cannot be rolled back: set another version in the ManagedOperator"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.restart) == has(self.restart)",message="restart cannot be added or removed: change the ManagedOperator's"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.requirements) == has(self.requirements)",message="requirements cannot be added or removed"
// +kubebuilder:validation:XValidation:rule="(has(oldSelf.resumed) ? oldSelf.resumed : 0) == (has(self.resumed) ? self.resumed : 0)",message="resumed cannot be added or removed: resume the ManagedOperator"
type OperatorRolloutSpec struct {
	// Operator names the ManagedOperator in the same namespace.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="operator cannot be changed"
	Operator LocalReference `json:"operator"`

	// Revision counts the rollouts of an operator, from 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="revision cannot be changed"
	// +kubebuilder:validation:Maximum=999999999999
	Revision int64 `json:"revision"`

	// Release is the release that is rolled out.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="release cannot be changed: change the ManagedOperator, which starts another rollout"
	Release Release `json:"release"`

	// Requirements are what the release needs from a cluster. Absent if they were not read, for instance in
	// a rollback.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="requirements cannot be changed"
	// +optional
	Requirements *ReleaseRequirements `json:"requirements,omitempty"`

	// ClusterSelector selects the clusters.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterSelector cannot be changed: change the ManagedOperator"
	ClusterSelector metav1.LabelSelector `json:"clusterSelector"`

	// Strategy with every default filled in.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="strategy cannot be changed while it runs: change the ManagedOperator, which applies to the next rollout"
	Strategy RolloutStrategy `json:"strategy"`

	// Restart is the value of the ManagedOperator's spec.restart that this rollout
	// was made with.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="restart cannot be changed: change the ManagedOperator's"
	// +optional
	Restart string `json:"restart,omitempty"`

	// Resumed is the highest revision of admissions found on clusters that a person has agreed to continue from.
	// While a cluster has a higher revision, no cluster is admitted.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="resumed cannot be changed: resume the ManagedOperator"
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999999999999
	Resumed int64 `json:"resumed,omitempty"`

	// Paused stops admission; admitted clusters finish.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// PausedReason is why the rollout is paused.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	PausedReason string `json:"pausedReason,omitempty"`

	// Abort ends the rollout permanently; admitted clusters finish.
	// +optional
	Abort *RolloutAbort `json:"abort,omitempty"`

	// Retries is raised to admit failed clusters again: a failed cluster is admitted again, with a new deadline,
	// while the attempt in its admission is lower than retries.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="retries can only be raised"
	// +optional
	Retries int64 `json:"retries,omitempty"`

	// Blocked is why the version is blocked; empty if it is not blocked. The hub keeps it consistent with the
	// blocks on the catalog. While it is set, no cluster is admitted, and admitted clusters that have not begun do
	// not begin.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Blocked string `json:"blocked,omitempty"`

	// Rollback is set if this rollout rolls clusters back to the release that they ran before another rollout.
	// +kubebuilder:validation:XValidation:rule="self.of == oldSelf.of && self.uid == oldSelf.uid",message="the rollout that is rolled back cannot be changed"
	// +optional
	Rollback *RolloutRollback `json:"rollback,omitempty"`

	// Approvals given for waves with an approval gate. A user who adds an approval needs the verb approve on
	// this rollout.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=wave
	// +listMapKey=gate
	// +optional
	Approvals []Approval `json:"approvals,omitempty"`

	// Overrides of gates that failed or have no verdict. A user who adds an override needs the verb override on this
	// rollout. Overrides do not replace approvals.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=wave
	// +listMapKey=gate
	// +optional
	Overrides []GateOverride `json:"overrides,omitempty"`

	// WindowOverride lets this rollout admit clusters while ChangeWindows are closed. A user who sets, changes or
	// removes it needs the verb override on this rollout.
	// +optional
	WindowOverride *WindowOverride `json:"windowOverride,omitempty"`
}

// Release is one version of one operator with its install settings.
type Release struct {
	// +kubebuilder:validation:MaxLength=63
	Package string `json:"package"`
	// +kubebuilder:validation:MaxLength=63
	Channel string `json:"channel"`
	// Version and Bundle are empty if AsInstalled is set.
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version"`
	// Bundle is the name of the bundle, which is the name of its CSV.
	// +kubebuilder:validation:MaxLength=253
	Bundle string `json:"bundle"`
	// Catalog has the bundle and the upgrade path to it.
	Catalog CatalogPin      `json:"catalog"`
	Install InstallSettings `json:"install"`
	// Adopt is spec.adopt of the ManagedOperator. If it is absent, operators that others installed are refused.
	// +optional
	Adopt *OperatorAdoption `json:"adopt,omitempty"`
	// AsInstalled takes over operators that others installed, in the version that each cluster has, and does not
	// upgrade them. On a cluster without the operator, it installs nothing.
	// +optional
	AsInstalled bool `json:"asInstalled,omitempty"`
}

// CatalogPin is a catalog at one digest.
type CatalogPin struct {
	Source CatalogSource `json:"source"`
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:MinLength=1
	Digest string `json:"digest"`
	// PublicKeys, in PEM: the catalog must be signed by one of these keys. Empty means that no signature is required.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=2048
	// +optional
	PublicKeys []string `json:"publicKeys,omitempty"`
}

// RolloutAbort ends a rollout.
type RolloutAbort struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`
	// Superseded is true if the reason is a newer target.
	// +optional
	Superseded bool `json:"superseded,omitempty"`
	// Rollback rolls the clusters that the rollout admitted back to their previous release. The version is held for
	// the operator.
	// +optional
	Rollback *RollbackRequest `json:"rollback,omitempty"`
}

// RollbackRequest defines what a rollback may do.
type RollbackRequest struct {
	// Force permits the rollback although custom resources may lose data for which there is no backup.
	// +optional
	Force bool `json:"force,omitempty"`
}

// RolloutRollback is the part of a rollout that makes it a rollback.
type RolloutRollback struct {
	// Of is the name of the rollout that is rolled back, and UID its UID. Only clusters that it admitted are rolled
	// back, each to its previous release.
	// +kubebuilder:validation:MaxLength=63
	Of string `json:"of"`
	// +kubebuilder:validation:MaxLength=63
	UID string `json:"uid"`
	// Version is the version that is rolled back.
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version"`
	// Reason is why it is rolled back.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`
	// Automatic is true if the rollout's failure policy requested the rollback, and false if a person did.
	// +optional
	Automatic bool `json:"automatic,omitempty"`
	// Force permits the rollback although custom resources may lose data for which there is no backup.
	// +optional
	Force bool `json:"force,omitempty"`
}

// Approval is the decision of a person that a wave may start.
type Approval struct {
	// +kubebuilder:validation:MaxLength=40
	Wave string `json:"wave"`
	// +kubebuilder:validation:MaxLength=63
	Gate string `json:"gate"`
	// By is the user name of the person who approved, as the API server authenticated it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`
	// +optional
	At metav1.Time `json:"at,omitempty"`
}

// RolloutPhase is the state of a rollout.
//
// +kubebuilder:validation:Enum=Pending;Progressing;Paused;Halted;Succeeded;Aborted;Superseded;RolledBack
type RolloutPhase string

const (
	// RolloutPending means that the rollout is not planned yet.
	RolloutPending RolloutPhase = "Pending"
	// RolloutProgressing means that the rollout updates its waves.
	RolloutProgressing RolloutPhase = "Progressing"
	// RolloutPaused means that a person paused the rollout.
	RolloutPaused RolloutPhase = "Paused"
	// RolloutHalted means that admission stopped because a wave has too many failures, or a gate of the wave failed.
	// It continues when the failures are corrected or overridden.
	RolloutHalted RolloutPhase = "Halted"
	// RolloutSucceeded means that every wave with clusters is verified. The rollout still admits late joiners and
	// clusters that were deferred.
	RolloutSucceeded RolloutPhase = "Succeeded"
	// RolloutAborted means that a person or the failure policy ended the rollout.
	RolloutAborted RolloutPhase = "Aborted"
	// RolloutSuperseded means that a newer rollout ended the rollout.
	RolloutSuperseded RolloutPhase = "Superseded"
	// RolloutRolledBack means that the failure policy or a person ended the rollout, and that another rollout rolls
	// its admitted clusters back.
	RolloutRolledBack RolloutPhase = "RolledBack"
)

// WavePhase is the state of a wave.
//
// +kubebuilder:validation:Enum=Waiting;Gated;Updating;Soaking;Verifying;Verified;Skipped
type WavePhase string

const (
	// WaveWaiting means that the wave waits for the wave before it.
	WaveWaiting WavePhase = "Waiting"
	// WaveGated means that the wave waits for an approval.
	WaveGated WavePhase = "Gated"
	// WaveUpdating means that clusters are being admitted and updated.
	WaveUpdating WavePhase = "Updating"
	// WaveSoaking means that no cluster is left to change and that the wave is observed.
	WaveSoaking WavePhase = "Soaking"
	// WaveVerifying means that the wave waits for the gates that judge the release on its clusters, or that one of
	// these gates failed.
	WaveVerifying WavePhase = "Verifying"
	// WaveVerified means that the wave is complete: its clusters were observed, or a person has overridden that.
	WaveVerified WavePhase = "Verified"
	// WaveSkipped means that the wave had no cluster when its turn came. The phase does not change: a cluster that
	// joins later is admitted like a cluster that joins a verified wave.
	WaveSkipped WavePhase = "Skipped"
)

// IsDone reports whether the next wave may start as far as this wave is concerned.
func (w WaveStatus) IsDone() bool { return w.VerifiedAt != nil || w.Phase == WaveSkipped }

// OperatorRolloutStatus is the progress of a rollout.
type OperatorRolloutStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready, Reconciling, Stalled, Planned.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// +optional
	Phase RolloutPhase `json:"phase,omitempty"`

	// Message describes in one sentence the state of the rollout and what it waits for.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Message string `json:"message,omitempty"`

	// PlanHash is the SHA-256 of the frozen membership.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PlanHash string `json:"planHash,omitempty"`

	// ReleaseHash identifies the release: an OperatorInstall whose
	// status.succeededHash is equal runs it.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ReleaseHash string `json:"releaseHash,omitempty"`

	// +kubebuilder:validation:MaxLength=40
	// +optional
	CurrentWave string `json:"currentWave,omitempty"`

	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`

	// Clusters counts all waves together.
	// +optional
	Clusters WaveCounts `json:"clusters,omitempty"`

	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=21
	// +optional
	Waves []WaveStatus `json:"waves,omitempty"`

	// Batch is written before its clusters are admitted, so that a hub that stopped in between admits the same
	// clusters again and no others.
	// +optional
	Batch *AdmissionBatch `json:"batch,omitempty"`

	// HeldBack are the clusters that are due and not admitted now, by the reason.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	HeldBack []HeldBackClusters `json:"heldBack,omitempty"`

	// Policies are the RolloutPolicies that bind the rollout, and what they add to its strategy.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Policies []AppliedPolicy `json:"policies,omitempty"`

	// Pace is how fast the rollout may proceed, depending on error budgets. Empty if the strategy has
	// no errorBudgetPace.
	// +optional
	Pace *PaceStatus `json:"pace,omitempty"`

	// WindowOverride is the last windowOverride that the hub observed in the spec.
	// +optional
	WindowOverride *WindowOverride `json:"windowOverride,omitempty"`

	// Unready are updated clusters that are not Ready now, in waves that are not verified. Further clusters beyond
	// the first 500 count as in progress until they are Ready again or are listed here.
	// +listType=map
	// +listMapKey=cluster
	// +kubebuilder:validation:MaxItems=500
	// +optional
	Unready []UnreadyCluster `json:"unready,omitempty"`

	// Phases are the last changes of the phase, the oldest first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Phases []PhaseChange `json:"phases,omitempty"`

	// ChangeEvents are the change events that were sent to PagerDuty, as PagingPolicies require. Each event is
	// written here before it is sent, so that no event is sent twice.
	// +listType=map
	// +listMapKey=transition
	// +listMapKey=at
	// +listMapKey=receiver
	// +kubebuilder:validation:MaxItems=150
	// +optional
	ChangeEvents []ChangeEventDelivery `json:"changeEvents,omitempty"`

	// ObservedInstalls is the resource version up to which the OperatorInstalls were observed that this status was
	// computed from. A hub whose cache is older reads them from the API server, so that the rollout never decides on
	// older data than before.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ObservedInstalls string `json:"observedInstalls,omitempty"`
}

// PhaseChange is a change of a rollout's phase.
type PhaseChange struct {
	Phase RolloutPhase `json:"phase"`
	At    metav1.Time  `json:"at"`
	// Message is the message of the rollout at that time.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}

// ChangeEventState is the state of a change event.
//
// +kubebuilder:validation:Enum=Sending;Sent;Waiting;Refused;GivenUp;Unknown
type ChangeEventState string

const (
	// ChangeEventSending means that the event will be sent now, or was sent by a hub that ended before it recorded
	// the result.
	ChangeEventSending ChangeEventState = "Sending"
	// ChangeEventSent means that PagerDuty accepted the event.
	ChangeEventSent ChangeEventState = "Sent"
	// ChangeEventWaiting means that the event was not accepted, and is tried again.
	ChangeEventWaiting ChangeEventState = "Waiting"
	// ChangeEventRefused means that PagerDuty refused the event permanently.
	ChangeEventRefused ChangeEventState = "Refused"
	// ChangeEventGivenUp means that the event was not accepted within an hour, or that no policy requires it now.
	ChangeEventGivenUp ChangeEventState = "GivenUp"
	// ChangeEventUnknown means that it is not known whether the event was accepted. It is not sent again.
	ChangeEventUnknown ChangeEventState = "Unknown"
)

// ChangeEventDelivery is one change event to one receiver.
type ChangeEventDelivery struct {
	// Transition is what happened, such as started, wave/canary/verified or succeeded.
	// +kubebuilder:validation:MaxLength=63
	Transition string `json:"transition"`
	// At is when it happened.
	At metav1.Time `json:"at"`
	// Receiver is the namespace, the policy and the name of the receiver, separated by /.
	// +kubebuilder:validation:MaxLength=200
	Receiver string           `json:"receiver"`
	State    ChangeEventState `json:"state"`
	// Attempts is how often sending was tried, and LastAttempt the time of the last attempt.
	Attempts    int32       `json:"attempts"`
	LastAttempt metav1.Time `json:"lastAttempt"`
	// Message is why the event was not accepted.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`
}

// HeldBackClusters are clusters that are not admitted now, for the same reason.
type HeldBackClusters struct {
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason"`
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message"`
	// Count is the number of clusters, and Clusters the names of the first hundred.
	Count int32 `json:"count"`
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	Clusters []string `json:"clusters"`
	// Deferred is true if the rollout does not wait for the clusters.
	// +optional
	Deferred bool `json:"deferred,omitempty"`
	// Until is when the reason ends by itself; absent if that is not known.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// UnreadyCluster is an updated cluster that is not Ready.
type UnreadyCluster struct {
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`
	// Since is when the hub first observed that the cluster is not Ready.
	Since metav1.Time `json:"since"`
}

// WaveStatus is the state of one wave.
type WaveStatus struct {
	// +kubebuilder:validation:MaxLength=40
	Name  string    `json:"name"`
	Phase WavePhase `json:"phase"`

	WaveCounts `json:",inline"`

	// MaxConcurrency and MaxFailures are the strategy's values, computed for the wave's frozen size, with the
	// requirements of RolloutPolicies. MaxConcurrency is lower while error budgets slow the rollout down.
	// +optional
	MaxConcurrency int32 `json:"maxConcurrency,omitempty"`
	// +optional
	MaxFailures int32 `json:"maxFailures"`
	// Soak is the soak time of the wave, with the requirements of RolloutPolicies.
	// +optional
	Soak *metav1.Duration `json:"soak,omitempty"`

	// StartedAt is when the wave's first cluster was admitted.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// Updated counts the clusters that installed the release, whether or not they
	// are Ready now.
	// +optional
	Updated int32 `json:"updated,omitempty"`
	// UpdatedAt is when the soak began: when the hub observed the success of the last cluster of the wave, plus the
	// time in which clusters were not Ready.
	// +optional
	UpdatedAt *metav1.Time `json:"updatedAt,omitempty"`
	// InterruptedAt is since when the soak is interrupted, because an updated cluster is not Ready.
	// +optional
	InterruptedAt *metav1.Time `json:"interruptedAt,omitempty"`
	// VerifiedAt is when the wave was verified, and the next wave could start. Empty in a wave that was skipped.
	// +optional
	VerifiedAt *metav1.Time `json:"verifiedAt,omitempty"`
	// FailedAt is since when the wave counts as failed: more clusters failed than maxFailures permits, or a gate
	// failed. Empty while the wave does not count as failed, and once it is verified.
	// +optional
	FailedAt *metav1.Time `json:"failedAt,omitempty"`

	// Gates with the evidence for each verdict: the gates of the strategy, the gates that RolloutPolicies add, and
	// bellwether/observation if no cluster was observed.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=31
	// +optional
	Gates []GateStatus `json:"gates,omitempty"`
}

// WaveCounts counts clusters. Total is frozen when the rollout is planned and grows only by late joiners. Every
// cluster is in exactly one of the other counts.
type WaveCounts struct {
	// +optional
	Total int32 `json:"total"`
	// Pending clusters were not admitted yet.
	// +optional
	Pending int32 `json:"pending"`
	// InProgress clusters were admitted and have neither succeeded nor failed. They include clusters that are not
	// Ready for less than their grace period.
	// +optional
	InProgress int32 `json:"inProgress"`
	// Succeeded clusters installed the release and, until the wave is verified, are Ready.
	// +optional
	Succeeded int32 `json:"succeeded"`
	// Failed clusters are stalled, exceeded their deadline, or are not Ready for longer than their grace period.
	// +optional
	Failed int32 `json:"failed"`
	// Deferred clusters are paused, blocked by a cause that the rollout does not wait for, or cannot be observed: the
	// agent is offline, or does not reach the API server of its cluster.
	// +optional
	Deferred int32 `json:"deferred"`
	// Removed clusters left the fleet, or were deselected, after planning.
	// +optional
	Removed int32 `json:"removed"`
}

// AdmissionBatch is the set of clusters whose admission was decided and has not yet been observed on
// their OperatorInstalls.
type AdmissionBatch struct {
	// +listType=map
	// +listMapKey=cluster
	// +kubebuilder:validation:MaxItems=500
	// +optional
	Clusters []BatchEntry `json:"clusters,omitempty"`
}

// BatchEntry is one cluster of a batch.
type BatchEntry struct {
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`
	// +kubebuilder:validation:MaxLength=40
	Wave string `json:"wave"`
	// AdmittedAt becomes the admission's time.
	AdmittedAt metav1.Time `json:"admittedAt"`
	// Attempt becomes the admission's attempt.
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
	// Held is true while the cluster is blocked since AdmittedAt: the cluster is not admitted, and the entry is
	// removed if the block lasts.
	// +optional
	Held bool `json:"held,omitempty"`
}

// OperatorRolloutList is a list of OperatorRollouts.
//
// +kubebuilder:object:root=true
type OperatorRolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OperatorRollout `json:"items"`
}
