// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups"
	"github.com/bellwether-dev/bellwether/backups/archive"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// PolicyReconciler creates the OperatorBackups that an OperatorInstall's policy requires, and
// removes backups that the policy does not keep.
type PolicyReconciler struct {
	Hub      client.Client
	Stores   Stores
	Recorder events.EventRecorder
	Now      func() time.Time
	// Frozen reports whether backups must not be removed: because of a FleetFreeze, or because
	// it is not known whether one exists.
	Frozen func(ctx context.Context) bool
}

// freezeDelay is the delay before the removal of backups is tried again during a freeze.
const freezeDelay = time.Minute

// Reconcile implements reconcile.Reconciler. It creates and removes the
// OperatorBackups of one install.
func (r *PolicyReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	install := &v1alpha1.OperatorInstall{}
	if err := r.Hub.Get(ctx, request.NamespacedName, install); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("get OperatorInstall: %w", err))
	}
	var all v1alpha1.OperatorBackupList
	if err := r.Hub.List(ctx, &all, client.InNamespace(request.Namespace)); err != nil {
		return ctrl.Result{}, fmt.Errorf("list OperatorBackups: %w", err)
	}
	next := backups.Next(backups.Input{Now: r.Now(), Install: install, Backups: all.Items})
	if next.Problem != nil {
		kit.Emit(r.Recorder, install, v1alpha1.ReasonInvalidSpec, "Backup", "%v",
			next.Problem)
	}
	// A full quota must not prevent the removal of old backups, so errors are collected.
	var errs []error
	for _, backup := range next.Create {
		if err := r.Hub.Create(ctx, backup); err != nil && !apierrors.IsAlreadyExists(err) {
			errs = append(errs, fmt.Errorf("create OperatorBackup %s: %w", backup.Name, err))
			continue
		}
		log.FromContext(ctx).Info("Backup requested", "backup", backup.Name, "trigger", backup.Spec.Trigger)
	}
	if len(next.Remove) > 0 && r.Frozen(ctx) {
		// A delay of zero means that there is no recheck, so it is not the smaller delay.
		next.Remove, next.RecheckAfter = nil, cmp.Or(min(next.RecheckAfter, freezeDelay), freezeDelay)
	}
	for i := range next.Remove {
		b := &next.Remove[i]
		switch err := r.removeBackup(ctx, b); {
		case errors.Is(err, errRefusedFolder): // does not stop other removals or the next backup
			kit.Emit(r.Recorder, install, v1alpha1.ReasonBackupStoreUnavailable, "Backup",
				"Backup %s is over the limits of the policy, and not removed: %v", b.Name, err)
		case err != nil:
			errs = append(errs, fmt.Errorf("remove backup %s: %w", b.Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: next.RecheckAfter}, nil
}

// removeBackup removes a backup from the store before it deletes the OperatorBackup, so that the
// store has no backup without an object.
func (r *PolicyReconciler) removeBackup(ctx context.Context, b *v1alpha1.OperatorBackup) error {
	if b.Status.Location != "" {
		folder, err := r.Stores.OpenTaken(ctx, b)
		if err != nil {
			return err
		}
		defer folder.Close() //nolint:errcheck // nothing was written
		if err := archive.Remove(ctx, folder); err != nil {
			return err
		}
	}
	if err := r.Hub.Delete(ctx, b); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete OperatorBackup: %w", err)
	}
	log.FromContext(ctx).Info("Backup removed", "backup", b.Name, "location", b.Status.Location)
	return nil
}
