// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// countDelay is how long news of clusters are gathered before they are counted:
// a rollout over a large fleet brings many, and each count looks at the registry.
const countDelay = 2 * time.Second

// Add adds the controller to a manager whose cache has kit.IndexOperator.
// concurrency is how many sources are looked at at a time.
func Add(mgr ctrl.Manager, source Source, concurrency int) error {
	recorder := mgr.GetEventRecorder("bellwether-catalog")
	r := &Reconciler{Client: mgr.GetClient(), Source: source, Events: recorder, Now: time.Now}
	err := ctrl.NewControllerManagedBy(mgr).Named("catalog").
		For(&v1alpha1.OperatorCatalog{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&v1alpha1.ManagedOperator{}, later(ofOperator),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.OperatorInstall{}, later(r.ofInstall), builder.WithPredicates(installedChanged)).
		WithOptions(controller.Options{MaxConcurrentReconciles: max(concurrency, 1)}).
		Complete(kit.Shell(mgr.GetClient(), recorder, r))
	if err != nil {
		return fmt.Errorf("build catalog controller: %w", err)
	}
	return nil
}

// later asks for the catalog of an object after countDelay; what is asked for
// meanwhile is the same request.
func later(catalog func(context.Context, client.Object) (client.ObjectKey, bool)) handler.EventHandler {
	enqueue := func(ctx context.Context, o client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if key, ok := catalog(ctx, o); ok {
			q.AddAfter(reconcile.Request{NamespacedName: key}, countDelay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent,
			q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(ctx, e.Object, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent,
			q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(ctx, e.ObjectOld, q)
			enqueue(ctx, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent,
			q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(ctx, e.Object, q)
		},
	}
}

func ofOperator(_ context.Context, o client.Object) (client.ObjectKey, bool) {
	operator := o.(*v1alpha1.ManagedOperator)
	return client.ObjectKey{Namespace: operator.Namespace, Name: operator.Spec.Catalog.Name}, true
}

func (r *Reconciler) ofInstall(ctx context.Context, o client.Object) (client.ObjectKey, bool) {
	at := o.(*v1alpha1.OperatorInstall).Spec.Operator
	operator := &v1alpha1.ManagedOperator{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: at.Namespace, Name: at.Name}, operator); err != nil {
		return client.ObjectKey{}, false // its ManagedOperator is gone, and with it the use of a catalog
	}
	return ofOperator(ctx, operator)
}

// installedChanged passes what is counted of an OperatorInstall.
var installedChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return installed(e.ObjectOld.(*v1alpha1.OperatorInstall)) != installed(e.ObjectNew.(*v1alpha1.OperatorInstall))
}}
