// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ManagedOperator is the desired state of an operator: its package and version, the clusters that it is installed on,
// and how changes are rolled out.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mo,categories=bellwether
// +kubebuilder:printcolumn:name="Package",type=string,JSONPath=`.spec.package`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.target.version`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.available.version`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clusters.selected`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.clusters.updated`
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.status.rollout.name`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 50 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a ManagedOperator's name is a DNS label of at most 50 characters: its rollouts are named after it and it becomes the value of a label"
type ManagedOperator struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ManagedOperatorSpec `json:"spec"`
	// +optional
	Status ManagedOperatorStatus `json:"status,omitempty"`
}

// ManagedOperatorSpec defines which operator runs on which clusters.
//
// +kubebuilder:validation:XValidation:rule="!has(self.updates) || !has(self.version) || !self.version.matches('^(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)([-+][0-9A-Za-z.+-]+)?$')",message="updates is for a range of versions or the channel's head: remove it, or write a range such as '>=1.2.0 <2.0.0' into version"
type ManagedOperatorSpec struct {
	// Package is the operator's package name in the catalog.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="package cannot be changed: make another ManagedOperator"
	Package string `json:"package"`

	// Catalog names an OperatorCatalog in the same namespace.
	Catalog LocalReference `json:"catalog"`

	// Channel of the package. Default: the package's default channel.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Channel string `json:"channel,omitempty"`

	// Version is the version to run: an exact version, such as 1.2.3, or a range, such as ">=1.2.0 <2.0.0". Empty
	// follows the channel's head.
	//
	// If it is a range, the highest version that the channel offers and that updates permits is used. A range has
	// comparisons (>=, >, <, <=, =, !=) with whole versions; comparisons with spaces between them must all be true,
	// and || separates alternatives. 1.2.x means ">=1.2.0 <1.3.0", and 1.x means ">=1.0.0 <2.0.0". A pre-release is
	// in a range only if an alternative that contains it names a pre-release of the same three numbers.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^(([|][|]|(>=|<=|==|!=|[<>=!])? *((0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.]((0|[1-9][0-9]*)([-+][0-9A-Za-z.+-]+)?|x)|(0|[1-9][0-9]*)[.]x))( +|$))+$')",message="version must be a semantic version such as 1.2.3, without a leading v, or a range such as '>=1.2.0 <2.0.0', '1.2.x' or '>=1.2.0 <1.4.0 || >=1.5.1 <2.0.0'; leave it out to follow the channel's head"
	// +optional
	Version string `json:"version,omitempty"`

	// Updates defines which newer versions are rolled out without an approval, if version is a range or empty. If it
	// is not set, all newer versions are.
	// +optional
	Updates *VersionUpdates `json:"updates,omitempty"`

	// ClusterSelector selects FleetClusters by their labels. An empty selector selects every cluster.
	ClusterSelector metav1.LabelSelector `json:"clusterSelector"`

	// Install defines how the operator is installed on each cluster.
	// +optional
	Install OperatorInstallation `json:"install,omitempty"`

	// Adopt takes over operators that others installed with OLM, on the selected clusters: nothing is uninstalled,
	// and no pod restarts. The first rollout takes them over in their installed versions, and the next rollout
	// upgrades them to the target. If it is not set, such a cluster is refused and fails in a rollout.
	// +optional
	Adopt *OperatorAdoption `json:"adopt,omitempty"`

	// Strategy defines how a change is rolled out.
	// +optional
	Strategy RolloutStrategy `json:"strategy,omitempty"`

	// RemovalPolicy is what happens on a cluster that is deselected, and on every cluster when this object
	// is deleted.
	// +kubebuilder:default=Orphan
	// +optional
	RemovalPolicy RemovalPolicy `json:"removalPolicy,omitempty"`

	// Removal defines how the operator is uninstalled from many clusters, if removalPolicy is Uninstall.
	// +optional
	Removal *OperatorRemoval `json:"removal,omitempty"`

	// Backup defines when the custom resources of the operator are saved on each cluster. If it is not set, they are
	// saved only when a person creates an OperatorBackup. A change of this field does not start a rollout.
	// +optional
	Backup *BackupPolicy `json:"backup,omitempty"`

	// StorageMigration defines whether agents write the operator's custom resources again after a release changed
	// their storage version. A change of this field does not start a rollout.
	// +kubebuilder:default=Manual
	// +optional
	StorageMigration StorageMigrationPolicy `json:"storageMigration,omitempty"`

	// HistoryLimit is how many ended rollouts are kept.
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	HistoryLimit *int32 `json:"historyLimit,omitempty"`

	// Paused stops the creation of new rollouts. It does not change a running rollout.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// DependsOn are operators that must be installed first on each cluster: a rollout admits a cluster only while all
	// of them are Ready on it.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	// +optional
	DependsOn []OperatorDependency `json:"dependsOn,omitempty"`

	// Holds are versions that were rolled back: no cluster is upgraded to one of them, nor through one of them. If a
	// rollout had changed only the settings, these settings are held at that version, even if the channel or the
	// catalog changes. The hub adds a hold with each rollback. Remove the hold to roll the version out again. The hub
	// removes it once a newer version was rolled out.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Holds []VersionHold `json:"holds,omitempty"`

	// Resume is the value of status.recovery.request. A person sets it to agree that the hub continues with an
	// operator that it found on clusters.
	// +kubebuilder:validation:MaxLength=40
	// +optional
	Resume string `json:"resume,omitempty"`

	// Restart starts another rollout of the same release, with the current strategy, when it is set to a value that
	// the newest rollout does not have, for example the time. A running rollout is superseded. Removing the value
	// starts no rollout.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Restart string `json:"restart,omitempty"`
}

// OperatorRemoval defines how an operator is uninstalled from many clusters. The clusters are processed in the order
// of the strategy's waves: a wave begins when the operator is removed from the online clusters of the waves before
// it. No more than the wave's maxConcurrency clusters are changed at a time. No further cluster is begun while more
// than the wave's maxFailures clusters cannot uninstall it.
type OperatorRemoval struct {
	// ConfirmAbove is the number of clusters from which the operator may be
	// uninstalled without a confirmation.
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=0
	// +optional
	ConfirmAbove *int32 `json:"confirmAbove,omitempty"`

	// Confirm is the value of status.removal.request. A person sets it to confirm the removal. Another set of
	// clusters has another request.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	Confirm string `json:"confirm,omitempty"`
}

// OperatorDependency is an operator that must be installed first.
type OperatorDependency struct {
	// Name of a ManagedOperator in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=50
	Name string `json:"name"`
	// MinVersion is the lowest version that must be installed. Empty means any.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)([-+][0-9A-Za-z.+-]+)?$')",message="minVersion must be a semantic version such as 1.2.3, without a leading v"
	// +optional
	MinVersion string `json:"minVersion,omitempty"`
}

// LocalReference names an object in the same namespace.
type LocalReference struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// OperatorInstallation defines how an operator is installed, and what happens when the installed objects are changed
// on a cluster.
type OperatorInstallation struct {
	InstallSettings `json:",inline"`

	// Drift defines what happens if the installed objects on a cluster differ from the release with its settings.
	// Report sets the condition Drifted of the OperatorInstall. Correct also sets the differing fields back. A change
	// of this field does not start a rollout.
	// +kubebuilder:default=Report
	// +optional
	Drift DriftPolicy `json:"drift,omitempty"`
}

// DriftPolicy is what happens if the installed objects differ from the release with its settings.
//
// +kubebuilder:validation:Enum=Report;Correct
type DriftPolicy string

const (
	// DriftReport sets the condition Drifted, and changes nothing.
	DriftReport DriftPolicy = "Report"
	// DriftCorrect sets the differing fields back to the values of the bundle.
	DriftCorrect DriftPolicy = "Correct"
)

// InstallSettings define how OLM installs an operator. A change of them is rolled out like a change of the version.
type InstallSettings struct {
	// Namespace to install into. It is created if it does not exist. Default: the package's name. Each operator needs
	// its own namespace.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be a DNS label"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Mode is what the operator watches. The bundle must support it.
	// +kubebuilder:default=AllNamespaces
	// +optional
	Mode InstallMode `json:"mode,omitempty"`

	// Config is given to the operator's Deployments through OLM's Subscription.
	// +optional
	Config *OperatorConfig `json:"config,omitempty"`
}

// OperatorAdoption defines how operators that others installed are taken over.
type OperatorAdoption struct {
	// Accept are reasons of findings that need a decision, as `bellwether fleet scan` shows them. An operator with
	// such a finding is taken over, and the accepted state stays as it is on the cluster.
	// +kubebuilder:validation:MaxItems=8
	// +listType=set
	// +optional
	Accept []AcceptedFinding `json:"accept,omitempty"`
}

// AcceptedFinding is the reason of a finding about an operator that others installed. A person can accept the finding
// so that the operator is taken over.
//
// +kubebuilder:validation:Enum=CSVEdited;ChannelNotInCatalog;Dependency;GitOps;PlanPending;ScaledToZero;SharedNamespace
type AcceptedFinding string

// InstallMode is what an operator watches.
//
// +kubebuilder:validation:Enum=AllNamespaces;OwnNamespace
type InstallMode string

const (
	// InstallAllNamespaces watches the whole cluster.
	InstallAllNamespaces InstallMode = "AllNamespaces"
	// InstallOwnNamespace watches the operator's own namespace.
	InstallOwnNamespace InstallMode = "OwnNamespace"
)

// OperatorConfig is the part of OLM's SubscriptionConfig that can be set from the hub. The rules limit the size of
// texts in Kubernetes' own types, because an agent reports a config in the status of its OperatorInstall and must not
// fill the hub's storage.
//
// +kubebuilder:validation:XValidation:rule="!has(self.env) || self.env.map(e, size(e.name) + (has(e.value) ? size(e.value) : 0)).sum() <= 16384",message="env may have 16384 characters of names and values in all: put long values into a ConfigMap on the clusters and refer to it with valueFrom"
// +kubebuilder:validation:XValidation:rule="!has(self.env) || self.env.all(e, !has(e.valueFrom) || (!has(e.valueFrom.configMapKeyRef) || (has(e.valueFrom.configMapKeyRef.name) ? size(e.valueFrom.configMapKeyRef.name) : 0) + (has(e.valueFrom.configMapKeyRef.key) ? size(e.valueFrom.configMapKeyRef.key) : 0) <= 1024) && (!has(e.valueFrom.secretKeyRef) || (has(e.valueFrom.secretKeyRef.name) ? size(e.valueFrom.secretKeyRef.name) : 0) + (has(e.valueFrom.secretKeyRef.key) ? size(e.valueFrom.secretKeyRef.key) : 0) <= 1024) && (!has(e.valueFrom.fieldRef) || (has(e.valueFrom.fieldRef.apiVersion) ? size(e.valueFrom.fieldRef.apiVersion) : 0) + (has(e.valueFrom.fieldRef.fieldPath) ? size(e.valueFrom.fieldRef.fieldPath) : 0) <= 1024) && (!has(e.valueFrom.fileKeyRef) || (has(e.valueFrom.fileKeyRef.volumeName) ? size(e.valueFrom.fileKeyRef.volumeName) : 0) + (has(e.valueFrom.fileKeyRef.path) ? size(e.valueFrom.fileKeyRef.path) : 0) + (has(e.valueFrom.fileKeyRef.key) ? size(e.valueFrom.fileKeyRef.key) : 0) <= 1024) && (!has(e.valueFrom.resourceFieldRef) || (has(e.valueFrom.resourceFieldRef.containerName) ? size(e.valueFrom.resourceFieldRef.containerName) : 0) + size(e.valueFrom.resourceFieldRef.resource) <= 1024 && (!has(e.valueFrom.resourceFieldRef.divisor) || type(e.valueFrom.resourceFieldRef.divisor) == int || size(e.valueFrom.resourceFieldRef.divisor) <= 64)))",message="each valueFrom of env may have 1024 characters at most"
// +kubebuilder:validation:XValidation:rule="!has(self.nodeSelector) || self.nodeSelector.all(k, size(k) <= 317 && size(self.nodeSelector[k]) <= 63)",message="a key of nodeSelector may have 317 characters at most, and a value 63"
// +kubebuilder:validation:XValidation:rule="!has(self.tolerations) || self.tolerations.all(t, (!has(t.key) || size(t.key) <= 317) && (!has(t.value) || size(t.value) <= 63) && (!has(t.operator) || size(t.operator) <= 63) && (!has(t.effect) || size(t.effect) <= 63))",message="a key of tolerations may have 317 characters at most, and any other field 63"
// +kubebuilder:validation:XValidation:rule="!has(self.resources) || !has(self.resources.limits) || size(self.resources.limits) <= 32 && self.resources.limits.all(k, size(k) <= 317 && (type(self.resources.limits[k]) == int || size(self.resources.limits[k]) <= 64))",message="resources may have 32 limits at most, with names of at most 317 characters and quantities of at most 64"
// +kubebuilder:validation:XValidation:rule="!has(self.resources) || !has(self.resources.requests) || size(self.resources.requests) <= 32 && self.resources.requests.all(k, size(k) <= 317 && (type(self.resources.requests[k]) == int || size(self.resources.requests[k]) <= 64))",message="resources may have 32 requests at most, with names of at most 317 characters and quantities of at most 64"
// +kubebuilder:validation:XValidation:rule="!has(self.resources) || !has(self.resources.claims) || size(self.resources.claims) <= 16 && self.resources.claims.all(c, size(c.name) <= 63 && (!has(c.request) || size(c.request) <= 63))",message="resources may have 16 claims at most, with names of at most 63 characters"
type OperatorConfig struct {
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// RolloutStrategy defines how a change reaches the selected clusters.
type RolloutStrategy struct {
	// Waves are processed in order. A cluster belongs to the first wave that selects it. The clusters that no wave
	// selects form a last wave named rest, so that each selected cluster has a wave. Default: one canary cluster, 10
	// % of the other clusters, and the rest.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	// +optional
	Waves []Wave `json:"waves,omitempty"`

	// OnFailure is what happens when a wave has more failures than maxFailures.
	// +kubebuilder:default=Pause
	// +optional
	OnFailure FailurePolicy `json:"onFailure,omitempty"`

	// Offline is what happens to clusters whose agent is offline.
	// +kubebuilder:default=Defer
	// +optional
	Offline OfflinePolicy `json:"offline,omitempty"`

	// MaxDeferred is how many clusters of a wave may be deferred (offline or paused) before the next wave is blocked:
	// a number or a percentage of the wave. Default 100%.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : true",message="must be a number of at least 0, or a percentage such as 10%"
	// +kubebuilder:validation:Pattern=`^(100|[0-9]{1,2})%$`
	// +optional
	MaxDeferred *intstr.IntOrString `json:"maxDeferred,omitempty"`

	// LateJoiners is what happens to clusters that are selected after the rollout was planned.
	// +kubebuilder:default=Join
	// +optional
	LateJoiners LateJoinerPolicy `json:"lateJoiners,omitempty"`

	// Preflight are checks of each cluster before it is admitted.
	// +optional
	Preflight *Preflight `json:"preflight,omitempty"`

	// ErrorBudgetPace slows the rollout down while error budgets of the operator are low. If it is not set, the pace
	// is always full.
	// +optional
	ErrorBudgetPace *ErrorBudgetPace `json:"errorBudgetPace,omitempty"`

	// Rollback defines how clusters are rolled back to their previous release.
	// +optional
	Rollback *RollbackStrategy `json:"rollback,omitempty"`

	// NewTarget is what a new target does to a running rollout.
	// +kubebuilder:default=Supersede
	// +optional
	NewTarget NewTargetPolicy `json:"newTarget,omitempty"`
}

// RollbackStrategy defines how clusters are rolled back to their previous release.
type RollbackStrategy struct {
	// MaxConcurrency is how many clusters are rolled back at a time: a number, or a percentage of the admitted
	// clusters (rounded down, at least 1). Default 100%, because the previous release is known to work.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : true",message="must be a number of at least 1, or a percentage such as 10%"
	// +kubebuilder:validation:Pattern=`^(100|[1-9][0-9]?)%$`
	// +optional
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`
}

