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
	// Concurrency is the number of rollouts reconciled at a time. A rollout is
	// never reconciled twice at a time.
	Concurrency int
	// MaxChanges is how many operators of a cluster may change at a time: 0 means 1,
	// and a negative number means any number.
	MaxChanges int
	// Metrics takes the counters.
	Metrics prometheus.Registerer
	// Prometheus is what gates judge by; without a URL they have no verdict.
	Prometheus server.Endpoint
}

// Add adds the controller to a manager whose cache has kit.IndexOperator.
func Add(mgr ctrl.Manager, o Options) error {
	admissions := prometheus.NewCounter(prometheus.CounterOpts{
		Name: series.RolloutAdmissionsTotal, Help: "Admissions of a cluster to a release that were written.",
	})
	if err := o.Metrics.Register(admissions); err != nil {
		return fmt.Errorf("register %s: %w", series.RolloutAdmissionsTotal, err)
	}
	evaluator, err := evaluatorOf(o.Prometheus)
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
		Watches(&v1alpha1.OperatorRollout{}, handler.EnqueueRequestsFromMapFunc(r.older),
			builder.WithPredicates(created)).
		Watches(&v1alpha1.OperatorInstall{}, handler.EnqueueRequestsFromMapFunc(r.concernedByInstall),
			builder.WithPredicates(r.seen.predicate(), installChanged)).
		Watches(&v1alpha1.FleetCluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster),
			builder.WithPredicates(clusterChanged)).
		Watches(&v1alpha1.OperatorRollout{}, handler.EnqueueRequestsFromMapFunc(r.waitingForBatch),
			builder.WithPredicates(batchChanged)).
		Watches(&v1alpha1.ChangeWindow{}, handler.EnqueueRequestsFromMapFunc(r.open),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.FleetAccess{}, handler.EnqueueRequestsFromMapFunc(r.open)).
		Watches(&v1alpha1.FleetFreeze{}, handler.EnqueueRequestsFromMapFunc(r.open)).
		Watches(&v1alpha1.RolloutPolicy{}, handler.EnqueueRequestsFromMapFunc(r.boundBy),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.ManagedOperator{}, handler.EnqueueRequestsFromMapFunc(r.ofOperator),
			builder.WithPredicates(predicate.Or(predicate.LabelChangedPredicate{},
				predicate.GenerationChangedPredicate{}))).
		WatchesRawSource(source.Channel(r.Measurer.answered,
			&handler.TypedEnqueueRequestForObject[*v1alpha1.OperatorRollout]{})).
		WithOptions(kit.Options(o.Concurrency)).
		Complete(kit.Shell(mgr.GetClient(), recorder, r))
	if err != nil {
		return fmt.Errorf("build rollout controller: %w", err)
	}
	return nil
}

// created passes nothing but new objects.
var created = predicate.Funcs{
	UpdateFunc:  func(event.UpdateEvent) bool { return false },
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// installChanged passes what the planner reads, so that an agent's progress
// reports do not wake it.
var installChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*v1alpha1.OperatorInstall), e.ObjectNew.(*v1alpha1.OperatorInstall)
	return !reflect.DeepEqual(rollouts.ObserveInstall(before), rollouts.ObserveInstall(after)) ||
		ptr.Deref(before.Status.Installed, none) != ptr.Deref(after.Status.Installed, none)
}}

var none v1alpha1.InstalledVersion

var clusterChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before := rollouts.ObserveCluster(e.ObjectOld.(*v1alpha1.FleetCluster))
	after := rollouts.ObserveCluster(e.ObjectNew.(*v1alpha1.FleetCluster))
	same := before.Enrolled == after.Enrolled && before.Online == after.Online &&
		before.PausedReason == after.PausedReason &&
		before.Deleting == after.Deleting && before.OfflineReason == after.OfflineReason &&
		before.TimeZone == after.TimeZone && before.Kubernetes == after.Kubernetes &&
		before.FrozenSince.Equal(after.FrozenSince) && slices.Equal(before.FrozenBefore, after.FrozenBefore) &&
		equality.Semantic.DeepEqual(before.Veto, after.Veto)
	return !same || !maps.Equal(before.Labels, after.Labels)
}}

// older returns the rollouts of the same operator that a new one supersedes.
func (r *Reconciler) older(ctx context.Context, obj client.Object) []reconcile.Request {
	newest := obj.(*v1alpha1.OperatorRollout)
	return r.requests(ctx, func(ro *v1alpha1.OperatorRollout) bool {
		return ro.Spec.Operator == newest.Spec.Operator && ro.Spec.Revision < newest.Spec.Revision &&
			!ro.Status.Phase.Ended()
	}, client.InNamespace(newest.Namespace))
}

// ofInstall is the rollout that an install is a member of. An install that is
// gone may be due anew in its operator's newest rollout, which is the same one.
func (r *Reconciler) ofInstall(_ context.Context, obj client.Object) []reconcile.Request {
	l := obj.GetLabels()
	if l[v1alpha1.LabelRollout] == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{
		Namespace: l[v1alpha1.LabelOperatorNamespace], Name: l[v1alpha1.LabelRollout],
	}}}
}

// concernedByInstall are the rollout that an install is a member of, and those of
// other operators that wait for its change.
func (r *Reconciler) concernedByInstall(ctx context.Context, obj client.Object) []reconcile.Request {
	return append(r.ofInstall(ctx, obj), r.waiting(ctx, obj.(*v1alpha1.OperatorInstall).Spec.Cluster)...)
}

// ofCluster are the rollouts that select a cluster, and those that it is a
// member of.
func (r *Reconciler) ofCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.requests(ctx, func(ro *v1alpha1.OperatorRollout) bool {
		if !ro.MayAdmit() {
			return false
		}
		selector, err := metav1.LabelSelectorAsSelector(&ro.Spec.ClusterSelector)
		return err == nil && selector.Matches(labels.Set(obj.GetLabels()))
	})
	return append(requests, kit.RequestsForInstallsOn(ctx, r.Client, obj.GetName(), r.ofInstall)...)
}

func (r *Reconciler) requests(ctx context.Context, which func(*v1alpha1.OperatorRollout) bool,
	in ...client.ListOption) []reconcile.Request {
	return kit.Requests(ctx, r.Client, &v1alpha1.OperatorRolloutList{}, which, in...)
}
