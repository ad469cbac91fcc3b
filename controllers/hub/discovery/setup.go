// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apidiscovery "k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/fleet/discovery"
)

// errOutdatedCache is returned if the API server has a newer FleetCluster than the cache.
var errOutdatedCache = errors.New("it was created or replaced meanwhile")

// indexSource is the field that FleetClusters are indexed by: the key of their sourceRef.
const indexSource = "spec.sourceRef"

// Options configure which sources are discovered.
type Options struct {
	// Sources are the names of the kinds to discover: hive, clusterprofile, clusterapi. If it is
	// empty, the controller does not run.
	Sources []string
	// Labels names, for each label of a FleetCluster, the field of the source that the label is
	// copied from; empty: discovery.DefaultLabels.
	Labels map[string]string
	// Selector is a label selector of the sources that become FleetClusters; empty: all.
	Selector string
	// Concurrency is the number of names reconciled at a time.
	Concurrency int
	// Recheck is how often the hub checks whether the kind of a source is served; default 30 s.
	Recheck time.Duration
}

// Check returns an error if an option is invalid.
func (o Options) Check() error {
	for _, name := range o.Sources {
		if _, known := discovery.FindKind(name); !known {
			return fmt.Errorf("unknown source %q: use %s", name, strings.Join(SourceNames(), ", "))
		}
	}
	if _, err := labels.Parse(o.Selector); err != nil {
		return fmt.Errorf("selector of sources: %w", err)
	}
	if err := discovery.CheckLabels(o.Labels); err != nil {
		return fmt.Errorf("labels from sources: %w", err)
	}
	return nil
}

// SourceNames returns the names of all kinds of sources.
func SourceNames() []string {
	var names []string
	for _, kind := range discovery.Kinds() {
		names = append(names, kind.Name)
	}
	return names
}

// Add adds the controller to a manager, if sources are configured. The API server need not serve
// their kinds: each kind is watched while it is served.
func Add(mgr ctrl.Manager, o Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	if len(o.Sources) == 0 {
		return nil
	}
	if len(o.Labels) == 0 {
		o.Labels = discovery.DefaultLabels()
	}
	selector, err := labels.Parse(o.Selector)
	if err != nil {
		return fmt.Errorf("selector of sources: %w", err)
	}
	r := &Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Now: time.Now,
		Events: mgr.GetEventRecorder("bellwether-discovery"), watches: map[schema.GroupKind]*watch{},
		Options: discovery.Options{Labels: o.Labels, Selector: selector}}
	err = mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.FleetCluster{}, indexSource, readSourceKeys)
	if err != nil {
		return fmt.Errorf("index FleetClusters by their source: %w", err)
	}
	built, err := ctrl.NewControllerManagedBy(mgr).Named("discovery").
		Watches(&v1alpha1.FleetCluster{}, handler.EnqueueRequestsFromMapFunc(mapClusterToNames),
			builder.WithPredicates(clusterChanged)).
		WithOptions(controller.Options{MaxConcurrentReconciles: max(o.Concurrency, 1)}).
		Build(r)
	if err != nil {
		return fmt.Errorf("build discovery controller: %w", err)
	}
	served, err := apidiscovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("make a discovery client: %w", err)
	}
	for _, name := range o.Sources {
		kind, _ := discovery.FindKind(name)
		w := &watch{kind: kind, mgr: mgr, served: served, controller: built, reconciler: r,
			recheck: cmp.Or(o.Recheck, 30*time.Second)}
		r.watches[schema.GroupKind{Group: kind.Group, Kind: kind.Kind}] = w
		if err := mgr.Add(w); err != nil {
			return fmt.Errorf("add the watch of %ss: %w", kind.Kind, err)
		}
	}
	return nil
}

// readSourceKeys returns the index key of a FleetCluster's sourceRef; nil if it has none.
func readSourceKeys(obj client.Object) []string {
	if ref := obj.(*v1alpha1.FleetCluster).Spec.SourceRef; ref != nil {
		return []string{discovery.SourceKey(*ref)}
	}
	return nil
}

// mapClusterToNames returns requests for the names that a FleetCluster affects: its
// own name, and the name of its source. The second name becomes free, or is taken, by
// a change of the sourceRef.
func mapClusterToNames(_ context.Context, obj client.Object) []reconcile.Request {
	requests := []reconcile.Request{newRequest(obj.GetName())}
	if ref := obj.(*v1alpha1.FleetCluster).Spec.SourceRef; ref != nil && ref.Name != obj.GetName() {
		requests = append(requests, newRequest(ref.Name))
	}
	return requests
}

// newRequest returns a request for a FleetCluster's name.
func newRequest(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// clusterChanged selects updates of the fields that this controller reads. The map function runs
// on the FleetCluster before and after the update, so a name that became free is reconciled too.
var clusterChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*v1alpha1.FleetCluster), e.ObjectNew.(*v1alpha1.FleetCluster)
	return !maps.Equal(before.Labels, after.Labels) ||
		!equality.Semantic.DeepEqual(before.Spec.SourceRef, after.Spec.SourceRef) ||
		discovery.IsCreatedHere(before) != discovery.IsCreatedHere(after) ||
		!equality.Semantic.DeepEqual(before.Status.Source, after.Status.Source) ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
}}
