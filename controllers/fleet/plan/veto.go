// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
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
