// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engines separates the decision that a cluster is admitted to a release from the mechanism that installs the
// release on the cluster. An engine implements one mechanism. This package implements the parts that are the same for
// all engines: which admissions are refused, the status of an OperatorInstall, and which operators cannot run together
// on one cluster.
//
// The package is pure. The engines are in the folders below: olmv0 drives OLM v0. Package controllers/agent/install
// runs an engine.
package engines

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// ErrNotReady means that the engine cannot observe the cluster yet, for instance because the agent has just started.
// It is not a failure: nothing is reported, and the install is reconciled again soon.
var ErrNotReady = errors.New("engine not ready")

// Engine installs the admitted releases of operators on one cluster, and removes them. An Observation is the state
// that the engine reads for one install. An Action is one idempotent step. Both types are opaque to the callers of
// an engine.
type Engine[Observation, Action any] interface {
	// Observe reads the state of the cluster for an install and decides nothing. It changes nothing. It must
	// reach the cluster's API server, because an observation from caches alone is not evidence, and it waits for
	// nothing else.
	Observe(ctx context.Context, install *v1alpha1.OperatorInstall) (Observation, error)
	// Plan decides what to do next. It is pure and does not change the install.
	Plan(install *v1alpha1.OperatorInstall, observation Observation, now time.Time) Plan[Action]
	// WhileFrozen returns the actions of a plan that change nothing on the cluster, such as serving a view.
	WhileFrozen(actions []Action) []Action
	// Apply carries out actions in order and stops at the first error. It acts only on objects that have not
	// changed since they were observed. The actions of a plan that is NotReady read data; Apply adds this data to
	// the observation.
	Apply(ctx context.Context, install *v1alpha1.OperatorInstall, observation Observation, actions []Action) error
}

// Plan is what an engine does next for an install, and its report.
type Plan[Action any] struct {
	// NotReady is set if the plan lacks data. Its Report must not be used then. Its Actions read the missing data,
	// and Plan is called again after them. If it has no Actions, the data is already being read.
	NotReady bool
	Actions  []Action
	Report   Report
	// RecheckAfter is the time until the next reconcile if no watch reports a change.
	RecheckAfter time.Duration
}

// Report is what an engine found, in terms that mean the same for every engine.
type Report struct {
	// Installed is the installed version, whether it works or not; nil if no version is installed.
	Installed *v1alpha1.InstalledVersion
	// Adopted describes the Subscription of another owner before Bellwether took it over; nil if no Subscription was
	// taken over.
	Adopted *v1alpha1.AdoptedSubscription
	// Complete is set if Installed is the admitted release with the admitted settings, and its installation has
	// succeeded. If the release only adopts an existing operator, Complete is also set if there is no operator
	// to adopt.
	Complete bool
	// Path holds the bundles that are still to be installed, in order.
	Path []string
	// Progress is why the install is not Complete or, if it is Complete, why the engine cannot do its work; nil if
	// nothing remains to be done.
	Progress *Finding
	// Health is why an install that is Complete is not ready; nil if it is ready.
	Health *Finding
	// Problems are the reasons why pods of the operator are not available.
	Problems []v1alpha1.WorkloadProblem
	// Drift is nil if the installed objects were not compared with the release.
	Drift *Drift
	// Correction records the corrected fields as of the end of this plan; nil if no field was ever corrected.
	Correction *v1alpha1.DriftCorrection
	// Stages are the engine's own conditions.
	Stages []Stage
	// OLM holds the details of an engine that drives OLM v0.
	OLM *v1alpha1.OLMStatus
	// Deleted lists the objects of a Ready install that another user or program has deleted. The plan creates
	// them again.
	Deleted []Deleted
	// Removed is set if the removal policy was carried out.
	Removed bool
}

// Deleted is an object on the cluster that another user or program has deleted. Name is empty if the operator's
// namespace has only one object of the kind.
type Deleted struct{ Kind, Namespace, Name string }

// String returns the object in words, such as "ClusterServiceVersion ns/name".
func (d Deleted) String() string {
	switch {
	case d.Name == "":
		return fmt.Sprintf("the %s in namespace %s", d.Kind, d.Namespace)
	case d.Namespace == "":
		return d.Kind + " " + d.Name
	}
	return d.Kind + " " + d.Namespace + "/" + d.Name
}

// WhileFrozen returns the report for an install for which nothing is changed on the cluster. The message says why
// changes are frozen. It removes what the plan would have changed: corrections, the creation of deleted objects and the
// removal. Findings that need a person stay.
func (r Report) WhileFrozen(install *v1alpha1.OperatorInstall, message string) Report {
	if r.Drift != nil && r.IsCorrecting() {
		drift := *r.Drift
		drift.Correction, r.Drift = NoCorrection, &drift
	}
	r.Correction, r.Deleted, r.Removed = install.Status.Correction, nil, false
	// A finding that passes without a person would not pass during the freeze, so the freeze replaces it.
	if !r.Complete && (r.Progress == nil || !r.Progress.Problem) {
		r.Progress = &Finding{Reason: v1alpha1.ReasonFrozen, Message: message}
	}
	return r
}

