// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install installs on the agent's cluster the releases that the hub admitted. It reads
// OperatorInstalls from the cluster's namespace on the hub and writes their status there. An
// engine (package engines) makes all changes on the cluster itself.
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
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// Reconciler runs an engine for OperatorInstalls.
type Reconciler[Observation, Action any] struct {
	Hub    client.Client
	Engine engines.Engine[Observation, Action]
	Events events.EventRecorder
	Now    func() time.Time
	// Veto returns the veto of the cluster's owner; nil if there is none.
	Veto func(ctx context.Context) (*v1alpha1.ClusterVeto, error)
	// Freeze returns the FleetFreeze of the cluster; nil if there is none. The
	// error wraps engines.ErrNotReady if that is not known yet. A nil function
	// means that there are no freezes.
	Freeze func(ctx context.Context) (*v1alpha1.FleetFreeze, error)
	// ReadKept returns the record of an operator that is stored on the cluster; nil if there is
	// none. The error wraps engines.ErrNotReady if that is not known yet. A nil function means
	// that clusters store no records.
	ReadKept func(ctx context.Context, operator v1alpha1.OperatorReference) (*engines.Kept, error)

	// begunRevisions has the last revision that the cluster has stored for each install, by
	// the install's UID. The stored record is missing for a moment while the engine replaces
	// the object that contains it.
	begunRevisions sync.Map
}

// vetoDelay is the delay before the veto is read again.
const vetoDelay = 10 * time.Second

// frozenDelay is the delay before a frozen cluster is reconciled again.
const frozenDelay = 30 * time.Second

// notReadyDelay is the delay before an engine that was not ready is tried again.
const notReadyDelay = time.Second

