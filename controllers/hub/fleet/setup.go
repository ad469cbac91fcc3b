// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// Options of the controller.
type Options struct {
	// Grace is added to the duration in a Lease.
	Grace time.Duration
	// Version is the version of the hub.
	Version string
	// Namespace is the hub's namespace, where it records operators that were left behind.
	Namespace string
	// Concurrency is the number of clusters that are reconciled at the same time.
	Concurrency int
}

// CacheByObject restricts the hub's cache to the objects of agents, for kinds such as Leases and
// Roles. The cache never reads other objects of these kinds.
func CacheByObject() map[client.Object]cache.ByObject {
	agents := cache.ByObject{Field: selectName(v1alpha1.AgentServiceAccount)}
	return map[client.Object]cache.ByObject{
		&coordinationv1.Lease{}:  {Field: selectName(v1alpha1.LeaseName)},
		&corev1.ResourceQuota{}:  agents,
		&corev1.ServiceAccount{}: agents,
		&rbacv1.Role{}:           agents,
		&rbacv1.RoleBinding{}:    agents,
		&v1alpha1.OperatorScan{}: {Field: selectName(v1alpha1.ScanName)},
	}
}

// selectName returns a field selector for objects with a name.
func selectName(name string) fields.Selector {
	return fields.OneTermEqualSelector("metadata.name", name)
}

// gatherDelay is how long changes of a cluster's OperatorInstalls are gathered before they are counted.
const gatherDelay = 500 * time.Millisecond

// Add adds the controller to a manager.
func Add(mgr ctrl.Manager, o Options) error {
	recorder := mgr.GetEventRecorder("bellwether-fleet")
	r := &Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: recorder, Namespace: o.Namespace,
		Grace: o.Grace, Version: o.Version, Now: time.Now}
	mapNamespaceToCluster := func(_ context.Context, obj client.Object) []reconcile.Request {
		return newRequests(obj.GetNamespace())
	}
	enqueue := handler.EnqueueRequestsFromMapFunc(mapNamespaceToCluster)
	enqueueAfterDelay := kit.EnqueueAfterDelay(gatherDelay, mapNamespaceToCluster)
	enqueueNamespace := handler.EnqueueRequestsFromMapFunc(
		func(_ context.Context, obj client.Object) []reconcile.Request { return newRequests(obj.GetName()) })
	err := ctrl.NewControllerManagedBy(mgr).Named("fleet").
		For(&v1alpha1.FleetCluster{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, deletionChanged,
			powerStateChanged))).
		WatchesMetadata(&corev1.Namespace{}, enqueueNamespace).
		Watches(&corev1.ServiceAccount{}, enqueue).
		Watches(&rbacv1.Role{}, enqueue).
		Watches(&rbacv1.RoleBinding{}, enqueue).
		Watches(&corev1.ResourceQuota{}, enqueue).
		WatchesMetadata(&v1alpha1.OperatorScan{}, enqueue, builder.WithPredicates(createdOrDeleted)).
		Watches(&v1alpha1.OperatorInstall{}, enqueueAfterDelay, builder.WithPredicates(installChanged)).
		Watches(&coordinationv1.Lease{}, r.newLeaseHandler()).
		Watches(&v1alpha1.FleetFreeze{}, handler.EnqueueRequestsFromMapFunc(r.mapToAllClusters)).
		WithOptions(kit.Options(o.Concurrency)).
		Complete(kit.WrapReconciler(mgr.GetClient(), recorder, r))
	if err != nil {
		return fmt.Errorf("build fleet controller: %w", err)
	}
	return nil
}

// mapToAllClusters returns requests for all clusters.
func (r *Reconciler) mapToAllClusters(ctx context.Context, _ client.Object) []reconcile.Request {
	return kit.ListRequests(ctx, r.Client, &v1alpha1.FleetClusterList{},
		func(*v1alpha1.FleetCluster) bool { return true })
}

// newRequests returns the request for the cluster of a namespace; nil if it is not
// the namespace of a cluster.
func newRequests(namespace string) []reconcile.Request {
	cluster, ok := strings.CutPrefix(namespace, v1alpha1.ClusterNamespace(""))
	if !ok || cluster == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: cluster}}}
}

// deletionChanged selects updates that start the deletion of an object.
var deletionChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
}}

// createdOrDeleted selects creations and deletions, and no updates.
var createdOrDeleted = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

// powerStateChanged selects updates of the power state that the source reports. This controller
// decides whether the cluster hibernates.
var powerStateChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before := e.ObjectOld.(*v1alpha1.FleetCluster).Status.Source
	after := e.ObjectNew.(*v1alpha1.FleetCluster).Status.Source
	if before == nil || after == nil {
		return before != after
	}
	return before.PowerState != after.PowerState || before.State != after.State ||
		!before.PowerStateSince.Equal(after.PowerStateSince)
}}

// installChanged selects updates that change the counts or the removal, so that progress reports
// of agents do not trigger a reconcile.
var installChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*v1alpha1.OperatorInstall), e.ObjectNew.(*v1alpha1.OperatorInstall)
	return isReady(before) != isReady(after) ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		len(before.Finalizers) != len(after.Finalizers) ||
		before.Spec.RemovalPolicy != after.Spec.RemovalPolicy
}}

// isReady reports whether the condition Ready of an OperatorInstall is true.
func isReady(o *v1alpha1.OperatorInstall) bool {
	return conditions.IsTrue(o.Status.Conditions, v1alpha1.ConditionReady)
}

// newLeaseHandler returns a handler that records each renewal of a Lease, and enqueues the
// cluster only if the renewal has new information. A fleet of ten thousand clusters sends a
// thousand renewals each second.
func (r *Reconciler) newLeaseHandler() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(obj client.Object, q queue) {
		for _, request := range newRequests(obj.GetNamespace()) {
			q.Add(request)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			r.recordRenewal(e.Object, !e.IsInInitialList)
			enqueue(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			wasOffline := r.recordRenewal(e.ObjectNew, true)
			before, after := e.ObjectOld.(*coordinationv1.Lease), e.ObjectNew.(*coordinationv1.Lease)
			if wasOffline || readLeaseDuration(before) != readLeaseDuration(after) ||
				!maps.Equal(before.Annotations, after.Annotations) {
				enqueue(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(e.Object, q) },
	}
}

// recordRenewal records a renewal, and reports whether the period of the previous
// renewal had expired before it.
func (r *Reconciler) recordRenewal(obj client.Object, witnessed bool) bool {
	lease := obj.(*coordinationv1.Lease)
	requests := newRequests(lease.Namespace)
	if len(requests) == 0 {
		return false
	}
	cluster, now := requests[0].Name, r.Now()
	previousStart := r.liveness.periodStart(cluster)
	r.liveness.observe(cluster, lease, now, witnessed)
	return now.Sub(previousStart) >= readLeaseDuration(lease)+r.Grace
}
