// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PagingPolicy defines who is notified of the alerts about operators, and how: which alerts page a person at once,
// and which create a ticket. The hub creates the configuration of Alertmanager from all PagingPolicies: an
// AlertmanagerConfig for each policy if prometheus-operator is installed, or one complete configuration in a Secret.
//
// A policy is about operators of its own namespace. The policy with the scope Fleet is about clusters, the fleet, and
// each operator that no other policy selects; it must be in the hub's namespace. An invalid policy changes nothing:
// the configuration that was applied last stays in force, and the condition Ready has the cause.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pp,categories=bellwether
// +kubebuilder:printcolumn:name="Scope",type=string,JSONPath=`.spec.scope`
// +kubebuilder:printcolumn:name="Pages",type=string,JSONPath=`.spec.pages.receivers[*]`
// +kubebuilder:printcolumn:name="Tickets",type=string,JSONPath=`.spec.tickets.receivers[*]`
// +kubebuilder:printcolumn:name="Operators",type=integer,JSONPath=`.status.operators`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="a PagingPolicy's name becomes a part of the names of receivers: at most 63 characters"
type PagingPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PagingPolicySpec `json:"spec"`
	// +optional
	Status PagingPolicyStatus `json:"status,omitempty"`
}

// PagingPolicySpec defines which alerts go to which receivers.
//
// +kubebuilder:validation:XValidation:rule="self.scope != 'Fleet' || (!has(self.operators) && !has(self.teams))",message="a policy with scope Fleet is about whatever no other policy selects: it has neither operators nor teams"
// +kubebuilder:validation:XValidation:rule="self.scope == 'Fleet' || !has(self.heartbeat)",message="only the policy with scope Fleet has a heartbeat"
// +kubebuilder:validation:XValidation:rule="self.pages.receivers.all(name, self.receivers.exists(r, r.name == name))",message="pages.receivers must be names of receivers"
// +kubebuilder:validation:XValidation:rule="!has(self.tickets) || self.tickets.receivers.all(name, self.receivers.exists(r, r.name == name))",message="tickets.receivers must be names of receivers"
// +kubebuilder:validation:XValidation:rule="!has(self.changeEvents) || self.changeEvents.receivers.all(name, self.receivers.exists(r, r.name == name && has(r.pagerDuty)))",message="changeEvents.receivers must be names of receivers with pagerDuty"
// +kubebuilder:validation:XValidation:rule="!has(self.tickets) || !has(self.tickets.hours) || self.tickets.receivers.all(name, self.receivers.exists(r, r.name == name && !has(r.pagerDuty)))",message="tickets with hours cannot go to PagerDuty: what resolves outside the hours would stay open there; set the service's support hours in PagerDuty"
type PagingPolicySpec struct {
	// Scope is Namespace, for operators of this namespace, or Fleet.
	// +kubebuilder:default=Namespace
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="scope cannot be changed: make another PagingPolicy"
	// +optional
	Scope PagingScope `json:"scope,omitempty"`

	// Operators are names of ManagedOperators in this namespace. Empty means all. An operator must not be selected by
	// two policies.
	// +listType=set
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=50
	// +optional
	Operators []string `json:"operators,omitempty"`

	// Teams are teams of OperatorSLOs in this namespace. Empty means all.
	// +listType=set
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Teams []string `json:"teams,omitempty"`

	// SingleCluster defines which operators page when they fail on one cluster and no release is the cause: Critical
	// operators (default), All, or None. The other operators create a ticket.
	// +kubebuilder:default=Critical
	// +optional
	SingleCluster SingleClusterPages `json:"singleCluster,omitempty"`

	// Pages defines the receivers of alerts that need a person at once.
	Pages PageTarget `json:"pages"`

	// Tickets defines the receivers of all other alerts. If it is not set, they go to the receivers of pages:
	// PagerDuty gets them with the severity warning.
	// +optional
	Tickets *TicketTarget `json:"tickets,omitempty"`

	// Heartbeat is a service that notifies you when it gets no call for a while: it is called each minute while rules
	// are evaluated and Alertmanager runs.
	// +optional
	Heartbeat *HeartbeatTarget `json:"heartbeat,omitempty"`

	// SelfTest makes the hub test regularly that pages of this policy arrive: it sends a test alert through
	// Alertmanager to the receivers of pages, and ends the alert when it was accepted. PagerDuty gets it with the
	// severity info. If it is not set, nothing is tested.
	// +optional
	SelfTest *PagingSelfTest `json:"selfTest,omitempty"`

	// ChangeEvents defines the receivers of change events, which PagerDuty shows next to incidents: that a rollout of
	// an operator starts, that a wave starts, passes or fails, and how the rollout ends. They notify no person. If it
	// is not set, no change events are sent.
	// +optional
	ChangeEvents *ChangeEventTarget `json:"changeEvents,omitempty"`

	// Receivers are the ways to notify people, by name.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	Receivers []PagingReceiver `json:"receivers"`
}

