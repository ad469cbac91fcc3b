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
	"github.com/bellwether-dev/bellwether/backups/archive"
	"github.com/bellwether-dev/bellwether/controllers/backup/plan"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// PolicyReconciler asks for the backups that an OperatorInstall's policy wants, and
// removes those that it does not keep.
type PolicyReconciler struct {
	Hub      client.Client
	Stores   Stores
	Recorder events.EventRecorder
	Now      func() time.Time
	// Frozen tells whether a FleetFreeze, or that none is known of, stops the removal of backups.
	Frozen func(ctx context.Context) bool
}

// freezeDelay is how long to wait before backups are removed that a freeze has kept.
const freezeDelay = time.Minute

// Reconcile implements reconcile.Reconciler.
func (r *PolicyReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	install := &v1alpha1.OperatorInstall{}
	if err := r.Hub.Get(ctx, request.NamespacedName, install); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("get OperatorInstall: %w", err))
	}
	var all v1alpha1.OperatorBackupList
	if err := r.Hub.List(ctx, &all, client.InNamespace(request.Namespace)); err != nil {
		return ctrl.Result{}, fmt.Errorf("list OperatorBackups: %w", err)
	}
	next := plan.Next(plan.Input{Now: r.Now(), Install: install, Backups: all.Items})
	if next.Problem != nil {
		kit.Emit(r.Recorder, install, v1alpha1.ReasonInvalidSpec, "Backup", "%v",
			next.Problem)
	}
	// A quota that is full must not keep old ones from being removed.
	var errs []error
	for _, backup := range next.Create {
		if err := r.Hub.Create(ctx, backup); err != nil && !apierrors.IsAlreadyExists(err) {
			errs = append(errs, fmt.Errorf("create OperatorBackup %s: %w", backup.Name, err))
			continue
		}
		log.FromContext(ctx).Info("Backup asked for", "backup", backup.Name, "trigger", backup.Spec.Trigger)
	}
	if len(next.Remove) > 0 && r.Frozen(ctx) {
		next.Remove, next.RecheckAfter = nil, cmp.Or(min(next.RecheckAfter, freezeDelay), freezeDelay)
	}
	for i := range next.Remove {
		b := &next.Remove[i]
		switch err := r.remove(ctx, b); {
		case errors.Is(err, errRefusedFolder): // which does not stop the others, or the next backup
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

// remove removes a backup from the store first, so that nothing is left there that
// no object names.
func (r *PolicyReconciler) remove(ctx context.Context, b *v1alpha1.OperatorBackup) error {
	if b.Status.Location != "" {
		bucket, err := r.Stores.OpenTaken(ctx, b)
		if err != nil {
			return err
		}
		defer bucket.Close() //nolint:errcheck // nothing was written
		if err := archive.Remove(ctx, bucket); err != nil {
			return err
		}
	}
	if err := r.Hub.Delete(ctx, b); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete OperatorBackup: %w", err)
	}
	log.FromContext(ctx).Info("Backup removed", "backup", b.Name, "location", b.Status.Location)
	return nil
}
