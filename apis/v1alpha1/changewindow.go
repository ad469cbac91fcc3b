// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ChangeWindow defines when rollouts may admit clusters. It is evaluated for each cluster when the cluster is
// admitted. It does not stop clusters that were already admitted.
//
// A cluster is closed to an operator while a window of type Deny that selects both is in force. If windows of type
// Allow select both, the cluster is also closed while none of these windows is in force.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=cw,categories=bellwether
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Start",type=string,JSONPath=`.spec.start`
// +kubebuilder:printcolumn:name="Duration",type=string,JSONPath=`.spec.duration`
// +kubebuilder:printcolumn:name="Recurrence",type=string,JSONPath=`.spec.recurrence`
// +kubebuilder:printcolumn:name="Time zone",type=string,JSONPath=`.spec.timeZone`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.status.inForceUntil`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextStart`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ChangeWindow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ChangeWindowSpec `json:"spec"`
	// +optional
	Status ChangeWindowStatus `json:"status,omitempty"`
}

// ChangeWindowStatus says whether the window can be evaluated, and when it is in force. A window with the time zone
// Cluster begins and ends at a different time on each cluster: inForceUntil is the last end, and nextStart the
// first start.
type ChangeWindowStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready, Stalled. A window that is not Ready closes the clusters for which it cannot be evaluated.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// State is the state of the window on any cluster. Empty if the window cannot be evaluated.
	// +optional
	State ChangeWindowState `json:"state,omitempty"`

	// InForceUntil is when the current window ends. Absent while the window is not in force, and if the end is not
	// known because windows follow each other without a gap.
	// +optional
	InForceUntil *metav1.Time `json:"inForceUntil,omitempty"`

	// NextStart is when the window is in force next. Absent if it will not be in force again.
	// +optional
	NextStart *metav1.Time `json:"nextStart,omitempty"`
}

// ChangeWindowState says whether a window is in force.
//
// +kubebuilder:validation:Enum=InForce;Scheduled;Over
type ChangeWindowState string

const (
	// WindowInForce means that the window is in force now.
	WindowInForce ChangeWindowState = "InForce"
	// WindowScheduled means that the window will be in force later.
	WindowScheduled ChangeWindowState = "Scheduled"
	// WindowOver means that the window will not be in force again.
	WindowOver ChangeWindowState = "Over"
)