// PagingScope is what a PagingPolicy is about.
//
// +kubebuilder:validation:Enum=Namespace;Fleet
type PagingScope string

const (
	// PagingNamespace is for operators of the policy's namespace.
	PagingNamespace PagingScope = "Namespace"
	// PagingFleet is for clusters, the fleet, and operators that no other policy selects.
	PagingFleet PagingScope = "Fleet"
)

// SingleClusterPages defines for which operators a failure on one cluster pages.
//
// +kubebuilder:validation:Enum=Critical;All;None
type SingleClusterPages string

const (
	// SingleClusterCritical is for operators whose OperatorSLO has criticality Critical.
	SingleClusterCritical SingleClusterPages = "Critical"
	// SingleClusterAll is for all operators.
	SingleClusterAll SingleClusterPages = "All"
	// SingleClusterNone is for no operators.
	SingleClusterNone SingleClusterPages = "None"
)

// PageTarget has the receivers of pages.
type PageTarget struct {
	// Receivers are names of receivers of this policy. Each gets every page.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=63
	Receivers []string `json:"receivers"`
}

// TicketTarget has the receivers of tickets.
type TicketTarget struct {
	// Receivers are names of receivers of this policy. Each gets every ticket.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=63
	Receivers []string `json:"receivers"`

	// Hours are when tickets are sent. A ticket that begins outside the hours is sent when the hours begin, if it has
	// not ended until then. If it is not set, tickets are sent at once.
	// +optional
	Hours *TicketHours `json:"hours,omitempty"`
}

// ChangeEventTarget has the receivers of change events.
type ChangeEventTarget struct {
	// Receivers are names of receivers of this policy that have pagerDuty. Each gets every
	// change event once.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MaxLength=63
	Receivers []string `json:"receivers"`
}

// TicketHours are hours on days of the week. If the end is before the start, the hours include midnight: they begin
// on each of the days, and end on the day after it.
//
// +kubebuilder:validation:XValidation:rule="self.start != self.end",message="start and end must differ; for the whole day, write 00:00 and 24:00"
type TicketHours struct {
	// TimeZone of start and end, of the IANA database, such as Europe/Berlin. Default: UTC.
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
	// Days of the week. Default: Monday to Friday.
	// +listType=set
	// +kubebuilder:default={Monday,Tuesday,Wednesday,Thursday,Friday}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	// +optional
	Days []Weekday `json:"days,omitempty"`
	// Start of the hours on each of the days, such as 09:00.
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="start must be hours and minutes, such as 09:00"
	Start string `json:"start"`
	// End of the hours on each of the days, such as 17:00, or 24:00. If it is before the start,
	// it is on the next day.
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$')",message="end must be hours and minutes, such as 17:00, or 24:00"
	End string `json:"end"`
}

// Weekday is a day of the week.
//
// +kubebuilder:validation:Enum=Monday;Tuesday;Wednesday;Thursday;Friday;Saturday;Sunday
type Weekday string

// PagingSelfTest defines how often to test.
type PagingSelfTest struct {
	// Every is the time between two tests. Default: 24h.
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10m')",message="every must be at least 10m"
	// +optional
	Every metav1.Duration `json:"every,omitempty"`
}

// HeartbeatTarget is a URL that is called regularly.
type HeartbeatTarget struct {
	// URL of the service, from a Secret in this namespace with the label bellwether.dev/paging-secret: "true".
	// Alertmanager sends a POST request to it each minute.
	URL SecretKey `json:"url"`
}

// PagingReceiver is one way to notify people. All Secrets are in the policy's namespace, with the label
// bellwether.dev/paging-secret: "true".
//
// +kubebuilder:validation:XValidation:rule="[has(self.pagerDuty), has(self.slack), has(self.webhook), has(self.email)].exists_one(x, x)",message="a receiver has exactly one of pagerDuty, slack, webhook and email"
type PagingReceiver struct {
	// Name of the receiver within the policy.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be small letters, digits and '-'"
	Name string `json:"name"`

	// PagerDuty creates incidents of a service.
	// +optional
	PagerDuty *PagerDutyReceiver `json:"pagerDuty,omitempty"`
	// Slack posts to a channel.
	// +optional
	Slack *SlackReceiver `json:"slack,omitempty"`
	// Webhook posts Alertmanager's JSON to a URL.
	// +optional
	Webhook *WebhookReceiver `json:"webhook,omitempty"`
	// Email sends mails.
	// +optional
	Email *EmailReceiver `json:"email,omitempty"`
}

