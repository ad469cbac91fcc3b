// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package window reports in the status of each ChangeWindow whether it can be evaluated, and
// when it is in force. Rollouts do not read that status: they evaluate windows with the same
// code, in package holds.
package window

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// +kubebuilder:rbac:groups=bellwether.dev,resources=changewindows;fleetclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=changewindows/status,verbs=get;patch;update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler reconciles ChangeWindows.
type Reconciler struct {
	Client client.Reader
	// Now is the hub's clock.
	Now func() time.Time
}

// Add adds the controller to a manager.
func Add(mgr ctrl.Manager, concurrency int) error {
	r := &Reconciler{Client: mgr.GetClient(), Now: time.Now}
	recorder := mgr.GetEventRecorder("bellwether-window")
	err := ctrl.NewControllerManagedBy(mgr).Named("window").
		For(&v1alpha1.ChangeWindow{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.FleetCluster{}, handler.EnqueueRequestsFromMapFunc(r.mapToClusterZoneWindows),
			builder.WithPredicates(predicate.Or(predicate.LabelChangedPredicate{},
				predicate.AnnotationChangedPredicate{}))).
		WithOptions(kit.Options(concurrency)).
		Complete(kit.WrapReconciler(mgr.GetClient(), recorder, r))
	if err != nil {
		return fmt.Errorf("build window controller: %w", err)
	}
	return nil
}

// mapToClusterZoneWindows returns requests for the windows that use the time zones of clusters.
func (r *Reconciler) mapToClusterZoneWindows(ctx context.Context, _ client.Object) []reconcile.Request {
	return kit.ListRequests(ctx, r.Client, &v1alpha1.ChangeWindowList{}, func(w *v1alpha1.ChangeWindow) bool {
		return w.Spec.TimeZone == v1alpha1.TimeZoneOfCluster
	})
}

// Reconcile evaluates one ChangeWindow for all clusters and updates its status in memory.
func (r *Reconciler) Reconcile(ctx context.Context, w *v1alpha1.ChangeWindow) (ctrl.Result, error) {
	if w.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	var list v1alpha1.FleetClusterList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("list FleetClusters: %w", err)
	}
	clusters := make([]holds.WindowCluster, 0, len(list.Items))
	for i := range list.Items {
		c := &list.Items[i]
		clusters = append(clusters, holds.WindowCluster{Name: c.Name, Labels: c.Labels,
			TimeZone: c.Annotations[v1alpha1.AnnotationTimeZone]})
	}
	now := r.Now()
	result := holds.SummarizeWindow(w, clusters, now)
	updateStatus(w, result)
	return kit.NewResult(computeRecheck(result, now), nil)
}

// updateStatus puts the result of an evaluation into the window's status.
func updateStatus(w *v1alpha1.ChangeWindow, result holds.WindowSummary) {
	w.Status.State, w.Status.InForceUntil, w.Status.NextStart = result.State, toTime(result.Until), toTime(result.Next)
	summary := conditions.Summary{State: conditions.Current, Reason: v1alpha1.ReasonSucceeded,
		Message: "the window can be evaluated for each cluster"}
	if result.Failure != nil {
		summary = conditions.Summary{State: conditions.Stalled, Reason: v1alpha1.ReasonInvalidSpec,
			Message: "rollouts admit no operator where the window cannot be evaluated: " + result.Failure.Error()}
	}
	conditions.Summarize(&w.Status.Conditions, w.Generation, summary)
}

// toTime converts a time to UTC for the API; nil if the time is zero.
func toTime(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.UTC()}
}

// maxRecheck is how long a window is not evaluated if it neither begins nor ends. A recurrence
// without an end gets further occurrences after that time.
const maxRecheck = 24 * time.Hour

// computeRecheck returns the time until the window begins or ends on some cluster, at least a
// second and at most maxRecheck. It returns 0 if the window is over or could not be evaluated.
func computeRecheck(result holds.WindowSummary, now time.Time) time.Duration {
	if result.State == v1alpha1.WindowOver || result.State == "" {
		return 0
	}
	after := maxRecheck
	for _, t := range []time.Time{result.Until, result.Next} {
		if !t.IsZero() && t.Sub(now) < after {
			after = t.Sub(now)
		}
	}
	return max(after, time.Second)
}