// Wave is a group of clusters that are changed together.
type Wave struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a wave's name must be a DNS label"
	Name string `json:"name"`

	// Selector selects clusters by label. Empty selects all clusters that no earlier wave has.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Size limits how many of the selected clusters belong to this wave: a number or a percentage (rounded up). Empty
	// means all of them.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : true",message="must be a number of at least 1, or a percentage such as 10%"
	// +kubebuilder:validation:Pattern=`^(100|[1-9][0-9]?)%$`
	// +optional
	Size *intstr.IntOrString `json:"size,omitempty"`

	// SortBy is a label key. Clusters are ordered within the wave by the value of this label; clusters without the
	// label come last, and clusters with equal values are ordered by name. Empty means ordered by name.
	// +kubebuilder:validation:MaxLength=317
	// +optional
	SortBy string `json:"sortBy,omitempty"`

	// MaxConcurrency is how many clusters are changed at a time: a number or a
	// percentage of the wave (rounded down, at least 1).
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : true",message="must be a number of at least 1, or a percentage such as 10%"
	// +kubebuilder:validation:Pattern=`^(100|[1-9][0-9]?)%$`
	// +optional
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`

	// MaxFailures is how many clusters may fail before admission stops: a number or a percentage of the wave (rounded
	// down). It is limited to the size of the wave.
	// +kubebuilder:default=0
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : true",message="must be a number of at least 0, or a percentage such as 10%"
	// +kubebuilder:validation:Pattern=`^(100|[0-9]{1,2})%$`
	// +optional
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`

	// Deadline is how long one cluster may take from admission to success before it counts as failed. At least 1s;
	// default 30m.
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="deadline must be at least 1s"
	// +optional
	Deadline *metav1.Duration `json:"deadline,omitempty"`

	// Soak is how long the wave is observed after its last success before the next wave starts. Time in which an
	// updated cluster is not Ready does not count. Default 0s.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="soak must not be negative"
	// +optional
	Soak *metav1.Duration `json:"soak,omitempty"`

	// UnreadyGrace is how long an updated cluster of this wave may be not Ready, for instance while a pod restarts,
	// before it counts as failed. It applies until the wave is verified. At least 5s; default 1m.
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s')",message="unreadyGrace must be at least 5s"
	// +optional
	UnreadyGrace *metav1.Duration `json:"unreadyGrace,omitempty"`

	// Gates that must pass: approvals before the first admission, the others before the wave is verified.
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=name
	// +optional
	Gates []Gate `json:"gates,omitempty"`
}

