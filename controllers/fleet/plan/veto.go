// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// setVeto records what the cluster's owner refuses, and since when, by the hub's
// clock. An agent that is offline has not ended a veto.
func setVeto(in Input, status *v1alpha1.FleetClusterStatus) {
	now := metav1.Time{Time: in.Now.UTC().Truncate(time.Second)}
	was := in.Cluster.Status.Veto
	switch {
	case !in.Lease.Found:
	case in.Lease.Veto != nil:
		status.Veto = in.Lease.Veto.DeepCopy()
		if status.Veto.Since = now; was != nil {
			status.Veto.Since = was.Since
		}
	case was != nil:
		status.Veto, status.VetoEndedAt = nil, &now
	}
}

// maxPastFreezes is the API's limit.
const maxPastFreezes = 8

// setFreeze records what stops all changes on the cluster, and since when. It may have begun while no hub ran.
func setFreeze(in Input, status *v1alpha1.FleetClusterStatus) {
	was := in.Cluster.Status.Freeze
	switch {
	case in.Freeze != nil:
		seen := rollouts.ObserveCluster(in.Cluster)
		seen.Freeze(in.Freeze.CreationTimestamp.Time)
		status.Freeze = &v1alpha1.ClusterFreeze{Name: in.Freeze.Name, Reason: in.Freeze.Spec.Reason,
			Since: metav1.Time{Time: seen.FrozenSince}}
	case was != nil:
		past := append(slices.Clone(status.PastFreezes), v1alpha1.FreezePeriod{Since: was.Since,
			EndedAt: metav1.Time{Time: in.Now.UTC().Truncate(time.Second)}})
		status.Freeze, status.PastFreezes = nil, past[max(0, len(past)-maxPastFreezes):]
	}
}
