// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package window says in the status of each ChangeWindow whether it can be evaluated, and when it is in force. Rollouts
// do not read that status: they evaluate windows themselves, by the same package rollouts/windows.
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
	"github.com/bellwether-dev/bellwether/rollouts/windows"
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
		Watches(&v1alpha1.FleetCluster{}, handler.EnqueueRequestsFromMapFunc(r.ofClusters), builder.WithPredicates(
			predicate.Or(predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WithOptions(kit.Options(concurrency)).
		Complete(kit.Shell(mgr.GetClient(), recorder, r))
	if err != nil {
		return fmt.Errorf("build window controller: %w", err)
	}
	return nil
}

// ofClusters are the windows in the time zones of clusters.
func (r *Reconciler) ofClusters(ctx context.Context, _ client.Object) []reconcile.Request {
	return kit.Requests(ctx, r.Client, &v1alpha1.ChangeWindowList{}, func(w *v1alpha1.ChangeWindow) bool {
		return w.Spec.TimeZone == v1alpha1.TimeZoneOfCluster
	})
}

// Reconcile keeps the status of one ChangeWindow.
func (r *Reconciler) Reconcile(ctx context.Context, w *v1alpha1.ChangeWindow) (ctrl.Result, error) {
	if w.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	var list v1alpha1.FleetClusterList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("list FleetClusters: %w", err)
	}
	clusters := make([]windows.Cluster, 0, len(list.Items))
	for i := range list.Items {
		c := &list.Items[i]
		clusters = append(clusters, windows.Cluster{Name: c.Name, Labels: c.Labels,
			TimeZone: c.Annotations[v1alpha1.AnnotationTimeZone]})
	}
	now := r.Now()
	is := windows.Summarize(w, clusters, now)
	report(w, is)
	return kit.Result(recheck(is, now), nil)
}

func report(w *v1alpha1.ChangeWindow, is windows.Summary) {
	w.Status.State, w.Status.InForceUntil, w.Status.NextStart = is.State, stamp(is.Until), stamp(is.Next)
	summary := conditions.Summary{State: conditions.Current, Reason: v1alpha1.ReasonSucceeded,
		Message: "the window can be evaluated for each cluster"}
	if is.Failure != nil {
		summary = conditions.Summary{State: conditions.Stalled, Reason: v1alpha1.ReasonInvalidSpec,
			Message: "rollouts admit no operator where the window cannot be evaluated: " + is.Failure.Error()}
	}
	conditions.Summarize(&w.Status.Conditions, w.Generation, summary)
}

func stamp(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.UTC()}
}

// maxRecheck is how long a window is not looked at that nothing happens to: a rule that goes on has more occurrences
// then.
const maxRecheck = 24 * time.Hour

// recheck returns after how long the window begins or ends on some cluster.
func recheck(is windows.Summary, now time.Time) time.Duration {
	if is.State == v1alpha1.WindowOver || is.State == "" {
		return 0
	}
	after := maxRecheck
	for _, t := range []time.Time{is.Until, is.Next} {
		if !t.IsZero() && t.Sub(now) < after {
			after = t.Sub(now)
		}
	}
	return max(after, time.Second)
}
