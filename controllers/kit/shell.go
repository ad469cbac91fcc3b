// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kit is the small shell around every reconciler: it reads the object,
// lets the reconciler work on a copy, patches the status once if it changed and
// tells of it in an Event. It decides nothing.
package kit

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Object is a kind of this project: it has status conditions.
type Object interface {
	client.Object
	// StatusConditions returns the address of the object's conditions.
	StatusConditions() *[]metav1.Condition
	// SetObservedGeneration records in the status that the generation was seen.
	SetObservedGeneration(generation int64)
}

// Shell makes a reconcile.Reconciler of an object reconciler. The inner
// reconciler changes the object's status in memory; the shell patches it if it
// differs from what was read, with the resource version as a precondition, and
// emits an Event when the Ready condition's reason changed.
//
// A conflict is no error: the object is read and reconciled again.
func Shell[T Object](c client.Client, recorder events.EventRecorder,
	inner reconcile.ObjectReconciler[T]) reconcile.Reconciler {
	return reconcile.AsReconciler(c, &shell[T]{client: c, recorder: recorder, inner: inner})
}

type shell[T Object] struct {
	client   client.Client
	recorder events.EventRecorder
	inner    reconcile.ObjectReconciler[T]
}

func (s *shell[T]) Reconcile(ctx context.Context, obj T) (ctrl.Result, error) {
	before := obj.DeepCopyObject().(T)
	result, err := s.inner.Reconcile(ctx, obj)
	if patchErr := s.patchStatus(ctx, before, obj); patchErr != nil && err == nil {
		err = patchErr
	}
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return result, err
}

// conflictDelay gives the cache time to catch up with the write that won.
const conflictDelay = 200 * time.Millisecond

func (s *shell[T]) patchStatus(ctx context.Context, before, after T) error {
	after.SetObservedGeneration(before.GetGeneration())
	desired := after.DeepCopyObject().(T)
	// The inner reconciler may have written the object, which moved its
	// resource version; its metadata is not for the shell to change.
	before.SetResourceVersion(after.GetResourceVersion())
	before.SetFinalizers(after.GetFinalizers())
	before.SetLabels(after.GetLabels())
	before.SetManagedFields(after.GetManagedFields())
	if equality.Semantic.DeepEqual(before, desired) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := s.client.Status().Patch(ctx, desired, patch); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("patch status: %w", err))
	}
	s.tell(before, desired)
	return nil
}

// tell emits an Event when the reason of the Ready condition changed.
func (s *shell[T]) tell(before, after T) {
	was := conditions.Get(*before.StatusConditions(), v1alpha1.ConditionReady)
	is := conditions.Get(*after.StatusConditions(), v1alpha1.ConditionReady)
	if s.recorder == nil || is.Reason == was.Reason && is.Status == was.Status {
		return
	}
	kind := corev1.EventTypeNormal
	if conditions.IsTrue(*after.StatusConditions(), v1alpha1.ConditionStalled) {
		kind = corev1.EventTypeWarning
	}
	s.recorder.Eventf(after, nil, kind, is.Reason, "Reconcile", "%s", is.Message)
}

// Result is what a reconciler returns: an error is retried with back-off,
// otherwise the object is looked at again after recheck, if that is not zero.
func Result(recheck time.Duration, err error) (ctrl.Result, error) {
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: recheck}, nil
}
