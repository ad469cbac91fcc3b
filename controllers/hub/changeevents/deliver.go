// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package changeevents

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/alerts/changes"
	"github.com/bellwether-dev/bellwether/alerts/pagerduty"
	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

const (
	// deliveryTimeout limits the claim of an event, its sending and the write of the result
	// together. It is shorter than the 30 seconds that a manager gives its controllers to end,
	// and that Kubernetes gives the manager's pod.
	deliveryTimeout = 25 * time.Second
	// recordTime is the part of deliveryTimeout that is reserved for the write of the result.
	recordTime = 5 * time.Second
)

// recordInterval is the delay before the result is written again after a failed write.
const recordInterval = 100 * time.Millisecond

// deliverNext writes the decided deliveries, which claim the next event, sends that event and
// records the result. It finishes all of that even if the hub is shutting down: if the write of
// a claim is interrupted, the claim might have been applied although nothing was sent, and the
// next hub cannot detect this.
//
// During a shutdown, a manager keeps its Lease and waits for this function. A manager that has
// lost its Lease does not wait: the process ends.
func (r *Reconciler) deliverNext(ctx context.Context, ro *v1alpha1.OperatorRollout, next changes.Decision) (ctrl.Result,
	error) {
	recordCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliveryTimeout)
	defer cancel()
	sendCtx, cancel := context.WithTimeout(recordCtx, deliveryTimeout-recordTime)
	defer cancel()
	// The write requires an unchanged rollout, so only one of two hubs sends the event.
	err := r.applyDeliveries(sendCtx, ro, next.Deliveries)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: kit.ConflictDelay}, nil
	}
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.emitLostEvents(ro, changes.ListLost(ro.Status.ChangeEvents, next.Deliveries))
	if next.Send == nil {
		return kit.NewResult(next.RecheckAfter, nil)
	}
	s := *next.Send
	result := r.sendEvent(sendCtx, ro, s)
	log.FromContext(ctx).Info("Change event", "transition", s.Transition, "receiver", s.Receiver.ID,
		"state", result.State, "message", result.Message)
	if err := r.recordResult(recordCtx, client.ObjectKeyFromObject(ro), ro.UID, s, result); err != nil {
		return ctrl.Result{}, fmt.Errorf("write down that change event %s is %s: %w", s.Transition, result.State, err)
	}
	after, _ := changes.Record(next.Deliveries, s, result)
	r.emitLostEvents(ro, changes.ListLost(next.Deliveries, after))
	return kit.NewResult(next.RecheckAfter, nil)
}

// sendEvent sends an event to PagerDuty. The result contains no routing key and no information
// about the Secret, because users who can read the rollout might have no access to the policy.
func (r *Reconciler) sendEvent(ctx context.Context, ro *v1alpha1.OperatorRollout, s changes.Send) changes.Result {
	value, problem := r.Secrets.Read(ctx, s.Receiver.Namespace, s.Receiver.PagerDuty.RoutingKey)
	if problem != "" || paging.FormatRoutingKey.Check(value) != "" {
		return changes.Result{State: v1alpha1.ChangeEventWaiting,
			Message: "the routing key cannot be used: the condition Ready of the PagingPolicy says why"}
	}
	service, err := r.PagerDuty.Client(s.Receiver.PagerDuty.URL)
	if err != nil {
		return changes.Result{State: v1alpha1.ChangeEventRefused, Message: err.Error()}
	}
	previousVersion, err := r.readVersionBefore(ctx, ro)
	if err != nil {
		return changes.Result{State: v1alpha1.ChangeEventWaiting, Message: err.Error()}
	}
	t, known := changes.Describe(ro, previousVersion, s.Transition, s.At)
	if !known {
		return changes.Result{State: v1alpha1.ChangeEventGivenUp,
			Message: "the status of the rollout does not contain the transition"}
	}
	return toResult(service.Change(ctx, string(paging.Trim(value)), pagerduty.Change{Summary: t.Summary,
		Source: ro.Namespace + "/" + ro.Spec.Operator.Name, Time: t.At.Time, Details: t.Details}))
}

// toResult converts an error of sending to a result. If the error does not prove that
// PagerDuty refused or did not accept the event, the state is unknown, because the event
// might have been accepted.
func toResult(err error) changes.Result {
	switch {
	case err == nil:
		return changes.Result{State: v1alpha1.ChangeEventSent}
	case errors.Is(err, pagerduty.ErrRefused):
		return changes.Result{State: v1alpha1.ChangeEventRefused, Message: err.Error()}
	case errors.Is(err, pagerduty.ErrNotAccepted):
		return changes.Result{State: v1alpha1.ChangeEventWaiting, Message: err.Error()}
	}
	return changes.Result{State: v1alpha1.ChangeEventUnknown, Message: err.Error()}
}

// recordResult writes the result into the newest version of the rollout. It retries until the
// context ends, because without the result it is unknown whether the event was accepted.
func (r *Reconciler) recordResult(ctx context.Context, key types.NamespacedName, uid types.UID, s changes.Send,
	result changes.Result) error {
	var lastErr error
	err := wait.PollUntilContextCancel(ctx, recordInterval, true, func(ctx context.Context) (bool, error) {
		lastErr = r.tryRecordResult(ctx, key, uid, s, result)
		return lastErr == nil, nil
	})
	if err != nil {
		return errors.Join(err, lastErr)
	}
	return nil
}

// tryRecordResult makes one attempt to write the result. A rollout that was deleted or
// replaced needs no result.
func (r *Reconciler) tryRecordResult(ctx context.Context, key types.NamespacedName, uid types.UID, s changes.Send,
	result changes.Result) error {
	var ro v1alpha1.OperatorRollout
	if err := r.Live.Get(ctx, key, &ro); err != nil {
		return client.IgnoreNotFound(err)
	}
	deliveries, changed := changes.Record(ro.Status.ChangeEvents, s, result)
	if ro.UID != uid || !changed {
		return nil
	}
	return client.IgnoreNotFound(r.applyDeliveries(ctx, &ro, deliveries))
}

// deliveriesOnly is the part of a rollout's status that ChangeEventManager owns.
type deliveriesOnly struct {
	ChangeEvents []v1alpha1.ChangeEventDelivery `json:"changeEvents,omitempty"`
}

// applyDeliveries writes the deliveries into a rollout. It returns a conflict if the rollout was
// changed since it was read.
func (r *Reconciler) applyDeliveries(ctx context.Context, ro *v1alpha1.OperatorRollout,
	deliveries []v1alpha1.ChangeEventDelivery) error {
	part := kit.Part{Object: ro, Status: deliveriesOnly{ChangeEvents: deliveries}}
	return part.ApplyStatus(ctx, r.Client, kit.ChangeEventManager)
}
