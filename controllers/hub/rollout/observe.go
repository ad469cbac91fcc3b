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

// fleetState is the data about the fleet that the decisions of all rollouts use.
type fleetState struct {
	clusters []rollouts.Cluster
	policies []v1alpha1.RolloutPolicy
	access   []v1alpha1.FleetAccess
	freezes  []v1alpha1.FleetFreeze
}

// observe gathers the input of rollouts.Next from the cache. It also returns a summary of the
// cached installs, which observeLive compares with the live installs.
func (r *Reconciler) observe(ctx context.Context, ro *v1alpha1.OperatorRollout) (rollouts.Input, installView, error) {
	in := rollouts.Input{Now: r.Now(), Rollout: ro, Answers: r.Measurer.listAnswers(ro.UID)}
	var err error
	if in.Newer, err = r.hasNewer(ctx, ro); in.Newer || err != nil {
		return in, installView{}, err // a rollout with a newer rollout ends, whatever else is observed
	}
	state, err := r.readFleetState(ctx)
	if err != nil {
		return in, installView{}, err
	}
	in.ObservedInstalls = r.installCache.loadVersion() // before the list, so that the list includes this version
	var installs v1alpha1.OperatorInstallList
	if err := r.Client.List(ctx, &installs, kit.MatchOperator(newOperatorReference(ro)),
		client.UnsafeDisableDeepCopy); err != nil {
		return in, installView{}, fmt.Errorf("list installs: %w", err)
	}
	cached := addInstalls(&in, installs.Items)
	in.ObservedInstalls = findNewestVersion(in.ObservedInstalls, cached.newestVersion)
	return in, cached, r.observeHolds(ctx, &in, state)
}

// addInstalls adds the installs to the input, and returns the summary of the given installs.
func addInstalls(in *rollouts.Input, installs []v1alpha1.OperatorInstall) installView {
	v := installView{count: len(installs)}
	for i := range installs {
		in.Installs = append(in.Installs, rollouts.ObserveInstall(&installs[i]))
		v.newestVersion = findNewestVersion(v.newestVersion, installs[i].ResourceVersion)
	}
	return v
}

// readFleetState reads the state of the fleet from the cache.
func (r *Reconciler) readFleetState(ctx context.Context) (fleetState, error) {
	var clusters v1alpha1.FleetClusterList
	if err := r.Client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return fleetState{}, fmt.Errorf("list clusters: %w", err)
	}
	return completeFleetState(ctx, r.Client, observeClusters(clusters.Items))
}

// readLiveFleetState reads the state of the fleet without the cache. Rollouts that call it at
// the same time share the result, except for the slice of clusters.
func (r *Reconciler) readLiveFleetState(ctx context.Context) (fleetState, error) {
	state, err := r.liveFleetReader.read(func() (fleetState, error) {
		var clusters []rollouts.Cluster
		err := kit.EachPage(ctx, r.Live, func(page *v1alpha1.FleetClusterList) {
			clusters = append(clusters, observeClusters(page.Items)...)
		})
		if err != nil {
			return fleetState{}, fmt.Errorf("list clusters: %w", err)
		}
		return completeFleetState(ctx, r.Live, clusters)
	})
	state.clusters = slices.Clone(state.clusters) // each rollout sets the holds of its clusters
	return state, err
}

// observeClusters converts FleetClusters to the clusters that rollouts use.
func observeClusters(clusters []v1alpha1.FleetCluster) []rollouts.Cluster {
	observed := make([]rollouts.Cluster, len(clusters))
	for i := range clusters {
		observed[i] = rollouts.ObserveCluster(&clusters[i])
	}
	return observed
}

// completeFleetState reads the policies, access rules and freezes, and
// returns them with the clusters.
func completeFleetState(ctx context.Context, reader client.Reader, clusters []rollouts.Cluster) (fleetState, error) {
	var policies v1alpha1.RolloutPolicyList
	if err := reader.List(ctx, &policies); err != nil {
		return fleetState{}, fmt.Errorf("list rollout policies: %w", err)
	}
	var access v1alpha1.FleetAccessList
	if err := reader.List(ctx, &access); err != nil {
		return fleetState{}, fmt.Errorf("list FleetAccess objects: %w", err)
	}
	var freezes v1alpha1.FleetFreezeList
	if err := reader.List(ctx, &freezes); err != nil {
		return fleetState{}, fmt.Errorf("list FleetFreezes: %w", err)
	}
	return fleetState{clusters: clusters, policies: policies.Items, access: access.Items,
		freezes: freezes.Items}, nil
}

