// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OperatorRollout is one change of one operator across the fleet. Its plan is
// frozen; only paused, abort, retries, approvals, overrides, windowOverride and
// blocked can be changed.
//
// Which cluster is in which wave is on the labels of the OperatorInstalls
// (bellwether.dev/rollout and bellwether.dev/wave), never in this object.
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

// OperatorRolloutSpec is the frozen plan, what a person may change (paused,
// abort, retries, approvals, overrides), and why the version is blocked, which the
// hub writes.
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

	// Release is what is rolled out.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="release cannot be changed: change the ManagedOperator, which starts another rollout"
	Release Release `json:"release"`

	// Requirements are what the release needs of a cluster. Absent where that was not
	// read, as in a rollback.
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

	// Resumed is the highest revision of admissions found on clusters that a person has
	// agreed to go on from. While a cluster has a higher one, no cluster is admitted.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="resumed cannot be changed: resume the ManagedOperator"
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999999999999
	Resumed int64 `json:"resumed,omitempty"`

	// Paused stops admission; what was admitted finishes.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// PausedReason is why.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	PausedReason string `json:"pausedReason,omitempty"`

	// Abort ends the rollout for good; what was admitted finishes.
	// +optional
	Abort *RolloutAbort `json:"abort,omitempty"`

	// Retries is raised to have the clusters that failed admitted again: one that
	// failed is admitted anew, with a new deadline, while the attempt in its
	// admission is lower than this.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="retries can only be raised"
	// +optional
	Retries int64 `json:"retries,omitempty"`

	// Blocked is why the version is blocked; empty where it is not. The hub keeps
	// it in line with the blocks on the catalog. While it is set nothing is
	// admitted; what was admitted and did not begin yet does not begin.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Blocked string `json:"blocked,omitempty"`

	// Rollback says that this rollout takes clusters back to what they ran before
	// another rollout.
	// +kubebuilder:validation:XValidation:rule="self.of == oldSelf.of && self.uid == oldSelf.uid",message="the rollout that is rolled back cannot be changed"
	// +optional
	Rollback *RolloutRollback `json:"rollback,omitempty"`

	// Approvals given for waves with an approval gate. Who adds one needs the
	// verb approve on this rollout.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=wave
	// +listMapKey=gate
	// +optional
	Approvals []Approval `json:"approvals,omitempty"`

	// Overrides of gates that failed or have no verdict. Who adds one needs the verb
	// override on this rollout. They do not replace approvals.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=wave
	// +listMapKey=gate
	// +optional
	Overrides []GateOverride `json:"overrides,omitempty"`

	// WindowOverride lets this rollout admit clusters while ChangeWindows are
	// closed. Who sets, changes or removes it needs the verb override on this
	// rollout.
	// +optional
	WindowOverride *WindowOverride `json:"windowOverride,omitempty"`
}

// Release is one version of one operator with the settings it is installed
// with.
type Release struct {
	// +kubebuilder:validation:MaxLength=63
	Package string `json:"package"`
	// +kubebuilder:validation:MaxLength=63
	Channel string `json:"channel"`
	// Version is empty with AsInstalled, and so is Bundle.
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version"`
	// Bundle is the name of the bundle, which is the name of its CSV.
	// +kubebuilder:validation:MaxLength=253
	Bundle string `json:"bundle"`
	// Catalog that holds the bundle and the path to it.
	Catalog CatalogPin      `json:"catalog"`
	Install InstallSettings `json:"install"`
	// Adopt is spec.adopt of the ManagedOperator. Absent: what others installed is
	// refused.
	// +optional
	Adopt *OperatorAdoption `json:"adopt,omitempty"`
	// AsInstalled takes over what others installed in the version that a cluster
	// has, and goes no further. Where nothing is installed it installs nothing.
	// +optional
	AsInstalled bool `json:"asInstalled,omitempty"`
}

