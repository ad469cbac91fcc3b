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
	"github.com/bellwether-dev/bellwether/controllers/changeevents/plan"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

const (
	// deliveryTimeout bounds the claim of an event, its sending and the write of the result together. It is less than
	// the 30 seconds that a manager gives its controllers to end, and Kubernetes its pod.
	deliveryTimeout = 25 * time.Second
	// recordTime is the part of it that is left for the result where the claim and PagerDuty take long.
	recordTime = 5 * time.Second
)

// recordInterval is after which time the result is written again where another writer of
// the status came before.
const recordInterval = 100 * time.Millisecond

// carryOut writes what was decided, which claims the next event, sends that event and writes down the result. A hub
// that is told to end finishes all of it: a claim whose write is cut off may have been applied although nothing was
// sent, and the next hub cannot tell.
//
// A manager that is told to end waits for that with its Lease in hand. One that has lost its Lease does not wait: the
// process ends.
func (r *Reconciler) carryOut(ctx context.Context, ro *v1alpha1.OperatorRollout, next plan.Decision) (ctrl.Result,
	error) {
	recording, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliveryTimeout)
	defer cancel()
	sending, cancel := context.WithTimeout(recording, deliveryTimeout-recordTime)
	defer cancel()
	// The rollout must be as it was read, so that of two hubs only one sends.
	err := r.write(sending, ro, next.Deliveries)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: kit.ConflictDelay}, nil
	}
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.notify(ro, plan.Lost(ro.Status.ChangeEvents, next.Deliveries))
	if next.Send == nil {
		return kit.Result(next.RecheckAfter, nil)
	}
	s := *next.Send
	result := r.send(sending, ro, s)
	log.FromContext(ctx).Info("Change event", "transition", s.Transition, "receiver", s.Receiver.ID,
		"state", result.State, "message", result.Message)
	if err := r.record(recording, client.ObjectKeyFromObject(ro), ro.UID, s, result); err != nil {
		return ctrl.Result{}, fmt.Errorf("write down that change event %s is %s: %w", s.Transition, result.State, err)
	}
	after, _ := plan.Record(next.Deliveries, s, result)
	r.notify(ro, plan.Lost(next.Deliveries, after))
	return kit.Result(next.RecheckAfter, nil)
}

// send sends an event. Its result has no routing key, and says nothing of the Secret: who
// sees the rollout need not be who may see the policy.
func (r *Reconciler) send(ctx context.Context, ro *v1alpha1.OperatorRollout, s plan.Send) plan.Result {
	value, problem := r.Secrets.Read(ctx, s.Receiver.Namespace, s.Receiver.PagerDuty.RoutingKey)
	if problem != "" || paging.FormatRoutingKey.Check(value) != "" {
		return plan.Result{State: v1alpha1.ChangeEventWaiting,
			Message: "the routing key cannot be used: the condition Ready of the PagingPolicy says why"}
	}
	service, err := r.PagerDuty.Client(s.Receiver.PagerDuty.URL)
	if err != nil {
		return plan.Result{State: v1alpha1.ChangeEventRefused, Message: err.Error()}
	}
	before, err := r.versionBefore(ctx, ro)
	if err != nil {
		return plan.Result{State: v1alpha1.ChangeEventWaiting, Message: err.Error()}
	}
	t, known := changes.Describe(ro, before, s.Transition, s.At)
	if !known {
		return plan.Result{State: v1alpha1.ChangeEventGivenUp, Message: "the rollout does not tell of it any more"}
	}
	return resultOf(service.Change(ctx, string(paging.Trim(value)), pagerduty.Change{Summary: t.Summary,
		Source: ro.Namespace + "/" + ro.Spec.Operator.Name, Time: t.At.Time, Details: t.Details}))
}

// resultOf says what an error of sending means. What is neither refused nor certainly not
// accepted may have been accepted.
func resultOf(err error) plan.Result {
	switch {
	case err == nil:
		return plan.Result{State: v1alpha1.ChangeEventSent}
	case errors.Is(err, pagerduty.ErrRefused):
		return plan.Result{State: v1alpha1.ChangeEventRefused, Message: err.Error()}
	case errors.Is(err, pagerduty.ErrNotAccepted):
		return plan.Result{State: v1alpha1.ChangeEventWaiting, Message: err.Error()}
	}
	return plan.Result{State: v1alpha1.ChangeEventUnknown, Message: err.Error()}
}

// record writes the result into the rollout as it is now, and tries until the context
// ends: a result that is lost is an event of which nobody knows whether it was accepted.
func (r *Reconciler) record(ctx context.Context, key types.NamespacedName, uid types.UID, s plan.Send,
	result plan.Result) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, recordInterval, true, func(ctx context.Context) (bool, error) {
		last = r.recordOnce(ctx, key, uid, s, result)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

func (r *Reconciler) recordOnce(ctx context.Context, key types.NamespacedName, uid types.UID, s plan.Send,
	result plan.Result) error {
	var ro v1alpha1.OperatorRollout
	if err := r.Live.Get(ctx, key, &ro); err != nil {
		return client.IgnoreNotFound(err)
	}
	deliveries, changed := plan.Record(ro.Status.ChangeEvents, s, result)
	if ro.UID != uid || !changed {
		return nil
	}
	return client.IgnoreNotFound(r.write(ctx, &ro, deliveries))
}

// deliveriesOnly is the part of a rollout's status that ChangeEventManager owns.
type deliveriesOnly struct {
	ChangeEvents []v1alpha1.ChangeEventDelivery `json:"changeEvents,omitempty"`
}

// write applies the deliveries to a rollout, provided that it is as it was read.
func (r *Reconciler) write(ctx context.Context, ro *v1alpha1.OperatorRollout,
	deliveries []v1alpha1.ChangeEventDelivery) error {
	part := kit.Part{Object: ro, Status: deliveriesOnly{ChangeEvents: deliveries}}
	return part.ApplyStatus(ctx, r.Client, kit.ChangeEventManager)
}
