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
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/engines"
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
	// Kept returns what the cluster keeps of an operator; nil if that is nothing. It
	// wraps engines.ErrNotReady where that is not known yet. A nil function says that
	// clusters keep nothing.
	Kept func(ctx context.Context, operator v1alpha1.OperatorReference) (*engines.Kept, error)
}

// vetoDelay is how long to wait before a veto is looked for again.
const vetoDelay = 10 * time.Second

// notReadyDelay is how long to wait for an engine that is not ready.
const notReadyDelay = time.Second

// Reconcile brings one OperatorInstall a step further. If the cluster cannot be
// observed, the status stays as it is.
func (r *Reconciler[O, A]) Reconcile(ctx context.Context, install *v1alpha1.OperatorInstall) (ctrl.Result, error) {
	unknown, err := r.unknown(ctx, install)
	switch {
	case errors.Is(err, engines.ErrNotReady):
		return ctrl.Result{RequeueAfter: notReadyDelay}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("read what the cluster keeps: %w", err)
	}
	if finding := engines.Refuse(install, unknown); finding != nil {
		install.Status = engines.StatusOfRefused(install, unknown, *finding)
		return ctrl.Result{}, nil
	}
	if refused, err := r.isVetoed(ctx, install); refused || err != nil {
		return ctrl.Result{RequeueAfter: vetoDelay}, err
	}
	observation, err := r.Engine.Observe(ctx, install)
	switch {
	case errors.Is(err, engines.ErrNotReady):
		return ctrl.Result{RequeueAfter: notReadyDelay}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("observe install: %w", err)
	}
	next := r.Engine.Plan(install, observation, r.Now())
	if next.Report.PutsBack() {
		if err := r.recordCorrection(ctx, install, next.Report.Correction); err != nil {
			return ctrl.Result{}, err
		}
	}
	applyErr := r.apply(ctx, install, observation, next)
	if next.Report.PutsBack() && applyErr == nil {
		r.Events.Eventf(install, nil, corev1.EventTypeWarning, "DriftCorrected", "Correct",
			"Put back what differed from the admitted release (%s, correction %d within an hour): %s",
			install.Spec.Admission.Release.Bundle, next.Report.Correction.Count,
			strings.Join(next.Report.Correction.Fields, ", "))
	}
	install.Status = engines.Status(install, next.Report, r.Now())
	return kit.Result(next.RecheckAfter, applyErr)
}

// unknown returns what the cluster keeps of an operator that the hub does not know of.
func (r *Reconciler[O, A]) unknown(ctx context.Context, install *v1alpha1.OperatorInstall) (*engines.Kept, error) {
	if r.Kept == nil {
		return nil, nil
	}
	kept, err := r.Kept(ctx, install.Spec.Operator)
	if err != nil {
		return nil, err
	}
	return engines.Unknown(install, kept), nil
}

// isVetoed tells whether the cluster's owner refuses the change that an install was
// admitted to, and reports it. What has begun finishes; a veto that cannot be looked
// for holds up what has not.
func (r *Reconciler[O, A]) isVetoed(ctx context.Context, install *v1alpha1.OperatorInstall) (bool, error) {
	if !install.DeletionTimestamp.IsZero() || engines.IsBegun(install) {
		return false, nil
	}
	v, err := r.Veto(ctx)
	if err != nil || !veto.Covers(v, install.Spec.Operator) {
		return false, err
	}
	install.Status = engines.StatusOfRefused(install, nil, engines.Finding{Reason: v1alpha1.ReasonVetoed,
		Message: fmt.Sprintf("The change to %s does not begin: %s.", install.Spec.Admission.Release.Version,
			veto.Message(v))})
	return true, nil
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
