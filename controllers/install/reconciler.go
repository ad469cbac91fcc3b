// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install brings operators on the agent's cluster to the releases that
// the hub admitted. It reads OperatorInstalls from the cluster's namespace on the
// hub and writes their status there; everything on the cluster itself is done by
// an engine (package engines).
package install

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/rollouts/freeze"
	"github.com/bellwether-dev/bellwether/rollouts/veto"
)

// Reconciler runs an engine for OperatorInstalls.
type Reconciler[Observation, Action any] struct {
	Hub    client.Client
	Engine engines.Engine[Observation, Action]
	Events events.EventRecorder
	Now    func() time.Time
	// Veto returns what the cluster's owner refuses; nil if that is nothing.
	Veto func(ctx context.Context) (*v1alpha1.ClusterVeto, error)
	// Freeze returns the FleetFreeze of the cluster; nil if there is none. It wraps
	// engines.ErrNotReady where that is not known yet. A nil function says that there are none.
	Freeze func(ctx context.Context) (*v1alpha1.FleetFreeze, error)
	// Kept returns what the cluster keeps of an operator; nil if that is nothing. It
	// wraps engines.ErrNotReady where that is not known yet. A nil function says that
	// clusters keep nothing.
	Kept func(ctx context.Context, operator v1alpha1.OperatorReference) (*engines.Kept, error)

	// begun has the revision that the cluster has kept of each install, by its UID: that is gone for a while where the
	// engine makes the object anew that keeps it.
	begun sync.Map
}

// vetoDelay is how long to wait before a veto is looked for again.
const vetoDelay = 10 * time.Second

// frozenDelay is how long to wait before a frozen cluster is looked at again.
const frozenDelay = 30 * time.Second

// notReadyDelay is how long to wait for an engine that is not ready.
const notReadyDelay = time.Second