// FailurePolicy is what happens when a wave has more failures than maxFailures.
//
// +kubebuilder:validation:Enum=Pause;Abort;Rollback
type FailurePolicy string

const (
	// FailurePause stops admission until the failures are corrected.
	FailurePause FailurePolicy = "Pause"
	// FailureAbort ends the rollout; admitted clusters finish.
	FailureAbort FailurePolicy = "Abort"
	// FailureRollback ends the rollout, rolls the admitted clusters back to their previous release, and holds
	// the version.
	FailureRollback FailurePolicy = "Rollback"
)

// OfflinePolicy is what happens to clusters whose agent is offline.
//
// +kubebuilder:validation:Enum=Defer;Fail
type OfflinePolicy string

const (
	// OfflineDefer skips the clusters and updates them when they are online again.
	OfflineDefer OfflinePolicy = "Defer"
	// OfflineFail counts the clusters as failed.
	OfflineFail OfflinePolicy = "Fail"
)

// LateJoinerPolicy is what happens to clusters that are selected after planning.
//
// +kubebuilder:validation:Enum=Join;Ignore
type LateJoinerPolicy string

const (
	// LateJoin adds the clusters to their wave while the wave is open, and admits them to the release once their wave
	// is verified.
	LateJoin LateJoinerPolicy = "Join"
	// LateIgnore leaves the clusters to the next rollout.
	LateIgnore LateJoinerPolicy = "Ignore"
)

