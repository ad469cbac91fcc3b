// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollouts decides what a rollout does next.
//
// Its input is one observation of the world: the OperatorRollout with its last
// status, the clusters, and the OperatorInstalls of the operator. Its output is
// a list of actions and the next status. It keeps nothing between two calls,
// and must never read a clock, a client or a logger.
//
// What makes it safe to crash, to run twice and to look at an old cache:
//
//   - A cluster is admitted only after its name is in status.batch, as it was
//     read from the API server; the executor compares the resource version of
//     the rollout before each admission. So a status write is the decision,
//     and it is a compare-and-swap.
//   - A batch entry counts as in progress until its stamp is seen.
//   - A batch entry of a cluster that is held back is marked as held, and not acted
//     on from then on.
//   - status.observedInstalls orders views: one that is older than the view that
//     the status was computed from is refused, and so is a cached one where the
//     decision opens the next wave. Decision.WantsLive says so.
//   - Membership is on labels of the OperatorInstalls, written while nothing is
//     admitted.
package rollouts

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Input is one observation.
type Input struct {
	// Now is the hub's time.
	Now time.Time
	// Rollout is read only.
	Rollout *v1alpha1.OperatorRollout
	// Clusters is the whole fleet, in any order.
	Clusters []Cluster
	// Installs are all OperatorInstalls of the operator, in any order.
	Installs []Install
	// ObservedInstalls is how far the view of Installs has come: the resource
	// version of a live list, or the newest one of any operator's install that the
	// cache was told of. A cache that has just been filled may say too little, where
	// the newest change was a deletion; that costs a live list.
	ObservedInstalls string
	// Live says that Clusters and Installs were read from the API server after
	// Rollout was read, not from a cache.
	Live bool
	// Newer says that the operator has a rollout with a higher revision.
	Newer bool
	// Answers to questions of earlier decisions, in any order.
	Answers []Answer
	// Policies are all RolloutPolicies, in any order, and OperatorLabels the labels of
	// the ManagedOperator.
	Policies       []v1alpha1.RolloutPolicy
	OperatorLabels map[string]string
}

// Cluster is a FleetCluster.
type Cluster struct {
	Name   string
	Labels map[string]string
	// Enrolled clusters have their namespace on the hub, fit to be written to.
	Enrolled bool
	// Online says that what the hub reads of the cluster is current: its agent
	// reports, and reaches the API server of its cluster.
	Online bool
	// OnlineSince is when the hub saw the cluster come online.
	OnlineSince time.Time
	// OfflineReason and OfflineSince say why and since when it is not online.
	OfflineReason string
	OfflineSince  time.Time
	// Paused clusters are not to be changed: a person paused them, or their source says
	// so. PausedReason is why; empty stands for ReasonPaused.
	Paused       bool
	PausedReason string
	Deleting     bool
	// Veto is what the cluster's owner refuses; nil if that is nothing. VetoEndedAt
	// is when the hub saw the last one end.
	Veto        *v1alpha1.ClusterVeto
	VetoEndedAt time.Time
	// FrozenSince is since when a FleetFreeze stops changes on the cluster, also one that has just ended and is
	// still in its status; zero if none does. FrozenBefore are the last times before, the oldest first.
	FrozenSince  time.Time
	FrozenBefore []Period
	// TimeZone is the IANA name of the cluster's time zone; empty means UTC.
	TimeZone string
	// Kubernetes is the version that the cluster's agent reports; empty where it was
	// not reported.
	Kubernetes string

	// Holds are why the cluster is not to be admitted now, the one to tell first.
	Holds []Hold
	// OpenUntil is when ChangeWindows may close the cluster; zero if they do not.
	OpenUntil time.Time
}

// Period is a time that has ended.
type Period struct{ Since, EndedAt time.Time }

// Freeze notes that a FleetFreeze which was made at a time stops changes on the cluster. Where the status records since
// when, that stays.
func (c *Cluster) Freeze(made time.Time) {
	if !c.FrozenSince.IsZero() {
		return
	}
	c.FrozenSince = made
	if n := len(c.FrozenBefore); n > 0 {
		c.FrozenSince = latest(made, c.FrozenBefore[n-1].EndedAt)
	}
}

// Extend returns when what began at a time is over, if the cluster had that long without the times that it was frozen.
func (c Cluster) Extend(began, end time.Time) time.Time {
	for _, f := range c.FrozenBefore {
		if f.Since.Before(end) && f.EndedAt.After(began) {
			end = end.Add(f.EndedAt.Sub(latest(began, f.Since)))
		}
	}
	return end
}

// Clock is the time that a cluster has come to: it stands still while the cluster is frozen.
func (c Cluster) Clock(now time.Time) time.Time {
	if !c.FrozenSince.IsZero() && c.FrozenSince.Before(now) {
		return c.FrozenSince
	}
	return now
}