// Reconcile brings one OperatorInstall a step further. If the cluster cannot be
// observed, the status stays as it is.
func (r *Reconciler[O, A]) Reconcile(ctx context.Context, install *v1alpha1.OperatorInstall) (ctrl.Result, error) {
	around, err := r.around(ctx, install)
	switch {
	case errors.Is(err, engines.ErrNotReady):
		return ctrl.Result{RequeueAfter: notReadyDelay}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	if finding := around.refuse(install); finding != nil {
		if around.unknown != nil {
			// The removal policy is carried out also where the hub removes the operator before it knows of it again.
			if err := kit.AddFinalizer(ctx, r.Hub, install, v1alpha1.FinalizerAgent); err != nil {
				return ctrl.Result{}, err
			}
		}
		install.Status = engines.StatusOfRefused(install, around.unknown, *finding)
		return ctrl.Result{RequeueAfter: around.recheck}, nil
	}
	install.Spec.Admission = engines.AdmissionOf(install, around.kept)
	observation, err := r.Engine.Observe(ctx, install)
	switch {
	case errors.Is(err, engines.ErrNotReady):
		return ctrl.Result{RequeueAfter: notReadyDelay}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("observe install: %w", err)
	}
	next := r.Engine.Plan(install, observation, r.Now())
	if around.frozen != "" {
		next.Actions = r.Engine.WhileFrozen(next.Actions)
		next.Report = next.Report.WhileFrozen(install, around.frozen)
		next.RecheckAfter = max(next.RecheckAfter, frozenDelay)
	}
	if next.Report.PutsBack() {
		if err := r.recordCorrection(ctx, install, next.Report.Correction); err != nil {
			return ctrl.Result{}, err
		}
	}
	applyErr := r.apply(ctx, install, observation, next)
	if next.Report.PutsBack() && applyErr == nil {
		kit.Emit(r.Events, install, "DriftCorrected", "Correct",
			"Put back what differed from the admitted release (%s, correction %d within an hour): %s",
			install.Spec.Admission.Release.Bundle, next.Report.Correction.Count,
			strings.Join(next.Report.Correction.Fields, ", "))
	}
	if applyErr == nil {
		r.tellDeleted(install, next.Report.Deleted)
	}
	install.Status = engines.Status(install, next.Report, r.Now())
	return kit.Result(next.RecheckAfter, applyErr)
}

// tellDeleted tells what somebody else has deleted. Events that differ only in their note count as one, so the action
// names the kind.
func (r *Reconciler[O, A]) tellDeleted(install *v1alpha1.OperatorInstall, deleted []engines.Deleted) {
	for _, d := range deleted {
		kit.Emit(r.Events, install, "DeletedOnCluster", "Make"+d.Kind+"Again",
			"Somebody else deleted %s. It is made again. The audit log of the cluster's API server says who it was.", d)
	}
}

// around is what an install is looked at with, before the cluster is observed.
type around struct {
	// kept is what the cluster keeps of the operator, and unknown that if the hub does not know of it.
	kept, unknown *engines.Kept
	// begun says that the agent has begun with the admission.
	begun bool
	veto  *v1alpha1.ClusterVeto
	// frozen is why nothing is changed on the cluster: a FleetFreeze, or that nobody knows of any; empty where there is
	// none.
	frozen string
	// recheck is when to look again, if nothing tells of a change.
	recheck time.Duration
}

// around reads what may hold up an install. What cannot be looked for holds up all.
func (r *Reconciler[O, A]) around(ctx context.Context, install *v1alpha1.OperatorInstall) (around, error) {
	var a around
	var err error
	if r.Kept != nil {
		if a.kept, err = r.Kept(ctx, install.Spec.Operator); err != nil {
			return a, fmt.Errorf("read what the cluster keeps: %w", err)
		}
		a.unknown = engines.Unknown(install, a.kept)
	}
	if r.Freeze != nil {
		switch f, err := r.Freeze(ctx); {
		case errors.Is(err, engines.ErrNotReady):
			return a, fmt.Errorf("look for a FleetFreeze: %w", err)
		case err != nil:
			a.frozen = fmt.Sprintf("Nothing is changed, because it is not known whether a FleetFreeze stops that: %v. "+
				"Upgrade the hub's chart if the agent may not read them.", err)
		case f != nil:
			a.frozen = "Nothing is changed: " + freeze.Message(f) + "."
		}
	}
	if a.begun = engines.IsBegun(install, a.kept); a.begun {
		r.begun.Store(install.UID, install.Spec.Admission.Revision)
	} else if install.Spec.Admission != nil {
		revision, _ := r.begun.Load(install.UID)
		a.begun = revision == install.Spec.Admission.Revision
	}
	if install.Spec.Admission != nil && install.DeletionTimestamp.IsZero() && !a.begun {
		a.recheck = vetoDelay
		if a.veto, err = r.Veto(ctx); err != nil {
			return a, fmt.Errorf("look for a veto: %w", err)
		}
	}
	if a.frozen != "" {
		a.recheck = frozenDelay
	}
	return a, nil
}

// refuse returns why nothing is done for an install, and the cluster is not even observed; nil if nothing is against
// it. A veto lets finish what has begun, and a FleetFreeze does not.
func (a around) refuse(install *v1alpha1.OperatorInstall) *engines.Finding {
	if finding := engines.Refuse(install, a.unknown); finding != nil {
		return finding
	}
	isLeaving := !install.DeletionTimestamp.IsZero()
	switch {
	case a.frozen != "" && (isLeaving || !a.begun):
		// What needed a person needs one still.
		return &engines.Finding{Reason: v1alpha1.ReasonFrozen, Message: a.frozen,
			Problem: conditions.IsTrue(install.Status.Conditions, v1alpha1.ConditionStalled)}
	case !isLeaving && veto.Covers(a.veto, install.Spec.Operator):
		return &engines.Finding{Reason: v1alpha1.ReasonVetoed, Message: fmt.Sprintf("%s does not begin: %s.",
			changeText(install.Spec.Admission.Release), veto.Message(a.veto))}
	}
	return nil
}

// changeText names what an admission asks for.
func changeText(r v1alpha1.Release) string {
	if r.AsInstalled {
		return "The take-over of what is installed"
	}
	return "The change to " + r.Version
}

// recordCorrection writes the record of a correction before fields are put back. An
// attempt that fails counts too: the number of corrections stays bounded also where
// the install that was read is outdated, or the hub cannot be reached.
func (r *Reconciler[O, A]) recordCorrection(ctx context.Context, install *v1alpha1.OperatorInstall,
	now *v1alpha1.DriftCorrection) error {
	patch := client.MergeFromWithOptions(install.DeepCopy(), client.MergeFromWithOptimisticLock{})
	install.Status.Correction = now.DeepCopy()
	if err := r.Hub.Status().Patch(ctx, install, patch); err != nil {
		return fmt.Errorf("record correction: %w", err)
	}
	return nil
}

// apply carries out a plan. The finalizer is there before the engine creates
// anything, and is removed once the removal policy was carried out.
func (r *Reconciler[O, A]) apply(ctx context.Context, install *v1alpha1.OperatorInstall, observation O,
	next engines.Plan[A]) error {
	if install.DeletionTimestamp.IsZero() {
		if err := kit.AddFinalizer(ctx, r.Hub, install, v1alpha1.FinalizerAgent); err != nil {
			return err
		}
	}
	if err := r.Engine.Apply(ctx, install, observation, next.Actions); err != nil {
		return err
	}
	if next.Report.Removed {
		return kit.RemoveFinalizer(ctx, r.Hub, install, v1alpha1.FinalizerAgent)
	}
	return nil
}
