// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OperatorSLO defines how reliable an operator must be, on every cluster that it runs on. If no OperatorSLO names a
// ManagedOperator, the hub creates an OperatorSLO with the operator's name and the default profile. The hub never
// overwrites its spec.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=slo,categories=bellwether
// +kubebuilder:printcolumn:name="Operator",type=string,JSONPath=`.spec.operator`
// +kubebuilder:printcolumn:name="Profile",type=string,JSONPath=`.spec.profile`
// +kubebuilder:printcolumn:name="Team",type=string,JSONPath=`.spec.team`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Feasible",type=string,JSONPath=`.status.conditions[?(@.type=="Feasible")].status`
// +kubebuilder:printcolumn:name="Loaded",type=string,JSONPath=`.status.conditions[?(@.type=="RulesLoaded")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OperatorSLO struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OperatorSLOSpec `json:"spec"`
	// +optional
	Status OperatorSLOStatus `json:"status,omitempty"`
}

// OperatorSLOSpec has the objectives of one operator.
//
// +kubebuilder:validation:XValidation:rule="!has(self.own) || self.own.all(o, has(self.objectives) && self.objectives.exists(x, x.sli == o.name))",message="each SLI of own needs an objective: add one with its name as sli"
type OperatorSLOSpec struct {
	// Operator names a ManagedOperator in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=50
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="operator cannot be changed: make another OperatorSLO"
	Operator string `json:"operator"`

	// Profile is the set of objectives to start from: Default has one for every SLI that suits any operator, None
	// has none.
	// +kubebuilder:default=Default
	// +optional
	Profile SLOProfile `json:"profile,omitempty"`

	// Team is the team that gets the alerts. It is a label of the alerts.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-zA-Z0-9]([-a-zA-Z0-9_. ]*[a-zA-Z0-9])?$')",message="team must begin and end with a letter or digit, with letters, digits, blanks, '-', '_' and '.' between"
	// +optional
	Team string `json:"team,omitempty"`

	// Criticality is how important the operator is. It is an annotation of its alerts, for routing decisions; it
	// does not change how urgent an alert is. A total outage of a Critical operator pages within one minute instead
	// of three.
	// +kubebuilder:default=Standard
	// +optional
	Criticality Criticality `json:"criticality,omitempty"`

	// AlertLabels are additional labels of the operator's alerts, for routes of Alertmanager. A change makes firing
	// alerts end and new alerts with the new labels fire.
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[a-zA-Z_][a-zA-Z0-9_]{0,99}$') && !name.startsWith('__') && size(self[name]) > 0 && size(self[name]) <= 200)",message="alertLabels must have names of labels, and values of 1 to 200 characters"
	// +kubebuilder:validation:XValidation:rule="self.all(name, !(name in ['alertname', 'alertstate', 'severity', 'scope', 'cluster', 'operator_namespace', 'operator', 'sli', 'slo', 'version', 'release', 'team', 'criticality', 'tier', 'wave', 'phase', 'probe', 'kind', 'schema']))",message="alertLabels must not have a label that Bellwether's alerts have, such as severity or cluster"
	// +optional
	AlertLabels map[string]string `json:"alertLabels,omitempty"`

	// AlertAnnotations are additional annotations of the operator's alerts. They are plain text and not templates.
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[a-zA-Z_][a-zA-Z0-9_]{0,99}$') && size(self[name]) > 0 && size(self[name]) <= 2048)",message="alertAnnotations must have names of annotations, and texts of 1 to 2048 characters"
	// +kubebuilder:validation:XValidation:rule="self.all(name, !(name in ['summary', 'description', 'burn', 'window', 'held_until', 'budget_left', 'clusters', 'cluster_count', 'operators', 'criticality', 'restarts', 'custom_resources', 'rollout', 'wave', 'change', 'look', 'rollback', 'dashboard_url', 'runbook_url']))",message="alertAnnotations must not have an annotation that Bellwether's alerts have, such as summary; for runbook_url there is runbookURL"
	// +optional
	AlertAnnotations map[string]string `json:"alertAnnotations,omitempty"`

	// RunbookURL is linked in this operator's alerts instead of the fleet's runbook; #SLI is appended.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^https?://[^\\\\s\"{}`\\\\\\\\]+$')",message="runbookURL must be an http or https URL"
	// +optional
	RunbookURL string `json:"runbookURL,omitempty"`

	// Objectives replace the profile's objectives of the same SLIs, and add further objectives.
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=sli
	// +optional
	Objectives []SLOObjective `json:"objectives,omitempty"`

	// Without are SLIs of the profile that the operator does not have. "probe:" means all its probes.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=70
	// +listType=set
	// +optional
	Without []string `json:"without,omitempty"`

	// Own are SLIs from the operator's own metrics. Each needs an objective.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	// +optional
	Own []OwnSLI `json:"own,omitempty"`

	// CustomResources limits how many custom resources of a kind the operator has on a cluster. Above a limit, the
	// SLI custom-resources is bad.
	// +kubebuilder:validation:MaxItems=30
	// +listType=map
	// +listMapKey=kind
	// +optional
	CustomResources []CustomResourceLimit `json:"customResources,omitempty"`

	// Services of the operator, in its namespace, that are probed on every
	// cluster. Each is the SLI probe:NAME.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	// +optional
	Services []ProbedService `json:"services,omitempty"`

	// Monitor creates a PodMonitor of the operator's pods on every cluster that has that kind.
	// +optional
	Monitor *PodMetrics `json:"monitor,omitempty"`
}

