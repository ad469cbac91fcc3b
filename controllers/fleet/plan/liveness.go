// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Online tells whether the last renewal that the hub saw still holds.
func (l Lease) Online(now time.Time) bool {
	return l.Found && !l.SeenAt.IsZero() && now.Before(l.SeenAt.Add(l.Duration))
}

// judgeLiveness sets Online and OLMAvailable and returns when the verdict may
// change by time alone.
func judgeLiveness(in Input, status *v1alpha1.FleetClusterStatus) time.Duration {
	set := func(conditionType string, holds bool, reason, message string) {
		conditions.Set(&status.Conditions, in.Cluster.Generation, conditionType, holds, reason, message)
	}
	if !in.Lease.Found {
		set(v1alpha1.ConditionOnline, false, v1alpha1.ReasonNeverJoined, neverJoined(in.Cluster.Name))
		set(v1alpha1.ConditionOLMAvailable, false, v1alpha1.ReasonNeverJoined,
			"the agent looks for OLM once it has joined")
		return 0
	}
	if in.Lease.Versions.OLM == "" {
		set(v1alpha1.ConditionOLMAvailable, false, v1alpha1.ReasonOLMMissing, olmMissing)
	} else {
		set(v1alpha1.ConditionOLMAvailable, true, v1alpha1.ReasonSucceeded, "the cluster serves OLM's API")
	}
	if in.Lease.Online(in.Now) {
		set(v1alpha1.ConditionOnline, true, v1alpha1.ReasonLeaseFresh, "the agent renews its Lease")
		return in.Lease.SeenAt.Add(in.Lease.Duration).Sub(in.Now)
	}
	set(v1alpha1.ConditionOnline, false, v1alpha1.ReasonLeaseExpired, leaseExpired(in.Lease))
	return 0
}

const olmMissing = "the cluster does not serve OLM's API (operators.coreos.com): install OLM there; the agent " +
	"notices by itself"

func neverJoined(cluster string) string {
	return fmt.Sprintf("no agent has reported yet: install it with `bellwether fleet join %s`", cluster)
}

func leaseExpired(l Lease) string {
	if l.SeenAt.IsZero() {
		return "the agent has not renewed its Lease since the hub started: look at the agent on the cluster and at " +
			"its way to the hub"
	}
	return fmt.Sprintf("the agent has not renewed its Lease since %s: look at the agent on the cluster and at its "+
		"way to the hub",
		l.SeenAt.UTC().Format(time.RFC3339))
}
