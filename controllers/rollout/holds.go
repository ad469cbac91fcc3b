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
	"github.com/bellwether-dev/bellwether/rollouts/access"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
	"github.com/bellwether-dev/bellwether/rollouts/policy"
)

// +kubebuilder:rbac:groups=bellwether.dev,resources=changewindows;fleetaccesses;fleetfreezes;managedoperators,verbs=get;list;watch

// observeHolds adds the surroundings to an observation, with what holds back each cluster.
func (r *Reconciler) observeHolds(ctx context.Context, in *rollouts.Input, around surroundings) error {
	in.Clusters, in.Policies = around.clusters, around.policies
	h := holds.Input{Now: in.Now, Operator: reference(in.Rollout), MaxChanges: r.MaxChanges,
		Requirements: in.Rollout.Spec.Requirements, Release: in.Rollout.Spec.Release.Bundle, Installs: in.Installs,
		Resumed: in.Rollout.Spec.Resumed, PreflightJob: rollouts.PreflightJobOf(in.Rollout), Freezes: around.freezes}
	var operator v1alpha1.ManagedOperator
	key := client.ObjectKey{Namespace: in.Rollout.Namespace, Name: in.Rollout.Spec.Operator.Name}
	switch err := r.Client.Get(ctx, key, &operator); {
	case err == nil:
		h.OperatorLabels, in.OperatorLabels = operator.Labels, operator.Labels
		if h.Dependencies, err = r.observeDependencies(ctx, &operator); err != nil {
			return err
		}
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read operator: %w", err)
	}
	var windows v1alpha1.ChangeWindowList
	if err := r.Client.List(ctx, &windows, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list change windows: %w", err)
	}
	h.Windows = windows.Items
	h.Access = access.Decide(around.access, in.Rollout.Namespace, in.Rollout.Spec.Release)
	h.Policies = policy.Read(in.Policies, rollouts.PolicyOperator(in.Rollout, in.OperatorLabels))
	var err error
	if h.Changes, err = r.observeChanges(ctx, in); err != nil {
		return err
	}
	holds.Set(h, in.Clusters)
	r.refusals.hold(in.Rollout.UID, in.Clusters, in.Now)
	return nil
}

func (r *Reconciler) observeDependencies(ctx context.Context, o *v1alpha1.ManagedOperator) ([]holds.Dependency, error) {
	var list []holds.Dependency
	for _, d := range o.Spec.DependsOn {
		var installs v1alpha1.OperatorInstallList
		of := v1alpha1.OperatorReference{Namespace: o.Namespace, Name: d.Name}
		if err := r.Client.List(ctx, &installs, kit.OfOperator(of), client.UnsafeDisableDeepCopy); err != nil {
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

// observeChanges finds in the cache what other operators change. It is what the
// choice of clusters rests on; their admission rests on a look past the cache.
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
	return holds.ReadChanges(in.Now, reference(in.Rollout), all.Items, changing, byName(in.Clusters)), nil
}

func byName(clusters []rollouts.Cluster) map[string]rollouts.Cluster {
	named := make(map[string]rollouts.Cluster, len(clusters))
	for _, c := range clusters {
		named[c.Name] = c
	}
	return named
}

// others are the rollouts as the API server has them, read after the batch entries
// that are to be acted on.
func (r *Reconciler) others(ctx context.Context) ([]v1alpha1.OperatorRollout, error) {
	var all []v1alpha1.OperatorRollout
	err := kit.EachPage(ctx, r.Live, func(page *v1alpha1.OperatorRolloutList) { all = append(all, page.Items...) })
	if err != nil {
		return nil, fmt.Errorf("list rollouts: %w", err)
	}
	return all, nil
}

// isBusy tells whether other operators change, or are about to change, the cluster of
// an action. It lists the cluster's namespace past the cache, once a pass: an entry that
// is gone from the batch of another rollout has left its stamp on the API server, but the
// cache may not have that yet, above all that of a hub that has just taken over. Between
// both, the other change would be seen nowhere. What was seen once holds for the whole
// pass, because the batch entry of this rollout was there before, which others respect.
func (r *Reconciler) isBusy(ctx context.Context, p *admitting, cluster string) (bool, error) {
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
	self := reference(p.rollout)
	changes := holds.ReadChanges(r.Now(), self, p.others, installs.Items, p.clusters)
	busy := changes.Busy(cluster, self, r.MaxChanges) != nil
	p.busy.Store(cluster, busy)
	return busy, nil
}

// waiting are the rollouts that wait for other operators on a cluster.
func (r *Reconciler) waiting(ctx context.Context, cluster string) []reconcile.Request {
	return r.requests(ctx, func(ro *v1alpha1.OperatorRollout) bool {
		return slices.ContainsFunc(ro.Status.HeldBack, func(g v1alpha1.HeldBackClusters) bool {
			return (g.Reason == v1alpha1.ReasonClusterBusy || g.Reason == v1alpha1.ReasonDependencyNotMet) &&
				(int(g.Count) > len(g.Clusters) || slices.Contains(g.Clusters, cluster))
		})
	})
}

// batchChanged passes rollouts that other operators may have waited for.
var batchChanged = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1alpha1.OperatorRollout), e.ObjectNew.(*v1alpha1.OperatorRollout)
		return !equality.Semantic.DeepEqual(before.Status.Batch, after.Status.Batch)
	},
}

// waitingForBatch are the rollouts that wait for another operator's batch.
func (r *Reconciler) waitingForBatch(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.requests(ctx, func(ro *v1alpha1.OperatorRollout) bool {
		return ro.UID != obj.GetUID() && slices.ContainsFunc(ro.Status.HeldBack,
			func(g v1alpha1.HeldBackClusters) bool { return g.Reason == v1alpha1.ReasonClusterBusy })
	})
}

// open are the rollouts that may still admit clusters, which a change of what
// holds clusters back concerns.
func (r *Reconciler) open(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.requests(ctx, func(ro *v1alpha1.OperatorRollout) bool {
		return ro.MayAdmit()
	})
}

// ofOperator are the rollouts of a ManagedOperator, whose labels or spec have changed.
func (r *Reconciler) ofOperator(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.requests(ctx, func(ro *v1alpha1.OperatorRollout) bool {
		return ro.Spec.Operator.Name == obj.GetName() && ro.MayAdmit()
	}, client.InNamespace(obj.GetNamespace()))
}
