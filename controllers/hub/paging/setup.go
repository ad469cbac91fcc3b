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
	// Namespace is where the configuration is written, and where the policy with the scope Fleet
	// must be. Default: DefaultNamespace.
	Namespace string
	// Folder is where Alertmanager has the keys of the Secret as files. Default: DefaultFolder.
	Folder string
	// Labels are set on AlertmanagerConfig objects. Alertmanager selects
	// the objects by these labels.
	Labels map[string]string
	// PagerDuty are the hosts that receivers may name in addition to PagerDuty's own hosts.
	PagerDuty pagerduty.Hosts
	// ServiceAccount is the hub's account as namespace:name. It is used in the message
	// about a missing permission.
	ServiceAccount string
	// Recheck is how often Secrets are read again. The hub does not watch
	// Secrets. Default: one minute.
	Recheck time.Duration
	// Alertmanager is the server that self-tests use. Without a URL, the hub runs no self-tests.
	Alertmanager alertmanager.Endpoint
}

// Defaults of Options: the values of Bellwether's chart.
const (
	DefaultNamespace      = "bellwether-system"
	DefaultFolder         = "/etc/alertmanager/config"
	DefaultServiceAccount = "bellwether-system:bellwether-hub"
)

// gatherDelay is how long changes are gathered before the configuration is built again.
const gatherDelay = 500 * time.Millisecond

// singleRequest is the only request that the controller uses: one pass handles all policies.
var singleRequest = reconcile.Request{NamespacedName: types.NamespacedName{Name: "paging"}}

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
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Kinds: servedKinds{disco},
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
	enqueue := kit.EnqueueAfterDelay(gatherDelay, kit.AlwaysRequest(singleRequest))
	specChanged := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	err = ctrl.NewControllerManagedBy(mgr).Named("paging").
		Watches(&v1alpha1.PagingPolicy{}, enqueue, specChanged).
		Watches(&v1alpha1.OperatorSLO{}, enqueue, specChanged).
		Watches(&v1alpha1.ManagedOperator{}, enqueue, builder.WithPredicates(createdOrDeleted)).
		WithOptions(kit.Options(1)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("build paging controller: %w", err)
	}
	return nil
}

// createdOrDeleted selects creations and deletions, and no updates.
var createdOrDeleted = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

// servedKinds implements Kinds with the discovery API of the API server.
type servedKinds struct{ client discovery.DiscoveryInterface }

// HasAlertmanagerConfigs implements Kinds.
func (s servedKinds) HasAlertmanagerConfigs(ctx context.Context) (bool, error) {
	return kit.IsServed(ctx, s.client, monitoring.SchemeGroupVersion, monitoring.AlertmanagerConfigKind)
}
