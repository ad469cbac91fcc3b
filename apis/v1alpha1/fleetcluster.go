// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FleetCluster is a member of the fleet. Its labels are what cluster selectors
// and waves select by. Whether it is alive is told only by the Lease in its
// namespace.
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

// FleetClusterSpec says how the hub treats a cluster.
type FleetClusterSpec struct {
	// SourceRef names the object that this cluster was discovered from. Empty
	// for a cluster added by hand. Set it by hand to let an existing FleetCluster
	// follow a source, also under another name than the source's; such a FleetCluster
	// is not deleted with its source.
	// +optional
	SourceRef *SourceReference `json:"sourceRef,omitempty"`

	// Paused stops rollouts from admitting this cluster, which counts as deferred, and
	// keeps operators from being uninstalled from it.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// Offboarding says what becomes of the operators on the cluster when it
	// leaves the fleet. Orphan leaves them as they are.
	// +kubebuilder:default=Orphan
	// +optional
	Offboarding RemovalPolicy `json:"offboarding,omitempty"`

	// OffboardingTimeout is how long after its deletion the hub waits for the
	// cluster's agent to release or uninstall its operators. After that the hub lets
	// the cluster go without the agent, and records the operators that were left
	// behind in a ConfigMap of its own namespace. It counts from the deletion
	// timestamp, and can be changed while the cluster is being deleted: with 0s the
	// hub does not wait.
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('8784h')",message="offboardingTimeout must be between 0s and 8784h (366 days)"
	// +optional
	OffboardingTimeout *metav1.Duration `json:"offboardingTimeout,omitempty"`
}

// SourceReference names the object that a FleetCluster was made from.
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

// RemovalPolicy says what happens on the fleet cluster when an operator is no
// longer wanted there.
//
// +kubebuilder:validation:Enum=Orphan;Uninstall;Restore
type RemovalPolicy string

const (
	// RemovalOrphan leaves everything in place and stops managing it.
	RemovalOrphan RemovalPolicy = "Orphan"
	// RemovalUninstall removes the Subscription, then the CSVs. CRDs and their
	// objects are kept.
	RemovalUninstall RemovalPolicy = "Uninstall"
	// RemovalRestore writes the spec of a Subscription that was adopted back as it
	// was, and stops managing it. What others did not install stays as with Orphan.
	RemovalRestore RemovalPolicy = "Restore"
)

// NeedsAgent tells whether the policy changes something on the cluster, which only its
// agent can do. Nothing, which means Orphan, changes nothing there.
func (p RemovalPolicy) NeedsAgent() bool { return p == RemovalUninstall || p == RemovalRestore }

// FleetClusterStatus is what the hub knows of a cluster.
type FleetClusterStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready, Online, APIServerReachable, OLMAvailable, VersionSupported, and
	// Hibernating where the source says that the cluster does not run.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// StaleSince is when the hub stopped getting current reports from the cluster:
	// its agent is offline, or cannot reach the cluster's API server. Versions and
	// operators are those of the last report. Absent while reports are current, and
	// before the first one.
	// +optional
	StaleSince *metav1.Time `json:"staleSince,omitempty"`

	// Namespace is the cluster's namespace on the hub, the only one that its
	// agent may read and write.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// +optional
	Versions ClusterVersions `json:"versions,omitempty"`

	// +optional
	Operators InstallCounts `json:"operators,omitempty"`

	// Veto is there while the owner of the cluster refuses changes, by the ConfigMap
	// bellwether-veto beside the agent.
	// +optional
	Veto *ClusterVeto `json:"veto,omitempty"`

	// VetoEndedAt is when the hub saw the last veto end.
	// +optional
	VetoEndedAt *metav1.Time `json:"vetoEndedAt,omitempty"`

	// Freeze is the FleetFreeze that stops changes on the cluster; absent where there is none.
	// +optional
	Freeze *ClusterFreeze `json:"freeze,omitempty"`

	// PastFreezes are the last times that the cluster was frozen, which count for no deadline; the oldest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	PastFreezes []FreezePeriod `json:"pastFreezes,omitempty"`

	// Source is what the hub last saw of the object that spec.sourceRef names. Absent for
	// a cluster that was added by hand.
	// +optional
	Source *ClusterSource `json:"source,omitempty"`
}

// ClusterVeto is the word of a cluster's owner that operators must not be changed
// there. It holds until its ConfigMap is deleted; what has begun finishes.
type ClusterVeto struct {
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason"`
	// Until is when the owner means to end the veto.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// Operators that the veto is about, as namespace/name or name. Empty: all.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=127
	// +optional
	Operators []string `json:"operators,omitempty"`
	// ReadOnly says that the agent was installed to read the cluster only, and cannot change anything there.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
	// Since is when the hub first saw the veto.
	// +optional
	Since metav1.Time `json:"since,omitempty"`
}

// ClusterFreeze is what a FleetFreeze says.
type ClusterFreeze struct {
	// Name of the FleetFreeze.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason"`
	// Since is when the first FleetFreeze was made of those that have frozen the cluster without a gap.
	Since metav1.Time `json:"since"`
}

// FreezePeriod is a time in which a cluster was frozen, until the hub saw its end.
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
