// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AlertSilence prevents notifications of alerts about operators, or about clusters, for a limited time. The hub
// creates silences in Alertmanager from it. It first resolves the incidents in PagerDuty that the silence would hide,
// and opens them again if the alerts still fire when the silence ends.
//
// A silence is about operators of its own namespace. A silence with the scope Fleet is about clusters with everything
// on them; it must be in the hub's namespace. Objects with the label bellwether.dev/automatic-silence belong to the
// hub: it creates them for upgrades, for vetoes of a cluster's owner, and for clusters that are being removed.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=as,categories=bellwether
// +kubebuilder:printcolumn:name="Owner",type=string,JSONPath=`.spec.owner`
// +kubebuilder:printcolumn:name="Operators",type=string,JSONPath=`.spec.operators[*]`
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.conditions[?(@.type=="Active")].status`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="End",type=string,JSONPath=`.spec.end`
// +kubebuilder:printcolumn:name="Hidden pages",type=integer,JSONPath=`.status.hiddenPages`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`
// +kubebuilder:printcolumn:name="Excluded",type=string,JSONPath=`.status.conditions[?(@.type=="BudgetsExcluded")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,priority=1
type AlertSilence struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AlertSilenceSpec `json:"spec"`
	// +optional
	Status AlertSilenceStatus `json:"status,omitempty"`
}

// AlertSilenceSpec defines which alerts are silenced, until when, by whom and why.
//
// +kubebuilder:validation:XValidation:rule="has(self.operators) || has(self.clusters)",message="set operators, clusters or both"
// +kubebuilder:validation:XValidation:rule="self.scope != 'Fleet' || !has(self.operators)",message="a silence with scope Fleet is about clusters with everything on them: it has no operators"
// +kubebuilder:validation:XValidation:rule="!has(self.start) || self.end > self.start",message="end must be after start"
// +kubebuilder:validation:XValidation:rule="(has(self.excludeFromBudgets) && self.excludeFromBudgets) == (has(oldSelf.excludeFromBudgets) && oldSelf.excludeFromBudgets)",message="excludeFromBudgets cannot be changed: make another AlertSilence"
// +kubebuilder:validation:XValidation:rule="!has(self.excludeFromBudgets) || !self.excludeFromBudgets || (self.owner == oldSelf.owner && self.reason == oldSelf.reason && self.end <= oldSelf.end && has(self.operators) == has(oldSelf.operators) && (!has(self.operators) || self.operators == oldSelf.operators) && has(self.clusters) == has(oldSelf.clusters) && (!has(self.clusters) || self.clusters == oldSelf.clusters))",message="of a silence that excludes time from error budgets only the end can be changed, to an earlier time: make another AlertSilence"
// +kubebuilder:validation:XValidation:rule="has(self.start) == has(oldSelf.start) && (!has(self.start) || self.start == oldSelf.start)",message="start cannot be changed: make another AlertSilence"
type AlertSilenceSpec struct {
	// Owner is the person or team to ask about the silence.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.trim().size() > 0 && !self.contains('\\n')",message="owner must not be empty, and have one line"
	Owner string `json:"owner"`

	// Reason is why no notification is needed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.trim().size() > 0",message="reason must not be empty"
	Reason string `json:"reason"`

	// Start is when the silence begins. Default: when the object is created.
	// +optional
	Start *metav1.Time `json:"start,omitempty"`

	// End is when the silence ends: at most 24 hours after its start, unless the hub's flag --max-silence sets
	// another limit. To end the silence, set it to a time in the past.
	End metav1.Time `json:"end"`

	// Scope is Namespace, for alerts about operators of this namespace, or Fleet, for all alerts about clusters and
	// about operators on them.
	// +kubebuilder:default=Namespace
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="scope cannot be changed: make another AlertSilence"
	// +optional
	Scope SilenceScope `json:"scope,omitempty"`

	// Operators are names of ManagedOperators in this namespace. Empty means all.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=50
	// +optional
	Operators []string `json:"operators,omitempty"`

	// Clusters limits the silence to alerts about operators on these clusters. An alert about a release is about no
	// single cluster, so it is silenced only if clusters is not set.
	// +optional
	Clusters *SilencedClusters `json:"clusters,omitempty"`

	// Alerts is All (default) to silence pages and tickets, or Tickets to silence only tickets.
	// +kubebuilder:default=All
	// +optional
	Alerts SilencedAlerts `json:"alerts,omitempty"`

	// ExcludeFromBudgets excludes the time in which the operators are bad on the clusters during the silence from
	// their error budgets. The remaining budget is then shown twice: with that time, which alerts, gates and
	// rollouts continue to use, and without it. Time before the creation of the object is never excluded, whatever
	// start is. Such a silence can be ended earlier, but cannot be changed otherwise. The exclusion does not need
	// an Alertmanager.
	// +optional
	ExcludeFromBudgets bool `json:"excludeFromBudgets,omitempty"`
}

