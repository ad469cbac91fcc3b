// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/own"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Class is the one count that a cluster of a rollout belongs to.
type Class string

const (
	// ClassPending was not admitted yet.
	ClassPending Class = "Pending"
	// ClassInProgress was admitted and has neither succeeded nor failed.
	ClassInProgress Class = "InProgress"
	// ClassSucceeded installed the release and is Ready.
	ClassSucceeded Class = "Succeeded"
	// ClassFailed counts against the wave's MaxFailures.
	ClassFailed Class = "Failed"
	// ClassDeferred is passed over until it is back.
	ClassDeferred Class = "Deferred"
	// ClassRemoved left the fleet, or the selection, after planning.
	ClassRemoved Class = "Removed"
)

// Reasons of a member's class. The others are those of its FleetCluster:
// AgentOffline, APIServerUnreachable, Paused, Hibernating and SourcePaused.
const (
	// ReasonStalled says that the agent reports terminal trouble.
	ReasonStalled = "Stalled"
	// ReasonDeadlineExceeded says that the wave's deadline has passed.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonNotReady says that the cluster was updated and is not Ready.
	ReasonNotReady = "NotReady"
)

// Member is a cluster of a rollout, and how it counts.
type Member struct {
	Cluster string
	Wave    string
	Class   Class
	// Reason says why; empty where the class says it all.
	Reason string
	// Message says more of the reason, where it is a hold.
	Message string
	// Since is from when on the reason holds, by the hub's clock; zero where the
	// hub does not know.
	Since time.Time
	// Until is when time alone changes the class or the reason: the deadline, the
	// end of the grace or of a hold. Zero where it does not.
	Until time.Time
	// Updated says that the release is installed, Ready or not.
	Updated bool
	// MovedTo is the wave that the cluster's labels select now, where that is another one than Wave; else empty.
	// The rollout does not move the cluster.
	MovedTo string
}

// Classify returns how each cluster of a planned rollout counts, wave by wave
// and in the order of admission. What holds clusters back is what the status
// records. It fails where the rollout's selectors cannot be used.
func Classify(in Input) ([]Member, error) {
	in.Clusters = recordedHolds(in)
	p, err := newPass(in)
	if err != nil {
		return nil, err
	}
	p.recorded = true
	p.count()
	var members []Member
	for i := range p.states {
		for _, m := range p.states[i].members {
			if m.Class != ClassRemoved {
				m.MovedTo = movedTo(p.waves, i, m.cluster)
			}
			members = append(members, m.Member)
		}
	}
	return members, nil
}

// member is a Member with what admission rests on.
type member struct {
	Member
	cluster Cluster
	// ours says that this rollout admitted it, or has decided to.
	ours bool
	// holds says that it takes a slot: it was admitted, by this rollout or an
	// older one, and may still be changing, or it is not Ready.
	holds bool
	// admissible says that it may be admitted.
	admissible bool
	// retried says that it failed and is to be admitted again.
	retried bool
	// hold is why it is not to be admitted now; nil if nothing holds it back.
	hold *Hold
	// deadline is when an admission counts as failed.
	deadline time.Time
	// unreadySince is when the hub first saw it updated and not Ready; zero where
	// that does not count.
	unreadySince time.Time
	// proves says that it is updated and was Ready when it was last seen. In a wave
	// that is verified, one that is not counts as succeeded too.
	proves bool
}

// isUnready tells whether the member is in its grace.
func (m member) isUnready() bool { return m.Class == ClassInProgress && m.Reason == ReasonNotReady }

// readmits tells whether an updated member was, or is to be, admitted again.
func (s *waveState) readmits() bool {
	return slices.ContainsFunc(s.members, func(m member) bool {
		return m.Updated && (m.Class == ClassPending || m.Class == ClassInProgress && !m.isUnready())
	})
}