// ChangeWindowSpec defines when the window is in force, and for which operators and clusters.
type ChangeWindowSpec struct {
	Type ChangeWindowType `json:"type"`

	// Reason is shown to users who wait for the window.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Reason string `json:"reason,omitempty"`

	// Namespaces are the namespaces of the ManagedOperators that the window applies to. Empty means all.
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`

	// OperatorSelector selects ManagedOperators by their labels. Empty means all.
	// +optional
	OperatorSelector *metav1.LabelSelector `json:"operatorSelector,omitempty"`

	// ClusterSelector selects FleetClusters by their labels. Empty means all.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// Start is when the window is first in force: a date and time in the time zone of the window, such
	// as 2026-01-05T22:00:00.
	// +kubebuilder:validation:MaxLength=19
	// +kubebuilder:validation:XValidation:rule="self.matches('^2[01][0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$')",message="start must be a date and time without a time zone, such as 2026-01-05T22:00:00; the time zone is in timeZone"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^2[01][0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$') || timestamp(self + 'Z') > timestamp('1970-01-01T00:00:00Z')",message="start must be a date and time that exists"
	Start string `json:"start"`

	// Duration is how long the window is in force each time. It is elapsed time: in a night in which the clocks
	// change, a window of 8 hours ends an hour earlier or later by the clock.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('8784h')",message="duration must be between 1m and 8784h (366 days)"
	Duration metav1.Duration `json:"duration"`

	// Recurrence is a rule of RFC 5545 (RRULE) for when the window is in force again, such as
	// FREQ=WEEKLY;BYDAY=MO,TU. FREQ is DAILY, WEEKLY, MONTHLY or YEARLY. The time of day is the time of start.
	// UNTIL is a date and time in the time zone of the window, such as 20261231T235959. If empty, the window is in
	// force once.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^FREQ=(DAILY|WEEKLY|MONTHLY|YEARLY)(;[A-Z]+=[-+0-9A-Z,]+)*$')",message="recurrence must be an RRULE of RFC 5545 that begins with FREQ=DAILY, WEEKLY, MONTHLY or YEARLY, such as FREQ=WEEKLY;BYDAY=MO,TU"
	// +kubebuilder:validation:XValidation:rule="!self.contains(';BYHOUR=') && !self.contains(';BYMINUTE=') && !self.contains(';BYSECOND=') && !self.contains(';DTSTART=')",message="the time of day is that of start: leave BYHOUR, BYMINUTE, BYSECOND and DTSTART out"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^FREQ=(DAILY|WEEKLY)(;|$)') || self.matches('^FREQ=(DAILY|WEEKLY)(;(INTERVAL=0*([1-9][0-9]{0,2}|1000)|COUNT=0*([1-9][0-9]{0,4}|100000)|UNTIL=[0-9]{8}T[0-9]{6}|WKST=(MO|TU|WE|TH|FR|SA|SU)|BYMONTH=0*([1-9]|1[0-2])(,0*([1-9]|1[0-2]))*|BYDAY=(MO|TU|WE|TH|FR|SA|SU)(,(MO|TU|WE|TH|FR|SA|SU))*))*$')",message="FREQ=DAILY and FREQ=WEEKLY can have INTERVAL, COUNT, UNTIL, WKST, BYMONTH, and BYDAY without numbers, with values of RFC 5545: INTERVAL is at most 1000 and COUNT at most 100000, and UNTIL is a date and time such as 20261231T235959"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^FREQ=MONTHLY(;|$)') || self.matches('^FREQ=MONTHLY(;(INTERVAL=0*([1-9][0-9]{0,2}|1000)|COUNT=0*([1-9][0-9]{0,4}|100000)|UNTIL=[0-9]{8}T[0-9]{6}|WKST=(MO|TU|WE|TH|FR|SA|SU)|BYMONTH=0*([1-9]|1[0-2])(,0*([1-9]|1[0-2]))*|BYDAY=([-+]?[0-9]{1,2})?(MO|TU|WE|TH|FR|SA|SU)(,([-+]?[0-9]{1,2})?(MO|TU|WE|TH|FR|SA|SU))*|BYMONTHDAY=[-+]?0*([1-9]|[12][0-9]|3[01])(,[-+]?0*([1-9]|[12][0-9]|3[01]))*|BYSETPOS=[-+]?0*[1-9][0-9]{0,2}(,[-+]?0*[1-9][0-9]{0,2})*))*$')",message="FREQ=MONTHLY can have INTERVAL, COUNT, UNTIL, WKST, BYMONTH, BYDAY, BYMONTHDAY and BYSETPOS, with values of RFC 5545: INTERVAL is at most 1000 and COUNT at most 100000, and UNTIL is a date and time such as 20261231T235959"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^FREQ=YEARLY(;|$)') || self.matches('^FREQ=YEARLY(;(INTERVAL=0*([1-9][0-9]{0,2}|1000)|COUNT=0*([1-9][0-9]{0,4}|100000)|UNTIL=[0-9]{8}T[0-9]{6}|WKST=(MO|TU|WE|TH|FR|SA|SU)|BYMONTH=0*([1-9]|1[0-2])(,0*([1-9]|1[0-2]))*|BYDAY=([-+]?[0-9]{1,2})?(MO|TU|WE|TH|FR|SA|SU)(,([-+]?[0-9]{1,2})?(MO|TU|WE|TH|FR|SA|SU))*|BYMONTHDAY=[-+]?0*([1-9]|[12][0-9]|3[01])(,[-+]?0*([1-9]|[12][0-9]|3[01]))*|BYSETPOS=[-+]?0*[1-9][0-9]{0,2}(,[-+]?0*[1-9][0-9]{0,2})*|BYYEARDAY=[-+]?0*[1-9][0-9]{0,2}(,[-+]?0*[1-9][0-9]{0,2})*|BYWEEKNO=[-+]?0*[1-9][0-9]?(,[-+]?0*[1-9][0-9]?)*))*$')",message="FREQ=YEARLY can have INTERVAL, COUNT, UNTIL, WKST, BYMONTH, BYDAY, BYMONTHDAY, BYSETPOS, BYYEARDAY and BYWEEKNO, with values of RFC 5545: INTERVAL is at most 1000 and COUNT at most 100000, and UNTIL is a date and time such as 20261231T235959"
	// +kubebuilder:validation:XValidation:rule="!self.matches('(;INTERVAL=.*;INTERVAL=|;COUNT=.*;COUNT=|;UNTIL=.*;UNTIL=|;WKST=.*;WKST=|;BYMONTH=.*;BYMONTH=|;BYDAY=.*;BYDAY=|;BYMONTHDAY=.*;BYMONTHDAY=|;BYSETPOS=.*;BYSETPOS=|;BYYEARDAY=.*;BYYEARDAY=|;BYWEEKNO=.*;BYWEEKNO=)')",message="each part of the rule can be there once"
	// +kubebuilder:validation:XValidation:rule="!(self.contains(';COUNT=') && self.contains(';UNTIL='))",message="COUNT and UNTIL exclude each other"
	// +kubebuilder:validation:XValidation:rule="!(self.startsWith('FREQ=DAILY;') && self.matches(';INTERVAL=0*([2-9]|[1-9][0-9]+)(;|$)') && self.matches(';(BYDAY|BYMONTH)='))",message="FREQ=DAILY with an INTERVAL above 1 cannot have BYDAY or BYMONTH"
	// +optional
	Recurrence string `json:"recurrence,omitempty"`

	// TimeZone is a name of the IANA time zone database, such as Europe/Berlin, or Cluster, for the annotation
	// bellwether.dev/time-zone of each FleetCluster (UTC if it is not set). Default: UTC.
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][-+_/A-Za-z0-9]*$')",message="timeZone must be a name such as Europe/Berlin, UTC or Cluster"
	// +kubebuilder:validation:XValidation:rule="self == 'Cluster' || (self != 'Local' && (!self.matches('^[A-Za-z][-+_/A-Za-z0-9]*$') || timestamp('2026-01-01T00:00:00Z').getFullYear(self) > 0))",message="timeZone must be in the IANA time zone database, such as Europe/Berlin"
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}

// TimeZoneOfCluster is the value of timeZone for a window that is evaluated in the time zone of each cluster.
const TimeZoneOfCluster = "Cluster"

// ChangeWindowType is the effect of a window while it is in force.
//
// +kubebuilder:validation:Enum=Allow;Deny
type ChangeWindowType string

const (
	// WindowAllow opens the selected clusters, which are closed otherwise.
	WindowAllow ChangeWindowType = "Allow"
	// WindowDeny closes the selected clusters, whatever other windows do.
	WindowDeny ChangeWindowType = "Deny"
)

// WindowOverride lets one rollout admit clusters although ChangeWindows are closed.
type WindowOverride struct {
	// By is the user name of the person who overrides, as the API server authenticated it.
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
