// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
	"github.com/bellwether-dev/bellwether/rollouts/policy"
)

// +kubebuilder:rbac:groups=bellwether.dev,resources=changewindows;fleetaccesses;fleetfreezes;managedoperators,verbs=get;list;watch

// observeHolds adds the state of the fleet to the input, and computes for each cluster
// what holds the cluster back.
func (r *Reconciler) observeHolds(ctx context.Context, in *rollouts.Input, state fleetState) error {
	in.Clusters, in.Policies = state.clusters, state.policies
	holdsInput := holds.Input{Now: in.Now, Operator: newOperatorReference(in.Rollout), MaxChanges: r.MaxChanges,
		Requirements: in.Rollout.Spec.Requirements, Release: in.Rollout.Spec.Release.Bundle, Installs: in.Installs,
		Resumed: in.Rollout.Spec.Resumed, PreflightJob: rollouts.PreflightJobOf(in.Rollout), Freezes: state.freezes}
	var operator v1alpha1.ManagedOperator
	key := client.ObjectKey{Namespace: in.Rollout.Namespace, Name: in.Rollout.Spec.Operator.Name}
	// Without the ManagedOperator, there are no labels and no dependencies.
	switch err := r.Client.Get(ctx, key, &operator); {
	case err == nil:
		holdsInput.OperatorLabels, in.OperatorLabels = operator.Labels, operator.Labels
		if holdsInput.Dependencies, err = r.observeDependencies(ctx, &operator); err != nil {
			return err
		}
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read operator: %w", err)
	}
	var windows v1alpha1.ChangeWindowList
	if err := r.Client.List(ctx, &windows, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list change windows: %w", err)
	}
	holdsInput.Windows = windows.Items
	holdsInput.Access = holds.DecideAccess(state.access, in.Rollout.Namespace, in.Rollout.Spec.Release)
	holdsInput.Policies = policy.Read(in.Policies, rollouts.PolicyOperator(in.Rollout, in.OperatorLabels))
	var err error
	if holdsInput.Changes, err = r.observeChanges(ctx, in); err != nil {
		return err
	}
	holds.SetHolds(holdsInput, in.Clusters)
	r.writeFailures.addHolds(in.Rollout.UID, in.Clusters, in.Now)
	return nil
}

// observeDependencies returns the operators that o depends on, each with its
// OperatorInstalls by cluster.
func (r *Reconciler) observeDependencies(ctx context.Context, o *v1alpha1.ManagedOperator) ([]holds.Dependency, error) {
	var list []holds.Dependency
	for _, d := range o.Spec.DependsOn {
		var installs v1alpha1.OperatorInstallList
		reference := v1alpha1.OperatorReference{Namespace: o.Namespace, Name: d.Name}
		err := r.Client.List(ctx, &installs, kit.MatchOperator(reference), client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("list installs of %s: %w", d.Name, err)
		}
		dependency := holds.Dependency{OperatorDependency: d, Installs: map[string]*v1alpha1.OperatorInstall{}}
		for i := range installs.Items {
			dependency.Installs[installs.Items[i].Spec.Cluster] = &installs.Items[i]
		}
		list = append(list, dependency)
	}
	return list, nil
}

// observeChanges reads from the cache what other operators change on clusters. The selection of
// clusters uses this result. Before a cluster is admitted, isBusy checks again without the
// cache. The result is nil if changes are not limited or the rollout cannot admit clusters.
func (r *Reconciler) observeChanges(ctx context.Context, in *rollouts.Input) (holds.Changes, error) {
	if r.MaxChanges <= 0 || in.Newer || !in.Rollout.MayAdmit() {
		return nil, nil
	}
	var all v1alpha1.OperatorRolloutList
	if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list rollouts: %w", err)
	}
	var changing []v1alpha1.OperatorInstall
	for _, key := range holds.ChangeKeys(in.Now, all.Items) {
		var installs v1alpha1.OperatorInstallList
		if err := r.Client.List(ctx, &installs, client.MatchingFields{kit.IndexChange: key},
			client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list installs: %w", err)
		}
		changing = append(changing, installs.Items...)
	}
	clusters := indexByName(in.Clusters)
	return holds.ReadChanges(in.Now, newOperatorReference(in.Rollout), all.Items, changing, clusters), nil
}

