// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package changeevents

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
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

// recording is how often the result is written again, which other writers of the status
// may come before.
var recording = wait.Backoff{Steps: 12, Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.2, Cap: time.Second}

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

// record writes the result into the rollout as it is now.
func (r *Reconciler) record(ctx context.Context, key types.NamespacedName, uid types.UID, s plan.Send,
	result plan.Result) error {
	retriable := func(err error) bool { return ctx.Err() == nil && !apierrors.IsNotFound(err) }
	err := retry.OnError(recording, retriable, func() error {
		var ro v1alpha1.OperatorRollout
		if err := r.Live.Get(ctx, key, &ro); err != nil {
			return err
		}
		deliveries, changed := plan.Record(ro.Status.ChangeEvents, s, result)
		if ro.UID != uid || !changed {
			return nil
		}
		return r.write(ctx, &ro, deliveries)
	})
	return client.IgnoreNotFound(err)
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
