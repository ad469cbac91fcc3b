// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package changeevents sends change events of rollouts to PagerDuty, as PagingPolicies request.
// Package alerts/changes selects the next event and describes the change. This package must not
// send an event before the status of the rollout names the event as being sent.
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
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// Roles that the owners of namespaces bind allow the hub to read the Secrets of policies.
//
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorrollouts,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorrollouts/status,verbs=patch
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorinstalls,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=pagingpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=managedoperators,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorslos,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler sends the change events of one rollout, one event in each pass.
type Reconciler struct {
	Client client.Client
	// Live reads from the API server, without the cache.
	Live    client.Reader
	Secrets kit.PagingSecrets
	Events  events.EventRecorder
	// PagerDuty are the hosts that receivers may name in addition to PagerDuty's own hosts.
	PagerDuty pagerduty.Hosts
	// Now is the hub's clock.
	Now func() time.Time
}

// Reconcile sends the next change event of one rollout, if there is one.
func (r *Reconciler) Reconcile(ctx context.Context, ro *v1alpha1.OperatorRollout) (ctrl.Result, error) {
	if ro.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	in, err := r.observe(ctx, ro)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe change events: %w", err)
	}
	next := changes.Next(in)
	if equality.Semantic.DeepEqual(next.Deliveries, ro.Status.ChangeEvents) {
		return kit.NewResult(next.RecheckAfter, nil)
	}
	select {
	case <-ctx.Done(): // during a shutdown no delivery starts; the next hub decides again
		return ctrl.Result{}, nil
	default:
	}
	return r.deliverNext(ctx, ro, next)
}

// observe gathers the input of changes.Next: the recorded deliveries, the receivers, and the
// transitions of the rollout if there are receivers.
func (r *Reconciler) observe(ctx context.Context, ro *v1alpha1.OperatorRollout) (changes.Input, error) {
	in := changes.Input{Now: r.Now(), Deliveries: ro.Status.ChangeEvents}
	var policies v1alpha1.PagingPolicyList
	if err := r.Client.List(ctx, &policies, client.UnsafeDisableDeepCopy); err != nil {
		return in, fmt.Errorf("list PagingPolicies: %w", err)
	}
	operator, err := r.readOperator(ctx, ro)
	if err != nil {
		return in, err
	}
	if in.Receivers = changes.Receivers(policies.Items, operator); len(in.Receivers) > 0 {
		in.Transitions = changes.Transitions(ro, "")
	}
	return in, nil
}

// readOperator returns the data of the rollout's operator that determines the receivers of its
// alerts. The ManagedOperator itself might already be deleted.
func (r *Reconciler) readOperator(ctx context.Context, ro *v1alpha1.OperatorRollout) (paging.Operator, error) {
	var slos v1alpha1.OperatorSLOList
	if err := r.Client.List(ctx, &slos, client.InNamespace(ro.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return paging.Operator{}, fmt.Errorf("list OperatorSLOs: %w", err)
	}
	var operator v1alpha1.ManagedOperator
	operator.Namespace, operator.Name = ro.Namespace, ro.Spec.Operator.Name
	return paging.Operators([]v1alpha1.ManagedOperator{operator}, slos.Items)[0], nil
}

// readVersionBefore returns the version that clusters ran before the rollout.
func (r *Reconciler) readVersionBefore(ctx context.Context, ro *v1alpha1.OperatorRollout) (string, error) {
	var rollouts v1alpha1.OperatorRolloutList
	namespace := client.InNamespace(ro.Namespace)
	if err := r.Client.List(ctx, &rollouts, namespace, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list OperatorRollouts: %w", err)
	}
	var installs v1alpha1.OperatorInstallList
	ofOperator := kit.MatchOperator(v1alpha1.OperatorReference{Namespace: ro.Namespace, Name: ro.Spec.Operator.Name})
	if err := r.Client.List(ctx, &installs, ofOperator, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list OperatorInstalls: %w", err)
	}
	return changes.VersionBefore(ro, changes.VersionsBefore(rollouts.Items, installs.Items)[string(ro.UID)]), nil
}

// emitLostEvents emits an Event for each change event that PagerDuty might not have received.
func (r *Reconciler) emitLostEvents(ro *v1alpha1.OperatorRollout, lost []v1alpha1.ChangeEventDelivery) {
	for _, d := range lost {
		reason := cmp.Or(d.Message, "PagerDuty did not accept it within an hour")
		kit.Emit(r.Events, ro, "ChangeEvent"+string(d.State), "Send",
			"The change event %s was not sent to %s, or might not have been sent, and is not sent again: %s",
			d.Transition, d.Receiver, reason)
	}
}
