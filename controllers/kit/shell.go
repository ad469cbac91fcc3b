// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kit has the code that all controllers share, above all the wrapper of every
// reconciler: it reads the object, calls the reconciler with a copy, patches the status once if
// it changed, and reports the change in an Event. It makes no decisions.
package kit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Object is a kind of this project. It has status conditions.
type Object interface {
	client.Object
	// StatusConditions returns the address of the object's conditions.
	StatusConditions() *[]metav1.Condition
	// SetObservedGeneration records which generation the status was observed for.
	SetObservedGeneration(generation int64)
}

// WrapReconciler returns a reconcile.Reconciler for an object reconciler. The inner reconciler changes
// the object's status in memory. The shell patches the status if it changed, with the resource
// version as a precondition, and emits an Event if the reason of the condition Ready changed.
//
// The observed generation is the generation of the conditions. The inner reconciler sets the
// conditions only after it has observed everything, so a reconcile that fails earlier keeps the
// old observed generation. If reconciles fail for longer than failureGrace, the condition
// ReconcileFailing reports since when and why. It is written once, not at each retry.
//
// A conflict is not an error: the object is read and reconciled again. A version that is known
// to be outdated, because this shell wrote the object or another writer was faster, is not
// reconciled, because the API server would refuse the write. The object is reconciled after
// ConflictDelay, and at once when the cache receives the newer version.
func WrapReconciler[T Object](c client.Client, recorder events.EventRecorder,
	inner reconcile.ObjectReconciler[T]) reconcile.Reconciler {
	return reconcile.AsReconciler(c, &shell[T]{client: c, recorder: recorder, inner: inner, now: time.Now,
		outdated: newOutdatedVersions()})
}

// shell is the reconciler that WrapReconciler returns.
type shell[T Object] struct {
	client   client.Client
	recorder events.EventRecorder
	inner    reconcile.ObjectReconciler[T]
	now      func() time.Time
	failures failures
	outdated outdatedVersions
}

// Reconcile implements reconcile.ObjectReconciler; see WrapReconciler.
func (s *shell[T]) Reconcile(ctx context.Context, obj T) (ctrl.Result, error) {
	if s.outdated.contains(obj, s.now()) {
		return ctrl.Result{RequeueAfter: ConflictDelay}, nil
	}
	readVersion, before := obj.GetResourceVersion(), obj.DeepCopyObject().(T)
	result, err := s.inner.Reconcile(ctx, obj)
	if !apierrors.IsConflict(err) { // a conflict is neither a success nor a failure
		s.reportFailure(obj, err)
	}
	newest, patchErr := s.patchStatus(ctx, before, obj)
	// This reconcile, or another writer, has written a version that the cache might not have yet.
	if newest != readVersion || s.isConflictOf(obj, err) || apierrors.IsConflict(patchErr) {
		s.outdated.record(obj, readVersion, s.now())
	}
	failed := errors.Join(ignoreConflict(err), ignoreConflict(patchErr))
	if isConflict := apierrors.IsConflict(err) || apierrors.IsConflict(patchErr); isConflict && failed == nil {
		return ctrl.Result{RequeueAfter: ConflictDelay}, nil
	}
	return result, failed
}

// ignoreConflict returns nil for a conflict, because the next reconcile reads the newer object.
func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// isConflictOf reports whether an error is a conflict about the object itself, and
// not about another object.
func (s *shell[T]) isConflictOf(obj T, err error) bool {
	status, isStatus := errors.AsType[*apierrors.StatusError](err)
	if !isStatus || !apierrors.IsConflict(err) || status.ErrStatus.Details == nil {
		return false
	}
	kind, err := s.client.GroupVersionKindFor(obj)
	if err != nil {
		return false
	}
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return status.ErrStatus.Details.Name == obj.GetName() && status.ErrStatus.Details.Kind == resource.Resource
}

// ConflictDelay gives the cache time to receive the other write.
const ConflictDelay = 200 * time.Millisecond

// failureGrace is how long the reconciles of an object may fail before its status reports the
// failure. Most failures disappear at the first retries.
const failureGrace = 10 * time.Second

// failures records since when the reconciles of each object fail.
type failures struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

// record stores the result of a reconcile, and returns since when reconciles of the object
// fail; zero if err is nil.
func (f *failures) record(object types.UID, err error, now time.Time) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.since, object)
		return time.Time{}
	}
	if f.since == nil {
		f.since = map[types.UID]time.Time{}
	}
	if _, failing := f.since[object]; !failing {
		f.since[object] = now
	}
	return f.since[object]
}

// reportFailure sets the condition ReconcileFailing, or removes it if err is nil. The message of
// the first failure stays, because errors differ in ports and times, and a write at each retry
// would trigger the next reconcile at once.
func (s *shell[T]) reportFailure(obj T, err error) {
	all := obj.StatusConditions()
	now := s.now()
	since := s.failures.record(obj.GetUID(), err, now)
	switch {
	case err == nil:
		meta.RemoveStatusCondition(all, v1alpha1.ConditionReconcileFailing)
	case now.Sub(since) < failureGrace, conditions.IsTrue(*all, v1alpha1.ConditionReconcileFailing):
		// the failure is too short, or is reported already
	default:
		// The generation is not observed, so the condition does not name it.
		meta.SetStatusCondition(all, metav1.Condition{
			Type: v1alpha1.ConditionReconcileFailing, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonReconcileError, LastTransitionTime: metav1.NewTime(since.Truncate(time.Second)),
			Message: phrase.Truncate("tried again with growing delays: "+err.Error(), maxFailureLength),
		})
	}
}

// maxFailureLength limits the message of the condition ReconcileFailing.
const maxFailureLength = 1024

// patchStatus patches the status if it changed and emits the Event. It returns the newest known
// resource version of the object.
func (s *shell[T]) patchStatus(ctx context.Context, before, after T) (string, error) {
	after.SetObservedGeneration(conditions.ObservedGeneration(*after.StatusConditions()))
	desired := after.DeepCopyObject().(T)
	// The inner reconciler might have written the object, which changed its resource version.
	// The shell does not change the metadata.
	before.SetResourceVersion(after.GetResourceVersion())
	before.SetFinalizers(after.GetFinalizers())
	before.SetLabels(after.GetLabels())
	before.SetManagedFields(after.GetManagedFields())
	if equality.Semantic.DeepEqual(before, desired) {
		return after.GetResourceVersion(), nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := s.client.Status().Patch(ctx, desired, patch); err != nil {
		return after.GetResourceVersion(), client.IgnoreNotFound(fmt.Errorf("patch status: %w", err))
	}
	s.emitEvent(before, desired)
	return desired.GetResourceVersion(), nil
}

// emitEvent emits an Event if the reason or the status of the condition Ready changed.
func (s *shell[T]) emitEvent(before, after T) {
	oldReady := conditions.Get(*before.StatusConditions(), v1alpha1.ConditionReady)
	newReady := conditions.Get(*after.StatusConditions(), v1alpha1.ConditionReady)
	isUnchanged := newReady.Reason == oldReady.Reason && newReady.Status == oldReady.Status
	if s.recorder == nil || isUnchanged {
		return
	}
	emit(s.recorder, after, conditions.ReadyEventType(*after.StatusConditions()), newReady.Reason, "Reconcile",
		newReady.Message)
}

// NewResult returns the result of a reconciler. An error is retried with back-off. Otherwise the
// object is reconciled again after recheck, if that is not zero.
func NewResult(recheck time.Duration, err error) (ctrl.Result, error) {
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: recheck}, nil
}