// classify decides in the order of this list:
//
//  1. not selected any more, or being deleted: removed
//  2. in the batch to be admitted again: in progress
//  3. the release is installed: succeeded while it is Ready, or its wave was
//     verified; else in progress during its grace, and failed after it
//  4. admitted by this rollout: in progress until the agent is stalled or the
//     time is up; then deferred if a person paused the cluster, or if the time
//     is up and it is offline; else failed. Where the release is the agent
//     itself, one that is offline has failed
//  5. in the batch, stamp not seen: in progress
//  6. busy with an older rollout's release: in progress
//  7. paused, hibernating, or its source is paused: deferred
//  8. offline: deferred, or failed once its wave is open and the policy says so
//  9. held back: deferred or pending, as the hold says
//  10. pending
//
// A failed one that is to be tried again is pending.
func (p *pass) classify(install Install, s *waveState) member {
	cluster, stays := p.clusters[install.Cluster]
	cluster.Name = install.Cluster
	_, written := p.batch[install.Cluster]
	m := member{
		Member:  Member{Cluster: install.Cluster, Wave: s.Name, Updated: p.isUpdated(install)},
		cluster: cluster, ours: written || p.isOurs(install), deadline: p.deadline(install, cluster, s),
		hold: p.hold(cluster), proves: p.isUpdated(install) && install.Ready,
	}
	judged := s.reached && !s.prior.IsDone()
	if judged && stays && m.Updated && !install.Ready && !cluster.Paused {
		m.unreadySince = p.unreadySince(install)
	}
	p.judge(&m, install, s)
	m.holds = written || p.isChanging(install, m.deadline, cluster) || m.isUnready()
	here := cluster.Online && !cluster.Paused
	fit := here && m.hold == nil
	switch {
	case !stays || install.Deleting:
		m.Class, m.Reason, m.Message, m.Since = ClassRemoved, "", "", time.Time{}
	case m.Class == ClassFailed && here && !m.isDeferring() && p.isRetried(install):
		m.Reason, m.Since, m.Until = "", time.Time{}, time.Time{}
		m.judgeHold()
		m.admissible, m.retried = fit, m.Class == ClassPending
	default:
		m.admissible = !m.ours && !m.Updated && fit && (m.Class == ClassPending || m.Class == ClassInProgress)
	}
	return m
}

func (p *pass) isOurs(install Install) bool {
	return install.Stamp.RolloutUID == string(p.in.Rollout.UID)
}

func (p *pass) isUpdated(install Install) bool {
	hash := p.hashOf(install)
	return install.SucceededHash == hash && install.Stamp.Hash == hash
}

// isChanging tells whether an admitted install may still be on its way.
func (p *pass) isChanging(install Install, deadline time.Time, c Cluster) bool {
	return install.Stamp.RolloutUID != "" && install.SucceededHash != install.Stamp.Hash && !install.Stalled &&
		c.Clock(p.in.Now).Before(deadline)
}

// isRetried tells whether a failed cluster is to be admitted again.
func (p *pass) isRetried(install Install) bool {
	attempt := int64(0)
	if p.isOurs(install) {
		attempt = install.Stamp.Attempt
	}
	_, written := p.batch[install.Cluster]
	return !written && attempt < p.in.Rollout.Spec.Retries
}

func (p *pass) judge(m *member, install Install, s *waveState) {
	_, written := p.batch[install.Cluster]
	switch {
	case written && p.isOurs(install):
		m.Class = ClassInProgress
	case m.Updated:
		p.judgeUpdated(m, install, s)
	case p.isOurs(install):
		p.judgeAdmitted(m, install)
	case written:
		m.Class = ClassInProgress
	case p.isChanging(install, m.deadline, m.cluster):
		m.Class = ClassInProgress
		m.setUntil(m.deadline)
	case m.cluster.Paused:
		m.judgePaused()
	case !m.cluster.Online && (s.open || p.strategy.Offline == v1alpha1.OfflineDefer):
		m.judgeOffline(p.strategy.Offline)
	default:
		m.judgeHold()
	}
}