// CustomResourceLimit is how many custom resources of a kind an operator may have
// on a cluster, or how many may be added within a day, or both.
//
// +kubebuilder:validation:XValidation:rule="has(self.max) || has(self.maxGrowthPerDay)",message="a limit needs max, maxGrowthPerDay or both"
type CustomResourceLimit struct {
	// Kind of the custom resources, such as Echo.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$')",message="kind must be the name of a kind, such as Echo"
	Kind string `json:"kind"`
	// Max is the maximum number of custom resources.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	// +optional
	Max int64 `json:"max,omitempty"`
	// MaxGrowthPerDay is the maximum increase compared with a day before.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	// +optional
	MaxGrowthPerDay int64 `json:"maxGrowthPerDay,omitempty"`
}

// SLOProfile is a set of objectives to start from.
//
// +kubebuilder:validation:Enum=Default;None
type SLOProfile string

const (
	// ProfileDefault has an objective for every SLI that suits any operator.
	ProfileDefault SLOProfile = "Default"
	// ProfileNone has no objectives.
	ProfileNone SLOProfile = "None"
)

// Criticality is how important an operator is.
//
// +kubebuilder:validation:Enum=Critical;Standard;Low
type Criticality string

const (
	// CriticalityCritical is for operators without which clusters or their users
	// cannot work.
	CriticalityCritical Criticality = "Critical"
	// CriticalityStandard is the default.
	CriticalityStandard Criticality = "Standard"
	// CriticalityLow is for operators whose alerts do not need to wake a person.
	CriticalityLow Criticality = "Low"
)

