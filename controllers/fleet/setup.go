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
	// Grace is added to the duration that a Lease names.
	Grace time.Duration
	// Version of the hub.
	Version string
	// Namespace is the hub's own, where it records what was left on clusters.
	Namespace string
	// Concurrency is the number of clusters reconciled at a time.
	Concurrency int
}

// CacheByObject restricts the hub's cache to the agents' own objects: of the
// hub's Leases and Roles it never gets to see any other.
func CacheByObject() map[client.Object]cache.ByObject {
	agents := cache.ByObject{Field: named(v1alpha1.AgentServiceAccount)}
	return map[client.Object]cache.ByObject{
		&coordinationv1.Lease{}:  {Field: named(v1alpha1.LeaseName)},
		&corev1.ResourceQuota{}:  agents,
		&corev1.ServiceAccount{}: agents,
		&rbacv1.Role{}:           agents,
		&rbacv1.RoleBinding{}:    agents,
		&v1alpha1.OperatorScan{}: {Field: named(v1alpha1.ScanName)},
	}
}

func named(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }

// gatherDelay is how long changes of a cluster's OperatorInstalls are gathered before they are counted.
const gatherDelay = 500 * time.Millisecond

// Add adds the controller to a manager.
func Add(mgr ctrl.Manager, o Options) error {
	recorder := mgr.GetEventRecorder("bellwether-fleet")
	r := &Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: recorder, Namespace: o.Namespace,
		Grace: o.Grace, Version: o.Version, Now: time.Now}
	inNamespace := func(_ context.Context, obj client.Object) []reconcile.Request {
		return requestFor(obj.GetNamespace())
	}
	ofNamespace := handler.EnqueueRequestsFromMapFunc(inNamespace)
	soon := kit.Gather(gatherDelay, inNamespace)
	namespaces := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		return requestFor(obj.GetName())
	})
	err := ctrl.NewControllerManagedBy(mgr).Named("fleet").
		For(&v1alpha1.FleetCluster{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, deletion,
			powerState))).
		WatchesMetadata(&corev1.Namespace{}, namespaces).
		Watches(&corev1.ServiceAccount{}, ofNamespace).
		Watches(&rbacv1.Role{}, ofNamespace).
		Watches(&rbacv1.RoleBinding{}, ofNamespace).
		Watches(&corev1.ResourceQuota{}, ofNamespace).
		WatchesMetadata(&v1alpha1.OperatorScan{}, ofNamespace, builder.WithPredicates(existence)).
		Watches(&v1alpha1.OperatorInstall{}, soon, builder.WithPredicates(installChanged)).
		Watches(&coordinationv1.Lease{}, r.leaseHandler()).
		Watches(&v1alpha1.FleetFreeze{}, handler.EnqueueRequestsFromMapFunc(r.allClusters)).
		WithOptions(kit.Options(o.Concurrency)).
		Complete(kit.Shell(mgr.GetClient(), recorder, r))
	if err != nil {
		return fmt.Errorf("build fleet controller: %w", err)
	}
	return nil
}

func (r *Reconciler) allClusters(ctx context.Context, _ client.Object) []reconcile.Request {
	return kit.Requests(ctx, r.Client, &v1alpha1.FleetClusterList{}, func(*v1alpha1.FleetCluster) bool { return true })
}

func requestFor(namespace string) []reconcile.Request {
	cluster, ok := strings.CutPrefix(namespace, v1alpha1.ClusterNamespace(""))
	if !ok || cluster == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: cluster}}}
}

var deletion = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
}}

// existence passes that an object came or went, and nothing that changes in it.
var existence = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

// powerState passes what the source says of it: whether the cluster hibernates is decided here.
var powerState = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before := e.ObjectOld.(*v1alpha1.FleetCluster).Status.Source
	after := e.ObjectNew.(*v1alpha1.FleetCluster).Status.Source
	return (before == nil) != (after == nil) || before != nil && (before.PowerState != after.PowerState ||
		before.State != after.State || !before.PowerStateSince.Equal(after.PowerStateSince))
}}

// installChanged passes what the counts and the removal depend on, so that an
// agent's progress reports do not wake this controller.
var installChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*v1alpha1.OperatorInstall), e.ObjectNew.(*v1alpha1.OperatorInstall)
	return ready(before) != ready(after) ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		len(before.Finalizers) != len(after.Finalizers) ||
		before.Spec.RemovalPolicy != after.Spec.RemovalPolicy
}}

func ready(o *v1alpha1.OperatorInstall) bool {
	return conditions.IsTrue(o.Status.Conditions, v1alpha1.ConditionReady)
}

// leaseHandler notes every renewal where it arrives, and wakes the reconciler
// only for one that tells something new: at ten thousand clusters a thousand
// renewals arrive each second.
func (r *Reconciler) leaseHandler() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(obj client.Object, q queue) {
		for _, request := range requestFor(obj.GetNamespace()) {
			q.Add(request)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			r.noteRenewal(e.Object, !e.IsInInitialList)
			enqueue(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			wasOffline := r.noteRenewal(e.ObjectNew, true)
			before, after := e.ObjectOld.(*coordinationv1.Lease), e.ObjectNew.(*coordinationv1.Lease)
			if wasOffline || leaseDuration(before) != leaseDuration(after) ||
				!maps.Equal(before.Annotations, after.Annotations) {
				enqueue(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(e.Object, q) },
	}
}

// noteRenewal returns whether the cluster had no valid renewal before this one.
func (r *Reconciler) noteRenewal(obj client.Object, witnessed bool) bool {
	lease := obj.(*coordinationv1.Lease)
	requests := requestFor(lease.Namespace)
	if len(requests) == 0 {
		return false
	}
	cluster, now := requests[0].Name, r.Now()
	before := r.alive.validFrom(cluster)
	r.alive.observe(cluster, lease, now, witnessed)
	return now.Sub(before) >= leaseDuration(lease)+r.Grace
}
