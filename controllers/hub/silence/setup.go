// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package silence

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/bellwether-dev/bellwether/alerts/alertmanager"
	"github.com/bellwether-dev/bellwether/alerts/pagerduty"
	"github.com/bellwether-dev/bellwether/alerts/silences"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// Options configure the controller.
type Options struct {
	// Namespace is the namespace of the hub's rules. Silences with the scope Fleet must be in
	// this namespace. Default: DefaultNamespace.
	Namespace string
	// Alertmanager is the server that notifies about the fleet's alerts. Without a
	// URL, no silence takes effect.
	Alertmanager alertmanager.Endpoint
	// PagerDutyHosts are the hosts that receivers may name in addition to PagerDuty's own hosts.
	PagerDutyHosts pagerduty.Hosts
	// Max is how long a silence may last. Default: silences.DefaultMax.
	Max time.Duration
	// WithoutAutomatic disables the automatic silences for upgrades,
	// vetoes and removed clusters.
	WithoutAutomatic bool
	// Recheck is how often Alertmanager is read. Default: 15 s.
	Recheck time.Duration
}

// DefaultNamespace is the namespace of Bellwether's chart.
const DefaultNamespace = "bellwether-system"

// gatherDelay is how long changes are gathered before all silences are reconciled again.
const gatherDelay = 500 * time.Millisecond

// Add adds the controller to a manager.
func Add(mgr ctrl.Manager, o Options) error {
	r, err := New(o)
	if err != nil {
		return fmt.Errorf("build silence controller: %w", err)
	}
	r.Client, r.Live, r.Events = mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("bellwether-silence")
	enqueue := kit.EnqueueAfterDelay(gatherDelay, kit.AlwaysRequest(singleRequest))
	specChanged := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	err = ctrl.NewControllerManagedBy(mgr).Named("silence").
		Watches(&v1alpha1.AlertSilence{}, enqueue, specChanged).
		Watches(&v1alpha1.FleetCluster{}, enqueue, builder.WithPredicates(clusterChanged)).
		Watches(&v1alpha1.OperatorInstall{}, enqueue, specChanged).
		WithOptions(kit.Options(1)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("build silence controller: %w", err)
	}
	return nil
}

// New returns a Reconciler without Client, Live and Events. An error means that the address
// of Alertmanager is invalid.
func New(o Options) (*Reconciler, error) {
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	o.Max = cmp.Or(o.Max, silences.DefaultMax)
	o.Recheck = cmp.Or(o.Recheck, 15*time.Second)
	r := &Reconciler{Options: o, Now: time.Now,
		PagerDuty: func(url string) (PagerDuty, error) { return o.PagerDutyHosts.Client(url) }}
	if o.Alertmanager.URL == "" {
		return r, nil
	}
	client, err := o.Alertmanager.Client()
	if err != nil {
		return nil, err
	}
	r.Alertmanager = client
	return r, nil
}

// clusterChanged selects updates of the cluster data that silences depend on: labels,
// vetoes, hibernation and removal.
var clusterChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, isCluster := e.ObjectOld.(*v1alpha1.FleetCluster)
	after, isAlsoCluster := e.ObjectNew.(*v1alpha1.FleetCluster)
	return !isCluster || !isAlsoCluster || !equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		!equality.Semantic.DeepEqual(before.Status.Veto, after.Status.Veto) ||
		before.Status.IsHibernating() != after.Status.IsHibernating() ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
}}
