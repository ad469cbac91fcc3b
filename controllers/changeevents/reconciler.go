// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package changeevents sends change events of rollouts to PagerDuty, as PagingPolicies ask
// for. Package plan decides which one is next, package alerts/changes says what happened.
// It must not send an event that the status of the rollout does not name as being sent.
package changeevents

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/changes"
	"github.com/bellwether-dev/bellwether/alerts/pagerduty"
	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/changeevents/plan"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// Secrets of policies are read with Roles that the owners of namespaces bind.
//
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorrollouts,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorrollouts/status,verbs=patch
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorinstalls,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=pagingpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=managedoperators,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorslos,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler sends the change events of one rollout, one in each pass.
type Reconciler struct {
	Client client.Client
	// Live reads past the cache.
	Live    client.Reader
	Secrets kit.PagingSecrets
	Events  events.EventRecorder
	// PagerDuty are the hosts that receivers may name beside PagerDuty's own.
	PagerDuty pagerduty.Hosts
	// Now is the hub's clock.
	Now func() time.Time
}

// Reconcile sends the next event.
func (r *Reconciler) Reconcile(ctx context.Context, ro *v1alpha1.OperatorRollout) (ctrl.Result, error) {
	if ro.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	in, err := r.observe(ctx, ro)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe change events: %w", err)
	}
	next := plan.Next(in)
	if equality.Semantic.DeepEqual(next.Deliveries, ro.Status.ChangeEvents) {
		return kit.Result(next.RecheckAfter, nil)
	}
	select {
	case <-ctx.Done(): // a hub that is told to end begins nothing, and the next one decides anew
		return ctrl.Result{}, nil
	default:
	}
	return r.carryOut(ctx, ro, next)
}

func (r *Reconciler) observe(ctx context.Context, ro *v1alpha1.OperatorRollout) (plan.Input, error) {
	in := plan.Input{Now: r.Now(), Deliveries: ro.Status.ChangeEvents}
	var policies v1alpha1.PagingPolicyList
	if err := r.Client.List(ctx, &policies, client.UnsafeDisableDeepCopy); err != nil {
		return in, fmt.Errorf("list PagingPolicies: %w", err)
	}
	operator, err := r.operator(ctx, ro)
	if err != nil {
		return in, err
	}
	if in.Receivers = plan.Receivers(policies.Items, operator); len(in.Receivers) > 0 {
		in.Transitions = changes.Transitions(ro, "")
	}
	return in, nil
}

// operator is what the routes of alerts depend on. It may be gone, and its rollouts not yet.
func (r *Reconciler) operator(ctx context.Context, ro *v1alpha1.OperatorRollout) (paging.Operator, error) {
	var slos v1alpha1.OperatorSLOList
	if err := r.Client.List(ctx, &slos, client.InNamespace(ro.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return paging.Operator{}, fmt.Errorf("list OperatorSLOs: %w", err)
	}
	var of v1alpha1.ManagedOperator
	of.Namespace, of.Name = ro.Namespace, ro.Spec.Operator.Name
	return paging.Operators([]v1alpha1.ManagedOperator{of}, slos.Items)[0], nil
}

// versionBefore is the version that clusters ran before the rollout.
func (r *Reconciler) versionBefore(ctx context.Context, ro *v1alpha1.OperatorRollout) (string, error) {
	var rollouts v1alpha1.OperatorRolloutList
	namespace := client.InNamespace(ro.Namespace)
	if err := r.Client.List(ctx, &rollouts, namespace, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list OperatorRollouts: %w", err)
	}
	var installs v1alpha1.OperatorInstallList
	of := kit.OfOperator(v1alpha1.OperatorReference{Namespace: ro.Namespace, Name: ro.Spec.Operator.Name})
	if err := r.Client.List(ctx, &installs, of, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list OperatorInstalls: %w", err)
	}
	return changes.VersionBefore(ro, changes.VersionsBefore(rollouts.Items, installs.Items)[string(ro.UID)]), nil
}

// notify emits a Kubernetes event for each change event that PagerDuty may not have.
func (r *Reconciler) notify(ro *v1alpha1.OperatorRollout, lost []v1alpha1.ChangeEventDelivery) {
	for _, d := range lost {
		why := cmp.Or(d.Message, "PagerDuty did not accept it within an hour")
		kit.Emit(r.Events, ro, "ChangeEvent"+string(d.State), "Send",
			"The change event %s was not sent to %s, or may not have been, and is not sent again: %s", d.Transition,
			d.Receiver, why)
	}
}
