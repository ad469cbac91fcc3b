// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// gatherDelay is how long changes of OperatorInstalls are gathered. Each reconcile reads all
// OperatorInstalls of an operator.
const gatherDelay = 500 * time.Millisecond

// Add adds the controller to a manager. The manager's cache must have kit.IndexOperator.
// concurrency is the number of operators that are reconciled at the same time.
func Add(mgr ctrl.Manager, packages Packages, concurrency int) error {
	recorder := mgr.GetEventRecorder("bellwether-operator")
	r := &Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Packages: packages, Events: recorder,
		Now: time.Now}
	err := ctrl.NewControllerManagedBy(mgr).Named("operator").
		For(&v1alpha1.ManagedOperator{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Owns(&v1alpha1.OperatorRollout{}).
		Watches(&v1alpha1.ManagedOperator{}, handler.EnqueueRequestsFromMapFunc(r.mapOperatorToConflicting),
			builder.WithPredicates(claimChanged)).
		Watches(&v1alpha1.FleetAccess{}, handler.EnqueueRequestsFromMapFunc(r.mapToAllOperators)).
		Watches(&v1alpha1.FleetFreeze{}, handler.EnqueueRequestsFromMapFunc(r.mapToAllOperators)).
		Watches(&v1alpha1.OperatorCatalog{}, handler.EnqueueRequestsFromMapFunc(r.mapCatalogToOperators)).
		Watches(&v1alpha1.FleetCluster{}, handler.EnqueueRequestsFromMapFunc(r.mapClusterToOperators),
			builder.WithPredicates(clusterChanged)).
		Watches(&v1alpha1.OperatorInstall{}, kit.EnqueueAfterDelay(gatherDelay, mapInstallToOperator),
			builder.WithPredicates(installChanged)).
		WithOptions(kit.Options(concurrency)).
		Complete(kit.WrapReconciler(mgr.GetClient(), recorder, r))
	if err != nil {
		return fmt.Errorf("build operator controller: %w", err)
	}
	return nil
}

// mapInstallToOperator returns a request for the ManagedOperator of an OperatorInstall.
func mapInstallToOperator(_ context.Context, obj client.Object) []reconcile.Request {
	operator := obj.(*v1alpha1.OperatorInstall).Spec.Operator
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: operator.Namespace,
		Name: operator.Name}}}
}

// mapOperatorToConflicting returns requests for the other operators that claim a resource which
// this operator claims too.
func (r *Reconciler) mapOperatorToConflicting(ctx context.Context, obj client.Object) []reconcile.Request {
	ownClaim := engines.NewClaim(obj.(*v1alpha1.ManagedOperator))
	return r.listOperatorRequests(ctx, func(o *v1alpha1.ManagedOperator) bool {
		return o.UID != obj.GetUID() && ownClaim.FindConflict(engines.NewClaim(o)) != nil
	})
}

// claimChanged selects updates that change the claims of an operator.
var claimChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return !reflect.DeepEqual(engines.NewClaim(e.ObjectOld.(*v1alpha1.ManagedOperator)),
		engines.NewClaim(e.ObjectNew.(*v1alpha1.ManagedOperator)))
}}

// mapToAllOperators returns requests for all operators.
func (r *Reconciler) mapToAllOperators(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.listOperatorRequests(ctx, func(*v1alpha1.ManagedOperator) bool { return true })
}

// mapCatalogToOperators returns requests for the operators that use a catalog.
func (r *Reconciler) mapCatalogToOperators(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.listOperatorRequests(ctx, func(o *v1alpha1.ManagedOperator) bool {
		return o.Spec.Catalog.Name == obj.GetName()
	}, client.InNamespace(obj.GetNamespace()))
}

// mapClusterToOperators returns requests for the operators that select the cluster, and for the
// operators that are still installed on it.
func (r *Reconciler) mapClusterToOperators(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.listOperatorRequests(ctx, func(o *v1alpha1.ManagedOperator) bool {
		selector, err := metav1.LabelSelectorAsSelector(&o.Spec.ClusterSelector)
		return err == nil && selector.Matches(labels.Set(obj.GetLabels()))
	})
	return append(requests, kit.ListRequestsOfCluster(ctx, r.Client, obj.GetName(), mapInstallToOperator)...)
}

// listOperatorRequests returns requests for the operators that the function accepts.
func (r *Reconciler) listOperatorRequests(ctx context.Context, accepts func(*v1alpha1.ManagedOperator) bool,
	options ...client.ListOption) []reconcile.Request {
	return kit.ListRequests(ctx, r.Client, &v1alpha1.ManagedOperatorList{}, accepts, options...)
}

// clusterChanged selects updates that change the selection of clusters or the counts. Other
// updates of a cluster are frequent, and each would reconcile all operators of the fleet.
var clusterChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*v1alpha1.FleetCluster), e.ObjectNew.(*v1alpha1.FleetCluster)
	return !maps.Equal(before.Labels, after.Labels) ||
		rollouts.PausedReason(before) != rollouts.PausedReason(after) ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		rollouts.ObserveCluster(before).Online != rollouts.ObserveCluster(after).Online
}}

// installChanged selects updates of the OperatorInstall fields that this controller reads.
var installChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*v1alpha1.OperatorInstall), e.ObjectNew.(*v1alpha1.OperatorInstall)
	return !reflect.DeepEqual(observeInstall(before), observeInstall(after))
}}
