// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engines is the seam between the decision that a cluster is admitted
// to a release and the mechanism that installs the release there. An engine
// knows one mechanism; everything that is true of all of them is decided here:
// which admissions are refused, and what the status of an OperatorInstall says.
//
// The package is pure. The engines are in the folders below it: olmv0 drives
// OLM v0. Package controllers/install runs an engine.
package engines

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// ErrNotReady says that the engine cannot observe the cluster yet, for instance
// because the agent has just started. It is no failure: nothing is reported,
// and the install is reconciled again soon.
var ErrNotReady = errors.New("engine not ready")

// Engine brings the operators of one cluster to the releases that they are
// admitted to, and removes them. Observation is what it reads for one install,
// Action is one idempotent step; only the engine knows what they hold.
type Engine[Observation, Action any] interface {
	// Observe reads the state of the cluster for an install. It must reach the
	// cluster's API server: an observation that comes from caches alone is no
	// evidence. It changes nothing and waits for nothing but the API server.
	Observe(ctx context.Context, install *v1alpha1.OperatorInstall) (Observation, error)
	// Plan decides what to do next. It is pure, and does not change the install.
	Plan(install *v1alpha1.OperatorInstall, observation Observation, now time.Time) Plan[Action]
	// WhileFrozen returns those of a plan's actions that change nothing on the cluster, such as serving a view.
	WhileFrozen(actions []Action) []Action
	// Apply carries out actions in order, and stops at the first error. It acts
	// only on objects that are as they were observed.
	Apply(ctx context.Context, install *v1alpha1.OperatorInstall, observation Observation, actions []Action) error
}

// Plan is what an engine does next for an install, and what it found.
type Plan[Action any] struct {
	Actions []Action
	Report  Report
	// RecheckAfter is when to reconcile again even if no watch reports a change.
	RecheckAfter time.Duration
}

// Report is what an engine found, in terms that mean the same for every engine.
type Report struct {
	// Installed is the version that is there, whether it works or not; nil where
	// there is none.
	Installed *v1alpha1.InstalledVersion
	// Adopted says what others had installed before it was taken over; nil where nothing was.
	Adopted *v1alpha1.AdoptedSubscription
	// Complete says that Installed is the admitted release with the admitted
	// settings, and that its installation has succeeded. Where a release is to adopt what is there, it is also Complete
	// if nothing is.
	Complete bool
	// Path holds the bundles that are still to be installed, in order.
	Path []string
	// Progress is why the install is not Complete, or why the engine cannot do its
	// work although it is; nil where nothing is left to do.
	Progress *Finding
	// Health is why an install that is Complete is not ready; nil where it is.
	Health *Finding
	// Problems are why pods of the operator are not available.
	Problems []v1alpha1.WorkloadProblem
	// Drift is nil where it was not compared.
	Drift *Drift
	// Correction records what was put back, as it is once the plan was applied; nil
	// if nothing ever was.
	Correction *v1alpha1.DriftCorrection
	// Stages are the engine's own conditions.
	Stages []Stage
	// OLM holds the details of an engine that drives OLM v0.
	OLM *v1alpha1.OLMStatus
	// Deleted names what somebody else has deleted of an install that was Ready; the plan makes it again.
	Deleted []Deleted
	// Removed says that the removal policy was carried out.
	Removed bool
}

// Deleted is an object on the cluster that somebody has deleted. The name is empty where the operator's namespace has
// only one of the kind.
type Deleted struct{ Kind, Namespace, Name string }

func (d Deleted) String() string {
	switch {
	case d.Name == "":
		return fmt.Sprintf("the %s in namespace %s", d.Kind, d.Namespace)
	case d.Namespace == "":
		return d.Kind + " " + d.Name
	}
	return d.Kind + " " + d.Namespace + "/" + d.Name
}