// SLOObjective is how good one SLI must be over a period.
//
// +kubebuilder:validation:XValidation:rule="!has(self.thresholds) || !has(self.thresholds.badPercent) || self.sli in ['reconcile', 'latency', 'webhook', 'operands']",message="badPercent is a threshold of reconcile, latency, webhook and operands"
// +kubebuilder:validation:XValidation:rule="!has(self.thresholds) || !has(self.thresholds.duration) || self.sli in ['latency', 'queue']",message="duration is a threshold of latency and queue"
// +kubebuilder:validation:XValidation:rule="!has(self.thresholds) || !has(self.thresholds.depth) || self.sli == 'queue'",message="depth is a threshold of queue"
// +kubebuilder:validation:XValidation:rule="self.sli != 'latency' || !has(self.thresholds) || !has(self.thresholds.duration) || duration(self.thresholds.duration) in [duration('5ms'), duration('10ms'), duration('25ms'), duration('50ms'), duration('100ms'), duration('150ms'), duration('200ms'), duration('250ms'), duration('300ms'), duration('350ms'), duration('400ms'), duration('450ms'), duration('500ms'), duration('600ms'), duration('700ms'), duration('800ms'), duration('900ms'), duration('1s'), duration('1.25s'), duration('1.5s'), duration('1.75s'), duration('2s'), duration('2.5s'), duration('3s'), duration('3.5s'), duration('4s'), duration('4.5s'), duration('5s'), duration('6s'), duration('7s'), duration('8s'), duration('9s'), duration('10s'), duration('15s'), duration('20s'), duration('25s'), duration('30s'), duration('40s'), duration('50s'), duration('1m')]",message="the duration of latency has to be one that controller-runtime counts: 5ms to 50ms as 5, 10, 25, 50; to 500ms in steps of 50ms; to 1s of 100ms; to 2s of 250ms; to 5s of 500ms; to 10s of 1s; to 30s of 5s; 40s, 50s or 1m"
type SLOObjective struct {
	// SLI is csv, available, redundancy, reconcile, latency, panic, queue, leader, webhook, operands, catalog, oom,
	// restarts, pending, custom-resources, memory, storage, throttling, probe:NAME, probe:NAME:hub, or a name of own.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9_]*[a-z0-9])?(:[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[a-z]+)?)?$')",message="sli must be a name of small letters and digits, such as available, probe:NAME or probe:NAME:hub"
	SLI string `json:"sli"`

	// Target in percent of the period, with at most four decimals: above 0 and below 100, such as 99.9.
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,3}([.][0-9]{1,4})?%?$')",message="target must be percent with a point and at most four decimals, in quotes, such as \"99.9\""
	// +kubebuilder:validation:XValidation:rule="!self.matches('^0+([.]0+)?%?$')",message="a target of 0 never alerts: it must be above 0, such as \"99.9\""
	// +kubebuilder:validation:XValidation:rule="!self.matches('^0*[1-9][0-9]{2}([.][0-9]+)?%?$')",message="a target of 100 or more leaves no budget, so every failure would page: write \"99.9\", say"
	Target string `json:"target"`

	// Period of the budget in hours, days or weeks: from 3 to 92 days.
	// +kubebuilder:default="30d"
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[hdw]$')",message="period must be hours, days or weeks, such as 30d"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9]{1,4}[hdw]$') || (int(self.substring(0, size(self) - 1)) * (self.endsWith('h') ? 1 : (self.endsWith('d') ? 24 : 168)) >= 72 && int(self.substring(0, size(self) - 1)) * (self.endsWith('h') ? 1 : (self.endsWith('d') ? 24 : 168)) <= 2208)",message="period must be from 3 to 92 days, such as 30d: the longest burn-rate window is 3 days, and Prometheus keeps every slice of the period"
	// +optional
	Period string `json:"period,omitempty"`

	// Alerts are the alerts about this objective. All, the default: pages, tickets, and tickets about missing data.
	// Tickets: no pages. Pages: no tickets about the budget. None: no alerts; the budget is recorded.
	// +optional
	Alerts ObjectiveAlerts `json:"alerts,omitempty"`

	// Thresholds replace the SLI's thresholds for bad values.
	// +optional
	Thresholds *SLOThresholds `json:"thresholds,omitempty"`
}

// ObjectiveAlerts are the alerts about an objective.
//
// +kubebuilder:validation:Enum=All;Pages;Tickets;None
type ObjectiveAlerts string

const (
	// AlertsAll are pages and tickets.
	AlertsAll ObjectiveAlerts = "All"
	// AlertsPages are pages, and tickets about missing data.
	AlertsPages ObjectiveAlerts = "Pages"
	// AlertsTickets are tickets only.
	AlertsTickets ObjectiveAlerts = "Tickets"
	// AlertsNone are no alerts at all.
	AlertsNone ObjectiveAlerts = "None"
)