// CatalogPin is a catalog at one digest.
type CatalogPin struct {
	Source CatalogSource `json:"source"`
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:MinLength=1
	Digest string `json:"digest"`
	// PublicKeys with one of which the catalog must be signed, in PEM; none: it
	// need not be.
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
	// Superseded is true where a newer target was the reason.
	// +optional
	Superseded bool `json:"superseded,omitempty"`
	// Rollback asks for the clusters that the rollout admitted to be taken back to
	// what they ran before. The version is held for the operator.
	// +optional
	Rollback *RollbackRequest `json:"rollback,omitempty"`
}

// RollbackRequest is what a person allows a rollback to do.
type RollbackRequest struct {
	// Force goes back although custom resources may lose data for which there is no
	// backup.
	// +optional
	Force bool `json:"force,omitempty"`
}

// RolloutRollback is what makes a rollout a rollback.
type RolloutRollback struct {
	// Of is the name of the rollout that is rolled back, and UID its UID. Only
	// clusters that it admitted are taken back, each to the release that it ran
	// before.
	// +kubebuilder:validation:MaxLength=63
	Of string `json:"of"`
	// +kubebuilder:validation:MaxLength=63
	UID string `json:"uid"`
	// Version that is gone back from.
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version"`
	// Reason is why.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`
	// Automatic is true where the rollout's failure policy asked for it, and not a
	// person.
	// +optional
	Automatic bool `json:"automatic,omitempty"`
	// Force goes back although custom resources may lose data for which there is no
	// backup.
	// +optional
	Force bool `json:"force,omitempty"`
}

// Approval is one person's word that a wave may start.
type Approval struct {
	// +kubebuilder:validation:MaxLength=40
	Wave string `json:"wave"`
	// +kubebuilder:validation:MaxLength=63
	Gate string `json:"gate"`
	// By is the user name of who approved, as the API server knows it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`
	// +optional
	At metav1.Time `json:"at,omitempty"`
}

// RolloutPhase is where a rollout stands.
//
// +kubebuilder:validation:Enum=Pending;Progressing;Paused;Halted;Succeeded;Aborted;Superseded;RolledBack
type RolloutPhase string

const (
	// RolloutPending is not planned yet.
	RolloutPending RolloutPhase = "Pending"
	// RolloutProgressing goes through its waves.
	RolloutProgressing RolloutPhase = "Progressing"
	// RolloutPaused was paused by a person.
	RolloutPaused RolloutPhase = "Paused"
	// RolloutHalted stopped admission because a wave has too many failures, or a
	// gate of it failed. It goes on when they are put right or overridden.
	RolloutHalted RolloutPhase = "Halted"
	// RolloutSucceeded has verified every wave that had clusters. It still takes in late joiners
	// and clusters that were deferred.
	RolloutSucceeded RolloutPhase = "Succeeded"
	// RolloutAborted was ended by a person or by its failure policy.
	RolloutAborted RolloutPhase = "Aborted"
	// RolloutSuperseded was ended by a newer rollout.
	RolloutSuperseded RolloutPhase = "Superseded"
	// RolloutRolledBack was ended by its failure policy or by a person, and another
	// rollout takes the clusters that it admitted back.
	RolloutRolledBack RolloutPhase = "RolledBack"
)

// WavePhase is where a wave stands.
//
// +kubebuilder:validation:Enum=Waiting;Gated;Updating;Soaking;Verifying;Verified;Skipped
type WavePhase string

const (
	// WaveWaiting waits for the wave before it.
	WaveWaiting WavePhase = "Waiting"
	// WaveGated waits for an approval.
	WaveGated WavePhase = "Gated"
	// WaveUpdating admits clusters and waits for their success.
	WaveUpdating WavePhase = "Updating"
	// WaveSoaking has no cluster left to change and is observed.
	WaveSoaking WavePhase = "Soaking"
	// WaveVerifying waits for the gates that judge the release on its clusters, or
	// one of them failed.
	WaveVerifying WavePhase = "Verifying"
	// WaveVerified is done: its clusters were observed, or a person has overridden that.
	WaveVerified WavePhase = "Verified"
	// WaveSkipped had no cluster when its turn came. It stays so: a cluster that joins
	// it later is admitted like one that joins a verified wave.
	WaveSkipped WavePhase = "Skipped"
)

