// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"cmp"
	"context"
	"fmt"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/alerts/prometheus"
	rules "github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// Options configure the controller.
type Options struct {
	// Namespace is where rules are written. Default: DefaultNamespace.
	Namespace string
	// Labels are set on PrometheusRule objects. Prometheus selects the objects by these labels.
	Labels map[string]string
	// Part is the part of the rules to write: all rules, or the rules of the hub.
	Part rules.Part
	// RunbookURL is the folder with a page for each alert, and DashboardURL begins the
	// links of alerts to the dashboard; empty: no links.
	RunbookURL, DashboardURL string
	// WithoutAlerts are the names of alerts to leave out; see rules.SwitchableAlerts.
	WithoutAlerts []string
	// Prometheus is the server that evaluates the rules, and that gates of rollouts query.
	// Without a URL, the hub cannot check whether the rules are evaluated.
	Prometheus prometheus.Endpoint
}

// DefaultNamespace is the namespace of Bellwether's chart.
const DefaultNamespace = "bellwether-system"

// gatherDelay is how long changes are gathered before the rules are generated again. A rollout
// over a large fleet causes many changes.
const gatherDelay = 500 * time.Millisecond

// singleRequest is the only request that the controller uses: one pass handles all objects.
var singleRequest = reconcile.Request{NamespacedName: types.NamespacedName{Name: "objectives"}}

// Add adds the controller to a manager.
func Add(mgr ctrl.Manager, o Options) error {
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	for _, name := range o.WithoutAlerts {
		if err := rules.CheckAlert(name); err != nil {
			return fmt.Errorf("build slo controller: %w", err)
		}
	}
	if err := rules.CheckRunbookURL(o.RunbookURL); err != nil {
		return fmt.Errorf("build slo controller: %w", err)
	}
	evaluator, err := newEvaluator(o.Prometheus)
	if err != nil {
		return fmt.Errorf("build slo controller: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("build slo controller: %w", err)
	}
	r := &Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Evaluator: evaluator, Kinds: servedKinds{disco},
		Events: mgr.GetEventRecorder("bellwether-slo"), Options: o, Now: time.Now,
	}
	enqueue := kit.EnqueueAfterDelay(gatherDelay, kit.AlwaysRequest(singleRequest))
	specChanged := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	err = ctrl.NewControllerManagedBy(mgr).Named("slo").
		Watches(&v1alpha1.OperatorSLO{}, enqueue, specChanged).
		Watches(&v1alpha1.ManagedOperator{}, enqueue,
			builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{},
				targetSLOChanged))).
		Watches(&v1alpha1.OperatorInstall{}, enqueue, builder.WithPredicates(installSpecChanged)).
		WithOptions(kit.Options(1)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("build slo controller: %w", err)
	}
	return nil
}

// targetSLOChanged selects updates of an operator whose target's bundle has changed SLOs.
var targetSLOChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1alpha1.ManagedOperator).Status.Target,
			e.ObjectNew.(*v1alpha1.ManagedOperator).Status.Target
		return after != nil && (before == nil || !equality.Semantic.DeepEqual(before.SLO, after.SLO))
	},
}

// installSpecChanged selects new OperatorInstalls, and updates of the fields
// that this controller writes.
var installSpecChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1alpha1.OperatorInstall).Spec, e.ObjectNew.(*v1alpha1.OperatorInstall).Spec
		return !equality.Semantic.DeepEqual(before.Services, after.Services) ||
			!equality.Semantic.DeepEqual(before.Monitor, after.Monitor)
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// servedKinds implements Kinds with the discovery API. It caches nothing, because a kind can be
// added or removed at any time.
type servedKinds struct{ discovery.DiscoveryInterface }

// HasPrometheusRules implements Kinds.
func (s servedKinds) HasPrometheusRules(ctx context.Context) (bool, error) {
	return kit.IsServed(ctx, s, monitoringv1.SchemeGroupVersion, monitoringv1.PrometheusRuleKind)
}