// observeLive replaces the cached data of the input by data from the API server. cached is the
// summary that observe returned.
func (r *Reconciler) observeLive(ctx context.Context, in *rollouts.Input, cached installView) error {
	in.Now, in.Live, in.Installs = r.Now(), true, nil
	state, err := r.readLiveFleetState(ctx)
	if err != nil {
		return err
	}
	var (
		live        installView
		listVersion string // resource version
	)
	err = kit.EachPage(ctx, r.Live, func(page *v1alpha1.OperatorInstallList) {
		added := addInstalls(in, page.Items)
		live = installView{count: live.count + added.count, newestVersion: findNewestVersion(live.newestVersion,
			added.newestVersion)}
		listVersion = page.ResourceVersion
	}, client.MatchingLabels(newOperatorReference(in.Rollout).Labels()))
	if err != nil {
		return fmt.Errorf("list installs: %w", err)
	}
	in.ObservedInstalls = live.resolveVersion(cached, in.ObservedInstalls, listVersion)
	return r.observeHolds(ctx, in, state)
}

// installView summarizes the OperatorInstalls of an operator that were read: their number, and
// the newest of their resource versions.
type installView struct {
	count         int
	newestVersion string
}

// resolveVersion returns the resource version that a live read is considered to have reached.
// listVersion is the resource version of the live list: the version of the newest object of any
// kind. A cache reaches that version only with the next change of an install, and until then each
// reconcile would read the whole fleet. If the live read has the same installs as the cache, the
// cache is equally new, and the result is cacheVersion: after the newest change only deletions can
// follow, and no install is missing.
func (v installView) resolveVersion(cached installView, cacheVersion, listVersion string) string {
	if v == cached && cacheVersion != "" {
		return cacheVersion
	}
	return listVersion
}

// cacheProgress records the newest resource version that the cache of OperatorInstalls has
// received. A watch delivers all changes in order, so the cache has each install in that version
// or a later version. The zero value has received nothing.
type cacheProgress struct {
	mu      sync.Mutex
	version string
}

// loadVersion returns the newest recorded version; empty if nothing was received.
func (p *cacheProgress) loadVersion() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version
}

// record stores the object's resource version if it is newer. It always returns true, as a
// predicate that accepts each event.
func (p *cacheProgress) record(o client.Object) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version = findNewestVersion(p.version, o.GetResourceVersion())
	return true
}

// newPredicate returns a predicate that accepts all events and records their versions. The cache
// stores a change before the event is delivered.
func (p *cacheProgress) newPredicate() predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return p.record(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return p.record(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return p.record(e.Object) },
	}
}

// newOperatorReference returns the reference of a rollout's operator.
func newOperatorReference(ro *v1alpha1.OperatorRollout) v1alpha1.OperatorReference {
	return v1alpha1.OperatorReference{Namespace: ro.Namespace, Name: ro.Spec.Operator.Name}
}

// hasNewer reports whether the operator has a rollout with a higher revision.
func (r *Reconciler) hasNewer(ctx context.Context, ro *v1alpha1.OperatorRollout) (bool, error) {
	var all v1alpha1.OperatorRolloutList
	if err := r.Client.List(ctx, &all, client.InNamespace(ro.Namespace), kit.MatchOperator(newOperatorReference(ro)),
		client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list rollouts: %w", err)
	}
	return slices.ContainsFunc(all.Items, func(other v1alpha1.OperatorRollout) bool {
		return other.Spec.Revision > ro.Spec.Revision
	}), nil
}

// findNewestVersion returns the higher of two resource versions of one resource. If the versions
// cannot be compared, it returns a, so that an invalid version never counts as progress.
func findNewestVersion(a, b string) string {
	if a == "" {
		return b
	}
	if order, err := resourceversion.CompareResourceVersion(a, b); err == nil && order < 0 {
		return b
	}
	return a
}