// NewTargetPolicy is what a new target does to a running rollout.
//
// +kubebuilder:validation:Enum=Supersede;Finish
type NewTargetPolicy string

const (
	// NewTargetSupersede stops the running rollout and starts the new one.
	NewTargetSupersede NewTargetPolicy = "Supersede"
	// NewTargetFinish lets the running rollout end first.
	NewTargetFinish NewTargetPolicy = "Finish"
)

// ManagedOperatorStatus is the observed state of a ManagedOperator.
type ManagedOperatorStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready, Reconciling, Stalled.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Target is the version that the spec selects in the current catalog.
	// +optional
	Target *TargetVersion `json:"target,omitempty"`

	// Available is the highest version that spec.version permits, that is higher than the target, and that waits for
	// an approval.
	// +optional
	Available *AvailableVersion `json:"available,omitempty"`

	// Rollout is the newest rollout.
	// +optional
	Rollout *RolloutSummary `json:"rollout,omitempty"`

	// History has the outcome of each of the newest rollouts, the newest first. It
	// keeps the outcome of a rollout whose OperatorRollout was deleted.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	// +optional
	History []RolloutOutcome `json:"history,omitempty"`

	// Decisions are the decisions of people and the hub about the operator and its rollouts, as far as the hub
	// observed them.
	// +optional
	Decisions *DecisionLog `json:"decisions,omitempty"`

	// +optional
	Clusters ClusterCounts `json:"clusters,omitempty"`

	// Removal is set while the operator is to be uninstalled from clusters.
	// +optional
	Removal *RemovalProgress `json:"removal,omitempty"`

	// Recovery is set while the hub has found the operator on clusters where it did not install it, and waits for a
	// person to resume it. Until then, no cluster is admitted.
	// +optional
	Recovery *OperatorRecovery `json:"recovery,omitempty"`

	// Adoption is set once a rollout has taken over the operators that others installed, as spec.adopt requires. The
	// target is rolled out only after that.
	// +optional
	Adoption *AdoptionOutcome `json:"adoption,omitempty"`

	// Versions counts clusters by installed version: the 50 most frequent versions.
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Versions []VersionCount `json:"versions,omitempty"`
}