// judgeUpdated: what the agent of an offline cluster reported last is stale. If
// it was good news, it proves nothing; if it was bad news, silence does not
// make it better.
func (p *pass) judgeUpdated(m *member, install Install, s *waveState) {
	switch {
	case s.prior.IsDone(), install.Ready && m.cluster.Online:
		m.Class = ClassSucceeded
		return
	case install.Ready && m.cluster.PausedReason == v1alpha1.ReasonHibernating:
		m.judgePaused() // it is off because its owner wants that, whatever the policy for offline ones
		return
	case install.Ready:
		m.judgeOffline(p.offlinePolicy())
		return
	case m.cluster.Paused:
		m.judgePaused()
		return
	}
	m.Class, m.Reason = ClassInProgress, ReasonNotReady
	if m.unreadySince.IsZero() {
		return // its wave is still to come
	}
	m.Since = m.unreadySince
	end := m.cluster.Extend(m.Since, m.Since.Add(s.UnreadyGrace.Duration))
	if m.cluster.Clock(p.in.Now).Before(end) {
		m.setUntil(end)
	} else {
		m.Class = ClassFailed
	}
}

// unreadySince is when the hub first saw the cluster not Ready, which its own
// status remembers. The transition time of the cluster's condition will not do:
// it is of another clock, and it does not move where a pod is replaced by one
// that does not come up either. An admission starts the grace anew.
func (p *pass) unreadySince(install Install) time.Time {
	since, known := p.unready[install.Cluster]
	if !known {
		return roundUp(p.in.Now).Time
	}
	if p.isOurs(install) {
		return latest(since, install.Stamp.AdmittedAt)
	}
	return since
}

func (p *pass) judgeAdmitted(m *member, install Install) {
	inTime := m.cluster.Clock(p.in.Now).Before(m.deadline)
	switch {
	case inTime && !install.Stalled:
		m.Class = ClassInProgress
		if m.setUntil(m.deadline); m.hold != nil && m.hold.Reason == v1alpha1.ReasonFrozen {
			m.Reason, m.Message = m.hold.Reason, m.hold.Message
		}
	case m.cluster.Paused:
		m.judgePaused()
	case !install.Stalled && m.hold != nil && m.hold.Reason == v1alpha1.ReasonVetoed:
		m.judgeHold() // the agent has not begun
	case install.Stalled:
		m.Class, m.Reason = ClassFailed, ReasonStalled
	case !m.cluster.Online && p.offlinePolicy() == v1alpha1.OfflineDefer:
		m.judgeOffline(v1alpha1.OfflineDefer)
	default:
		m.Class, m.Reason, m.Since = ClassFailed, ReasonDeadlineExceeded, m.deadline
	}
}

// setUntil sets when time alone changes the class, which it does not while the cluster is frozen.
func (m *member) setUntil(t time.Time) {
	if m.cluster.FrozenSince.IsZero() {
		m.Until = t
	}
}

func (m *member) judgePaused() {
	m.Class, m.Reason = ClassDeferred, cmp.Or(m.cluster.PausedReason, v1alpha1.ReasonPaused)
}

func (m *member) judgeOffline(policy v1alpha1.OfflinePolicy) {
	m.Class, m.Reason, m.Since = ClassFailed, m.cluster.OfflineReason, m.cluster.OfflineSince
	if policy == v1alpha1.OfflineDefer {
		m.Class = ClassDeferred
	}
}

// offlinePolicy is what becomes of clusters that were admitted and are offline.
func (p *pass) offlinePolicy() v1alpha1.OfflinePolicy {
	return offlinePolicy(p.strategy, p.in.Rollout.Spec.Release)
}

// offlinePolicy is that of the strategy, unless the release is the agent itself: then silence is how it fails.
func offlinePolicy(strategy v1alpha1.RolloutStrategy, release v1alpha1.Release) v1alpha1.OfflinePolicy {
	if own.IsAgent(release.Package) {
		return v1alpha1.OfflineFail
	}
	return strategy.Offline
}

// deadline is counted from the admission. One whose owner refused changes, or
// which was offline and deferred, has the whole time anew. Time that it was frozen
// does not count.
func (p *pass) deadline(install Install, c Cluster, s *waveState) time.Time {
	return deadlineOf(install, c, s.Wave, p.offlinePolicy())
}

func deadlineOf(install Install, c Cluster, w v1alpha1.Wave, offline v1alpha1.OfflinePolicy) time.Time {
	start := latest(install.Stamp.AdmittedAt, c.VetoEndedAt)
	if c.Online && offline == v1alpha1.OfflineDefer {
		start = latest(start, c.OnlineSince)
	}
	return c.Extend(start, start.Add(w.Deadline.Duration))
}
