// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Class is how a cluster of a rollout is counted. Each cluster has one class.
type Class string

const (
	// ClassPending clusters are not admitted yet.
	ClassPending Class = "Pending"
	// ClassInProgress clusters are admitted and have neither succeeded nor failed.
	ClassInProgress Class = "InProgress"
	// ClassSucceeded clusters have installed the release and are Ready.
	ClassSucceeded Class = "Succeeded"
	// ClassFailed clusters count against the wave's MaxFailures.
	ClassFailed Class = "Failed"
	// ClassDeferred clusters are skipped until they are available again.
	ClassDeferred Class = "Deferred"
	// ClassRemoved clusters left the fleet or the selection after planning.
	ClassRemoved Class = "Removed"
)

// Reasons of a member's class. Further reasons come from the FleetCluster: AgentOffline, APIServerUnreachable, Paused,
// Hibernating and SourcePaused.
const (
	// ReasonStalled means that the agent reports an error that it cannot recover from.
	ReasonStalled = "Stalled"
	// ReasonDeadlineExceeded means that the wave's deadline has passed.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonNotReady means that the cluster was updated and is not Ready.
	ReasonNotReady = "NotReady"
)

// Member is a cluster of a rollout with its class.
type Member struct {
	Cluster string
	Wave    string
	Class   Class
	// Reason is the reason for the class; empty if the class needs no reason.
	Reason string
	// Message explains the reason if the reason is a hold.
	Message string
	// Since is when the reason began, by the hub's clock; zero if that is not known.
	Since time.Time
	// Until is when the class or the reason changes without any event: at the deadline, or at the end of the grace or
	// of a hold. It is zero if there is no such time.
	Until time.Time
	// Updated is true if the release is installed, Ready or not.
	Updated bool
	// MovedTo is the wave that the cluster's labels select now; empty if that is Wave. The rollout does not move
	// the cluster.
	MovedTo string
}

// Classify returns the class of each cluster of a planned rollout, wave by wave and in the order of admission. It
// reads holds from the status. It fails if the rollout's selectors are not valid.
func Classify(in Input) ([]Member, error) {
	in.Clusters = applyRecordedHolds(in)
	observed, err := indexInput(in)
	if err != nil {
		return nil, err
	}
	observed.recorded = true
	var members []Member
	for i, w := range classify(observed) {
		for _, m := range w.members {
			if m.Class != ClassRemoved {
				m.MovedTo = findMovedTo(observed.waves, i, *m.cluster)
			}
			members = append(members, m.Member)
		}
	}
	return members, nil
}

// classifiedWave is a wave with its members in the order of admission and their counts.
type classifiedWave struct {
	waveTurn
	members []member
	tally
}

// member is a Member with the data that admission needs.
type member struct {
	Member
	cluster *Cluster
	// isOurs is true if this rollout admitted the cluster or has decided to admit it.
	isOurs bool
	// takesSlot is true if the cluster takes a slot of the wave's concurrency: this rollout or an older rollout
	// admitted the cluster and the cluster can still be changing, or it is not Ready.
	takesSlot bool
	// isAdmissible is true if the cluster can be admitted now.
	isAdmissible bool
	// isRetry is true if the cluster failed and must be admitted again.
	isRetry bool
	// hold is the reason why the cluster cannot be admitted now; nil if there is none.
	hold *Hold
	// unreadySince is when the hub first saw the cluster updated and not Ready; zero if that does not count.
	unreadySince time.Time
	// provesRelease is true if the cluster is updated and was Ready in its last report. In a verified wave, members
	// that do not prove the release also count as succeeded.
	provesRelease bool
	// isEmpty is true if the cluster succeeded because it had no installed operator to take over.
	isEmpty bool
}

// isUnready reports whether the member is updated, not Ready and in its grace.
func (m *member) isUnready() bool { return m.Class == ClassInProgress && m.Reason == ReasonNotReady }

// tally has the counts of a wave's members.
type tally struct {
	counts
	// present is the number of members that are still in the fleet.
	present int
	// updated members installed the release. unready members are in their grace.
	updated, unready int32
	// empty members succeeded because they had no installed operator to take over.
	empty int32
}

// counts adds methods to the API's counts.
type counts v1alpha1.WaveCounts

// isChanging reports whether clusters must still be updated.
func (c *counts) isChanging() bool { return c.Pending > 0 || c.InProgress > 0 }

// selectCount returns a pointer to the count of a class.
func (c *counts) selectCount(k Class) *int32 {
	switch k {
	case ClassInProgress:
		return &c.InProgress
	case ClassSucceeded:
		return &c.Succeeded
	case ClassFailed:
		return &c.Failed
	case ClassDeferred:
		return &c.Deferred
	case ClassRemoved:
		return &c.Removed
	default:
		return &c.Pending
	}
}