// IsDone tells whether the next wave need not wait for this one.
func (w WaveStatus) IsDone() bool { return w.VerifiedAt != nil || w.Phase == WaveSkipped }

// OperatorRolloutStatus says how far the rollout has come.
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

	// Message says in one sentence where the rollout stands and what it waits
	// for.
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

	// Batch is written before its clusters are admitted, so that a hub that
	// died between the two admits the same ones again and no others.
	// +optional
	Batch *AdmissionBatch `json:"batch,omitempty"`

	// HeldBack are the clusters that are due and not admitted now, by the reason.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	HeldBack []HeldBackClusters `json:"heldBack,omitempty"`

	// Policies are the RolloutPolicies that bind the rollout, and what they add to
	// its strategy.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Policies []AppliedPolicy `json:"policies,omitempty"`

	// Pace is how fast the rollout may go, as error budgets permit. Empty where the
	// strategy does not ask for that.
	// +optional
	Pace *PaceStatus `json:"pace,omitempty"`

	// WindowOverride is the last one that the hub saw in the spec.
	// +optional
	WindowOverride *WindowOverride `json:"windowOverride,omitempty"`

	// Unready are clusters of waves that are not verified which were updated and
	// are not Ready now. Those beyond the first 500 count as in progress until
	// they are Ready again or have a place here.
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

	// ChangeEvents are those that were sent to PagerDuty, as PagingPolicies ask for. Each
	// is written here before it is sent, so that none is sent twice.
	// +listType=map
	// +listMapKey=transition
	// +listMapKey=at
	// +listMapKey=receiver
	// +kubebuilder:validation:MaxItems=150
	// +optional
	ChangeEvents []ChangeEventDelivery `json:"changeEvents,omitempty"`

	// ObservedInstalls is the resource version up to which the OperatorInstalls
	// were seen that this status was computed from. A hub whose cache is
	// older than that reads them from the API server, so the rollout never
	// decides on a view that lies before one it has already decided on.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ObservedInstalls string `json:"observedInstalls,omitempty"`
}

