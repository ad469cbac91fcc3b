// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// isHibernating reports whether the cluster's source reports that its machines do not run, and the hub accepts the
// report. Only this function decides whether a cluster hibernates; other code reads the condition Hibernating.
//
//	Stopping, Resuming  accepted for v1alpha1.PowerTransitionLimit
//	Hibernating         accepted until a report arrives from the cluster
//
// A report within the duration of a Lease might be from before the machines were stopped, so it does not count. An
// agent that cannot reach the API server of its cluster does not count either, because hosted agents run while their
// clusters do not.
func isHibernating(in Input) bool {
	source := in.Cluster.Status.Source
	if !source.SaysStopped() {
		return false
	}
	if end := source.PowerStateEnd(); end != nil {
		return in.Now.Before(end.Time)
	}
	var since time.Time
	if source.PowerStateSince != nil {
		since = source.PowerStateSince.Time
	}
	return !findLastReport(in).After(since.Add(in.Lease.Duration))
}

// findLastReport returns when the hub last received a report of a cluster whose API server answers the agent, by the
// hub's clock. It returns zero if that is not known.
func findLastReport(in Input) time.Time {
	switch {
	case isReachable(in):
		return in.Lease.SeenAt
	case in.Cluster.Status.StaleSince != nil:
		return in.Cluster.Status.StaleSince.Time
	case !in.Lease.IsOnline(in.Now):
		return in.Lease.SeenAt
	}
	return time.Time{}
}

// setHibernating sets the condition Hibernating, which exists only if the source reports that the cluster does not
// run. It returns the time until the condition ends without any event; zero if never.
func setHibernating(in Input, status *v1alpha1.FleetClusterStatus) time.Duration {
	source := in.Cluster.Status.Source
	if !source.SaysStopped() {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionHibernating)
		return 0
	}
	if !isHibernating(in) {
		conditions.Set(&status.Conditions, in.Cluster.Generation, v1alpha1.ConditionHibernating, false,
			v1alpha1.ReasonPowerUnknown, explainPowerUnknown(source))
		return 0
	}
	conditions.Set(&status.Conditions, in.Cluster.Generation, v1alpha1.ConditionHibernating, true,
		v1alpha1.ReasonHibernating, explainHibernation(source))
	if end := source.PowerStateEnd(); end != nil {
		return end.Sub(in.Now)
	}
	return 0
}

// explainHibernation says why a cluster is treated as not running.
func explainHibernation(source *v1alpha1.ClusterSource) string {
	return "the cluster does not run: " + describePowerState(source) + "; rollouts defer it until it runs"
}

// explainPowerUnknown says why the hub does not accept the power state of the source.
func explainPowerUnknown(source *v1alpha1.ClusterSource) string {
	text := describePowerState(source)
	if source.PowerState == v1alpha1.PowerHibernating {
		return text + ", but the agent has reported since then, so the cluster counts as running: check the source"
	}
	return fmt.Sprintf("%s, which the hub accepts for %.0f minutes only, so the cluster counts as running: check the "+
		"source", text, v1alpha1.PowerTransitionLimit.Minutes())
}

// describePowerState returns the power state that the source reports, and since when.
func describePowerState(source *v1alpha1.ClusterSource) string {
	text := fmt.Sprintf("its source reports the power state %s", source.PowerState)
	if source.PowerStateSince != nil {
		text += " since " + phrase.Time(source.PowerStateSince.Time)
	}
	return text
}

// minDelay returns the shorter of two durations. Zero means never.
func minDelay(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}
