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
	"github.com/bellwether-dev/bellwether/engines/claim"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// gatherDelay is how long changes of OperatorInstalls are gathered: each looks at all those of an operator.
const gatherDelay = 500 * time.Millisecond

// Add adds the controller to a manager whose cache has kit.IndexOperator.
// concurrency is the number of operators reconciled at a time.
func Add(mgr ctrl.Manager, packages Packages, concurrency int) error {
	recorder := mgr.GetEventRecorder("bellwether-operator")
	r := &Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Packages: packages, Events: recorder,
		Now: time.Now}
	err := ctrl.NewControllerManagedBy(mgr).Named("operator").
		For(&v1alpha1.ManagedOperator{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Owns(&v1alpha1.OperatorRollout{}).
		Watches(&v1alpha1.ManagedOperator{}, handler.EnqueueRequestsFromMapFunc(r.operatorsThatMeet),
			builder.WithPredicates(claimChanged)).
		Watches(&v1alpha1.FleetAccess{}, handler.EnqueueRequestsFromMapFunc(r.allOperators)).
		Watches(&v1alpha1.FleetFreeze{}, handler.EnqueueRequestsFromMapFunc(r.allOperators)).
		Watches(&v1alpha1.OperatorCatalog{}, handler.EnqueueRequestsFromMapFunc(r.operatorsOfCatalog)).
		Watches(&v1alpha1.FleetCluster{}, handler.EnqueueRequestsFromMapFunc(r.operatorsOfCluster),
			builder.WithPredicates(clusterChanged)).
		Watches(&v1alpha1.OperatorInstall{}, kit.Gather(gatherDelay, operatorOfInstall),
			builder.WithPredicates(installChanged)).
		WithOptions(kit.Options(concurrency)).
		Complete(kit.Shell(mgr.GetClient(), recorder, r))
	if err != nil {
		return fmt.Errorf("build operator controller: %w", err)
	}
	return nil
}

func operatorOfInstall(_ context.Context, obj client.Object) []reconcile.Request {
	operator := obj.(*v1alpha1.OperatorInstall).Spec.Operator
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: operator.Namespace,
		Name: operator.Name}}}
}

// operatorsThatMeet returns the other operators that claim what this one claims.
func (r *Reconciler) operatorsThatMeet(ctx context.Context, obj client.Object) []reconcile.Request {
	own := claim.Of(obj.(*v1alpha1.ManagedOperator))
	return r.findOperators(ctx, func(o *v1alpha1.ManagedOperator) bool {
		return o.UID != obj.GetUID() && own.Meets(claim.Of(o)) != nil
	})
}

// claimChanged selects updates that change what an operator claims.
var claimChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return !reflect.DeepEqual(claim.Of(e.ObjectOld.(*v1alpha1.ManagedOperator)),
		claim.Of(e.ObjectNew.(*v1alpha1.ManagedOperator)))
}}

func (r *Reconciler) allOperators(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.findOperators(ctx, func(*v1alpha1.ManagedOperator) bool { return true })
}

func (r *Reconciler) operatorsOfCatalog(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.findOperators(ctx, func(o *v1alpha1.ManagedOperator) bool {
		return o.Spec.Catalog.Name == obj.GetName()
	}, client.InNamespace(obj.GetNamespace()))
}

// operatorsOfCluster returns the operators that select the cluster, and those
// that are still installed on it.
func (r *Reconciler) operatorsOfCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.findOperators(ctx, func(o *v1alpha1.ManagedOperator) bool {
		selector, err := metav1.LabelSelectorAsSelector(&o.Spec.ClusterSelector)
		return err == nil && selector.Matches(labels.Set(obj.GetLabels()))
	})
	return append(requests, kit.RequestsForInstallsOn(ctx, r.Client, obj.GetName(), operatorOfInstall)...)
}

func (r *Reconciler) findOperators(ctx context.Context, which func(*v1alpha1.ManagedOperator) bool,
	in ...client.ListOption) []reconcile.Request {
	return kit.Requests(ctx, r.Client, &v1alpha1.ManagedOperatorList{}, which, in...)
}

// clusterChanged selects updates that change selection or counts. Other updates
// of a cluster would reconcile every operator of the fleet.
var clusterChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*v1alpha1.FleetCluster), e.ObjectNew.(*v1alpha1.FleetCluster)
	return !maps.Equal(before.Labels, after.Labels) ||
		rollouts.PausedReason(before) != rollouts.PausedReason(after) ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		rollouts.ObserveCluster(before).Online != rollouts.ObserveCluster(after).Online
}}

// installChanged selects updates that change what this controller reads of an
// OperatorInstall.
var installChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*v1alpha1.OperatorInstall), e.ObjectNew.(*v1alpha1.OperatorInstall)
	return !reflect.DeepEqual(observeInstall(before), observeInstall(after))
}}