// PagerDutyReceiver is a service in PagerDuty, through its Events API v2.
type PagerDutyReceiver struct {
	// RoutingKey is the integration key of the service, or of an event orchestration:
	// 32 characters.
	RoutingKey SecretKey `json:"routingKey"`
	// URL of the Events API. Default: https://events.pagerduty.com/v2/enqueue. The
	// service region EU has https://events.eu.pagerduty.com/v2/enqueue.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '' || isURL(self) && url(self).getScheme() in ['http', 'https']",message="url must be an http or https URL"
	// +optional
	URL string `json:"url,omitempty"`
}

// SlackReceiver is a channel in Slack.
type SlackReceiver struct {
	// APIURL is the URL of an incoming webhook.
	APIURL SecretKey `json:"apiURL"`
	// Channel or user, such as #operators. Default: the channel of the webhook.
	// +kubebuilder:validation:MaxLength=80
	// +kubebuilder:validation:XValidation:rule="!self.contains('{{')",message="channel must not be a template"
	// +optional
	Channel string `json:"channel,omitempty"`
}

// WebhookReceiver is a URL.
type WebhookReceiver struct {
	// URL that Alertmanager posts to.
	URL SecretKey `json:"url"`
}

// EmailReceiver is a mailbox.
//
// +kubebuilder:validation:XValidation:rule="has(self.username) == has(self.password)",message="set both of username and password, or none of them"
type EmailReceiver struct {
	// To are the addresses, separated by commas.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.contains('@') && !self.contains('{{')",message="to must be addresses, such as sre@example.com"
	To string `json:"to"`
	// From is the sender's address.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.contains('@') && !self.contains('{{')",message="from must be an address, such as bellwether@example.com"
	From string `json:"from"`
	// Smarthost is the server that accepts the mails, as host:port.
	// +kubebuilder:validation:MaxLength=260
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^:{}]+:[0-9]{1,5}$')",message="smarthost must be a host and a port, such as mail.example.com:587"
	Smarthost string `json:"smarthost"`
	// Username at the server. If empty, no authentication is used.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Username string `json:"username,omitempty"`
	// Password at the server.
	// +optional
	Password *SecretKey `json:"password,omitempty"`
}

// PagingPolicyStatus is the state of the policy.
type PagingPolicyStatus struct {
	// ObservedGeneration is the generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready is True while the current policy is in the configuration that was written.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Operators is how many operators' alerts the policy routes now.
	// +optional
	Operators int32 `json:"operators,omitempty"`

	// SelfTest is the result of the last test. A hub without the address of Alertmanager tests nothing.
	// +optional
	SelfTest *PagingSelfTestStatus `json:"selfTest,omitempty"`

	// Configuration is the object that the policy was written to.
	// +optional
	Configuration *PagingConfiguration `json:"configuration,omitempty"`

	// ChangeEvents are the receivers that change events are sent to.
	// +listType=map
	// +listMapKey=receiver
	// +kubebuilder:validation:MaxItems=3
	// +optional
	ChangeEvents []ChangeEventReceiver `json:"changeEvents,omitempty"`
}

// ChangeEventReceiver is a receiver that change events are sent to.
type ChangeEventReceiver struct {
	// +kubebuilder:validation:MaxLength=63
	Receiver string `json:"receiver"`
	// Since is when the hub first observed that the policy has the receiver. Earlier events are not sent.
	Since metav1.Time `json:"since"`
}

// PagingSelfTestStatus is the result of a test.
type PagingSelfTestStatus struct {
	// At is when the test ended.
	At metav1.Time `json:"at"`
	// Passed is true if each notification was accepted.
	Passed bool `json:"passed"`
	// Message names what was not accepted, or why nothing could be tested.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// PagingConfiguration is a configuration of Alertmanager that the hub wrote.
type PagingConfiguration struct {
	// Kind is AlertmanagerConfig, or Secret.
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Generation is the generation of the policy in the configuration. It is older than the policy's generation while
	// the policy is invalid.
	Generation int64 `json:"generation"`
}

// PagingPolicyList is a list of PagingPolicies.
//
// +kubebuilder:object:root=true
type PagingPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PagingPolicy `json:"items"`
}
