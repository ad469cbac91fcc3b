// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// surroundings are what the decisions of all rollouts look at.
type surroundings struct {
	clusters []rollouts.Cluster
	policies []v1alpha1.RolloutPolicy
	access   []v1alpha1.FleetAccess
	freezes  []v1alpha1.FleetFreeze
}

// observe gathers what rollouts.Next decides on from the cache, and tells what the cache has of the installs.
func (r *Reconciler) observe(ctx context.Context, ro *v1alpha1.OperatorRollout) (rollouts.Input, view, error) {
	in := rollouts.Input{Now: r.Now(), Rollout: ro, Answers: r.Measurer.answers(ro.UID)}
	var err error
	if in.Newer, err = r.hasNewer(ctx, ro); in.Newer || err != nil {
		return in, view{}, err // what ends a rollout that has a newer one depends on nothing else
	}
	around, err := r.surroundings(ctx)
	if err != nil {
		return in, view{}, err
	}
	in.ObservedInstalls = r.seen.reached() // before the list, which has it then
	var installs v1alpha1.OperatorInstallList
	if err := r.Client.List(ctx, &installs, kit.OfOperator(reference(ro)), client.UnsafeDisableDeepCopy); err != nil {
		return in, view{}, fmt.Errorf("list installs: %w", err)
	}
	cached := addInstalls(&in, installs.Items)
	in.ObservedInstalls = newest(in.ObservedInstalls, cached.newest)
	return in, cached, r.observeHolds(ctx, &in, around)
}

// addInstalls adds to what is observed of installs, and returns the view of these.
func addInstalls(in *rollouts.Input, installs []v1alpha1.OperatorInstall) view {
	v := view{installs: len(installs)}
	for i := range installs {
		in.Installs = append(in.Installs, rollouts.ObserveInstall(&installs[i]))
		v.newest = newest(v.newest, installs[i].ResourceVersion)
	}
	return v
}

// surroundings reads the cache.
func (r *Reconciler) surroundings(ctx context.Context) (surroundings, error) {
	var clusters v1alpha1.FleetClusterList
	if err := r.Client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return surroundings{}, fmt.Errorf("list clusters: %w", err)
	}
	return aroundClusters(ctx, r.Client, observeClusters(clusters.Items))
}

// liveSurroundings reads past the cache. The result is shared by rollouts that ask at the same time.
func (r *Reconciler) liveSurroundings(ctx context.Context) (surroundings, error) {
	around, err := r.around.get(func() (surroundings, error) {
		var clusters []rollouts.Cluster
		err := kit.EachPage(ctx, r.Live, func(page *v1alpha1.FleetClusterList) {
			clusters = append(clusters, observeClusters(page.Items)...)
		})
		if err != nil {
			return surroundings{}, fmt.Errorf("list clusters: %w", err)
		}
		return aroundClusters(ctx, r.Live, clusters)
	})
	around.clusters = slices.Clone(around.clusters) // each rollout sets what holds them back
	return around, err
}

func observeClusters(clusters []v1alpha1.FleetCluster) []rollouts.Cluster {
	observed := make([]rollouts.Cluster, len(clusters))
	for i := range clusters {
		observed[i] = rollouts.ObserveCluster(&clusters[i])
	}
	return observed
}

// aroundClusters reads the rest of the surroundings, of which there is little.
func aroundClusters(ctx context.Context, from client.Reader, clusters []rollouts.Cluster) (surroundings, error) {
	var policies v1alpha1.RolloutPolicyList
	if err := from.List(ctx, &policies); err != nil {
		return surroundings{}, fmt.Errorf("list rollout policies: %w", err)
	}
	var access v1alpha1.FleetAccessList
	if err := from.List(ctx, &access); err != nil {
		return surroundings{}, fmt.Errorf("list FleetAccess objects: %w", err)
	}
	var freezes v1alpha1.FleetFreezeList
	if err := from.List(ctx, &freezes); err != nil {
		return surroundings{}, fmt.Errorf("list FleetFreezes: %w", err)
	}
	return surroundings{clusters: clusters, policies: policies.Items, access: access.Items,
		freezes: freezes.Items}, nil
}

// observeLive replaces what came from the cache by what the API server says
// now.
func (r *Reconciler) observeLive(ctx context.Context, in *rollouts.Input, cached view) error {
	in.Now, in.Live, in.Installs = r.Now(), true, nil
	around, err := r.liveSurroundings(ctx)
	if err != nil {
		return err
	}
	var (
		live view
		list string // resource version
	)
	err = kit.EachPage(ctx, r.Live, func(page *v1alpha1.OperatorInstallList) {
		added := addInstalls(in, page.Items)
		live = view{installs: live.installs + added.installs, newest: newest(live.newest, added.newest)}
		list = page.ResourceVersion
	}, client.MatchingLabels(reference(in.Rollout).Labels()))
	if err != nil {
		return fmt.Errorf("list installs: %w", err)
	}
	in.ObservedInstalls = live.observed(cached, in.ObservedInstalls, list)
	return r.observeHolds(ctx, in, around)
}

// view is what was read of the OperatorInstalls of an operator: how many, and the newest resource version of one.
type view struct {
	installs int
	newest   string
}

// observed returns how far a view that was read live has come. list is the resource version of the list, which is that
// of the newest object of any kind: a cache reaches it only with the next change of an install, and until then each
// reconcile would read the whole fleet. Where the cache had the same, it is as new as the live view, and how far it had
// reached says how far both have come: after the newest change nothing but deletions can follow, and none is missing.
func (v view) observed(cached view, reached, list string) string {
	if v == cached && reached != "" {
		return reached
	}
	return list
}

// progress is how far the cache of OperatorInstalls has come: to the newest resource version of any that it was told
// of. A watch tells of all changes in their order, so the cache has each operator's installs as they were then, or as
// they were later. The zero value has seen nothing.
type progress struct {
	mu      sync.Mutex
	version string
}

func (p *progress) reached() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version
}

func (p *progress) saw(o client.Object) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version = newest(p.version, o.GetResourceVersion())
	return true
}

// predicate passes everything, and takes note of it. The cache has a change before it tells of it.
func (p *progress) predicate() predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return p.saw(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return p.saw(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return p.saw(e.Object) },
	}
}

func reference(ro *v1alpha1.OperatorRollout) v1alpha1.OperatorReference {
	return v1alpha1.OperatorReference{Namespace: ro.Namespace, Name: ro.Spec.Operator.Name}
}

// hasNewer tells whether the operator has a rollout with a higher revision.
func (r *Reconciler) hasNewer(ctx context.Context, ro *v1alpha1.OperatorRollout) (bool, error) {
	var all v1alpha1.OperatorRolloutList
	if err := r.Client.List(ctx, &all, client.InNamespace(ro.Namespace), kit.OfOperator(reference(ro)),
		client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list rollouts: %w", err)
	}
	return slices.ContainsFunc(all.Items, func(other v1alpha1.OperatorRollout) bool {
		return other.Spec.Revision > ro.Spec.Revision
	}), nil
}

// newest is the higher of two resource versions of one resource. One that
// cannot be compared loses, so that it is never taken for progress.
func newest(a, b string) string {
	if a == "" {
		return b
	}
	if order, err := resourceversion.CompareResourceVersion(a, b); err == nil && order < 0 {
		return b
	}
	return a
}
