// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"cmp"
	"context"
	"fmt"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/alerts/alertmanager"
	"github.com/bellwether-dev/bellwether/alerts/pagerduty"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// Options configure the controller.
type Options struct {
	// Namespace that the configuration is written to, and that the policy with the scope
	// Fleet is in. Default: DefaultNamespace.
	Namespace string
	// Folder where Alertmanager has the keys of the Secret as files. Default: DefaultFolder.
	Folder string
	// Labels of AlertmanagerConfig objects, by which the Alertmanager selects them.
	Labels map[string]string
	// PagerDuty are the hosts that receivers may name beside PagerDuty's own.
	PagerDuty pagerduty.Hosts
	// ServiceAccount of the hub, as namespace:name, for the message that says what is missing.
	ServiceAccount string
	// Recheck is how often Secrets are read again, since nobody says when one changes.
	// Default: a minute.
	Recheck time.Duration
	// Alertmanager is what self-tests go through. Without a URL nothing is tested.
	Alertmanager alertmanager.Endpoint
}

// Defaults of Options, which are those of Bellwether's own chart.
const (
	DefaultNamespace      = "bellwether-system"
	DefaultFolder         = "/etc/alertmanager/config"
	DefaultServiceAccount = "bellwether-system:bellwether-hub"
)

// gatherDelay is how long news are gathered before the configuration is made again.
const gatherDelay = 500 * time.Millisecond

// everything is the one request that there is.
var everything = reconcile.Request{NamespacedName: types.NamespacedName{Name: "paging"}}

// Add adds the controller to a manager.
func Add(mgr ctrl.Manager, o Options) error {
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	o.Folder = cmp.Or(o.Folder, DefaultFolder)
	o.ServiceAccount = cmp.Or(o.ServiceAccount, DefaultServiceAccount)
	o.Recheck = cmp.Or(o.Recheck, time.Minute)
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("build paging controller: %w", err)
	}
	rules, err := slo.Build(slo.Set{Default: slo.DefaultProfile()})
	if err != nil {
		return fmt.Errorf("build paging controller: %w", err)
	}
	r := &Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Kinds: served{disco},
		Events: mgr.GetEventRecorder("bellwether-paging"), Options: o, Rules: rules, Now: time.Now,
		Tester: NewTester(nil),
	}
	if o.Alertmanager.URL != "" {
		client, err := o.Alertmanager.Client()
		if err != nil {
			return fmt.Errorf("build paging controller: %w", err)
		}
		r.Tester.Alertmanager = client
	}
	if err := mgr.Add(r.Tester); err != nil {
		return fmt.Errorf("build paging controller: %w", err)
	}
	soon := kit.Gather(gatherDelay, kit.Always(everything))
	specChanged := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	err = ctrl.NewControllerManagedBy(mgr).Named("paging").
		Watches(&v1alpha1.PagingPolicy{}, soon, specChanged).
		Watches(&v1alpha1.OperatorSLO{}, soon, specChanged).
		Watches(&v1alpha1.ManagedOperator{}, soon, builder.WithPredicates(comesOrGoes)).
		WithOptions(kit.Options(1)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("build paging controller: %w", err)
	}
	return nil
}

// comesOrGoes passes no updates.
var comesOrGoes = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

// served asks the API server for its kinds.
type served struct{ client discovery.DiscoveryInterface }

// HasAlertmanagerConfigs implements Kinds.
func (s served) HasAlertmanagerConfigs(ctx context.Context) (bool, error) {
	return kit.IsServed(ctx, s.client, monitoring.SchemeGroupVersion, monitoring.AlertmanagerConfigKind)
}