// Install is an OperatorInstall.
type Install struct {
	Cluster string
	// Rollout and Wave are the labels that hold the membership.
	Rollout, Wave string
	// Stamp is zero where nothing was admitted.
	Stamp Stamp
	// Previous is what the cluster ran before it was admitted; nil where that is
	// nothing.
	Previous *v1alpha1.PreviousRelease
	// Bundle is the name of the installed bundle; empty where there is none.
	Bundle string
	// SucceededHash is the release that the agent saw succeed last.
	SucceededHash string
	// Ready says that the agent reports the install Ready, with this very spec.
	Ready bool
	// Unreported says that it is not known what the cluster keeps of the operator: its
	// agent has not reported on the install yet, or the hub has not recovered that yet.
	Unreported bool
	// Recovered is the revision of an admission that was found on the cluster, which no
	// rollout of this hub gave; 0 where there is none.
	Recovered int64
	// Jobs are those that the cluster was asked to run, by name.
	Jobs map[string]Job
	// Stalled says that the agent reports terminal trouble with this very spec, and
	// StalledReason and StalledMessage which.
	Stalled                       bool
	StalledReason, StalledMessage string
	Deleting                      bool
}

// Stamp is the part of an Admission that decisions rest on.
type Stamp struct {
	RolloutUID string
	Hash       string
	AdmittedAt time.Time
	// Attempt counts the admissions of a cluster that failed.
	Attempt int64
}

// ActionKind is what to do to an OperatorInstall.
type ActionKind string

const (
	// ActionAssign puts a cluster into a wave: it writes the membership labels,
	// and makes the OperatorInstall, without an admission, where there is none.
	ActionAssign ActionKind = "Assign"
	// ActionAdmit writes the stamp of the rollout with the given time.
	ActionAdmit ActionKind = "Admit"
	// ActionRunJob asks the cluster's agent to run a Job.
	ActionRunJob ActionKind = "RunJob"
)

// Action is idempotent and comparable.
type Action struct {
	Kind    ActionKind
	Cluster string
	Wave    string
	// AdmittedAt is set for ActionAdmit, in whole seconds, and so is Attempt.
	AdmittedAt metav1.Time
	Attempt    int64
	// Job names the Job of an ActionRunJob. It is that of the gate, or the preflight Job
	// where Gate is empty. Template is what it runs.
	Job, Gate string
	Template  *v1alpha1.JobTemplate
	// NotAfter is when an ActionAdmit must not be carried out any more, because a
	// window closes; zero if it may be at any time.
	NotAfter metav1.Time
}

// Standing is how a rollout stands, in the terms of kstatus.
type Standing int

const (
	// Underway needs nobody, or waits for something that was planned.
	Underway Standing = iota
	// Done has verified every wave.
	Done
	// Stuck needs a person, or will never get there.
	Stuck
)

// Event is something that a person would ask about.
type Event struct {
	Reason  string
	Message string
}

// Decision is what to do and what to write.
type Decision struct {
	// WantsLive says that nothing was decided, because a cached view is not good
	// enough: call Next again with a live one.
	WantsLive bool
	// Actions rest on the status as it was read, never on Status below.
	Actions []Action
	// Status is complete but for conditions, which are carried over.
	Status v1alpha1.OperatorRolloutStatus
	// Standing and Reason, with Status.Message, make the conditions.
	Standing Standing
	Reason   string
	// Events are what the change from the last status to this one tells.
	Events []Event
	// Questions are to be answered for later decisions, which need not be waited for.
	Questions []Question
	// RecheckAfter is when time alone would change the decision; zero if never.
	RecheckAfter time.Duration
}

// Limits of one pass.
const (
	// MaxBatch is how many admissions may be under way between the decision
	// and the sight of the stamp.
	MaxBatch = 500
	// MaxAssignments is how many clusters one pass puts into waves.
	MaxAssignments = 500
	// MaxUnready is how many clusters are remembered as not Ready.
	MaxUnready = 500
	// MaxJobRequests is how many Jobs one pass asks for.
	MaxJobRequests = 100

	// AdmissionTimeout bounds the time in which a batch entry that was read is
	// acted on. An entry whose stamp is not seen for longer is looked up live.
	AdmissionTimeout = 20 * time.Second
	entryDoubt       = 2 * AdmissionTimeout

	recheckPlanning = time.Second
)

// tooOld tells whether a cached view cannot be decided on: the membership is
// not frozen yet, the view is older than the one the status rests on, or a
// batch entry should have been seen by now.
func tooOld(in Input) bool {
	if in.Live {
		return false
	}
	status := in.Rollout.Status
	if status.PlanHash == "" {
		return true
	}
	if older(in.ObservedInstalls, status.ObservedInstalls) {
		return true
	}
	return slices.ContainsFunc(unseen(in), func(e v1alpha1.BatchEntry) bool {
		return in.Now.Sub(e.AdmittedAt.Time) > entryDoubt
	})
}

