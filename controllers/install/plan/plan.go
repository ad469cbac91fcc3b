// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Next decides one pass. An admitted install goes through four stages, each
// with a condition; a stage that cannot pass holds those behind it:
//
//	CatalogServed ──▶ Resolved ──▶ PlanApproved ──▶ Installed ──▶ Ready
//	  OLM is there      OLM's plan    it holds         the CSV       its
//	  view served       is for the    exactly what     Succeeded     Deployments
//	  namespace, group  next hop      was admitted                   are available
//	  CatalogSource
//
// With several hops it goes round once for each. An install that runs its
// target stays Installed even when its catalog cannot be read.
func Next(in Input) Decision {
	d := decision(in)
	switch {
	case !in.Install.DeletionTimestamp.IsZero():
		d.remove(in)
	case in.Install.Spec.Admission == nil:
		d.summarize(finding{reason: v1alpha1.ReasonNotAdmitted,
			message: "Waiting for a rollout to admit this cluster."})
	case in.Install.Spec.Admission.Revision < in.Install.Status.ObservedRevision:
		d.summarize(staleAdmission(in))
	default:
		d.install(in)
	}
	return *d
}

// finding is why a stage does not pass.
type finding struct {
	stalled bool
	reason  string
	message string
	recheck time.Duration
}

// stage is a condition and what must hold for it, in order.
type stage struct {
	condition string
	checks    []func(*Decision, Input) *finding
	passed    string
}

func stages() []stage {
	return []stage{{
		condition: v1alpha1.ConditionCatalogServed,
		checks: []func(*Decision, Input) *finding{
			(*Decision).olm, (*Decision).elsewhere, (*Decision).catalog, (*Decision).serve,
			(*Decision).namespace, (*Decision).operatorGroup, (*Decision).catalogSource,
		},
		passed: "OLM is connected to the catalog view.",
	}, {
		condition: v1alpha1.ConditionResolved,
		checks: []func(*Decision, Input) *finding{(*Decision).subscription, (*Decision).orphans, (*Decision).lostCSV,
			(*Decision).abandon, (*Decision).resolved, (*Decision).blocked},
		passed: "OLM resolved the Subscription to what was admitted.",
	}, {
		condition: v1alpha1.ConditionPlanApproved,
		checks:    []func(*Decision, Input) *finding{(*Decision).planApproved},
		passed:    "The InstallPlan held exactly what was admitted.",
	}, {
		condition: v1alpha1.ConditionInstalled,
		checks:    []func(*Decision, Input) *finding{(*Decision).installed},
	}}
}

func (d *Decision) install(in Input) {
	d.hold(in)
	admission := in.Install.Spec.Admission
	d.Status.ObservedRevision = admission.Revision
	if d.Status.SucceededHash != admission.Hash {
		// What succeeded before says nothing any more: the way back to it has to
		// succeed anew.
		d.Status.SucceededHash, d.Status.SucceededAt = "", nil
	}
	d.Status.Path, d.Status.Route = in.Offer.Path, in.Offer.Route
	atTarget := runsTarget(in)

	var first *finding
	for _, s := range stages() {
		f, message := d.check(in, s), s.passed
		if s.condition == v1alpha1.ConditionInstalled {
			message = admission.Release.Bundle + " is Succeeded."
		}
		switch {
		case f == nil:
			d.set(s.condition, true, v1alpha1.ReasonSucceeded, message)
			continue
		case first == nil:
			d.set(s.condition, false, f.reason, f.message)
		}
		if first == nil {
			first = f
		}
		if !atTarget {
			d.waitBehind(s.condition)
			break
		}
	}
	d.conclude(in, first, atTarget)
}

// check runs a stage's checks and returns the first finding.
func (d *Decision) check(in Input, s stage) *finding {
	for _, c := range s.checks {
		if f := c(d, in); f != nil {
			return f
		}
	}
	return nil
}

// conclude writes the verdict. What runs its target is Ready even when its
// catalog cannot be served: the operator does not depend on it.
func (d *Decision) conclude(in Input, f *finding, atTarget bool) {
	admission := in.Install.Spec.Admission
	if atTarget && d.Status.SucceededHash != admission.Hash {
		now := metav1.NewTime(in.Now)
		d.Status.SucceededHash, d.Status.SucceededAt = admission.Hash, &now
	}
	if !atTarget && f == nil {
		f = unfinished(in)
	}
	switch {
	case !atTarget:
		d.summarize(*f)
	case unavailable(in.Cluster.Deployments) != "":
		d.summarize(finding{reason: v1alpha1.ReasonWaiting, message: unavailable(in.Cluster.Deployments),
			recheck: recheckProblem})
	default:
		message := fmt.Sprintf("%s runs.", admission.Release.Bundle)
		if f != nil {
			d.recheck(f.recheck)
		}
		if f != nil && f.stalled {
			message += " But: " + f.message
		}
		conditions.Summarize(&d.Status.Conditions, in.Install.Generation,
			conditions.Summary{State: conditions.Current, Reason: v1alpha1.ReasonSucceeded, Message: message})
		d.recheck(recheckSteady)
	}
}

// runsTarget tells whether the admitted bundle is Succeeded, under a
// Subscription and with Deployments that have the admitted settings. It does
// not depend on the catalog.
func runsTarget(in Input) bool {
	csv, ok := in.Cluster.Installed()
	sub, _ := in.Cluster.subscription()
	return ok && csv.Name == in.Install.Spec.Admission.Release.Bundle && !csv.Deleting &&
		csv.Phase == string(operatorsv1alpha1.CSVPhaseSucceeded) && sub.InSync && configured(in.Cluster.Deployments)
}

// unfinished explains an install whose stages all passed and that does not run
// its target yet.
func unfinished(in Input) *finding {
	if !configured(in.Cluster.Deployments) {
		return &finding{reason: v1alpha1.ReasonProgressing,
			message: "Waiting for OLM to give the install settings to the operator's Deployments.",
			recheck: recheckProblem}
	}
	return &finding{reason: v1alpha1.ReasonProgressing, message: "On the way to " +
		in.Install.Spec.Admission.Release.Bundle + ".", recheck: recheckSoon}
}

func configured(deployments []Deployment) bool {
	for _, deployment := range deployments {
		if !deployment.Configured {
			return false
		}
	}
	return true
}

func unavailable(deployments []Deployment) string {
	for _, deployment := range deployments {
		if deployment.Unavailable > 0 {
			return fmt.Sprintf("Deployment %s misses %d replicas.", deployment.Name, deployment.Unavailable)
		}
	}
	return ""
}

func staleAdmission(in Input) finding {
	return finding{stalled: true, reason: v1alpha1.ReasonStaleAdmission, message: fmt.Sprintf(
		"The admission stamp has revision %d, but revision %d was already acted on. It is ignored; a newer rollout "+
			"replaces it.",
		in.Install.Spec.Admission.Revision, in.Install.Status.ObservedRevision)}
}
