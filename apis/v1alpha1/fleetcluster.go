// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FleetCluster is a member of the fleet. Cluster selectors and waves select clusters by the labels of their
// FleetCluster. Only the Lease in the cluster's namespace shows whether the cluster is online.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=fc,categories=bellwether
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Online",type=string,JSONPath=`.status.conditions[?(@.type=="Online")].status`
// +kubebuilder:printcolumn:name="API server",type=string,JSONPath=`.status.conditions[?(@.type=="APIServerReachable")].status`
// +kubebuilder:printcolumn:name="Stale",type=date,JSONPath=`.status.staleSince`
// +kubebuilder:printcolumn:name="Kubernetes",type=string,JSONPath=`.status.versions.kubernetes`
// +kubebuilder:printcolumn:name="Operators",type=integer,JSONPath=`.status.operators.total`
// +kubebuilder:printcolumn:name="Not ready",type=integer,JSONPath=`.status.operators.notReady`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.status.namespace`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 50 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a cluster's name is a DNS label of at most 50 characters: it becomes part of a namespace and the value of a label"
type FleetCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec FleetClusterSpec `json:"spec,omitempty"`
	// +optional
	Status FleetClusterStatus `json:"status,omitempty"`
}

// FleetClusterSpec defines how the hub treats a cluster.
type FleetClusterSpec struct {
	// SourceRef names the object that this cluster was discovered from. It is empty for a cluster that was added by
	// hand. Set it by hand to let an existing FleetCluster follow a source, even with another name than the source;
	// such a FleetCluster is not deleted with its source.
	// +optional
	SourceRef *SourceReference `json:"sourceRef,omitempty"`

	// Paused stops rollouts from admitting this cluster, which counts as deferred, and prevents operators from being
	// uninstalled from it.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// Offboarding is what happens to the operators on the cluster when the cluster leaves the fleet. Orphan does not
	// change them.
	// +kubebuilder:default=Orphan
	// +optional
	Offboarding RemovalPolicy `json:"offboarding,omitempty"`

	// OffboardingTimeout is how long the hub waits for the cluster's agent to release or uninstall its operators
	// after the deletion of this object. After that, the hub removes the cluster without the agent, and records the
	// remaining operators in a ConfigMap in the hub's namespace. The time starts at the deletion timestamp, and can
	// be changed while the cluster is being deleted: with 0s the hub does not wait.
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('8784h')",message="offboardingTimeout must be between 0s and 8784h (366 days)"
	// +optional
	OffboardingTimeout *metav1.Duration `json:"offboardingTimeout,omitempty"`
}

// SourceReference names the object that a FleetCluster was created from.
type SourceReference struct {
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion"`
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// RemovalPolicy is what happens on the fleet cluster when an operator is to be removed.
//
// +kubebuilder:validation:Enum=Orphan;Uninstall;Restore
type RemovalPolicy string

const (
	// RemovalOrphan changes nothing on the cluster and stops managing the operator.
	RemovalOrphan RemovalPolicy = "Orphan"
	// RemovalUninstall removes the Subscription, then the CSVs. CRDs and their
	// objects are kept.
	RemovalUninstall RemovalPolicy = "Uninstall"
	// RemovalRestore writes the previous spec of an adopted Subscription back, and stops managing the operator. An
	// operator that was not adopted stays as with Orphan.
	RemovalRestore RemovalPolicy = "Restore"
)

// NeedsAgent reports whether the policy changes something on the cluster, which only its agent can do. The empty
// policy means Orphan and changes nothing.
func (p RemovalPolicy) NeedsAgent() bool { return p == RemovalUninstall || p == RemovalRestore }

// FleetClusterStatus is the state of a cluster as the hub observed it.
type FleetClusterStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready, Online, APIServerReachable, OLMAvailable, VersionSupported, and Hibernating if the source
	// reports that the cluster does not run.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// StaleSince is when the hub stopped getting current reports from the cluster: its agent is offline, or cannot
	// reach the cluster's API server. Versions and operators are from the last report. Absent while reports are
	// current, and before the first report.
	// +optional
	StaleSince *metav1.Time `json:"staleSince,omitempty"`

	// Namespace is the cluster's namespace on the hub. The agent may read and write only this namespace.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// +optional
	Versions ClusterVersions `json:"versions,omitempty"`

	// +optional
	Operators InstallCounts `json:"operators,omitempty"`

	// Veto is set while the owner of the cluster refuses changes with the ConfigMap bellwether-veto in the
	// agent's namespace.
	// +optional
	Veto *ClusterVeto `json:"veto,omitempty"`

	// VetoEndedAt is when the hub observed the end of the last veto.
	// +optional
	VetoEndedAt *metav1.Time `json:"vetoEndedAt,omitempty"`

	// Freeze is the FleetFreeze that stops changes on the cluster; absent if there is none.
	// +optional
	Freeze *ClusterFreeze `json:"freeze,omitempty"`

	// PastFreezes are the last periods in which the cluster was frozen, the oldest first. They do not count
	// for deadlines.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	PastFreezes []FreezePeriod `json:"pastFreezes,omitempty"`

	// Source is the last observed state of the object that spec.sourceRef names. Absent for a cluster that was added
	// by hand.
	// +optional
	Source *ClusterSource `json:"source,omitempty"`
}

// ClusterVeto is the decision of a cluster's owner that operators must not be changed on the cluster. It is in force
// until its ConfigMap is deleted. Changes that have already begun continue.
type ClusterVeto struct {
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason"`
	// Until is when the owner intends to end the veto.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// Operators that the veto applies to, as namespace/name or name. Empty means all.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=127
	// +optional
	Operators []string `json:"operators,omitempty"`
	// ReadOnly is true if the agent was installed only to read the cluster, and cannot change anything on it.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
	// Since is when the hub first observed the veto.
	// +optional
	Since metav1.Time `json:"since,omitempty"`
}

// ClusterFreeze describes the FleetFreeze of a cluster.
type ClusterFreeze struct {
	// Name of the FleetFreeze.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason"`
	// Since is the creation time of the first of the FleetFreezes that have frozen the cluster without a gap.
	Since metav1.Time `json:"since"`
}

// FreezePeriod is a period in which a cluster was frozen, until the hub observed its end.
type FreezePeriod struct {
	Since   metav1.Time `json:"since"`
	EndedAt metav1.Time `json:"endedAt"`
}

// ClusterVersions are the versions that the agent reports.
type ClusterVersions struct {
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Agent string `json:"agent,omitempty"`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Kubernetes string `json:"kubernetes,omitempty"`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	OLM string `json:"olm,omitempty"`
}

// InstallCounts counts OperatorInstalls.
type InstallCounts struct {
	// +optional
	Total int32 `json:"total"`
	// +optional
	Ready int32 `json:"ready"`
	// +optional
	NotReady int32 `json:"notReady"`
}

// FleetClusterList is a list of FleetClusters.
//
// +kubebuilder:object:root=true
type FleetClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FleetCluster `json:"items"`
}
