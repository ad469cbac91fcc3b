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
	// Namespace that rules are written to. Default: DefaultNamespace.
	Namespace string
	// Labels of PrometheusRule objects, by which the Prometheus there selects them.
	Labels map[string]string
	// Part of the rules to write: all, or those of the hub.
	Part rules.Part
	// RunbookURL is the folder with a page for each alert, and DashboardURL begins the
	// links of alerts to the dashboard; empty: no links.
	RunbookURL, DashboardURL string
	// WithoutAlerts are names of alerts that are left out, of rules.SwitchableAlerts.
	WithoutAlerts []string
	// Prometheus is the one that evaluates the rules, and that gates of rollouts query.
	// Without a URL the hub does not know whether they are evaluated.
	Prometheus prometheus.Endpoint
}

// DefaultNamespace is that of Bellwether's own chart.
const DefaultNamespace = "bellwether-system"

// gatherDelay is how long news are gathered before the rules are made again: a
// rollout over a large fleet brings many.
const gatherDelay = 500 * time.Millisecond

// everything is the one request that there is.
var everything = reconcile.Request{NamespacedName: types.NamespacedName{Name: "objectives"}}

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
	evaluator, err := evaluatorOf(o.Prometheus)
	if err != nil {
		return fmt.Errorf("build slo controller: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("build slo controller: %w", err)
	}
	r := &Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Evaluator: evaluator, Kinds: served{disco},
		Events: mgr.GetEventRecorder("bellwether-slo"), Options: o, Now: time.Now,
	}
	soon := kit.Gather(gatherDelay, kit.Always(everything))
	specChanged := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	err = ctrl.NewControllerManagedBy(mgr).Named("slo").
		Watches(&v1alpha1.OperatorSLO{}, soon, specChanged).
		Watches(&v1alpha1.ManagedOperator{}, soon,
			builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, targetChanged))).
		Watches(&v1alpha1.OperatorInstall{}, soon, builder.WithPredicates(toldChanged)).
		WithOptions(kit.Options(1)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("build slo controller: %w", err)
	}
	return nil
}

// targetChanged passes an operator whose target's bundle says something else of
// its SLOs.
var targetChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1alpha1.ManagedOperator).Status.Target,
			e.ObjectNew.(*v1alpha1.ManagedOperator).Status.Target
		return after != nil && (before == nil || !equality.Semantic.DeepEqual(before.SLO, after.SLO))
	},
}

// toldChanged passes a new OperatorInstall, and one whose agent was told something else.
var toldChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1alpha1.OperatorInstall).Spec, e.ObjectNew.(*v1alpha1.OperatorInstall).Spec
		return !equality.Semantic.DeepEqual(before.Services, after.Services) ||
			!equality.Semantic.DeepEqual(before.Monitor, after.Monitor)
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// served asks the API server, and keeps nothing: a kind may come or go at any time.
type served struct{ discovery.DiscoveryInterface }

// HasPrometheusRules implements Kinds.
func (s served) HasPrometheusRules(ctx context.Context) (bool, error) {
	return kit.IsServed(ctx, s, monitoringv1.SchemeGroupVersion, monitoringv1.PrometheusRuleKind)
}