// TargetVersion is a version in a catalog.
type TargetVersion struct {
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version"`
	// Bundle is the name of the bundle, which is the name of its CSV.
	// +kubebuilder:validation:MaxLength=253
	Bundle string `json:"bundle"`
	// +kubebuilder:validation:MaxLength=63
	Channel string `json:"channel"`
	// +kubebuilder:validation:MaxLength=128
	CatalogDigest string `json:"catalogDigest"`
	// Reason is why this version was selected.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Reason string `json:"reason,omitempty"`

	// SLO is the bundle's own definition of how to monitor its operator: the value of its property
	// bellwether.dev/slo, of at most 16 KiB.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	SLO *runtime.RawExtension `json:"slo,omitempty"`

	// Provides are the APIs that the version provides, as kind.version.group and sorted. If a bundle has more than
	// 256, it has the first 256.
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=400
	// +optional
	Provides []string `json:"provides,omitempty"`
}

// RolloutSummary names a rollout and its phase.
type RolloutSummary struct {
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999999999999
	Revision int64        `json:"revision"`
	Phase    RolloutPhase `json:"phase"`
	// StrategyOutdated is true while spec.strategy differs from the frozen strategy of this rollout. The new strategy
	// applies to the next rollout.
	// +optional
	StrategyOutdated bool `json:"strategyOutdated,omitempty"`
}

