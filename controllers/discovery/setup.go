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
	"github.com/bellwether-dev/bellwether/controllers/discovery/plan"
	"github.com/bellwether-dev/bellwether/controllers/discovery/sources"
)

// errNewer says that the cache does not have the newest FleetCluster yet.
var errNewer = errors.New("it was created or replaced meanwhile")

// indexSource is the field that FleetClusters are indexed by: the key of their sourceRef.
const indexSource = "spec.sourceRef"

// Options say which sources there are.
type Options struct {
	// Sources are the names of the kinds that are discovered: hive, clusterprofile,
	// clusterapi. None: nothing is.
	Sources []string
	// Labels says for each label of a FleetCluster from which field of its source it comes;
	// empty: plan.DefaultLabels.
	Labels map[string]string
	// Selector is a label selector of the sources that become FleetClusters; empty: all.
	Selector string
	// Concurrency is the number of names reconciled at a time.
	Concurrency int
	// Recheck is how often the hub looks whether a source's kind is served; default 30 s.
	Recheck time.Duration
}

// Check says what is wrong with the options.
func (o Options) Check() error {
	for _, name := range o.Sources {
		if _, known := sources.Find(name); !known {
			return fmt.Errorf("unknown source %q: use %s", name, strings.Join(SourceNames(), ", "))
		}
	}
	if _, err := labels.Parse(o.Selector); err != nil {
		return fmt.Errorf("selector of sources: %w", err)
	}
	if err := plan.CheckLabels(o.Labels); err != nil {
		return fmt.Errorf("labels from sources: %w", err)
	}
	return nil
}

// SourceNames are the names of all kinds of sources.
func SourceNames() []string {
	var names []string
	for _, kind := range sources.All() {
		names = append(names, kind.Name)
	}
	return names
}

// Add adds the controller to a manager, if there are sources. The kinds need not be served:
// each is watched from when it is, and until it is not.
func Add(mgr ctrl.Manager, o Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	if len(o.Sources) == 0 {
		return nil
	}
	if len(o.Labels) == 0 {
		o.Labels = plan.DefaultLabels()
	}
	selector, err := labels.Parse(o.Selector)
	if err != nil {
		return fmt.Errorf("selector of sources: %w", err)
	}
	r := &Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Now: time.Now,
		Events: mgr.GetEventRecorder("bellwether-discovery"), watches: map[schema.GroupKind]*watch{},
		Options: plan.Options{Labels: o.Labels, Selector: selector}}
	err = mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.FleetCluster{}, indexSource, sourceOf)
	if err != nil {
		return fmt.Errorf("index FleetClusters by their source: %w", err)
	}
	built, err := ctrl.NewControllerManagedBy(mgr).Named("discovery").
		Watches(&v1alpha1.FleetCluster{}, handler.EnqueueRequestsFromMapFunc(namesOf),
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
		kind, _ := sources.Find(name)
		w := &watch{kind: kind, mgr: mgr, served: served, controller: built, reconciler: r,
			recheck: cmp.Or(o.Recheck, 30*time.Second)}
		r.watches[schema.GroupKind{Group: kind.Group, Kind: kind.Kind}] = w
		if err := mgr.Add(w); err != nil {
			return fmt.Errorf("add the watch of %ss: %w", kind.Kind, err)
		}
	}
	return nil
}

func sourceOf(obj client.Object) []string {
	if ref := obj.(*v1alpha1.FleetCluster).Spec.SourceRef; ref != nil {
		return []string{sources.Key(*ref)}
	}
	return nil
}

// namesOf are the names that a FleetCluster matters to: its own, and that of the source that
// it names, which is free or taken by it.
func namesOf(_ context.Context, obj client.Object) []reconcile.Request {
	requests := []reconcile.Request{requestFor(obj.GetName())}
	if ref := obj.(*v1alpha1.FleetCluster).Spec.SourceRef; ref != nil && ref.Name != obj.GetName() {
		requests = append(requests, requestFor(ref.Name))
	}
	return requests
}

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// clusterChanged selects updates of what this controller reads. The map function sees the
// FleetCluster before and after, so that a name that was given up is looked at too.
var clusterChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*v1alpha1.FleetCluster), e.ObjectNew.(*v1alpha1.FleetCluster)
	return !maps.Equal(before.Labels, after.Labels) ||
		!equality.Semantic.DeepEqual(before.Spec.SourceRef, after.Spec.SourceRef) ||
		plan.IsMade(before) != plan.IsMade(after) ||
		!equality.Semantic.DeepEqual(before.Status.Source, after.Status.Source) ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
}}