// SLOThresholds are the thresholds above which an SLI is bad. Each SLI has some of them.
//
// +kubebuilder:validation:MinProperties=1
type SLOThresholds struct {
	// BadPercent is the maximum percentage of bad reconciles, admission requests or custom resources, with at most
	// four decimals. Default: 10 for reconcile, 5 for latency and operands, 1 for webhook. For memory and storage it
	// is the maximum used percentage of the memory limit, or of a volume (default 90). For throttling it is the
	// maximum percentage of throttled CPU periods (default 25).
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,2}([.][0-9]{1,4})?$') && !self.matches('^0+([.]0+)?$')",message="badPercent must be above 0 and below 100, with a point and at most four decimals, in quotes, such as \"2.5\""
	// +optional
	BadPercent string `json:"badPercent,omitempty"`

	// Duration is how long a reconcile may take before it is slow (latency, default
	// 10s), or a work item may run before it is stuck (queue, default 5m).
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s') && duration(self) <= duration('24h')",message="duration must be above 0 and at most 24h"
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`

	// Depth is how many items a queue may have for 10 minutes (queue). Default: 10.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Depth int32 `json:"depth,omitempty"`
}

// OwnSLI is an SLI from the operator's own metrics: the share of bad requests, or a gauge that is 1 while all
// is well.
//
// +kubebuilder:validation:XValidation:rule="[has(self.requestRatio), has(self.latency), has(self.gauge)].exists_one(x, x)",message="an SLI of own has exactly one of requestRatio, latency and gauge"
// +kubebuilder:validation:XValidation:rule="!has(self.gauge) || (!has(self.budgetingMethod) && !has(self.timeSliceTarget) && !has(self.minRequests))",message="budgetingMethod, timeSliceTarget and minRequests are for requestRatio and latency: a gauge has no requests"
// +kubebuilder:validation:XValidation:rule="has(self.timeSliceTarget) == (has(self.budgetingMethod) && self.budgetingMethod == 'Timeslices')",message="budgetingMethod Timeslices needs timeSliceTarget, and the other methods have none"
// +kubebuilder:validation:XValidation:rule="!(self.name in ['csv', 'available', 'reconcile', 'latency', 'panic', 'queue', 'leader', 'webhook', 'operands', 'catalog', 'redundancy', 'oom', 'restarts', 'pending', 'custom-resources', 'memory', 'storage', 'throttling', 'probe'])",message="every operator has an SLI of that name already: choose another one"
type OwnSLI struct {
	// Name is the value of the label sli.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be a DNS label: small letters, digits and '-'"
	Name string `json:"name"`

	// RequestRatio counts bad requests among all requests.
	// +optional
	RequestRatio *RequestRatio `json:"requestRatio,omitempty"`

	// Latency counts requests that take too long.
	// +optional
	Latency *LatencyThreshold `json:"latency,omitempty"`

	// Gauge is good while it is 1.
	// +optional
	Gauge *BoolGauge `json:"gauge,omitempty"`

	// BudgetingMethod is what the error budget counts. Occurrences, the default: requests. Timeslices: minutes, each
	// of which is bad if too many of its requests are bad. RatioTimeslices: minutes, by their share of bad requests.
	// +optional
	BudgetingMethod BudgetingMethod `json:"budgetingMethod,omitempty"`

	// TimeSliceTarget is the percentage of requests that must be good for a minute to be good, with at most four
	// decimals, such as 95. For Timeslices only.
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,2}([.][0-9]{1,4})?|100)$') && !self.matches('^0+([.]0+)?$')",message="timeSliceTarget must be percent above 0 with a point and at most four decimals, in quotes, such as \"95\""
	// +optional
	TimeSliceTarget string `json:"timeSliceTarget,omitempty"`

	// MinRequests is the minimum number of requests for bad requests to count: with Occurrences in the long window of
	// a tier, such as 1 hour, otherwise in 5 minutes. At least three requests must be bad in any case, so that one
	// failure never alerts.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	MinRequests int32 `json:"minRequests,omitempty"`
}

// BudgetingMethod is what an error budget of requests counts, as in OpenSLO.
//
// +kubebuilder:validation:Enum=Occurrences;Timeslices;RatioTimeslices
type BudgetingMethod string

const (
	// BudgetingOccurrences counts bad requests among all requests.
	BudgetingOccurrences BudgetingMethod = "Occurrences"
	// BudgetingTimeslices counts minutes that are bad.
	BudgetingTimeslices BudgetingMethod = "Timeslices"
	// BudgetingRatioTimeslices adds up the shares of bad requests of all minutes.
	BudgetingRatioTimeslices BudgetingMethod = "RatioTimeslices"
)

// BoolGauge is an SLI of a gauge that is 1 while all is well. A minute is bad if a series has another value or is not
// a number. If there are no series, the minute is neither good nor bad.
type BoolGauge struct {
	// Metric is the gauge's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z_:][a-zA-Z0-9_:]*$')",message="metric must be the name of a metric, without matchers; those go into all"
	Metric string `json:"metric"`

	// All selects the series that must be 1. Empty means every series of the metric.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	All []LabelMatcher `json:"all,omitempty"`
}

// RequestRatio is an SLI of a counter of requests.
type RequestRatio struct {
	// Counter is the metric's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z_:][a-zA-Z0-9_:]*$')",message="counter must be the name of a metric, without matchers; those go into all and bad"
	Counter string `json:"counter"`

	// All selects the requests that count. Empty means every series of the counter.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	All []LabelMatcher `json:"all,omitempty"`

	// Bad selects the bad requests among them.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	Bad []LabelMatcher `json:"bad"`
}

// LatencyThreshold is an SLI of a classic histogram of requests.
type LatencyThreshold struct {
	// Histogram is the metric's name, without _bucket.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z_:][a-zA-Z0-9_:]*$') && !self.endsWith('_bucket')",message="histogram must be the name of a metric, without _bucket and without matchers"
	Histogram string `json:"histogram"`

	// LE is the threshold: a bound of the histogram in the form of its label le, such as "0.5". Requests above it
	// are bad.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+([.][0-9]+)?(e[-+]?[0-9]+)?$')",message="le must be a bound of the histogram as its label le has it, such as \"0.5\""
	LE string `json:"le"`

	// All selects the requests that count. Empty means every series of the histogram.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	All []LabelMatcher `json:"all,omitempty"`
}

// LabelMatcher selects series by a label, as PromQL does.
type LabelMatcher struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z_][a-zA-Z0-9_]*$')",message="label must be the name of a label"
	Label string `json:"label"`
	// +kubebuilder:default="="
	// +optional
	Op MatchOp `json:"op,omitempty"`
	// Value that the label is compared with; a regular expression for =~ and !~.
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`
}

