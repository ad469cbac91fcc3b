// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Gate holds a wave back until it is passed. An approval holds back the admission
// of the wave's clusters. The other kinds judge the wave after its clusters were
// updated and hold back its verification, and with it the next wave. They measure
// the clusters of the wave that run the new release, from the beginning of the
// soak on. Without enough data they have no verdict, and the wave waits.
//
// +kubebuilder:validation:XValidation:rule="[has(self.approval), has(self.slo), has(self.baseline), has(self.promQL), has(self.job)].filter(k, k).size() == 1",message="a gate needs exactly one of approval, slo, baseline, promQL and job"
type Gate struct {
	// Name of the gate, without a slash: gates that RolloutPolicies add have one in
	// their names.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[^/]+$`
	Name string `json:"name"`

	// Approval holds the wave's admission back until a person who has the verb
	// approve on the OperatorRollout approves the wave.
	// +optional
	Approval *ApprovalGate `json:"approval,omitempty"`

	// SLO fails if the wave's clusters together burn an error budget of the operator
	// too fast. It needs the rules of the operator's objectives.
	// +optional
	SLO *SLOGate `json:"slo,omitempty"`

	// Baseline fails if an SLI is significantly worse on the wave's clusters than on
	// the clusters that still run another release of the operator.
	// +optional
	Baseline *BaselineGate `json:"baseline,omitempty"`

	// PromQL compares the result of a query with a number.
	// +optional
	PromQL *PromQLGate `json:"promQL,omitempty"`

	// Job runs a test on clusters of the wave, and fails if that does.
	// +optional
	Job *JobGate `json:"job,omitempty"`
}

// ApprovalGate waits for a person.
type ApprovalGate struct {
	// OnlyForNewPermissions lets a release pass without a person that asks for no rights
	// which the versions that clusters run do not have, as spec.requirements of the
	// OperatorRollout says. Where that is not known a person is waited for.
	// +optional
	OnlyForNewPermissions bool `json:"onlyForNewPermissions,omitempty"`
}

// SLOGate judges by burn rates: the share of bad slices of all clusters of the wave,
// as a multiple of the share that the objective permits.
type SLOGate struct {
	// MaxBurnRate is the highest burn rate that passes. Default 14.4, which is the
	// threshold of the fastest page. The gate fails as soon as the burn rate cannot
	// come down to it within the window.
	// +kubebuilder:default="14.4"
	// +kubebuilder:validation:Pattern=`^[0-9]{1,4}([.][0-9]{1,3})?$`
	// +optional
	MaxBurnRate string `json:"maxBurnRate,omitempty"`

	// Objectives are the SLIs to judge. Empty: all objectives of the operator.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=100
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.:]*[A-Za-z0-9])?$`
	// +listType=set
	// +optional
	Objectives []string `json:"objectives,omitempty"`

	// Window is how long the wave is measured at least, 1m or longer. Default: its
	// soak, but at least 5m.
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`
}