// classify returns the waves with the class of each cluster of the rollout. The totals are from the frozen membership.
func classify(o observation) []classifiedWave {
	ro := o.in.Rollout
	waves := make([]classifiedWave, len(o.waves))
	places := make(map[string]int, len(waves))
	for i, t := range checkTurns(ro, o.prior, o.waves, o.in.Now, o.recorded) {
		waves[i].waveTurn, places[t.Name] = t, i
	}
	offline := offlinePolicies{waiting: o.strategy.Offline, admitted: selectOfflinePolicy(o.strategy, ro.Spec.Release)}
	for i := range o.in.Installs {
		install := &o.in.Installs[i]
		if place, ok := places[install.Wave]; ok && install.Rollout == ro.Name {
			w := &waves[place]
			f := gatherFacts(&o, install, &w.waveTurn, offline.admitted)
			w.members = append(w.members, classifyMember(&f, &w.waveTurn, offline))
		}
	}
	for i := range waves {
		w := &waves[i]
		slices.SortFunc(w.members, func(a, b member) int { return w.compareClusters(a.cluster, b.cluster) })
		w.tally = tallyMembers(w.members, w.prior.Total)
	}
	return waves
}

// tallyMembers counts the members of a wave. total is the wave's recorded total. A member without an install stays in
// the total and counts as removed.
func tallyMembers(members []member, total int32) tally {
	var t tally
	for i := range members {
		m := &members[i]
		*t.selectCount(m.Class)++
		if m.Updated && m.Class != ClassRemoved {
			t.updated++
		}
		if m.isUnready() {
			t.unready++
		}
		if m.isEmpty {
			t.empty++
		}
	}
	existing := int32(len(members))
	t.present = len(members) - int(t.Removed) // before the members without an install are added to Removed
	t.Total = max(total, existing)
	t.Removed += t.Total - existing
	return t
}

// facts are the data that a pass has about one cluster of the rollout.
type facts struct {
	install *Install
	cluster *Cluster
	// isSelected is true if the rollout's selector matches the cluster.
	isSelected bool
	// isWritten is true if the batch has the cluster and the stamp of the batch entry was not seen.
	isWritten bool
	// isOurs is true if the rollout admitted the cluster.
	isOurs bool
	// isUpdated is true if the release is installed.
	isUpdated bool
	// isChanging is true if any rollout admitted the cluster and the change might not be finished.
	isChanging bool
	// canRetry is true if the cluster must be admitted again in case it failed.
	canRetry bool
	// hold is the reason why the cluster cannot be admitted now; nil if there is none.
	hold *Hold
	// deadline is when the admission counts as failed.
	deadline time.Time
	// unreadySince is when the hub first saw the cluster updated and not Ready; zero if that does not count.
	unreadySince time.Time
	// clock is the time by which the cluster's deadlines are judged. It stands still in a freeze.
	clock time.Time
}

// gatherFacts returns the data about the cluster of an install, in the wave t. A cluster that is not selected has only
// its name. offline is the policy for admitted clusters.
func gatherFacts(o *observation, install *Install, t *waveTurn, offline v1alpha1.OfflinePolicy) facts {
	ro := o.in.Rollout
	cluster, isSelected := o.clusters[install.Cluster]
	if !isSelected {
		cluster = &Cluster{Name: install.Cluster}
	}
	_, isWritten := o.batch[install.Cluster]
	f := facts{install: install, cluster: cluster, isSelected: isSelected, isWritten: isWritten,
		isOurs: isAdmittedBy(ro, install), isUpdated: isUpdated(ro, o.hash, install), hold: findHold(ro, cluster),
		deadline: computeDeadline(install, cluster, t.Deadline.Duration, offline), clock: cluster.Clock(o.in.Now),
	}
	f.isChanging = isChanging(install, f.deadline, f.clock)
	f.canRetry = !isWritten && readAttempt(ro, install) < ro.Spec.Retries
	isJudged := t.reached && !t.prior.IsDone()
	// In other waves, and on paused clusters, the time without Ready does not count.
	if isJudged && isSelected && f.isUpdated && !install.Ready && !cluster.Paused {
		f.unreadySince = findUnreadySince(ro, install, o.unready, o.in.Now)
	}
	return f
}

// isAdmittedBy reports whether the rollout admitted the install.
func isAdmittedBy(ro *v1alpha1.OperatorRollout, install *Install) bool {
	return install.Stamp.RolloutUID == string(ro.UID)
}

// isUpdated reports whether the agent installed the release that the rollout brings to this install.
func isUpdated(ro *v1alpha1.OperatorRollout, releaseHash string, install *Install) bool {
	hash := selectReleaseHash(ro, releaseHash, install)
	return install.SucceededHash == hash && install.Stamp.Hash == hash
}

