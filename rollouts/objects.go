// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// ObserveCluster returns the data that a rollout reads from a FleetCluster.
//
// A cluster is online while its agent reports and does not report that the API server of its cluster is unreachable.
// If the agent does not report this, as in earlier versions, the API server counts as reachable.
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
			cluster.OnlineSince = maxTime(cluster.OnlineSince, apiServer.LastTransitionTime.Time)
		}
	}
	return cluster
}

// PausedReason returns the reason why rollouts must not change a cluster. It returns "" if there is none. A pause by a
// person comes before other reasons.
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

// IsChangeForbidden reports whether the cluster is paused by a person or by its source. A hibernating cluster is
// only offline.
func (c Cluster) IsChangeForbidden() bool {
	return c.Paused && c.PausedReason != v1alpha1.ReasonHibernating
}

// isEnrolled reports whether the hub can write to the cluster's namespace. A cluster without a usable namespace would
// block the planning of all other clusters.
func isEnrolled(c *v1alpha1.FleetCluster) bool {
	reason := conditions.Get(c.Status.Conditions, v1alpha1.ConditionReady).Reason
	return c.Status.Namespace != "" && reason != v1alpha1.ReasonNamespaceTerminating &&
		reason != v1alpha1.ReasonNamespaceConflict
}

// ObserveInstall returns the data that a rollout reads from an OperatorInstall. Conditions count only if the agent
// wrote them for the current generation of the object. Ready also counts if the agent wrote it for the current
// admission: the hub also writes other fields, such as the services to probe, and such a write does not make an
// operator unready.
func ObserveInstall(o *v1alpha1.OperatorInstall) Install {
	install := Install{
		Cluster: o.Spec.Cluster, Rollout: o.Labels[v1alpha1.LabelRollout], Wave: o.Labels[v1alpha1.LabelWave],
		SucceededHash: o.Status.SucceededHash, Deleting: o.DeletionTimestamp != nil,
		Ready:   isReady(o),
		Stalled: isCurrentAndTrue(o, v1alpha1.ConditionStalled),
		// An admission is written only after the agent has reported on the install.
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
	// An agent with an old view of the install might report an admission that the hub already has.
	if kept := o.Status.Kept; kept != nil && !o.Spec.Admission.Covers(kept.Admission) {
		install.Recovered, install.Unreported = kept.Admission.Revision, true
	}
	if o.Status.Installed != nil {
		install.Bundle = o.Status.Installed.Bundle
	}
	install.Jobs = observeJobs(o)
	return install
}

// maxRevisionGap is larger than the number of rollouts that an operator can have.
const maxRevisionGap = 1_000_000

// LastRecoverable returns the highest revision of a cluster's admission that a hub continues from. A single agent can
// report any revision, so the limit is maxRevisionGap above the larger of two revisions: resumed, which a person
// accepted, and the second highest revision that clusters keep. No hub has assigned a revision above this limit.
func LastRecoverable(installs []Install, resumed int64) int64 {
	var highest, second int64
	for _, i := range installs {
		if !i.Deleting && i.Recovered > second {
			highest, second = max(highest, i.Recovered), min(highest, i.Recovered)
		}
	}
	return max(resumed, second) + maxRevisionGap
}

// isReady reports whether the agent reported Ready for the current admission, which the revision and the
// hash identify.
func isReady(o *v1alpha1.OperatorInstall) bool {
	a := o.Spec.Admission
	isForAdmission := a != nil && o.Status.ObservedRevision == a.Revision && o.Status.SucceededHash == a.Hash
	return isForAdmission && conditions.IsTrue(o.Status.Conditions, v1alpha1.ConditionReady) ||
		isCurrentAndTrue(o, v1alpha1.ConditionReady)
}

// isCurrentAndTrue reports whether a condition is True and was written for the current generation of the object.
func isCurrentAndTrue(o *v1alpha1.OperatorInstall, conditionType string) bool {
	c := conditions.Get(o.Status.Conditions, conditionType)
	return c.Status == metav1.ConditionTrue && c.ObservedGeneration == o.Generation
}

// maxTime returns the later time.
func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