// PhaseChange is a phase that a rollout came into.
type PhaseChange struct {
	Phase RolloutPhase `json:"phase"`
	At    metav1.Time  `json:"at"`
	// Message is what the rollout said then.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}

// ChangeEventState is what became of a change event.
//
// +kubebuilder:validation:Enum=Sending;Sent;Waiting;Refused;GivenUp;Unknown
type ChangeEventState string

const (
	// ChangeEventSending is about to be sent, or was sent by a hub that ended before it
	// wrote down the result.
	ChangeEventSending ChangeEventState = "Sending"
	// ChangeEventSent was accepted by PagerDuty.
	ChangeEventSent ChangeEventState = "Sent"
	// ChangeEventWaiting was not accepted, and is tried again.
	ChangeEventWaiting ChangeEventState = "Waiting"
	// ChangeEventRefused was refused by PagerDuty for good.
	ChangeEventRefused ChangeEventState = "Refused"
	// ChangeEventGivenUp was not accepted within an hour, or is not asked for any more.
	ChangeEventGivenUp ChangeEventState = "GivenUp"
	// ChangeEventUnknown may have been accepted or not. It is not sent again.
	ChangeEventUnknown ChangeEventState = "Unknown"
)

// ChangeEventDelivery is one change event to one receiver.
type ChangeEventDelivery struct {
	// Transition is what happened, such as started, wave/canary/verified or succeeded.
	// +kubebuilder:validation:MaxLength=63
	Transition string `json:"transition"`
	// At is when it happened.
	At metav1.Time `json:"at"`
	// Receiver is namespace, policy and name of the receiver, with / between them.
	// +kubebuilder:validation:MaxLength=200
	Receiver string           `json:"receiver"`
	State    ChangeEventState `json:"state"`
	// Attempts to send it, and when the last one was.
	Attempts    int32       `json:"attempts"`
	LastAttempt metav1.Time `json:"lastAttempt"`
	// Message is why it was not accepted.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`
}

// HeldBackClusters are clusters that are not admitted now for the same reason.
type HeldBackClusters struct {
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason"`
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message"`
	// Count of the clusters, and the names of the first hundred.
	Count int32 `json:"count"`
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	Clusters []string `json:"clusters"`
	// Deferred is true where the rollout does not wait for the clusters.
	// +optional
	Deferred bool `json:"deferred,omitempty"`
	// Until is when the reason is over by itself, where that is known.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// UnreadyCluster is a cluster that was updated and is not Ready.
type UnreadyCluster struct {
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`
	// Since is when the hub first saw it so.
	Since metav1.Time `json:"since"`
}

// WaveStatus sums up one wave.
type WaveStatus struct {
	// +kubebuilder:validation:MaxLength=40
	Name  string    `json:"name"`
	Phase WavePhase `json:"phase"`

	WaveCounts `json:",inline"`

	// MaxConcurrency and MaxFailures are the strategy's, resolved against the
	// wave's frozen size, with what RolloutPolicies ask for. MaxConcurrency is lower
	// while error budgets slow the rollout down.
	// +optional
	MaxConcurrency int32 `json:"maxConcurrency,omitempty"`
	// +optional
	MaxFailures int32 `json:"maxFailures"`
	// Soak of the wave, with what RolloutPolicies ask for.
	// +optional
	Soak *metav1.Duration `json:"soak,omitempty"`

	// StartedAt is when the wave's first cluster was admitted.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// Updated counts the clusters that installed the release, whether or not they
	// are Ready now.
	// +optional
	Updated int32 `json:"updated,omitempty"`
	// UpdatedAt is when the soak began: when the hub saw the last cluster of the
	// wave succeed, moved on by the time in which clusters were not Ready.
	// +optional
	UpdatedAt *metav1.Time `json:"updatedAt,omitempty"`
	// InterruptedAt is since when the soak stands still, because an updated cluster
	// is not Ready.
	// +optional
	InterruptedAt *metav1.Time `json:"interruptedAt,omitempty"`
	// VerifiedAt is when the wave was verified, and the next one became free to start.
	// Empty in a wave that was skipped.
	// +optional
	VerifiedAt *metav1.Time `json:"verifiedAt,omitempty"`
	// FailedAt is since when the wave is judged failed: more clusters failed than may, or
	// a gate failed. Empty while it is not, and once it is verified.
	// +optional
	FailedAt *metav1.Time `json:"failedAt,omitempty"`

	// Gates with the evidence for each verdict: those of the strategy, those that
	// RolloutPolicies add, and bellwether/observation where no cluster was observed.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=31
	// +optional
	Gates []GateStatus `json:"gates,omitempty"`
}

// WaveCounts counts clusters. Total is frozen when the rollout is planned and
// grows only by late joiners; every cluster is in exactly one of the others.
type WaveCounts struct {
	// +optional
	Total int32 `json:"total"`
	// Pending were not admitted yet.
	// +optional
	Pending int32 `json:"pending"`
	// InProgress were admitted and have neither succeeded nor failed. A cluster
	// that is not Ready, for less than its grace, is one of them.
	// +optional
	InProgress int32 `json:"inProgress"`
	// Succeeded installed the release and, until the wave is verified, are Ready.
	// +optional
	Succeeded int32 `json:"succeeded"`
	// Failed are stalled, past their deadline, or not Ready for longer than their
	// grace.
	// +optional
	Failed int32 `json:"failed"`
	// Deferred are paused, held back by something that the rollout does not wait
	// for, or cannot be observed: the agent is offline, or does not reach the API
	// server of its cluster.
	// +optional
	Deferred int32 `json:"deferred"`
	// Removed left the fleet, or the selection, after planning.
	// +optional
	Removed int32 `json:"removed"`
}

// AdmissionBatch is the set of clusters whose admission was decided and has not
// yet been seen on their OperatorInstalls.
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
	// AdmittedAt becomes the stamp's time.
	AdmittedAt metav1.Time `json:"admittedAt"`
	// Attempt becomes the stamp's attempt.
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
	// Held is true while something holds the cluster back since AdmittedAt: the
	// entry is not acted on, and it is dropped if that lasts.
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