// indexByName returns the clusters by name.
func indexByName(clusters []rollouts.Cluster) map[string]rollouts.Cluster {
	byName := make(map[string]rollouts.Cluster, len(clusters))
	for _, c := range clusters {
		byName[c.Name] = c
	}
	return byName
}

// listLiveRollouts returns all rollouts from the API server, without the cache. It must be
// called after the batch that the actions belong to was written.
func (r *Reconciler) listLiveRollouts(ctx context.Context) ([]v1alpha1.OperatorRollout, error) {
	var all []v1alpha1.OperatorRollout
	err := kit.EachPage(ctx, r.Live, func(page *v1alpha1.OperatorRolloutList) { all = append(all, page.Items...) })
	if err != nil {
		return nil, fmt.Errorf("list rollouts: %w", err)
	}
	return all, nil
}

// isBusy reports whether other operators change, or are about to change, the cluster. It lists
// the cluster's namespace without the cache, once in each pass.
//
// The cache is not sufficient. When another rollout removes an entry from its batch, it has
// written the admission to the API server, but the cache might not have the admission yet, above
// all the cache of a hub that has just become the leader. The change would then be visible
// neither in the batch nor in the install. One result is valid for the whole pass, because the
// batch of this rollout was written before, and other rollouts respect the batch.
func (r *Reconciler) isBusy(ctx context.Context, p *applyPass, cluster string) (bool, error) {
	if r.MaxChanges <= 0 {
		return false, nil
	}
	if busy, known := p.busy.Load(cluster); known {
		return busy.(bool), nil
	}
	var installs v1alpha1.OperatorInstallList
	err := r.Live.List(ctx, &installs, client.InNamespace(v1alpha1.ClusterNamespace(cluster)))
	if err != nil {
		return false, fmt.Errorf("list installs of %s: %w", cluster, err)
	}
	self := newOperatorReference(p.rollout)
	changes := holds.ReadChanges(r.Now(), self, p.allRollouts, installs.Items, p.clusters)
	busy := changes.FindBusyHold(cluster, self, r.MaxChanges) != nil
	p.busy.Store(cluster, busy)
	return busy, nil
}

// listWaitingForCluster returns requests for the rollouts that wait for other operators on a
// cluster. The status of a rollout names only some of many clusters, so a rollout with more
// clusters than names is included too.
func (r *Reconciler) listWaitingForCluster(ctx context.Context, cluster string) []reconcile.Request {
	return r.listRolloutRequests(ctx, func(ro *v1alpha1.OperatorRollout) bool {
		return slices.ContainsFunc(ro.Status.HeldBack, func(g v1alpha1.HeldBackClusters) bool {
			return (g.Reason == v1alpha1.ReasonClusterBusy || g.Reason == v1alpha1.ReasonDependencyNotMet) &&
				(int(g.Count) > len(g.Clusters) || slices.Contains(g.Clusters, cluster))
		})
	})
}

// batchChanged selects rollouts whose batch changed or that were deleted: rollouts of other
// operators might have waited for them.
var batchChanged = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1alpha1.OperatorRollout), e.ObjectNew.(*v1alpha1.OperatorRollout)
		return !equality.Semantic.DeepEqual(before.Status.Batch, after.Status.Batch)
	},
}

// mapRolloutToWaiting returns requests for the rollouts that wait for the batch of
// another operator's rollout.
func (r *Reconciler) mapRolloutToWaiting(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.listRolloutRequests(ctx, func(ro *v1alpha1.OperatorRollout) bool {
		return ro.UID != obj.GetUID() && slices.ContainsFunc(ro.Status.HeldBack,
			func(g v1alpha1.HeldBackClusters) bool { return g.Reason == v1alpha1.ReasonClusterBusy })
	})
}

// mapToOpenRollouts returns requests for the rollouts that may still admit clusters. It is used
// for objects that can hold back any cluster.
func (r *Reconciler) mapToOpenRollouts(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.listRolloutRequests(ctx, func(ro *v1alpha1.OperatorRollout) bool {
		return ro.MayAdmit()
	})
}

// mapOperatorToRollouts returns requests for the rollouts of a ManagedOperator that
// may still admit clusters.
func (r *Reconciler) mapOperatorToRollouts(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.listRolloutRequests(ctx, func(ro *v1alpha1.OperatorRollout) bool {
		return ro.Spec.Operator.Name == obj.GetName() && ro.MayAdmit()
	}, client.InNamespace(obj.GetNamespace()))
}