// SilenceScope is what an AlertSilence is about.
//
// +kubebuilder:validation:Enum=Namespace;Fleet
type SilenceScope string

const (
	// SilenceNamespace is for alerts about operators of the silence's namespace.
	SilenceNamespace SilenceScope = "Namespace"
	// SilenceFleet is for clusters with everything on them.
	SilenceFleet SilenceScope = "Fleet"
)

// SilencedAlerts are the alerts that an AlertSilence is about, by their severity.
//
// +kubebuilder:validation:Enum=All;Tickets
type SilencedAlerts string

const (
	// SilenceAll is for pages and tickets.
	SilenceAll SilencedAlerts = "All"
	// SilenceTickets is for tickets only.
	SilenceTickets SilencedAlerts = "Tickets"
)

// SilencedClusters select FleetClusters: the clusters with one of the names, and the clusters that the
// selector matches.
//
// +kubebuilder:validation:XValidation:rule="has(self.names) || has(self.selector)",message="set names, selector or both"
type SilencedClusters struct {
	// Names of FleetClusters.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=50
	// +optional
	Names []string `json:"names,omitempty"`
	// Selector matches labels of FleetClusters. An empty selector matches all FleetClusters.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// AlertSilenceStatus is the state of the silence.
type AlertSilenceStatus struct {
	// ObservedGeneration is the generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready is True unless something prevents the silence. Active is True while the silence is active in
	// Alertmanager. BudgetsExcluded exists only with spec.excludeFromBudgets, and is True while time is excluded.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// IDs are the silences in Alertmanager.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	IDs []string `json:"ids,omitempty"`

	// ActiveSince is when the silence became active.
	// +optional
	ActiveSince *metav1.Time `json:"activeSince,omitempty"`

	// ResolvedIncidents are the incidents that were resolved because of the silence and not opened again: the
	// first 20.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	ResolvedIncidents []ResolvedIncident `json:"resolvedIncidents,omitempty"`

	// HiddenAlerts is how many firing alerts the silence hides now, and HiddenPages how
	// many of these have the severity page.
	// +optional
	HiddenAlerts int32 `json:"hiddenAlerts,omitempty"`
	// +optional
	HiddenPages int32 `json:"hiddenPages,omitempty"`

	// Hidden counts the hidden pages by operator or cluster: the first 20.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Hidden []HiddenPages `json:"hidden,omitempty"`
}

// ResolvedIncident is an incident of PagerDuty that was resolved for a silence.
type ResolvedIncident struct {
	// DedupKey is the key by which PagerDuty identifies the incident.
	// +kubebuilder:validation:MaxLength=255
	DedupKey string `json:"dedupKey"`
	// Alert is the alert's name.
	// +kubebuilder:validation:MaxLength=128
	Alert string `json:"alert"`
	// About is the subject of the alert: an operator, a cluster, a version.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	About string `json:"about,omitempty"`
	// ResolvedAt is when the incident was resolved.
	ResolvedAt metav1.Time `json:"resolvedAt"`
}

// HiddenPages counts the firing alerts with the severity page that a silence hides, for one operator or one cluster.
type HiddenPages struct {
	// OperatorNamespace and Operator are empty for alerts about a cluster.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	OperatorNamespace string `json:"operatorNamespace,omitempty"`
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Operator string `json:"operator,omitempty"`
	// Cluster is empty for alerts about an operator.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Cluster string `json:"cluster,omitempty"`
	Pages   int32  `json:"pages"`
}

// AlertSilenceList is a list of AlertSilences.
//
// +kubebuilder:object:root=true
type AlertSilenceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AlertSilence `json:"items"`
}
