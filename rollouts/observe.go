// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// ObserveCluster returns what a rollout reads of a FleetCluster.
//
// A cluster is online while its agent reports and does not say that it cannot
// reach the API server of its own cluster. An agent that says nothing of that,
// such as one of an earlier version, is believed to reach it.
func ObserveCluster(c *v1alpha1.FleetCluster) Cluster {
	agent := conditions.Get(c.Status.Conditions, v1alpha1.ConditionOnline)
	apiServer := conditions.Get(c.Status.Conditions, v1alpha1.ConditionAPIServerReachable)
	cluster := Cluster{
		Name: c.Name, Labels: c.Labels, Enrolled: isEnrolled(c), PausedReason: PausedReason(c),
		Deleting: c.DeletionTimestamp != nil, TimeZone: c.Annotations[v1alpha1.AnnotationTimeZone], Veto: c.Status.Veto,
		Kubernetes: c.Status.Versions.Kubernetes,
	}
	cluster.Paused = cluster.PausedReason != ""
	if at := c.Status.VetoEndedAt; at != nil {
		cluster.VetoEndedAt = at.Time
	}
	if f := c.Status.Freeze; f != nil {
		cluster.FrozenSince = f.Since.Time
	}
	for _, f := range c.Status.PastFreezes {
		cluster.FrozenBefore = append(cluster.FrozenBefore, Period{f.Since.Time, f.EndedAt.Time})
	}
	switch {
	case agent.Status != metav1.ConditionTrue:
		cluster.OfflineReason, cluster.OfflineSince = v1alpha1.ReasonAgentOffline, agent.LastTransitionTime.Time
	case apiServer.Status == metav1.ConditionFalse:
		cluster.OfflineReason = v1alpha1.ReasonAPIServerUnreachable
		cluster.OfflineSince = apiServer.LastTransitionTime.Time
	default:
		cluster.Online, cluster.OnlineSince = true, agent.LastTransitionTime.Time
		if apiServer.Status == metav1.ConditionTrue {
			cluster.OnlineSince = latest(cluster.OnlineSince, apiServer.LastTransitionTime.Time)
		}
	}
	return cluster
}

// PausedReason is why rollouts leave a cluster alone whatever it reports; empty where they do not. If a person paused
// it, that is the reason.
func PausedReason(c *v1alpha1.FleetCluster) string {
	switch {
	case c.Spec.Paused:
		return v1alpha1.ReasonPaused
	case c.Status.IsHibernating():
		return v1alpha1.ReasonHibernating
	case c.Status.IsSourcePaused():
		return v1alpha1.ReasonSourcePaused
	}
	return ""
}

// IsLeftAlone tells whether a person, or the owner of the cluster's source, wants nothing changed on the cluster. One
// that hibernates is only offline.
func (c Cluster) IsLeftAlone() bool {
	return c.Paused && c.PausedReason != v1alpha1.ReasonHibernating
}

// isEnrolled tells whether the cluster's namespace can be written to. One that
// cannot would hold up the planning of all others.
func isEnrolled(c *v1alpha1.FleetCluster) bool {
	reason := conditions.Get(c.Status.Conditions, v1alpha1.ConditionReady).Reason
	return c.Status.Namespace != "" && reason != v1alpha1.ReasonNamespaceTerminating &&
		reason != v1alpha1.ReasonNamespaceConflict
}

// ObserveInstall returns what a rollout reads of an OperatorInstall. Conditions count only where the agent wrote them
// for the object as it is now. Ready counts as long as the agent wrote it for the admission: the hub writes the rest of
// the object too, such as the services that are to be probed, and that makes no operator unready.
func ObserveInstall(o *v1alpha1.OperatorInstall) Install {
	install := Install{
		Cluster: o.Spec.Cluster, Rollout: o.Labels[v1alpha1.LabelRollout], Wave: o.Labels[v1alpha1.LabelWave],
		SucceededHash: o.Status.SucceededHash, Deleting: o.DeletionTimestamp != nil,
		Ready:   isReady(o),
		Stalled: isCurrentAndTrue(o, v1alpha1.ConditionStalled),
		// An install that was admitted was reported on before.
		Unreported: o.Status.ObservedGeneration == 0 && o.Spec.Admission == nil,
	}
	if install.Stalled {
		c := conditions.Get(o.Status.Conditions, v1alpha1.ConditionStalled)
		install.StalledReason, install.StalledMessage = c.Reason, c.Message
	}
	if a := o.Spec.Admission; a != nil {
		install.Stamp = Stamp{
			RolloutUID: a.RolloutUID, Hash: a.Hash, AdmittedAt: a.AdmittedAt.Time, Attempt: a.Attempt,
		}
		install.Previous = a.PreviousRelease()
		if a.Recovered {
			install.Recovered = a.Revision
		}
	}
	// An agent with an old view of the install may report what the hub knows.
	if kept := o.Status.Kept; kept != nil && !o.Spec.Admission.Covers(kept.Admission) {
		install.Recovered, install.Unreported = kept.Admission.Revision, true
	}
	if o.Status.Installed != nil {
		install.Bundle = o.Status.Installed.Bundle
	}
	install.Jobs = observeJobs(o)
	return install
}

// maxAhead is more rollouts than an operator ever has.
const maxAhead = 1_000_000

// LastRecoverable is the highest revision of an admission found on a cluster that a hub goes on from. An agent can
// report any: a million more than people have agreed to, and than another cluster keeps, no hub has given out.
func LastRecoverable(installs []Install, resumed int64) int64 {
	var highest, second int64
	for _, i := range installs {
		if !i.Deleting && i.Recovered > second {
			highest, second = max(highest, i.Recovered), min(highest, i.Recovered)
		}
	}
	return max(resumed, second) + maxAhead
}

// isReady tells whether the agent has reported Ready for the admission that the install has, which the revision and the
// hash identify.
func isReady(o *v1alpha1.OperatorInstall) bool {
	a := o.Spec.Admission
	isForAdmission := a != nil && o.Status.ObservedRevision == a.Revision && o.Status.SucceededHash == a.Hash
	return isForAdmission && conditions.IsTrue(o.Status.Conditions, v1alpha1.ConditionReady) ||
		isCurrentAndTrue(o, v1alpha1.ConditionReady)
}

func isCurrentAndTrue(o *v1alpha1.OperatorInstall, conditionType string) bool {
	c := conditions.Get(o.Status.Conditions, conditionType)
	return c.Status == metav1.ConditionTrue && c.ObservedGeneration == o.Generation
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
