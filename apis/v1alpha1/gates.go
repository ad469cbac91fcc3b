// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Gate blocks a wave until the gate passes. An approval blocks the admission of the wave's clusters. The other kinds
// judge the wave after its clusters were updated, and block its verification and thereby the next wave. They measure
// the clusters of the wave that run the new release, starting with the soak. Without enough data they have no
// verdict, and the wave waits.
//
// +kubebuilder:validation:XValidation:rule="[has(self.approval), has(self.slo), has(self.baseline), has(self.promQL), has(self.job)].filter(k, k).size() == 1",message="a gate needs exactly one of approval, slo, baseline, promQL and job"
type Gate struct {
	// Name of the gate, without a slash: only gates that RolloutPolicies add have a slash in their names.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[^/]+$`
	Name string `json:"name"`

	// Approval blocks the wave's admission until a person with the verb approve on the OperatorRollout approves
	// the wave.
	// +optional
	Approval *ApprovalGate `json:"approval,omitempty"`

	// SLO fails if the wave's clusters together burn an error budget of the operator too fast. It needs the rules of
	// the operator's objectives.
	// +optional
	SLO *SLOGate `json:"slo,omitempty"`

	// Baseline fails if an SLI is significantly worse on the wave's clusters than on
	// the clusters that still run another release of the operator.
	// +optional
	Baseline *BaselineGate `json:"baseline,omitempty"`

	// PromQL compares the result of a query with a number.
	// +optional
	PromQL *PromQLGate `json:"promQL,omitempty"`

	// Job runs a test on clusters of the wave, and fails if the test fails.
	// +optional
	Job *JobGate `json:"job,omitempty"`
}

// ApprovalGate waits for a person.
type ApprovalGate struct {
	// OnlyForNewPermissions lets a release pass without a person if it requests no permissions beyond the permissions
	// of the versions that clusters run, according to spec.requirements of the OperatorRollout. If that is not known,
	// the gate waits for a person.
	// +optional
	OnlyForNewPermissions bool `json:"onlyForNewPermissions,omitempty"`
}

// SLOGate judges burn rates: the share of bad slices of all clusters of the wave, as a multiple of the share that the
// objective permits.
type SLOGate struct {
	// MaxBurnRate is the highest burn rate that passes. Default 14.4, which is the threshold of the fastest page. The
	// gate fails as soon as the burn rate cannot fall to this value within the window.
	// +kubebuilder:default="14.4"
	// +kubebuilder:validation:Pattern=`^[0-9]{1,4}([.][0-9]{1,3})?$`
	// +optional
	MaxBurnRate string `json:"maxBurnRate,omitempty"`

	// Objectives are the SLIs to judge. Empty means all objectives of the operator.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=100
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.:]*[A-Za-z0-9])?$`
	// +listType=set
	// +optional
	Objectives []string `json:"objectives,omitempty"`

	// Window is the minimum time for which the wave is measured, 1m or longer. Default: its soak, but at least 5m.
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`
}

// BaselineGate compares two shares of bad slices with a one-sided two-proportion z-test.
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

	// MinSamples is the minimum number of slices, or requests, on each of the two sides. Default 30.
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	MinSamples *int32 `json:"minSamples,omitempty"`

	// Window is the minimum time for which the wave is measured, 1m or longer. Default: its soak, but at least 5m.
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`
}

// PromQLGate passes if the result of a query, one number, meets the comparison.
type PromQLGate struct {
	// Query has a result of one number. Variables are written as ${name} and are replaced by: clusters (a regular
	// expression of the wave's clusters), window (the time since the soak began, such as 1800s), release (the value
	// of the label release), hash (the whole hash), version, operator, operator_namespace, namespace (the namespace
	// that the operator runs in) and wave. The query must use ${clusters} or ${release}, so that it measures only the
	// new release.
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

	// FailureLimit is how many consecutive measurements may miss the threshold without a failure. After the window,
	// the gate measures every 30 seconds. Default 2.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	FailureLimit *int32 `json:"failureLimit,omitempty"`

	// Window is the minimum time for which the wave is measured, 1m or longer. Default: its soak, but at least 5m.
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

// GateOverride is the decision of a person that a wave may continue although a gate failed or has no verdict.
type GateOverride struct {
	// +kubebuilder:validation:MaxLength=40
	Wave string `json:"wave"`
	// +kubebuilder:validation:MaxLength=63
	Gate string `json:"gate"`
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

// GateObservation is the gate of a wave that had clusters but no cluster that was observed to run the release: all of
// them left, or failed as maxFailures permits. It never passes; a person can override it.
const GateObservation = "bellwether/observation"

// GateVerdict is the result of a gate.
//
// +kubebuilder:validation:Enum=Waiting;Passed;Failed;Overridden
type GateVerdict string

const (
	// GateWaiting means that the gate has no verdict yet.
	GateWaiting GateVerdict = "Waiting"
	// GatePassed means that the wave may continue.
	GatePassed GateVerdict = "Passed"
	// GateFailed halts the rollout, until the gate is overridden or the wave is tried again.
	GateFailed GateVerdict = "Failed"
	// GateOverridden means that the wave may continue because a person decided so.
	GateOverridden GateVerdict = "Overridden"
)

// IsPassed reports whether this gate lets the wave continue.
func (g GateStatus) IsPassed() bool { return g.Verdict == GatePassed || g.Verdict == GateOverridden }

// GateStatus is a gate's verdict and its evidence.
type GateStatus struct {
	// +kubebuilder:validation:MaxLength=63
	Name    string      `json:"name"`
	Verdict GateVerdict `json:"verdict"`
	// Approval is true for a gate that waits for a person.
	// +optional
	Approval bool `json:"approval,omitempty"`
	// Evidence describes the data behind the verdict, or what is missing.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Evidence string `json:"evidence,omitempty"`
	// DecidedAt is since when the gate has this verdict; empty while it is Waiting.
	// +optional
	DecidedAt *metav1.Time `json:"decidedAt,omitempty"`
	// WaitingSince is since when the wave waits only for gates and this gate has no verdict.
	// +optional
	WaitingSince *metav1.Time `json:"waitingSince,omitempty"`
	// Measurement is the newest measurement.
	// +optional
	Measurement *GateMeasurement `json:"measurement,omitempty"`
	// Retries is the value of spec.retries when the gate failed. A higher value makes the wave soak and be
	// judged again.
	// +optional
	Retries int64 `json:"retries,omitempty"`
}

// GateMeasurement is what was measured for a gate.
type GateMeasurement struct {
	// At is when the query was evaluated, and Window the time that it covers.
	At     metav1.Time     `json:"at"`
	Window metav1.Duration `json:"window"`
	// Query in PromQL. A long list of clusters is abbreviated.
	// +kubebuilder:validation:MaxLength=2560
	// +optional
	Query string `json:"query,omitempty"`
	// Value is the measured value: a burn rate, the z-score of the comparison, or the result of the query. Empty if
	// nothing was measured.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Value string `json:"value,omitempty"`
	// Threshold that the value is compared with.
	// +kubebuilder:validation:MaxLength=40
	// +optional
	Threshold string `json:"threshold,omitempty"`
	// Samples are the slices or requests of the new release, and BaselineSamples the slices or requests of
	// other releases.
	// +optional
	Samples int64 `json:"samples,omitempty"`
	// +optional
	BaselineSamples int64 `json:"baselineSamples,omitempty"`
	// Failures counts the consecutive measurements that missed the threshold of a query.
	// +optional
	Failures int32 `json:"failures,omitempty"`
}
