// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// setVeto records the changes that the cluster's owner refuses, and since when, by the hub's clock. An offline agent
// does not end a veto.
func setVeto(in Input, status *v1alpha1.FleetClusterStatus) {
	now := metav1.Time{Time: in.Now.UTC().Truncate(time.Second)}
	previous := in.Cluster.Status.Veto
	switch {
	case !in.Lease.Found: // no agent has reported
	case in.Lease.Veto != nil:
		status.Veto = in.Lease.Veto.DeepCopy()
		if status.Veto.Since = now; previous != nil {
			status.Veto.Since = previous.Since
		}
	case previous != nil:
		status.Veto, status.VetoEndedAt = nil, &now
	}
}

// maxPastFreezes is the API's limit.
const maxPastFreezes = 8

// setFreeze records the freeze of the cluster, and since when. The time is from the FleetFreeze, because the freeze
// might have begun while no hub ran. A freeze that ended is added to the past freezes.
func setFreeze(in Input, status *v1alpha1.FleetClusterStatus) {
	previous := in.Cluster.Status.Freeze
	switch {
	case in.Freeze != nil:
		cluster := rollouts.ObserveCluster(in.Cluster)
		cluster.Freeze(in.Freeze.CreationTimestamp.Time)
		status.Freeze = &v1alpha1.ClusterFreeze{Name: in.Freeze.Name, Reason: in.Freeze.Spec.Reason,
			Since: metav1.Time{Time: cluster.FrozenSince}}
	case previous != nil:
		past := append(slices.Clone(status.PastFreezes), v1alpha1.FreezePeriod{Since: previous.Since,
			EndedAt: metav1.Time{Time: in.Now.UTC().Truncate(time.Second)}})
		status.Freeze, status.PastFreezes = nil, past[max(0, len(past)-maxPastFreezes):]
	}
}
