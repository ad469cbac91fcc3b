// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// observe gathers from the cache what rollouts.Next decides on.
func (r *Reconciler) observe(ctx context.Context, ro *v1alpha1.OperatorRollout) (rollouts.Input, error) {
	in := rollouts.Input{Now: r.Now(), Rollout: ro, Answers: r.Measurer.answers(ro.UID)}
	var err error
	if in.Newer, err = r.hasNewer(ctx, ro); in.Newer || err != nil {
		return in, err // what ends a rollout that has a newer one depends on nothing else
	}
	var clusters v1alpha1.FleetClusterList
	if err := r.Client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return in, fmt.Errorf("list clusters: %w", err)
	}
	for i := range clusters.Items {
		in.Clusters = append(in.Clusters, rollouts.ObserveCluster(&clusters.Items[i]))
	}
	var installs v1alpha1.OperatorInstallList
	if err := r.Client.List(ctx, &installs, kit.OfOperator(reference(ro)), client.UnsafeDisableDeepCopy); err != nil {
		return in, fmt.Errorf("list installs: %w", err)
	}
	for i := range installs.Items {
		install := &installs.Items[i]
		in.Installs = append(in.Installs, rollouts.ObserveInstall(install))
		in.ObservedInstalls = newest(in.ObservedInstalls, install.ResourceVersion)
	}
	if err := r.observePolicies(ctx, r.Client, &in); err != nil {
		return in, err
	}
	return in, r.observeHolds(ctx, &in)
}

// pageSize of a live list.
const pageSize = 500

// observeLive replaces what came from the cache by what the API server says
// now.
func (r *Reconciler) observeLive(ctx context.Context, in *rollouts.Input) error {
	cached := view{installs: len(in.Installs), newest: in.ObservedInstalls}
	in.Now, in.Live = r.Now(), true
	in.Clusters, in.Installs, in.ObservedInstalls = nil, nil, ""
	var clusters v1alpha1.FleetClusterList
	for more := true; more; more = clusters.Continue != "" {
		if err := r.Live.List(ctx, &clusters, client.Limit(pageSize), client.Continue(clusters.Continue)); err != nil {
			return fmt.Errorf("list clusters: %w", err)
		}
		for i := range clusters.Items {
			in.Clusters = append(in.Clusters, rollouts.ObserveCluster(&clusters.Items[i]))
		}
	}
	var (
		installs v1alpha1.OperatorInstallList
		live     view
	)
	ofOperator := client.MatchingLabels(reference(in.Rollout).Labels())
	for more := true; more; more = installs.Continue != "" {
		if err := r.Live.List(ctx, &installs, client.Limit(pageSize), client.Continue(installs.Continue),
			ofOperator); err != nil {
			return fmt.Errorf("list installs: %w", err)
		}
		for i := range installs.Items {
			in.Installs = append(in.Installs, rollouts.ObserveInstall(&installs.Items[i]))
			live.newest = newest(live.newest, installs.Items[i].ResourceVersion)
		}
	}
	live.installs = len(in.Installs)
	in.ObservedInstalls = live.observed(cached, installs.ResourceVersion)
	if err := r.observePolicies(ctx, r.Live, in); err != nil {
		return err
	}
	return r.observeHolds(ctx, in)
}

// view is what was read of the OperatorInstalls of an operator: how many, and the newest resource version of one.
type view struct {
	installs int
	newest   string
}

// observed returns how far a view that was read live has come. list is the resource version of the list, which is that
// of the newest object of any kind: a cache reaches it only with the next change of an install, and until then each
// reconcile would read the whole fleet. Where the cache had the same, it is as new as the live view, and says how far
// both have come: after the newest change nothing but deletions can follow, and nothing is missing.
func (v view) observed(cached view, list string) string {
	if v == cached && v.newest != "" {
		return v.newest
	}
	return list
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
