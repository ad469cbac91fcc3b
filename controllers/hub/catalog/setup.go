// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// countDelay is how long changes of clusters are collected before the clusters are counted. A
// rollout over a large fleet causes many changes, and each count reads from the registry.
const countDelay = 2 * time.Second

// Add adds the controller to a manager. The manager's cache must have kit.IndexOperator.
// concurrency is the number of sources that are read at the same time.
func Add(mgr ctrl.Manager, source Source, concurrency int) error {
	recorder := mgr.GetEventRecorder("bellwether-catalog")
	r := &Reconciler{Client: mgr.GetClient(), Source: source, Events: recorder, Now: time.Now}
	err := ctrl.NewControllerManagedBy(mgr).Named("catalog").
		For(&v1alpha1.OperatorCatalog{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&v1alpha1.ManagedOperator{}, kit.EnqueueAfterDelay(countDelay, mapOperatorToCatalog),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.OperatorInstall{}, kit.EnqueueAfterDelay(countDelay, r.mapInstallToCatalog),
			builder.WithPredicates(installedChanged)).
		WithOptions(kit.Options(concurrency)).
		Complete(kit.WrapReconciler(mgr.GetClient(), recorder, r))
	if err != nil {
		return fmt.Errorf("build catalog controller: %w", err)
	}
	return nil
}

// mapOperatorToCatalog returns a request for the catalog that a ManagedOperator names.
func mapOperatorToCatalog(_ context.Context, o client.Object) []reconcile.Request {
	operator := o.(*v1alpha1.ManagedOperator)
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: operator.Namespace,
		Name: operator.Spec.Catalog.Name}}}
}

// mapInstallToCatalog returns a request for the catalog of an OperatorInstall's ManagedOperator.
func (r *Reconciler) mapInstallToCatalog(ctx context.Context, o client.Object) []reconcile.Request {
	ref := o.(*v1alpha1.OperatorInstall).Spec.Operator
	operator := &v1alpha1.ManagedOperator{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, operator); err != nil {
		return nil // the ManagedOperator was deleted, so it uses no catalog
	}
	return mapOperatorToCatalog(ctx, operator)
}

// installedChanged selects updates that change the installed bundle or
// version of an OperatorInstall.
var installedChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return readInstalled(e.ObjectOld.(*v1alpha1.OperatorInstall)) !=
		readInstalled(e.ObjectNew.(*v1alpha1.OperatorInstall))
}}