// MatchOp is an operator of PromQL's label matchers.
//
// +kubebuilder:validation:Enum="=";"!=";"=~";"!~"
type MatchOp string

// ProbedService is a Service of the operator that is probed.
//
// +kubebuilder:validation:XValidation:rule="!has(self.path) || !has(self.scheme) || self.scheme in ['http', 'https']",message="path is for http and https only"
// +kubebuilder:validation:XValidation:rule="!has(self.timeout) || !has(self.interval) || duration(self.timeout) <= duration(self.interval)",message="timeout must not be longer than interval"
// +kubebuilder:validation:XValidation:rule="(has(self.scheme) && self.scheme == 'https') ? has(self.tls) : !has(self.tls) || self.scheme == 'grpc'",message="https needs tls: name the CA of the certificate, or set insecureSkipVerify; only https and grpc have tls"
type ProbedService struct {
	// Name of the Service, in the namespace that the operator runs in.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="name must be a Service's: a DNS label that begins with a letter"
	Name string `json:"name"`

	// Port of the Service.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// Scheme of the probe.
	// +kubebuilder:default=http
	// +optional
	Scheme ProbeScheme `json:"scheme,omitempty"`

	// Path of the request. Default: /.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^/[^\\\\s#]*$')",message="path must begin with /, without blanks and fragment"
	// +optional
	Path string `json:"path,omitempty"`

	// TLS configures how the certificate is verified. With grpc, setting it enables TLS.
	// +optional
	TLS *ProbeTLS `json:"tls,omitempty"`

	// Interval between two probes: 5s to 1m. Default: 30s.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s') && duration(self) <= duration('1m')",message="interval must be from 5s to 1m: each minute is judged"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Timeout of a probe: 100ms to 30s. Default: 5s.
	// +kubebuilder:default="5s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('100ms') && duration(self) <= duration('30s')",message="timeout must be from 100ms to 30s"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// ProbeScheme is the protocol of a probe.
//
// +kubebuilder:validation:Enum=http;https;tcp;grpc
type ProbeScheme string

const (
	// ProbeHTTP requests a path.
	ProbeHTTP ProbeScheme = "http"
	// ProbeHTTPS requests a path through TLS.
	ProbeHTTPS ProbeScheme = "https"
	// ProbeTCP opens a connection.
	ProbeTCP ProbeScheme = "tcp"
	// ProbeGRPC calls gRPC's health service.
	ProbeGRPC ProbeScheme = "grpc"
)

// PodMetrics defines where the operator's pods serve their metrics, and how they are scraped.
//
// +kubebuilder:validation:XValidation:rule="has(self.port) != has(self.portNumber)",message="set one of port and portNumber"
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || (has(self.scheme) && self.scheme == 'https')",message="tls is for the scheme https only"
type PodMetrics struct {
	// Port is the name of the container's port.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="port must be the name of a port of the container, such as metrics"
	// +optional
	Port string `json:"port,omitempty"`

	// PortNumber is for containers without a named port, such as those of kubebuilder, which serve metrics at 8443.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	PortNumber int32 `json:"portNumber,omitempty"`

	// Scheme is http or https.
	// +kubebuilder:default=http
	// +kubebuilder:validation:Enum=http;https
	// +optional
	Scheme ProbeScheme `json:"scheme,omitempty"`

	// TokenSecret is a key of a Secret in the operator's namespace with the bearer token that Prometheus sends. Only
	// prometheus-operator reads it, not the agent.
	// +optional
	TokenSecret *MonitorKey `json:"tokenSecret,omitempty"`

	// TLS configures how the certificate of the metrics' server is verified. If it is not set, the system's
	// certificates are trusted.
	// +optional
	TLS *MonitorTLS `json:"tls,omitempty"`

	// MetricRelabelings are applied to the scraped series, in order, before they are stored.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	MetricRelabelings []MetricRelabeling `json:"metricRelabelings,omitempty"`

	// Path of the metrics. Default: /metrics.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^/[^\\\\s#]*$')",message="path must begin with /, without blanks and fragment"
	// +optional
	Path string `json:"path,omitempty"`

	// Interval between two scrapes: 5s to 1m. Default: 30s.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s') && duration(self) <= duration('1m')",message="interval must be from 5s to 1m: each minute is judged"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
}

// MonitorKey is a key of a Secret or ConfigMap in the operator's namespace.
type MonitorKey struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// MonitorTLS configures how Prometheus verifies a certificate.
//
// +kubebuilder:validation:XValidation:rule="[has(self.caSecret), has(self.caConfigMap), has(self.insecureSkipVerify) && self.insecureSkipVerify].filter(x, x).size() <= 1",message="set at most one of caSecret, caConfigMap and insecureSkipVerify"
type MonitorTLS struct {
	// CASecret has PEM certificates that are trusted instead of the system's certificates.
	// +optional
	CASecret *MonitorKey `json:"caSecret,omitempty"`
	// CAConfigMap has such certificates in a ConfigMap.
	// +optional
	CAConfigMap *MonitorKey `json:"caConfigMap,omitempty"`
	// ServerName is the name that must be in the certificate. It is needed if certificates are verified, because
	// Prometheus connects to the address of a pod.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ServerName string `json:"serverName,omitempty"`
	// InsecureSkipVerify accepts any certificate, such as the self-signed certificate that kubebuilder's default
	// creates at each start. A server that answers in the pod's place gets the token.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

// MetricRelabeling changes or drops scraped series, like Prometheus's metric_relabel_configs.
//
// +kubebuilder:validation:XValidation:rule="!has(self.targetLabel) || !(self.targetLabel in ['cluster', 'namespace', 'operator', 'operator_namespace'])",message="targetLabel must not be cluster, namespace, operator or operator_namespace: these identify the operator"
type MetricRelabeling struct {
	// +kubebuilder:default=replace
	// +kubebuilder:validation:Enum=replace;keep;drop;labeldrop;labelkeep
	// +optional
	Action string `json:"action,omitempty"`
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=100
	// +listType=atomic
	// +optional
	SourceLabels []string `json:"sourceLabels,omitempty"`
	// Regex is a regular expression (RE2). Default: (.*).
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Regex string `json:"regex,omitempty"`
	// +kubebuilder:validation:MaxLength=100
	// +optional
	TargetLabel string `json:"targetLabel,omitempty"`
	// Replacement may use groups of regex. Default: $1.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Replacement *string `json:"replacement,omitempty"`
}

// OperatorSLOStatus is the state of the objectives.
type OperatorSLOStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready, Stalled, Feasible, RulesLoaded.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Objectives in force, including the profile's objectives. While the spec cannot be used, they are the last
	// usable objectives.
	// +listType=map
	// +listMapKey=sli
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Objectives []SLOObjective `json:"objectives,omitempty"`

	// Edited says when and how objectives last changed, because the remaining budget changes abruptly only with
	// its objective.
	// +optional
	Edited *SLOEdit `json:"edited,omitempty"`

	// Rules are the objects on the hub that have the rules.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Rules []string `json:"rules,omitempty"`
}

// SLOEdit is a change of objectives.
type SLOEdit struct {
	At metav1.Time `json:"at"`
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message"`
}

// OperatorSLOList is a list of OperatorSLOs.
//
// +kubebuilder:object:root=true
type OperatorSLOList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OperatorSLO `json:"items"`
}
