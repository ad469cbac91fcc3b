// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	server "github.com/bellwether-dev/bellwether/alerts/prometheus"
	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// Options of the controller.
type Options struct {
	// Concurrency is the number of rollouts that are reconciled at the same time.
	Concurrency int
	// MaxChanges is how many operators of a cluster may change at the same time: 0 means 1, and
	// a negative number means any number.
	MaxChanges int
	// Metrics registers the counters.
	Metrics prometheus.Registerer
	// Prometheus is the server that evaluates the queries of gates. Without a
	// URL, gates have no verdict.
	Prometheus server.Endpoint
}

// Add adds the controller to a manager. The manager's cache must have kit.IndexOperator.
func Add(mgr ctrl.Manager, o Options) error {
	admissions := prometheus.NewCounter(prometheus.CounterOpts{
		Name: series.RolloutAdmissionsTotal, Help: "Admissions of a cluster to a release that were written.",
	})
	if err := o.Metrics.Register(admissions); err != nil {
		return fmt.Errorf("register %s: %w", series.RolloutAdmissionsTotal, err)
	}
	evaluator, err := newEvaluator(o.Prometheus)
	if err != nil {
		return fmt.Errorf("build rollout controller: %w", err)
	}
	recorder := mgr.GetEventRecorder("bellwether-rollout")
	r := &Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: recorder, Now: time.Now, Admitted: admissions.Inc,
		MaxChanges: max(cmp.Or(o.MaxChanges, 1), 0),
		Measurer:   newMeasurer(evaluator),
	}
	if err := mgr.Add(r.Measurer); err != nil {
		return fmt.Errorf("add the measurements of gates: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("rollout").
		For(&v1alpha1.OperatorRollout{}).
		Watches(&v1alpha1.OperatorRollout{}, handler.EnqueueRequestsFromMapFunc(r.mapRolloutToOlder),
			builder.WithPredicates(createdOnly)).
		Watches(&v1alpha1.OperatorInstall{}, handler.EnqueueRequestsFromMapFunc(r.mapInstallToConcerned),
			builder.WithPredicates(r.installCache.newPredicate(), installChanged)).
		Watches(&v1alpha1.FleetCluster{}, handler.EnqueueRequestsFromMapFunc(r.mapClusterToRollouts),
			builder.WithPredicates(clusterChanged)).
		Watches(&v1alpha1.OperatorRollout{}, handler.EnqueueRequestsFromMapFunc(r.mapRolloutToWaiting),
			builder.WithPredicates(batchChanged)).
		Watches(&v1alpha1.ChangeWindow{}, handler.EnqueueRequestsFromMapFunc(r.mapToOpenRollouts),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.FleetAccess{}, handler.EnqueueRequestsFromMapFunc(r.mapToOpenRollouts)).
		Watches(&v1alpha1.FleetFreeze{}, handler.EnqueueRequestsFromMapFunc(r.mapToOpenRollouts)).
		Watches(&v1alpha1.RolloutPolicy{}, handler.EnqueueRequestsFromMapFunc(r.mapPolicyToRollouts),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.ManagedOperator{}, handler.EnqueueRequestsFromMapFunc(r.mapOperatorToRollouts),
			builder.WithPredicates(predicate.Or(predicate.LabelChangedPredicate{},
				predicate.GenerationChangedPredicate{}))).
		WatchesRawSource(source.Channel(r.Measurer.answered,
			&handler.TypedEnqueueRequestForObject[*v1alpha1.OperatorRollout]{})).
		WithOptions(kit.Options(o.Concurrency)).
		Complete(kit.WrapReconciler(mgr.GetClient(), recorder, r))
	if err != nil {
		return fmt.Errorf("build rollout controller: %w", err)
	}
	return nil
}

// createdOnly selects only new objects.
var createdOnly = predicate.Funcs{
	UpdateFunc:  func(event.UpdateEvent) bool { return false },
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// installChanged selects updates of the fields that rollouts.Next reads, so that progress
// reports of agents do not trigger a reconcile.
var installChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*v1alpha1.OperatorInstall), e.ObjectNew.(*v1alpha1.OperatorInstall)
	return !reflect.DeepEqual(rollouts.ObserveInstall(before), rollouts.ObserveInstall(after)) ||
		ptr.Deref(before.Status.Installed, zeroVersion) != ptr.Deref(after.Status.Installed, zeroVersion)
}}

