// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package silence

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/silences"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// observeFleet reads the input of automatic silences. It runs every few seconds, so it lists
// only the OperatorInstalls of operators that are changing, and of clusters with a veto.
func (r *Reconciler) observeFleet(ctx context.Context, in observation) (silences.Fleet, error) {
	fleet := silences.Fleet{Covers: holds.VetoCovers, Now: in.Now, Namespace: in.Namespace, Max: in.Max,
		Clusters: in.Clusters}
	var rollouts v1alpha1.OperatorRolloutList
	if err := r.Client.List(ctx, &rollouts, client.UnsafeDisableDeepCopy); err != nil {
		return fleet, fmt.Errorf("list rollouts: %w", err)
	}
	fleet.Rollouts = rollouts.Items
	changing := map[v1alpha1.OperatorReference]bool{}
	// Silences continue for AfterUpgrade after a change, so recent changes are included.
	for _, key := range holds.ChangeKeys(in.Now.Add(-silences.AfterUpgrade), rollouts.Items) {
		found, err := r.listInstalls(ctx, client.MatchingFields{kit.IndexChange: key})
		if err != nil {
			return fleet, err
		}
		for i := range found {
			changing[found[i].Spec.Operator] = true
		}
	}
	for operator := range changing {
		found, err := r.listInstalls(ctx, kit.MatchOperator(operator))
		if err != nil {
			return fleet, err
		}
		fleet.Installs = append(fleet.Installs, found...)
	}
	for i := range in.Clusters {
		if in.Clusters[i].Status.Veto == nil {
			continue
		}
		found, err := r.listInstalls(ctx, client.InNamespace(v1alpha1.ClusterNamespace(in.Clusters[i].Name)))
		if err != nil {
			return fleet, err
		}
		fleet.Installs = append(fleet.Installs, slices.DeleteFunc(found, func(o v1alpha1.OperatorInstall) bool {
			return changing[o.Spec.Operator] // the result has these installs already
		})...)
	}
	return fleet, nil
}

// listInstalls lists the OperatorInstalls that the option selects.
func (r *Reconciler) listInstalls(ctx context.Context, option client.ListOption) ([]v1alpha1.OperatorInstall, error) {
	var list v1alpha1.OperatorInstallList
	if err := r.Client.List(ctx, &list, option, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list installs: %w", err)
	}
	return list.Items, nil
}
