// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package changeevents

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/alerts/changes"
	"github.com/bellwether-dev/bellwether/alerts/pagerduty"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// Options of the controller.
type Options struct {
	// Concurrency is the number of rollouts whose events are sent at the same time.
	Concurrency int
	// PagerDuty are the hosts that receivers may name in addition to PagerDuty's own hosts.
	PagerDuty pagerduty.Hosts
}

// Add adds the controller to a manager. The manager's cache must have kit.IndexOperator. The
// controller runs on the leader only.
func Add(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Now: time.Now, PagerDuty: o.PagerDuty,
		Secrets: kit.PagingSecrets{Live: mgr.GetAPIReader()}, Events: mgr.GetEventRecorder("bellwether-changeevents")}
	err := ctrl.NewControllerManagedBy(mgr).Named("changeevents").
		For(&v1alpha1.OperatorRollout{}).
		Watches(&v1alpha1.PagingPolicy{}, handler.EnqueueRequestsFromMapFunc(r.mapToRecentRollouts),
			builder.WithPredicates(changeEventsChanged)).
		WithOptions(kit.Options(o.Concurrency)).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
	if err != nil {
		return fmt.Errorf("build change event controller: %w", err)
	}
	return nil
}

// changeEventsChanged selects updates of policies that can change which
// change events they request.
var changeEventsChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*v1alpha1.PagingPolicy), e.ObjectNew.(*v1alpha1.PagingPolicy)
	return before.Generation != after.Generation ||
		!equality.Semantic.DeepEqual(before.Status.ChangeEvents, after.Status.ChangeEvents)
}}

// mapToRecentRollouts returns requests for the rollouts that can have an event that
// is not too old to be sent.
func (r *Reconciler) mapToRecentRollouts(ctx context.Context, _ client.Object) []reconcile.Request {
	now := r.Now()
	return kit.ListRequests(ctx, r.Client, &v1alpha1.OperatorRolloutList{}, func(ro *v1alpha1.OperatorRollout) bool {
		return ro.Status.EndedAt == nil || now.Sub(ro.Status.EndedAt.Time) <= changes.MaxAge
	})
}
