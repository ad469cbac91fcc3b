// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ChangeWindow says when rollouts may admit clusters. It is evaluated for each
// cluster, at the time of its admission. It does not stop what was admitted.
//
// A cluster is closed to an operator while a window of type Deny that selects
// both is in force. If windows of type Allow select both, it is also closed while
// none of these is in force.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=cw,categories=bellwether
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Start",type=string,JSONPath=`.spec.start`
// +kubebuilder:printcolumn:name="Duration",type=string,JSONPath=`.spec.duration`
// +kubebuilder:printcolumn:name="Recurrence",type=string,JSONPath=`.spec.recurrence`
// +kubebuilder:printcolumn:name="Time zone",type=string,JSONPath=`.spec.timeZone`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ChangeWindow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ChangeWindowSpec `json:"spec"`
}

// ChangeWindowSpec says when the window is in force, and for what.
type ChangeWindowSpec struct {
	Type ChangeWindowType `json:"type"`

	// Reason is shown to whoever waits for the window.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Reason string `json:"reason,omitempty"`

	// Namespaces of the ManagedOperators that the window is about. Empty: all.
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`

	// OperatorSelector selects ManagedOperators by their labels. Empty: all.
	// +optional
	OperatorSelector *metav1.LabelSelector `json:"operatorSelector,omitempty"`

	// ClusterSelector selects FleetClusters by their labels. Empty: all.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// Start is when the window is in force first: a date and time in the time zone
	// of the window, such as 2026-01-05T22:00:00.
	// +kubebuilder:validation:MaxLength=19
	// +kubebuilder:validation:XValidation:rule="self.matches('^2[01][0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$')",message="start must be a date and time without a time zone, such as 2026-01-05T22:00:00; the time zone is in timeZone"
	Start string `json:"start"`

	// Duration is how long the window is in force each time. It is elapsed time:
	// a window of 8 hours in the night in which clocks change ends an hour earlier
	// or later by the clock.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('8784h')",message="duration must be between 1m and 8784h (366 days)"
	Duration metav1.Duration `json:"duration"`

	// Recurrence is a rule of RFC 5545 (RRULE) for when the window is in force again,
	// such as FREQ=WEEKLY;BYDAY=MO,TU. FREQ is DAILY, WEEKLY, MONTHLY or YEARLY. The
	// time of day is that of start. UNTIL is a date and time in the time zone of the
	// window, such as 20261231T235959. Empty: the window is in force once.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^FREQ=(DAILY|WEEKLY|MONTHLY|YEARLY)(;[A-Z]+=[-+0-9A-Z,]+)*$')",message="recurrence must be an RRULE of RFC 5545 that begins with FREQ=DAILY, WEEKLY, MONTHLY or YEARLY, such as FREQ=WEEKLY;BYDAY=MO,TU"
	// +kubebuilder:validation:XValidation:rule="!self.contains(';BYHOUR=') && !self.contains(';BYMINUTE=') && !self.contains(';BYSECOND=') && !self.contains(';DTSTART=')",message="the time of day is that of start: leave BYHOUR, BYMINUTE, BYSECOND and DTSTART out"
	// +optional
	Recurrence string `json:"recurrence,omitempty"`

	// TimeZone is a name of the IANA time zone database, such as Europe/Berlin; or
	// Cluster, for the annotation bellwether.dev/time-zone of each FleetCluster
	// (UTC where there is none). Default: UTC.
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][-+_/A-Za-z0-9]*$')",message="timeZone must be a name such as Europe/Berlin, UTC or Cluster"
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}

// TimeZoneOfCluster is the time zone of a window that is evaluated in the time
// zone of each cluster.
const TimeZoneOfCluster = "Cluster"

// ChangeWindowType says what a window does while it is in force.
//
// +kubebuilder:validation:Enum=Allow;Deny
type ChangeWindowType string

const (
	// WindowAllow opens the clusters that it selects, which are closed otherwise.
	WindowAllow ChangeWindowType = "Allow"
	// WindowDeny closes the clusters that it selects, whatever other windows say.
	WindowDeny ChangeWindowType = "Deny"
)

// WindowOverride lets one rollout admit clusters in spite of ChangeWindows.
type WindowOverride struct {
	// By is the user name of who overrides, as the API server knows it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`
	// +optional
	At metav1.Time `json:"at,omitempty"`
}

// ChangeWindowList is a list of ChangeWindows.
//
// +kubebuilder:object:root=true
type ChangeWindowList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ChangeWindow `json:"items"`
}
