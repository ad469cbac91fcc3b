// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kit is the small shell around every reconciler: it reads the object,
// lets the reconciler work on a copy, patches the status once if it changed and
// reports the change in an Event. It decides nothing.
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
	"github.com/bellwether-dev/bellwether/phrase"
)

// Object is a kind of this project: it has status conditions.
type Object interface {
	client.Object
	// StatusConditions returns the address of the object's conditions.
	StatusConditions() *[]metav1.Condition
	// SetObservedGeneration records which generation the status was observed for.
	SetObservedGeneration(generation int64)
}

// Shell makes a reconcile.Reconciler of an object reconciler. The inner
// reconciler changes the object's status in memory; the shell patches it if it
// differs from what was read, with the resource version as a precondition, and
// emits an Event when the Ready condition's reason changed.
//
// The observed generation is that of the conditions, which the inner reconciler
// sets only after it observed everything: one that fails before that leaves it. Where
// reconciling fails for longer than failureGrace, the condition ReconcileFailing says
// since when and why. It is written once, not at each retry.
//
// A conflict is no error: the object is read and reconciled again. A version that is known to be outdated, because this
// shell wrote the object or somebody else was first, is not reconciled: what would be written is refused anyway. It is
// looked at again after ConflictDelay, and at once when the cache receives the newer one.
func Shell[T Object](c client.Client, recorder events.EventRecorder,
	inner reconcile.ObjectReconciler[T]) reconcile.Reconciler {
	return reconcile.AsReconciler(c, &shell[T]{client: c, recorder: recorder, inner: inner, now: time.Now,
		outdated: newOutdated()})
}

type shell[T Object] struct {
	client   client.Client
	recorder events.EventRecorder
	inner    reconcile.ObjectReconciler[T]
	now      func() time.Time
	failures failures
	outdated outdated
}

func (s *shell[T]) Reconcile(ctx context.Context, obj T) (ctrl.Result, error) {
	if s.outdated.has(obj, s.now()) {
		return ctrl.Result{RequeueAfter: ConflictDelay}, nil
	}
	read, before := obj.GetResourceVersion(), obj.DeepCopyObject().(T)
	result, err := s.inner.Reconcile(ctx, obj)
	if !apierrors.IsConflict(err) {
		s.reportFailure(obj, err)
	}
	newest, patchErr := s.patchStatus(ctx, before, obj)
	if newest != read || s.isConflictOf(obj, err) || apierrors.IsConflict(patchErr) {
		s.outdated.note(obj, read, s.now())
	}
	failed := errors.Join(ignoreConflict(err), ignoreConflict(patchErr))
	if isConflict := apierrors.IsConflict(err) || apierrors.IsConflict(patchErr); isConflict && failed == nil {
		return ctrl.Result{RequeueAfter: ConflictDelay}, nil
	}
	return result, failed
}

// ignoreConflict returns nil for a conflict: the next reconcile reads the newer
// object.
func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// isConflictOf tells whether an error is a conflict about the object itself, and not about another one.
func (s *shell[T]) isConflictOf(obj T, err error) bool {
	status, is := errors.AsType[*apierrors.StatusError](err)
	if !is || !apierrors.IsConflict(err) || status.ErrStatus.Details == nil {
		return false
	}
	kind, err := s.client.GroupVersionKindFor(obj)
	if err != nil {
		return false
	}
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return status.ErrStatus.Details.Name == obj.GetName() && status.ErrStatus.Details.Kind == resource.Resource
}

// ConflictDelay gives the cache time to receive the write that came first.
const ConflictDelay = 200 * time.Millisecond

// failureGrace is how long an object may fail to be reconciled before its status
// says so: most failures are gone with the first retries.
const failureGrace = 10 * time.Second

// failures remembers since when each object fails to be reconciled.
type failures struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

// note takes in the result of a reconcile, and returns since when they fail.
func (f *failures) note(object types.UID, err error, now time.Time) time.Time {
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

// reportFailure sets the condition ReconcileFailing, or removes it. The message of
// the first failure stays: errors differ in ports and times, and a write at each
// retry would bring the object back here at once.
func (s *shell[T]) reportFailure(obj T, err error) {
	all := obj.StatusConditions()
	now := s.now()
	since := s.failures.note(obj.GetUID(), err, now)
	switch {
	case err == nil:
		meta.RemoveStatusCondition(all, v1alpha1.ConditionReconcileFailing)
	case now.Sub(since) < failureGrace, conditions.IsTrue(*all, v1alpha1.ConditionReconcileFailing):
	default:
		// The generation is not observed, so the condition does not name it.
		meta.SetStatusCondition(all, metav1.Condition{
			Type: v1alpha1.ConditionReconcileFailing, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonReconcileError, LastTransitionTime: metav1.NewTime(since.Truncate(time.Second)),
			Message: phrase.Truncate("tried again with growing delays: "+err.Error(), maxFailure),
		})
	}
}

const maxFailure = 1024

// patchStatus returns the newest resource version that is known of the object.
func (s *shell[T]) patchStatus(ctx context.Context, before, after T) (string, error) {
	after.SetObservedGeneration(conditions.ObservedGeneration(*after.StatusConditions()))
	desired := after.DeepCopyObject().(T)
	// The inner reconciler may have written the object, which moved its
	// resource version; its metadata is not for the shell to change.
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

// emitEvent emits an Event when the reason of the Ready condition changed.
func (s *shell[T]) emitEvent(before, after T) {
	was := conditions.Get(*before.StatusConditions(), v1alpha1.ConditionReady)
	is := conditions.Get(*after.StatusConditions(), v1alpha1.ConditionReady)
	if s.recorder == nil || is.Reason == was.Reason && is.Status == was.Status {
		return
	}
	emit(s.recorder, after, conditions.ReadyEventType(*after.StatusConditions()), is.Reason, "Reconcile", is.Message)
}

// Result is what a reconciler returns: an error is retried with back-off,
// otherwise the object is looked at again after recheck, if that is not zero.
func Result(recheck time.Duration, err error) (ctrl.Result, error) {
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: recheck}, nil
}