// RolloutOutcome is the result of a rollout, as far as the hub observed it.
type RolloutOutcome struct {
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999999999999
	Revision int64 `json:"revision"`
	// Version is "as installed" for a rollout that took over operators that others installed.
	// +kubebuilder:validation:MaxLength=128
	Version string       `json:"version"`
	Phase   RolloutPhase `json:"phase"`
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
	// Clusters counts all waves together.
	// +optional
	Clusters WaveCounts `json:"clusters,omitempty"`
	// Message is the rollout's last message, or the message with which it succeeded.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
	// Deleted is true once the OperatorRollout is deleted.
	// +optional
	Deleted bool `json:"deleted,omitempty"`
}

// ClusterCounts counts the selected clusters.
type ClusterCounts struct {
	// Selected clusters match the cluster selector.
	// +optional
	Selected int32 `json:"selected"`
	// Updated clusters run the target of the newest rollout, according to their last report.
	// +optional
	Updated int32 `json:"updated"`
	// Ready clusters have a Ready OperatorInstall and report now: clusters that count as offline are not included.
	// +optional
	Ready int32 `json:"ready"`
	// Offline clusters have an agent that does not report, or that cannot reach the cluster's API server.
	// +optional
	Offline int32 `json:"offline"`
}

// RemovalProgress counts the clusters that the operator is to be uninstalled from. Clusters from which it is already
// removed are not included.
type RemovalProgress struct {
	// Request identifies the clusters that wait for a confirmation; empty if there are none.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	Request string `json:"request,omitempty"`
	// Unconfirmed clusters wait for the confirmation.
	// +optional
	Unconfirmed int32 `json:"unconfirmed"`
	// Waiting clusters wait for their turn.
	// +optional
	Waiting int32 `json:"waiting"`
	// Uninstalling clusters were instructed to uninstall the operator.
	// +optional
	Uninstalling int32 `json:"uninstalling"`
}