// WhileFrozen is the report where nothing is changed on the cluster, with why.
func (r Report) WhileFrozen(install *v1alpha1.OperatorInstall, message string) Report {
	if r.Drift != nil && r.IsCorrecting() {
		drift := *r.Drift
		drift.Correction, r.Drift = NoCorrection, &drift
	}
	r.Correction, r.Deleted, r.Removed = install.Status.Correction, nil, false
	// What needs a person needs one still.
	if !r.Complete && (r.Progress == nil || !r.Progress.Problem) {
		r.Progress = &Finding{Reason: v1alpha1.ReasonFrozen, Message: message}
	}
	return r
}

// PutsBack tells whether the plan puts back fields that differ; Correction is the
// record of it.
func (r Report) PutsBack() bool { return r.Drift != nil && r.Drift.Correction == CorrectionDue }

// IsCorrecting tells whether fields that differ are put back, now or soon.
func (r Report) IsCorrecting() bool {
	return r.PutsBack() || r.Drift != nil && r.Drift.Correction == CorrectionWaits
}

// Finding is a state that keeps an install from being ready, or its engine from
// its work.
type Finding struct {
	// Problem says that nothing will change until a person acts. Otherwise the
	// finding passes by itself.
	Problem bool
	Reason  string
	Message string
}

// Stage is a condition of an engine.
type Stage struct {
	Condition string
	Passed    bool
	Reason    string
	Message   string
}

// Drift is how what is installed differs from the admitted release as it is
// configured.
type Drift struct {
	// Later is set while what it is compared with is still being read. The condition
	// Drifted stays as it was.
	Later bool
	// Unknown is why it cannot be compared; empty where it was.
	Unknown string
	// Fields are the differing fields, sorted; empty where there are none.
	Fields []string
	// Correction says what is done about them.
	Correction Correction
}

// Kept is what a cluster keeps of an operator that runs on it.
type Kept struct {
	v1alpha1.KeptAdmission
	// Installed is the version that is there; nil where there is none.
	Installed *v1alpha1.InstalledVersion
}

// Unknown returns what a cluster keeps if the hub does not know of it: there is no
// admission, or one that is older. It returns nil where nothing is kept, and for an
// install that is being deleted.
func Unknown(install *v1alpha1.OperatorInstall, kept *Kept) *Kept {
	if kept == nil || !install.DeletionTimestamp.IsZero() || install.Spec.Admission.Covers(kept.Admission) {
		return nil
	}
	return kept
}

// Refuse returns the finding for an install that an engine must not touch: one
// that no rollout has admitted, or whose admission is older than one that was
// already acted on. It returns nil for every other install, and for one that is
// being deleted. Unknown is what the cluster keeps that the hub does not know of.
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
		return staleAdmission(admission.Revision, unknown.Admission.Revision)
	case admission == nil:
		return &Finding{Reason: v1alpha1.ReasonNotAdmitted,
			Message: "Waiting for a rollout to admit this cluster."}
	case admission.Revision < install.Status.ObservedRevision:
		return staleAdmission(admission.Revision, install.Status.ObservedRevision)
	}
	return nil
}

// AdmissionOf returns the admission that an engine goes by. It is that of the install, except where a hub that was lost
// gives an adopted operator back before it has recovered the admission: then it is the one that the cluster keeps.
func AdmissionOf(install *v1alpha1.OperatorInstall, kept *Kept) *v1alpha1.Admission {
	isGivenBack := !install.DeletionTimestamp.IsZero() && install.Spec.RemovalPolicy == v1alpha1.RemovalRestore
	if install.Spec.Admission == nil && kept != nil && isGivenBack {
		return &kept.Admission
	}
	return install.Spec.Admission
}

// IsBegun tells whether a cluster has begun with the admission of an install, by what it keeps: the status is the hub's
// to write.
func IsBegun(install *v1alpha1.OperatorInstall, kept *Kept) bool {
	a := install.Spec.Admission
	return a != nil && kept != nil && kept.Admission.Covers(*a)
}

func isAdmitted(install *v1alpha1.OperatorInstall) bool {
	return install.Spec.Admission != nil && install.DeletionTimestamp.IsZero()
}

func timeOf(t time.Time) *metav1.Time {
	at := metav1.NewTime(t)
	return &at
}