// Reconcile executes the next step of one OperatorInstall and updates its status in memory. If
// the cluster cannot be observed, the status stays unchanged.
func (r *Reconciler[O, A]) Reconcile(ctx context.Context, install *v1alpha1.OperatorInstall) (ctrl.Result, error) {
	checks, err := r.readPreconditions(ctx, install)
	switch {
	case errors.Is(err, engines.ErrNotReady):
		return ctrl.Result{RequeueAfter: notReadyDelay}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	if finding := checks.findRefusal(install); finding != nil {
		if checks.unknownToHub != nil {
			// The finalizer ensures that the removal policy takes effect even if the hub removes
			// the operator before it has its admission again.
			if err := kit.AddFinalizer(ctx, r.Hub, install, v1alpha1.FinalizerAgent); err != nil {
				return ctrl.Result{}, err
			}
		}
		install.Status = engines.RefusedStatus(install, checks.unknownToHub, *finding)
		return ctrl.Result{RequeueAfter: checks.recheck}, nil
	}
	install.Spec.Admission = engines.EffectiveAdmission(install, checks.kept)
	observation, next, err := r.decide(ctx, install)
	switch {
	case errors.Is(err, engines.ErrNotReady):
		return ctrl.Result{RequeueAfter: notReadyDelay}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("observe install: %w", err)
	}
	if checks.frozen != "" {
		next.Actions = r.Engine.WhileFrozen(next.Actions)
		next.Report = next.Report.WhileFrozen(install, checks.frozen)
		next.RecheckAfter = max(next.RecheckAfter, frozenDelay)
	}
	if next.Report.IsCorrectionDue() {
		if err := r.recordCorrection(ctx, install, next.Report.Correction); err != nil {
			return ctrl.Result{}, err
		}
	}
	applyErr := r.apply(ctx, install, observation, next)
	if next.Report.IsCorrectionDue() && applyErr == nil {
		kit.Emit(r.Events, install, "DriftCorrected", "Correct",
			"Put back what differed from the admitted release (%s, correction %d within an hour): %s",
			install.Spec.Admission.Release.Bundle, next.Report.Correction.Count,
			strings.Join(next.Report.Correction.Fields, ", "))
	}
	if applyErr == nil {
		r.emitDeletedEvents(install, next.Report.Deleted)
	}
	install.Status = engines.Status(install, next.Report, r.Now())
	return kit.NewResult(next.RecheckAfter, applyErr)
}

// maxPlans limits how often the engine plans in one reconcile. It plans again after it has read
// the data that the previous plan lacked.
const maxPlans = 10

var errTooManyReads = errors.New("the engine requests too many reads in one reconcile")

// decide observes the cluster and plans. While the plan lacks data, the engine
// reads the data and plans again. The error wraps engines.ErrNotReady while data is
// being read in the background.
func (r *Reconciler[O, A]) decide(ctx context.Context, install *v1alpha1.OperatorInstall) (O, engines.Plan[A], error) {
	observation, err := r.Engine.Observe(ctx, install)
	if err != nil {
		return observation, engines.Plan[A]{}, err
	}
	for range maxPlans {
		next := r.Engine.Plan(install, observation, r.Now())
		switch {
		case !next.NotReady:
			return observation, next, nil
		case len(next.Actions) == 0: // the data is being read in the background
			return observation, next, engines.ErrNotReady
		}
		if err := r.Engine.Apply(ctx, install, observation, next.Actions); err != nil {
			return observation, next, err
		}
	}
	return observation, engines.Plan[A]{}, errTooManyReads
}

// emitDeletedEvents emits an Event for each object that another user deleted. Events that differ
// only in their note are counted as one Event, so the action contains the kind.
func (r *Reconciler[O, A]) emitDeletedEvents(install *v1alpha1.OperatorInstall, deleted []engines.Deleted) {
	for _, d := range deleted {
		kit.Emit(r.Events, install, "DeletedOnCluster", "Make"+d.Kind+"Again",
			"Another user or program deleted %s. It is made again. The audit log of the cluster's API server names "+
				"the user.", d)
	}
}

// preconditions are checked before the cluster is observed.
type preconditions struct {
	// kept is the record of the operator that is stored on the cluster. unknownToHub is the same
	// record if the hub does not have its admission, otherwise nil.
	kept, unknownToHub *engines.Kept
	// hasBegun is true if the agent has started to install the admitted release.
	hasBegun bool
	veto     *v1alpha1.ClusterVeto
	// frozen is why nothing may be changed on the cluster: a FleetFreeze, or it is not known
	// whether one exists; empty if changes are allowed.
	frozen string
	// recheck is the delay before the preconditions are read again, because no
	// watch reports their changes.
	recheck time.Duration
}

// readPreconditions reads everything that can block an install. If it cannot read whether a
// FleetFreeze exists, that counts as a freeze. All other failures are errors. The veto is read
// only for an installation that has not begun.
func (r *Reconciler[O, A]) readPreconditions(ctx context.Context, install *v1alpha1.OperatorInstall) (preconditions,
	error) {
	var p preconditions
	var err error
	if r.ReadKept != nil {
		if p.kept, err = r.ReadKept(ctx, install.Spec.Operator); err != nil {
			return p, fmt.Errorf("read the admission that the cluster stores: %w", err)
		}
		p.unknownToHub = engines.FindUnknownToHub(install, p.kept)
	}
	if r.Freeze != nil {
		switch f, err := r.Freeze(ctx); {
		case errors.Is(err, engines.ErrNotReady):
			return p, fmt.Errorf("look for a FleetFreeze: %w", err)
		case err != nil:
			p.frozen = fmt.Sprintf("Nothing is changed, because it is not known whether a FleetFreeze stops that: %v. "+
				"Upgrade the hub's chart if the agent may not read them.", err)
		case f != nil:
			p.frozen = "Nothing is changed: " + holds.FreezeMessage(f) + "."
		}
	}
	if p.hasBegun = engines.IsBegun(install, p.kept); p.hasBegun {
		r.begunRevisions.Store(install.UID, install.Spec.Admission.Revision)
	} else if install.Spec.Admission != nil { // the stored record might be missing for a moment
		revision, _ := r.begunRevisions.Load(install.UID)
		p.hasBegun = revision == install.Spec.Admission.Revision
	}
	if install.Spec.Admission != nil && install.DeletionTimestamp.IsZero() && !p.hasBegun {
		p.recheck = vetoDelay
		if p.veto, err = r.Veto(ctx); err != nil {
			return p, fmt.Errorf("look for a veto: %w", err)
		}
	}
	if p.frozen != "" {
		p.recheck = frozenDelay
	}
	return p, nil
}

// findRefusal returns why nothing is done for an install, so that the cluster is not even
// observed; nil if nothing blocks the install. A FleetFreeze blocks each uninstallation, and each
// installation that has not begun. An installation that has begun is not blocked: a veto has no
// effect on it, and during a FleetFreeze it is observed but not changed.
func (p preconditions) findRefusal(install *v1alpha1.OperatorInstall) *engines.Finding {
	if finding := engines.Refuse(install, p.unknownToHub); finding != nil {
		return finding
	}
	isLeaving := !install.DeletionTimestamp.IsZero()
	isBlockedByFreeze := isLeaving || !p.hasBegun
	switch {
	case p.frozen != "" && isBlockedByFreeze:
		// The freeze does not hide that a person must act.
		return &engines.Finding{Reason: v1alpha1.ReasonFrozen, Message: p.frozen,
			Problem: conditions.IsTrue(install.Status.Conditions, v1alpha1.ConditionStalled)}
	case !isLeaving && holds.VetoCovers(p.veto, install.Spec.Operator):
		return &engines.Finding{Reason: v1alpha1.ReasonVetoed, Message: fmt.Sprintf("%s does not begin: %s.",
			describeChange(install.Spec.Admission.Release), holds.VetoMessage(p.veto))}
	}
	return nil
}

// describeChange describes the change that an admission requests, as the start of a sentence.
func describeChange(r v1alpha1.Release) string {
	if r.AsInstalled {
		return "The take-over of what is installed"
	}
	return "The change to " + r.Version
}

// recordCorrection writes the record of a correction to the hub before fields are put back. A
// failed attempt counts too, so that the number of corrections stays limited even if the install
// that was read is outdated or the hub cannot be reached.
func (r *Reconciler[O, A]) recordCorrection(ctx context.Context, install *v1alpha1.OperatorInstall,
	correction *v1alpha1.DriftCorrection) error {
	patch := client.MergeFromWithOptions(install.DeepCopy(), client.MergeFromWithOptimisticLock{})
	install.Status.Correction = correction.DeepCopy()
	if err := r.Hub.Status().Patch(ctx, install, patch); err != nil {
		return fmt.Errorf("record correction: %w", err)
	}
	return nil
}

// apply executes a plan. It adds the finalizer before the engine creates anything, and removes
// the finalizer after the removal policy was executed.
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