// older tells whether a view with newest version a lies before one with b.
// Resource versions of one resource are ordered (Kubernetes KEP-5504).
func older(a, b string) bool {
	if b == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order < 0
}

// Next decides. It is a pure function of its input and panics on nothing.
//
//	              no cluster selected
//	            ┌────────┐
//	            ▼        │
//	        ┌─────────┐──┘  membership frozen   ┌─────────────┐ all verified ┌───────────┐
//	new ──▶ │ Pending │ ──────────────────────▶ │ Progressing │ ───────────▶ │ Succeeded │
//	        └─────────┘                         └─────────────┘              └───────────┘
//	                               person │ ▲ person   │ ▲                   takes in late
//	                                      ▼ │          │ │ failures put      joiners and
//	                                   ┌────────┐      │ │ right             the deferred
//	                                   │ Paused │      ▼ │
//	                                   └────────┘   ┌────────┐
//	                   the version is blocked, or   │ Halted │
//	                   too many failures or a       └────────┘
//	                   failed gate and the
//	                   policy is Pause, or a
//	                   RolloutPolicy is not met
//
//	any that has not ended ── person, or failures as above and the policy is Abort ──▶ Aborted
//	any that has not ended ── newer rollout ──▶ Superseded
//	any that has not ended ── too many failures and the policy is Rollback ──▶ RolledBack
//	any that admitted a cluster ── person ──▶ RolledBack
//
// A rollback is a rollout of its own: its members are the clusters that were
// admitted, each has a release of its own, and a failure holds up no other one.
//
// Within Progressing, wave by wave, one step a pass at most:
//
//	Waiting ─▶ Gated ─▶ Updating ─▶ Soaking ─▶ Verifying ─▶ Verified
//	 wave       approval      ▲    nothing left │    a gate has     │
//	 before     missing       │    to change    │    no verdict,    │
//	 verified                 └─────────────────┘    or failed      ▼
//	                 a deferred cluster came back,        late joiners admitted
//	                 an updated one failed
//
// A wave that soaks is verified only while every updated cluster of it is Ready,
// but for as many failures as it may have. A wave that is verified is not judged
// any more: what becomes of its clusters later does not stop the rollout.
//
// A wave without gates that measure passes Verifying at once. Gates are measured while the wave soaks and verifies:
// Next asks for what it wants to know, and has the answers in its input later. Every
// phase but Verified and the ended ones is derived anew from the observation, and so
// is every verdict but a failed one.
func Next(in Input) Decision {
	d := decide(in)
	d.Status.Phases = phaseChanges(in, d.Status)
	return d
}

func decide(in Input) Decision {
	prior := in.Rollout.Status
	if in.Newer {
		return superseded(in)
	}
	if tooOld(in) {
		return Decision{WantsLive: true, Status: prior}
	}
	p, err := newPass(in)
	if err != nil {
		return invalid(prior, err)
	}
	if prior.PlanHash == "" && !p.ending() {
		return p.freeze()
	}
	p.count()
	return p.proceed()
}

// invalid cannot happen with objects that an API server admitted.
func invalid(prior v1alpha1.OperatorRolloutStatus, err error) Decision {
	status := *prior.DeepCopy()
	if status.Phase == "" {
		status.Phase = v1alpha1.RolloutPending
	}
	status.Message = err.Error()
	return Decision{Status: status, Standing: Stuck, Reason: v1alpha1.ReasonInvalidSpec}
}

// superseded ends a rollout without another look at the fleet: its members are
// already being taken over, so counts would only mislead.
func superseded(in Input) Decision {
	status := *in.Rollout.Status.DeepCopy()
	status.HeldBack = nil
	d := Decision{Standing: Stuck, Reason: v1alpha1.ReasonSuperseded}
	status.Batch, d.RecheckAfter = lapse(status.Batch, in.Now)
	switch status.Phase {
	case v1alpha1.RolloutSucceeded:
		d.Standing, d.Reason = Done, v1alpha1.ReasonSucceeded
	case v1alpha1.RolloutAborted:
		d.Reason = v1alpha1.ReasonAborted
	case v1alpha1.RolloutRolledBack:
		d.Reason = v1alpha1.ReasonRolledBack
	case v1alpha1.RolloutSuperseded:
	default:
		status.Phase = v1alpha1.RolloutSuperseded
		status.EndedAt = stampTime(in.Now)
		status.Message = "a newer rollout took over"
	}
	d.Status = status
	return d
}

// stampTime is a time as the API keeps it: whole seconds, rounded down.
func stampTime(t time.Time) *metav1.Time {
	return &metav1.Time{Time: t.UTC().Truncate(time.Second)}
}