// isChanging reports whether the change of an admitted install might not be finished.
func isChanging(install *Install, deadline, clock time.Time) bool {
	return install.Stamp.RolloutUID != "" && install.SucceededHash != install.Stamp.Hash && !install.Stalled &&
		clock.Before(deadline)
}

// readAttempt returns how often the rollout admitted the cluster again.
func readAttempt(ro *v1alpha1.OperatorRollout, install *Install) int64 {
	if isAdmittedBy(ro, install) {
		return install.Stamp.Attempt
	}
	return 0
}

// findUnreadySince returns when the hub first saw the cluster not Ready: the time in the rollout's status (unready), or
// now if the status has none. The transition time of the cluster's condition cannot be used: it comes from another
// clock, and it does not change if a pod is replaced by a pod that does not become Ready either. An admission starts
// the grace again.
func findUnreadySince(ro *v1alpha1.OperatorRollout, install *Install, unready map[string]time.Time,
	now time.Time) time.Time {
	since, isRecorded := unready[install.Cluster]
	if !isRecorded {
		return roundUp(now).Time
	}
	if isAdmittedBy(ro, install) {
		return maxTime(since, install.Stamp.AdmittedAt)
	}
	return since
}

// offlinePolicies are the policies for offline clusters that wait for their admission, and for offline clusters that
// were admitted.
type offlinePolicies struct{ waiting, admitted v1alpha1.OfflinePolicy }

// classifyMember returns a cluster with its class. The first rule of this list that applies decides:
//
//  1. not selected, or being deleted: removed
//  2. in the batch to be admitted again: in progress
//  3. the release is installed: succeeded while it is Ready, or if its wave was
//     verified; else in progress during its grace, and failed after it
//  4. admitted by this rollout: in progress until the agent is stalled or the
//     time is up; then deferred if a person paused the cluster, or if the time
//     is up and it is offline; else failed. If the release is the agent
//     itself, an offline cluster has failed
//  5. in the batch, stamp not seen: in progress
//  6. busy with an older rollout's release: in progress
//  7. paused, hibernating, or its source is paused: deferred
//  8. offline: deferred, or failed if its wave is open and the policy is Fail
//  9. blocked by a hold: deferred or pending, as the hold says
//  10. pending
//
// A failed cluster that must be retried is pending.
func classifyMember(f *facts, t *waveTurn, offline offlinePolicies) member {
	m := member{Member: judgeMember(f, t, offline), cluster: f.cluster, isOurs: f.isWritten || f.isOurs, hold: f.hold,
		unreadySince: f.unreadySince, provesRelease: f.isUpdated && f.install.Ready}
	m.takesSlot = f.isWritten || f.isChanging || m.isUnready()
	isReachable := f.cluster.Online && !f.cluster.Paused
	isEligible := isReachable && f.hold == nil
	switch {
	case !f.isSelected || f.install.Deleting:
		m.Class, m.Reason, m.Message, m.Since = ClassRemoved, "", "", time.Time{}
	case m.Class == ClassFailed && isReachable && !m.isDeferring() && f.canRetry:
		m.Member = judgeHold(f.hold) // the cluster waits to be admitted again
		m.isAdmissible, m.isRetry = isEligible, m.Class == ClassPending
	default:
		// A cluster in progress with an older rollout can be admitted too.
		m.isAdmissible = !m.isOurs && !f.isUpdated && isEligible && (m.Class == ClassPending ||
			m.Class == ClassInProgress)
	}
	m.Cluster, m.Wave, m.Updated = f.install.Cluster, t.Name, f.isUpdated
	m.isEmpty = m.Class == ClassSucceeded && t.asInstalled && f.install.Bundle == ""
	return m
}

// judgeMember returns the class and the reason of a cluster that stays in the rollout. The cases are rules 2 to 10
// of classifyMember.
func judgeMember(f *facts, t *waveTurn, offline offlinePolicies) Member {
	switch {
	case f.isWritten && f.isOurs:
		return Member{Class: ClassInProgress}
	case f.isUpdated:
		return judgeUpdated(f, t, offline.admitted)
	case f.isOurs:
		return judgeAdmitted(f, offline.admitted)
	case f.isWritten:
		return Member{Class: ClassInProgress}
	case f.isChanging:
		return Member{Class: ClassInProgress, Until: clearIfFrozen(f.cluster, f.deadline)}
	case f.cluster.Paused:
		return judgePaused(f.cluster)
	case !f.cluster.Online && (t.open || offline.waiting == v1alpha1.OfflineDefer):
		return judgeOffline(f.cluster, offline.waiting)
	default:
		return judgeHold(f.hold)
	}
}

