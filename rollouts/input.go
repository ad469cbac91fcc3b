// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Input is one observation of the rollout, its operator and the fleet.
type Input struct {
	// Now is the hub's time.
	Now time.Time
	// Rollout is the rollout with its last status. Next does not change it.
	Rollout *v1alpha1.OperatorRollout
	// Clusters is the whole fleet, in any order.
	Clusters []Cluster
	// Installs are all OperatorInstalls of the operator, in any order.
	Installs []Install
	// ObservedInstalls is the version of the view of Installs: the resource version of a live list, or the newest
	// resource version of any operator's install that the cache received. A new cache can have an older version if the
	// newest change was a deletion; then the installs are listed live.
	ObservedInstalls string
	// Live is true if Clusters and Installs were read from the API server after Rollout was read, and not from
	// a cache.
	Live bool
	// Newer is true if the operator has a rollout with a higher revision.
	Newer bool
	// Answers are the answers to questions of earlier decisions, in any order.
	Answers []Answer
	// Policies are all RolloutPolicies, in any order. OperatorLabels are the labels of the ManagedOperator.
	Policies       []v1alpha1.RolloutPolicy
	OperatorLabels map[string]string
}

// Cluster is the data that rollouts read from a FleetCluster.
type Cluster struct {
	Name   string
	Labels map[string]string
	// Enrolled is true if the cluster has a namespace on the hub that the hub can write to.
	Enrolled bool
	// Online is true if the agent reports and reaches the API server of its cluster, so the hub's data about the
	// cluster is current.
	Online bool
	// OnlineSince is when the hub saw the cluster come online.
	OnlineSince time.Time
	// OfflineReason and OfflineSince say why and since when the cluster is not online.
	OfflineReason string
	OfflineSince  time.Time
	// Paused is true if a person or the cluster's source paused the cluster, so it must not be changed. PausedReason
	// is the reason; empty means ReasonPaused.
	Paused       bool
	PausedReason string
	Deleting     bool
	// Veto has the changes that the cluster's owner refuses; nil if there are none. VetoEndedAt is when the hub saw
	// the end of the last veto.
	Veto        *v1alpha1.ClusterVeto
	VetoEndedAt time.Time
	// FrozenSince is when a FleetFreeze began to stop changes on the cluster; zero if there is none. A freeze that has
	// just ended counts while it is in the cluster's status. FrozenBefore are earlier freezes, the oldest first.
	FrozenSince  time.Time
	FrozenBefore []Period
	// TimeZone is the IANA name of the cluster's time zone; empty means UTC.
	TimeZone string
	// Kubernetes is the version that the cluster's agent reports; empty if it was not reported.
	Kubernetes string

	// Holds are the reasons why the cluster must not be admitted now. The most important hold comes first.
	Holds []Hold
	// OpenUntil is when ChangeWindows might close the cluster; zero if they do not close it.
	OpenUntil time.Time
}

// Period is a period that has ended.
type Period struct{ Since, EndedAt time.Time }

// Freeze records that a FleetFreeze, which was created at a time, stops changes on the cluster. If the status already
// records a freeze, its time stays.
func (c *Cluster) Freeze(made time.Time) {
	if !c.FrozenSince.IsZero() {
		return
	}
	c.FrozenSince = made
	if n := len(c.FrozenBefore); n > 0 {
		c.FrozenSince = maxTime(made, c.FrozenBefore[n-1].EndedAt)
	}
}

// Extend returns the end of a period that began at began, plus the time in which the cluster was frozen during the
// period. Only freezes that have ended count; Clock handles a current freeze.
func (c Cluster) Extend(began, end time.Time) time.Time {
	for _, f := range c.FrozenBefore {
		if f.Since.Before(end) && f.EndedAt.After(began) {
			end = end.Add(f.EndedAt.Sub(maxTime(began, f.Since)))
		}
	}
	return end
}

// Clock returns the time by which the cluster's deadlines are judged: now, or the start of a current freeze.
func (c Cluster) Clock(now time.Time) time.Time {
	if !c.FrozenSince.IsZero() && c.FrozenSince.Before(now) {
		return c.FrozenSince
	}
	return now
}

// Install is the data that rollouts read from an OperatorInstall.
type Install struct {
	Cluster string
	// Rollout and Wave are the labels that hold the membership.
	Rollout, Wave string
	// Stamp is zero if the install was not admitted.
	Stamp Stamp
	// Previous is the release that the cluster ran before the admission; nil if there was none.
	Previous *v1alpha1.PreviousRelease
	// Bundle is the name of the installed bundle; empty if there is none.
	Bundle string
	// SucceededHash is the hash of the release that succeeded last, as the agent reports.
	SucceededHash string
	// Ready is true if the agent reports the install Ready for its current spec or admission.
	Ready bool
	// Unreported is true if the hub has no data on which admission the cluster keeps: the agent has not reported on the
	// install yet, or the hub has not recovered the admission yet.
	Unreported bool
	// Recovered is the revision of an admission that was found on the cluster and that no rollout of this hub made; 0
	// if there is none.
	Recovered int64
	// Jobs are the Jobs that the cluster was requested to run, by name.
	Jobs map[string]Job
	// Stalled is true if the agent reports, for the current spec, an error that it cannot recover from. StalledReason
	// and StalledMessage describe the error.
	Stalled                       bool
	StalledReason, StalledMessage string
	Deleting                      bool
}

// Stamp is the part of an Admission that decisions use.
type Stamp struct {
	RolloutUID string
	Hash       string
	AdmittedAt time.Time
	// Attempt is the number of retries of the rollout at the time of the admission.
	Attempt int64
}
