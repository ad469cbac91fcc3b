// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package changeevents

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/changes"
	"github.com/bellwether-dev/bellwether/alerts/pagerduty"
	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	apply "github.com/bellwether-dev/bellwether/apis/v1alpha1/applyconfiguration/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/changeevents/plan"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// deliveryTimeout is less than the time that a manager gives its controllers to end. The
// client gives up on PagerDuty before that.
const deliveryTimeout = 25 * time.Second

// recordInterval is after which time the result is written again where another writer of
// the status came before.
const recordInterval = 100 * time.Millisecond

// send sends an event. Its result has no routing key, and says nothing of the Secret: who
// sees the rollout need not be who may see the policy.
func (r *Reconciler) send(ctx context.Context, ro *v1alpha1.OperatorRollout, s plan.Send) plan.Result {
	value, problem := r.Secrets.Read(ctx, s.Receiver.Namespace, s.Receiver.PagerDuty.RoutingKey)
	if problem != "" || paging.FormatRoutingKey.Check(value) != "" {
		return plan.Result{State: v1alpha1.ChangeEventWaiting,
			Message: "the routing key cannot be used: the condition Ready of the PagingPolicy says why"}
	}
	service, err := pagerduty.New(s.Receiver.PagerDuty.URL)
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

// write applies the deliveries to a rollout, provided that it is as it was read.
func (r *Reconciler) write(ctx context.Context, ro *v1alpha1.OperatorRollout,
	deliveries []v1alpha1.ChangeEventDelivery) error {
	status := apply.OperatorRolloutStatus()
	for _, d := range deliveries {
		config, err := kit.Configuration[apply.ChangeEventDeliveryApplyConfiguration](d)
		if err != nil {
			return err
		}
		status.WithChangeEvents(config)
	}
	config := apply.OperatorRollout(ro.Name, ro.Namespace).WithUID(ro.UID).WithResourceVersion(ro.ResourceVersion).
		WithStatus(status)
	return r.Client.Status().Apply(ctx, config, kit.ChangeEventManager, client.ForceOwnership)
}
