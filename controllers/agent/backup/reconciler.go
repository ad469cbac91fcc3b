// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backup takes the backups of an agent's cluster. Reconciler takes the backup of each
// OperatorBackup. PolicyReconciler creates and removes OperatorBackups according to the policy
// of each OperatorInstall. Package backups decides.
package backup

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups"
	"github.com/bellwether-dev/bellwether/backups/archive"
	"github.com/bellwether-dev/bellwether/backups/capture"
)

// takeTimeout limits one attempt to take a backup.
const takeTimeout = time.Hour

// cacheDelay gives the cache time to receive a recent write.
const cacheDelay = 200 * time.Millisecond

// defaultMaxBytes is the API's default of the size limit.
const defaultMaxBytes = 1 << 30

// Reconciler takes backups.
type Reconciler struct {
	Cluster string
	// Hub writes the status of OperatorBackups, and reads OperatorInstalls.
	Hub client.Client
	// Live reads OperatorBackups on the hub without the cache.
	Live client.Reader
	// Local reads the fleet cluster directly, and checks permissions there.
	Local  Local
	Pages  capture.Pages
	Stores Stores
	Now    func() time.Time
}

// Reconcile takes a backup, unless it was taken already. A failed backup leaves nothing in the
// store and is tried again.
func (r *Reconciler) Reconcile(ctx context.Context, b *v1alpha1.OperatorBackup) (ctrl.Result, error) {
	if backups.IsDone(b) || !b.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	switch isCurrent, err := r.isCurrent(ctx, b); {
	case err != nil:
		return ctrl.Result{}, err
	case !isCurrent:
		return ctrl.Result{RequeueAfter: cacheDelay}, nil
	}
	if len(b.Status.Conditions) == 0 {
		if err := r.reportRunning(ctx, b); err != nil {
			return ctrl.Result{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, takeTimeout)
	defer cancel()
	taken, err := r.takeBackup(ctx, b)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot take the backup", "operator", b.Spec.Operator)
		return ctrl.Result{RequeueAfter: backups.ReportFailed(b, err, r.Now())}, nil
	}
	log.FromContext(ctx).Info("Backup taken", "operator", b.Spec.Operator, "objects", taken.Manifest.Objects(),
		"bytes", taken.Manifest.Content.Bytes, "location", taken.Location)
	backups.ReportTaken(b, taken)
	return ctrl.Result{}, nil
}

// isCurrent reports whether the cache has the newest version of a backup. With an older version,
// a backup that was just completed would be taken again.
func (r *Reconciler) isCurrent(ctx context.Context, b *v1alpha1.OperatorBackup) (bool, error) {
	live := &v1alpha1.OperatorBackup{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(b), live); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get OperatorBackup: %w", err)
	}
	return live.ResourceVersion == b.ResourceVersion, nil
}

// reportRunning writes the status before the backup is taken, because a backup can take minutes.
func (r *Reconciler) reportRunning(ctx context.Context, b *v1alpha1.OperatorBackup) error {
	patch := client.MergeFromWithOptions(b.DeepCopy(), client.MergeFromWithOptimisticLock{})
	backups.ReportRunning(b)
	if err := r.Hub.Status().Patch(ctx, b, patch); err != nil {
		return fmt.Errorf("report that the backup is being taken: %w", err)
	}
	return nil
}

// takeBackup writes a backup to its folder and verifies it by reading it back. It returns the
// manifest, the checksum and the folder of the backup.
func (r *Reconciler) takeBackup(ctx context.Context, b *v1alpha1.OperatorBackup) (backups.Taken, error) {
	head, requests, err := r.observeOperator(ctx, b)
	if err != nil {
		return backups.Taken{}, err
	}
	options := archive.Options{MaxBytes: defaultMaxBytes}
	if b.Spec.MaxSize != nil {
		options.MaxBytes = b.Spec.MaxSize.Value()
	}
	if options.Recipients, err = archive.ParseRecipients(b.Spec.Recipients); err != nil {
		return backups.Taken{}, err
	}
	folder, folderURL, err := r.Stores.Open(ctx, b)
	if err != nil {
		return backups.Taken{}, err
	}
	defer folder.Close() //nolint:errcheck // every file in it was closed
	m, sum, err := archive.Write(ctx, folder, head, options,
		func(add func(line []byte) error) ([]archive.Resource, error) {
			return capture.ReadObjects(ctx, r.Pages, requests, add)
		})
	if err != nil {
		return backups.Taken{}, err
	}
	if err := archive.Verify(ctx, folder, sum); err != nil {
		return backups.Taken{}, fmt.Errorf("read the backup back: %w", err)
	}
	return backups.Taken{Manifest: m, Sum: sum, Location: folderURL, At: r.Now()}, nil
}

// observeOperator returns the head of the manifest and the resources to save of the installed
// operator. The error wraps backups.ErrNotInstalled if the operator is not installed, and is a
// *backups.ForbiddenError if the agent has no permission to list the resources.
func (r *Reconciler) observeOperator(ctx context.Context, b *v1alpha1.OperatorBackup) (archive.Manifest,
	[]capture.Request,
	error) {
	install := &v1alpha1.OperatorInstall{}
	key := client.ObjectKey{Namespace: b.Namespace, Name: b.Spec.Operator.InstallName()}
	switch err := r.Hub.Get(ctx, key, install); {
	case apierrors.IsNotFound(err):
		return archive.Manifest{}, nil, backups.ErrNotInstalled
	case err != nil:
		return archive.Manifest{}, nil, fmt.Errorf("get OperatorInstall %s: %w", key.Name, err)
	}
	if install.Status.Installed == nil || install.Spec.Admission == nil {
		return archive.Manifest{}, nil, backups.ErrNotInstalled
	}
	installed := *install.Status.Installed
	head := archive.Manifest{
		Name: b.Name, Cluster: r.Cluster, Operator: b.Spec.Operator.Namespace + "/" + b.Spec.Operator.Name,
		Bundle: installed.Bundle, Version: installed.Version, TakenAt: r.Now().UTC(),
	}
	requests, err := r.Local.ListRequests(ctx, install.Spec.Admission.Release.TargetNamespace(), installed.Bundle,
		b.Spec.Secrets)
	if err != nil {
		return archive.Manifest{}, nil, err
	}
	return head, requests, r.Local.CheckPermissions(ctx, b.Spec.Operator.Name, requests)
}