// zeroVersion is the installed version of an OperatorInstall that reports none.
var zeroVersion v1alpha1.InstalledVersion

// clusterChanged selects updates of the cluster's fields that rollouts.Next reads.
var clusterChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before := rollouts.ObserveCluster(e.ObjectOld.(*v1alpha1.FleetCluster))
	after := rollouts.ObserveCluster(e.ObjectNew.(*v1alpha1.FleetCluster))
	isEqual := before.Enrolled == after.Enrolled && before.Online == after.Online &&
		before.PausedReason == after.PausedReason &&
		before.Deleting == after.Deleting && before.OfflineReason == after.OfflineReason &&
		before.TimeZone == after.TimeZone && before.Kubernetes == after.Kubernetes &&
		before.FrozenSince.Equal(after.FrozenSince) && slices.Equal(before.FrozenBefore, after.FrozenBefore) &&
		equality.Semantic.DeepEqual(before.Veto, after.Veto)
	return !isEqual || !maps.Equal(before.Labels, after.Labels)
}}

// mapRolloutToOlder returns requests for the rollouts of the same operator that
// a new rollout supersedes.
func (r *Reconciler) mapRolloutToOlder(ctx context.Context, obj client.Object) []reconcile.Request {
	newest := obj.(*v1alpha1.OperatorRollout)
	return r.listRolloutRequests(ctx, func(ro *v1alpha1.OperatorRollout) bool {
		return ro.Spec.Operator == newest.Spec.Operator && ro.Spec.Revision < newest.Spec.Revision &&
			!ro.Status.Phase.Ended()
	}, client.InNamespace(newest.Namespace))
}

// mapInstallToRollout returns a request for the rollout that an install is a member of; nil if
// it is a member of none. A deleted install can be needed again in the newest rollout of its
// operator, which is the same rollout.
func (r *Reconciler) mapInstallToRollout(_ context.Context, obj client.Object) []reconcile.Request {
	l := obj.GetLabels()
	if l[v1alpha1.LabelRollout] == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{
		Namespace: l[v1alpha1.LabelOperatorNamespace], Name: l[v1alpha1.LabelRollout],
	}}}
}

// mapInstallToConcerned returns requests for the rollout that an install is a member of, and for
// the rollouts of other operators that wait for the change of this cluster.
func (r *Reconciler) mapInstallToConcerned(ctx context.Context, obj client.Object) []reconcile.Request {
	return append(r.mapInstallToRollout(ctx, obj), r.listWaitingForCluster(ctx,
		obj.(*v1alpha1.OperatorInstall).Spec.Cluster)...)
}

// mapClusterToRollouts returns requests for the rollouts that select a cluster, and for the
// rollouts that the cluster is a member of.
func (r *Reconciler) mapClusterToRollouts(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.listRolloutRequests(ctx, func(ro *v1alpha1.OperatorRollout) bool {
		if !ro.MayAdmit() {
			return false
		}
		selector, err := metav1.LabelSelectorAsSelector(&ro.Spec.ClusterSelector)
		return err == nil && selector.Matches(labels.Set(obj.GetLabels()))
	})
	return append(requests, kit.ListRequestsOfCluster(ctx, r.Client, obj.GetName(), r.mapInstallToRollout)...)
}

// listRolloutRequests returns requests for the rollouts that the function accepts.
func (r *Reconciler) listRolloutRequests(ctx context.Context, accepts func(*v1alpha1.OperatorRollout) bool,
	options ...client.ListOption) []reconcile.Request {
	return kit.ListRequests(ctx, r.Client, &v1alpha1.OperatorRolloutList{}, accepts, options...)
}