// OperatorRecovery describes the admissions of an operator that the hub found on clusters.
type OperatorRecovery struct {
	// Request is the value that spec.resume must be set to. It changes when a cluster reports a newer admission than
	// the admissions that were found before.
	// +kubebuilder:validation:MaxLength=40
	Request string `json:"request"`
	// Clusters is how many clusters keep an admission that the hub does not have.
	Clusters int32 `json:"clusters"`
	// Revision is the highest revision of these admissions.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999999999999
	Revision int64 `json:"revision"`
}

// AdoptsFirst reports whether operators that others installed must still be taken over before the target is
// rolled out.
func (s *ManagedOperatorSpec) AdoptsFirst(status *ManagedOperatorStatus) bool {
	return s.Adopt != nil && status.Adoption == nil
}

// AdoptionOutcome is the rollout that took over operators that others installed.
type AdoptionOutcome struct {
	// +kubebuilder:validation:MaxLength=253
	Rollout string `json:"rollout"`
	// EndedAt is when the rollout succeeded.
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
	// Clusters is on how many clusters it had succeeded then. On clusters without the operator there was nothing to
	// take over.
	// +optional
	Clusters int32 `json:"clusters"`
}

// VersionCount is how many clusters run a version.
type VersionCount struct {
	// +kubebuilder:validation:MaxLength=128
	Version  string `json:"version"`
	Clusters int32  `json:"clusters"`
}

// ManagedOperatorList is a list of ManagedOperators.
//
// +kubebuilder:object:root=true
type ManagedOperatorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ManagedOperator `json:"items"`
}
