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
	// Namespace of the hub's rules: silences with the scope Fleet have to be there. Default:
	// DefaultNamespace.
	Namespace string
	// Alertmanager that notifies of the fleet's alerts. Without a URL no silence comes into
	// force.
	Alertmanager alertmanager.Endpoint
	// PagerDutyHosts are those that receivers may name beside PagerDuty's own.
	PagerDutyHosts pagerduty.Hosts
	// Max is how long a silence may last. Default: silences.DefaultMax.
	Max time.Duration
	// WithoutAutomatic makes no silences for upgrades, vetoes and removed clusters.
	WithoutAutomatic bool
	// Recheck is how often Alertmanager is looked at. Default: 15 s.
	Recheck time.Duration
}

// DefaultNamespace is that of Bellwether's own chart.
const DefaultNamespace = "bellwether-system"

// gatherDelay is how long news are gathered before all silences are looked at again.
const gatherDelay = 500 * time.Millisecond

// Add adds the controller to a manager.
func Add(mgr ctrl.Manager, o Options) error {
	r, err := New(o)
	if err != nil {
		return fmt.Errorf("build silence controller: %w", err)
	}
	r.Client, r.Live, r.Events = mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("bellwether-silence")
	soon := kit.Gather(gatherDelay, kit.Always(everything))
	specChanged := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	err = ctrl.NewControllerManagedBy(mgr).Named("silence").
		Watches(&v1alpha1.AlertSilence{}, soon, specChanged).
		Watches(&v1alpha1.FleetCluster{}, soon, builder.WithPredicates(clusterChanged)).
		Watches(&v1alpha1.OperatorInstall{}, soon, specChanged).
		WithOptions(kit.Options(1)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("build silence controller: %w", err)
	}
	return nil
}

// New makes a Reconciler without Client, Live and Events. An error is about the address of
// Alertmanager.
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

// clusterChanged passes what silences depend on: labels, vetoes, and that a cluster
// hibernates or is being removed.
var clusterChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, isCluster := e.ObjectOld.(*v1alpha1.FleetCluster)
	after, isStill := e.ObjectNew.(*v1alpha1.FleetCluster)
	return !isCluster || !isStill || !equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		!equality.Semantic.DeepEqual(before.Status.Veto, after.Status.Veto) ||
		before.Status.IsHibernating() != after.Status.IsHibernating() ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
}}
