// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// isSaidToHibernate tells whether the cluster's source says that its machines do not run, and the hub believes it. It
// is the one place where that is decided; others read the condition Hibernating.
//
//	Stopping, Resuming  believed for v1alpha1.PowerTransitionLimit
//	Hibernating         believed until a report arrives from the cluster
//
// A report within the duration of a Lease may be from before the machines were stopped, and does not count. Nor does an
// agent that cannot reach the API server of its cluster: hosted agents run while their clusters do not.
func isSaidToHibernate(in Input) bool {
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
	return !reportedAt(in).After(since.Add(in.Lease.Duration))
}

// reportedAt returns when the hub last got a report of a cluster whose API server answers the agent; zero where that is
// not known. The time is the hub's.
func reportedAt(in Input) time.Time {
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

// setHibernating sets the condition Hibernating, which is there only where the source says that the cluster does not
// run, and returns after how long time alone ends it; zero: never.
func setHibernating(in Input, status *v1alpha1.FleetClusterStatus) time.Duration {
	source := in.Cluster.Status.Source
	if !source.SaysStopped() {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionHibernating)
		return 0
	}
	if !isSaidToHibernate(in) {
		conditions.Set(&status.Conditions, in.Cluster.Generation, v1alpha1.ConditionHibernating, false,
			v1alpha1.ReasonPowerUnknown, powerUnknown(source))
		return 0
	}
	conditions.Set(&status.Conditions, in.Cluster.Generation, v1alpha1.ConditionHibernating, true,
		v1alpha1.ReasonHibernating, hibernating(source))
	if end := source.PowerStateEnd(); end != nil {
		return end.Sub(in.Now)
	}
	return 0
}

// hibernating says why a cluster is taken not to run.
func hibernating(source *v1alpha1.ClusterSource) string {
	return "the cluster does not run: " + powerState(source) + "; rollouts defer it until it runs"
}

// powerUnknown says why the source is not believed.
func powerUnknown(source *v1alpha1.ClusterSource) string {
	text := powerState(source)
	if source.PowerState == v1alpha1.PowerHibernating {
		return text + ", but the agent has reported since then, so the cluster counts as running: check the source"
	}
	return fmt.Sprintf("%s, which the hub believes for %.0f minutes only, so the cluster counts as running: check the "+
		"source", text, v1alpha1.PowerTransitionLimit.Minutes())
}

func powerState(source *v1alpha1.ClusterSource) string {
	text := fmt.Sprintf("its source reports the power state %s", source.PowerState)
	if source.PowerStateSince != nil {
		text += " since " + phrase.Time(source.PowerStateSince.Time)
	}
	return text
}

// soonest returns the shorter of two durations of which zero means never.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