// IsCorrectionDue reports whether the plan corrects differing fields now. Correction records them.
func (r Report) IsCorrectionDue() bool { return r.Drift != nil && r.Drift.Correction == CorrectionDue }

// IsCorrecting reports whether differing fields are corrected now or soon.
func (r Report) IsCorrecting() bool {
	return r.IsCorrectionDue() || r.Drift != nil && r.Drift.Correction == CorrectionWaits
}

// Finding is a reason why an install is not ready, or why its engine cannot do its work.
type Finding struct {
	// Problem is set if the state stays until a person acts. Otherwise the state passes without action.
	Problem bool
	Reason  string
	Message string
}

// Stage is the value of a condition that belongs to one engine.
type Stage struct {
	Condition string
	Passed    bool
	Reason    string
	Message   string
}

// Drift describes how the installed objects differ from the admitted release with its settings.
type Drift struct {
	// Pending is set while the data for the comparison is being read. The condition Drifted keeps its value.
	Pending bool
	// Unknown is why the objects cannot be compared; empty if they were compared.
	Unknown string
	// Fields are the differing fields, sorted.
	Fields []string
	// Correction is what the engine does about the fields.
	Correction Correction
}

// Kept is the record that a cluster keeps of an operator that runs on it.
type Kept struct {
	v1alpha1.KeptAdmission
	// Installed is the installed version; nil if no version is installed.
	Installed *v1alpha1.InstalledVersion
}

// FindUnknownToHub returns kept if the hub does not have the kept admission: the install has no admission or an older
// admission. It returns nil if kept is nil and for an install that is being deleted.
func FindUnknownToHub(install *v1alpha1.OperatorInstall, kept *Kept) *Kept {
	if kept == nil || !install.DeletionTimestamp.IsZero() || install.Spec.Admission.Covers(kept.Admission) {
		return nil
	}
	return kept
}

// Refuse returns the finding for an install that an engine must not change: no rollout has admitted the install, or
// the engine has already acted on a newer admission. It returns nil for every other install and for an install that
// is being deleted. unknown is the result of FindUnknownToHub.
func Refuse(install *v1alpha1.OperatorInstall, unknown *Kept) *Finding {
	admission := install.Spec.Admission
	switch {
	case !install.DeletionTimestamp.IsZero():
		return nil
	case unknown != nil && admission == nil:
		return &Finding{Reason: v1alpha1.ReasonNotAdmitted, Message: fmt.Sprintf("The cluster was admitted %s by "+
			"a rollout that the hub does not have (revision %d). Waiting for the hub to recover it.",
			unknown.Admission.Release.Purpose(), unknown.Admission.Revision)}
	case unknown != nil:
		return reportStaleAdmission(admission.Revision, unknown.Admission.Revision)
	case admission == nil:
		return &Finding{Reason: v1alpha1.ReasonNotAdmitted,
			Message: "Waiting for a rollout to admit this cluster."}
	case admission.Revision < install.Status.ObservedRevision:
		return reportStaleAdmission(admission.Revision, install.Status.ObservedRevision)
	}
	return nil
}

// EffectiveAdmission returns the admission that an engine must use: the admission of the install, or the kept admission
// if an adopted operator is given back and the hub has lost the admission. It returns nil if there is no admission.
func EffectiveAdmission(install *v1alpha1.OperatorInstall, kept *Kept) *v1alpha1.Admission {
	isGivenBack := !install.DeletionTimestamp.IsZero() && install.Spec.RemovalPolicy == v1alpha1.RemovalRestore
	if install.Spec.Admission == nil && kept != nil && isGivenBack {
		return &kept.Admission
	}
	return install.Spec.Admission
}

// IsBegun reports whether a cluster has begun to carry out the admission of an install. It uses the record on the
// cluster and not the status of the install, because the hub also writes the status.
func IsBegun(install *v1alpha1.OperatorInstall, kept *Kept) bool {
	a := install.Spec.Admission
	return a != nil && kept != nil && kept.Admission.Covers(*a)
}

// isAdmitted reports whether an install has an admission and is not being deleted.
func isAdmitted(install *v1alpha1.OperatorInstall) bool {
	return install.Spec.Admission != nil && install.DeletionTimestamp.IsZero()
}

// toMetaTime converts a time for a status field.
func toMetaTime(t time.Time) *metav1.Time {
	at := metav1.NewTime(t)
	return &at
}