// judgeUpdated classifies a cluster that has the release. The last report of an offline cluster is old: a report of
// success proves nothing, and a report of failure still counts.
func judgeUpdated(f *facts, t *waveTurn, offline v1alpha1.OfflinePolicy) Member {
	switch {
	case t.prior.IsDone(), f.install.Ready && f.cluster.Online:
		return Member{Class: ClassSucceeded}
	case f.install.Ready && f.cluster.PausedReason == v1alpha1.ReasonHibernating:
		return judgePaused(f.cluster) // its owner switched it off, so the policy for offline clusters does not apply
	case f.install.Ready:
		return judgeOffline(f.cluster, offline)
	case f.cluster.Paused:
		return judgePaused(f.cluster)
	}
	m := Member{Class: ClassInProgress, Reason: ReasonNotReady, Since: f.unreadySince}
	if m.Since.IsZero() {
		return m // its wave is not judged yet
	}
	end := f.cluster.Extend(m.Since, m.Since.Add(t.UnreadyGrace.Duration))
	if f.clock.Before(end) {
		m.Until = clearIfFrozen(f.cluster, end)
	} else {
		m.Class = ClassFailed
	}
	return m
}

// judgeAdmitted classifies a cluster that the rollout admitted and that does not have the release yet. A freeze is
// reported only as the reason of a cluster in progress.
func judgeAdmitted(f *facts, offline v1alpha1.OfflinePolicy) Member {
	inTime := f.clock.Before(f.deadline)
	switch {
	case inTime && !f.install.Stalled:
		m := Member{Class: ClassInProgress, Until: clearIfFrozen(f.cluster, f.deadline)}
		if f.hold != nil && f.hold.Reason == v1alpha1.ReasonFrozen {
			m.Reason, m.Message = f.hold.Reason, f.hold.Message
		}
		return m
	case f.cluster.Paused:
		return judgePaused(f.cluster)
	case !f.install.Stalled && f.hold != nil && f.hold.Reason == v1alpha1.ReasonVetoed:
		return judgeHold(f.hold) // the agent has not begun
	case f.install.Stalled:
		return Member{Class: ClassFailed, Reason: ReasonStalled}
	case !f.cluster.Online && offline == v1alpha1.OfflineDefer:
		return judgeOffline(f.cluster, v1alpha1.OfflineDefer)
	default:
		return Member{Class: ClassFailed, Reason: ReasonDeadlineExceeded, Since: f.deadline}
	}
}

// clearIfFrozen returns t, or zero if the cluster is frozen: in a freeze no deadline passes.
func clearIfFrozen(c *Cluster, t time.Time) time.Time {
	if c.FrozenSince.IsZero() {
		return t
	}
	return time.Time{}
}

// judgePaused classifies a paused cluster.
func judgePaused(c *Cluster) Member {
	return Member{Class: ClassDeferred, Reason: cmp.Or(c.PausedReason, v1alpha1.ReasonPaused)}
}

// judgeOffline classifies an offline cluster by the policy.
func judgeOffline(c *Cluster, policy v1alpha1.OfflinePolicy) Member {
	m := Member{Class: ClassFailed, Reason: c.OfflineReason, Since: c.OfflineSince}
	if policy == v1alpha1.OfflineDefer {
		m.Class = ClassDeferred
	}
	return m
}

// judgeHold classifies a cluster that is not admitted and can be observed. h is nil if no hold blocks the admission.
func judgeHold(h *Hold) Member {
	if h == nil {
		return Member{Class: ClassPending}
	}
	m := Member{Class: ClassPending, Reason: h.Reason, Message: h.Message, Until: h.Until}
	if h.Defers {
		m.Class = ClassDeferred
	}
	return m
}

// selectOfflinePolicy returns the policy for admitted clusters that are offline: the policy of the strategy, or Fail
// if the release is the agent itself, because a failed agent is offline.
func selectOfflinePolicy(strategy v1alpha1.RolloutStrategy, release v1alpha1.Release) v1alpha1.OfflinePolicy {
	if v1alpha1.IsAgent(release.Package) {
		return v1alpha1.OfflineFail
	}
	return strategy.Offline
}

// computeDeadline returns when an admission counts as failed: after the allowed time from the admission. The time
// starts again when a veto of the cluster's owner ends, and when a deferred offline cluster comes online. Time in a
// freeze does not count.
func computeDeadline(install *Install, c *Cluster, allowed time.Duration, offline v1alpha1.OfflinePolicy) time.Time {
	start := maxTime(install.Stamp.AdmittedAt, c.VetoEndedAt)
	if c.Online && offline == v1alpha1.OfflineDefer {
		start = maxTime(start, c.OnlineSince)
	}
	return c.Extend(start, start.Add(allowed))
}