// BaselineGate compares two shares of bad slices with a one-sided two-proportion
// z-test.
type BaselineGate struct {
	// SLI to compare, such as reconcile.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.:]*[A-Za-z0-9])?$`
	SLI string `json:"sli"`

	// Confidence in percent with which the new release must be worse for the gate to
	// fail. Default 99.
	// +kubebuilder:default=99
	// +kubebuilder:validation:Minimum=80
	// +kubebuilder:validation:Maximum=99
	// +optional
	Confidence *int32 `json:"confidence,omitempty"`

	// MinSamples is how many slices, or requests, there must be on each of the two
	// sides. Default 30.
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	MinSamples *int32 `json:"minSamples,omitempty"`

	// Window is how long the wave is measured at least, 1m or longer. Default: its
	// soak, but at least 5m.
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`
}

// PromQLGate passes while the result of a query, one number, is as the comparison
// says.
type PromQLGate struct {
	// Query has a result of one number. Variables are written as ${name} and are
	// replaced by: clusters (a regular expression of the wave's clusters), window (the
	// time since the soak began, such as 1800s), release (the value of the label
	// release), hash (the whole hash), version, operator, operator_namespace, namespace
	// (that the operator runs in) and wave. The query has to use ${clusters} or
	// ${release}, so that it measures the new release only.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.contains('${clusters}') || self.contains('${release}')",message="the query must use ${clusters} or ${release}, so that it measures the new release only"
	Query string `json:"query"`

	// Operator compares the result with the threshold.
	Operator ComparisonOperator `json:"operator"`

	// Threshold is a decimal number.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^-?[0-9]+([.][0-9]+)?$`
	Threshold string `json:"threshold"`

	// FailureLimit is how many measurements in a row may miss the threshold without a
	// failure. There is one every 30 seconds once the window is over. Default 2.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	FailureLimit *int32 `json:"failureLimit,omitempty"`

	// Window is how long the wave is measured at least, 1m or longer. Default: its
	// soak, but at least 5m.
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`
}

// ComparisonOperator compares the result of a query, on the left, with a threshold.
//
// +kubebuilder:validation:Enum="<";"<=";">";">="
type ComparisonOperator string

// Comparison operators.
const (
	LessThan       ComparisonOperator = "<"
	LessOrEqual    ComparisonOperator = "<="
	GreaterThan    ComparisonOperator = ">"
	GreaterOrEqual ComparisonOperator = ">="
)

// GateOverride is one person's word that a wave may go on although a gate failed or
// has no verdict.
type GateOverride struct {
	// +kubebuilder:validation:MaxLength=40
	Wave string `json:"wave"`
	// +kubebuilder:validation:MaxLength=63
	Gate string `json:"gate"`
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

// GateObservation is the gate that a wave has by itself while it had clusters and none
// of them was observed to run the release: all of them left, or failed as maxFailures
// permits. It never passes; a person can override it.
const GateObservation = "bellwether/observation"

// GateVerdict is the outcome of a gate.
//
// +kubebuilder:validation:Enum=Waiting;Passed;Failed;Overridden
type GateVerdict string

const (
	// GateWaiting has no verdict yet.
	GateWaiting GateVerdict = "Waiting"
	// GatePassed lets the wave go on.
	GatePassed GateVerdict = "Passed"
	// GateFailed halts the rollout, until the gate is overridden or the wave is
	// tried again.
	GateFailed GateVerdict = "Failed"
	// GateOverridden lets the wave go on, because a person said so.
	GateOverridden GateVerdict = "Overridden"
)

// IsPassed tells whether the wave may go on, as far as this gate is concerned.
func (g GateStatus) IsPassed() bool { return g.Verdict == GatePassed || g.Verdict == GateOverridden }

// GateStatus is a gate's verdict and its evidence.
type GateStatus struct {
	// +kubebuilder:validation:MaxLength=63
	Name    string      `json:"name"`
	Verdict GateVerdict `json:"verdict"`
	// Approval is true for a gate that waits for a person.
	// +optional
	Approval bool `json:"approval,omitempty"`
	// Evidence says what the verdict rests on, or what is missing.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Evidence string `json:"evidence,omitempty"`
	// DecidedAt is since when the verdict is this; empty while it is Waiting.
	// +optional
	DecidedAt *metav1.Time `json:"decidedAt,omitempty"`
	// WaitingSince is since when the wave waits for nothing but gates, and this one
	// has no verdict.
	// +optional
	WaitingSince *metav1.Time `json:"waitingSince,omitempty"`
	// Measurement is the newest one.
	// +optional
	Measurement *GateMeasurement `json:"measurement,omitempty"`
	// Retries is what spec.retries was when the gate failed: a higher value has the
	// wave soak and be judged anew.
	// +optional
	Retries int64 `json:"retries,omitempty"`
}

// GateMeasurement is what was measured for a gate.
type GateMeasurement struct {
	// At is when the query was evaluated, and Window how far it looked back.
	At     metav1.Time     `json:"at"`
	Window metav1.Duration `json:"window"`
	// Query in PromQL. A long list of clusters is abbreviated.
	// +kubebuilder:validation:MaxLength=2560
	// +optional
	Query string `json:"query,omitempty"`
	// Value is what was measured, empty if nothing was: a burn rate, the z-score of
	// the comparison, or the result of the query.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Value string `json:"value,omitempty"`
	// Threshold that the value is compared with.
	// +kubebuilder:validation:MaxLength=40
	// +optional
	Threshold string `json:"threshold,omitempty"`
	// Samples are the slices or requests of the new release, and BaselineSamples
	// those of other releases.
	// +optional
	Samples int64 `json:"samples,omitempty"`
	// +optional
	BaselineSamples int64 `json:"baselineSamples,omitempty"`
	// Failures counts the measurements in a row that missed the threshold of a
	// query.
	// +optional
	Failures int32 `json:"failures,omitempty"`
}
