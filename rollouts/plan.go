// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollouts decides what a rollout does next.
//
// Its input is one observation: the OperatorRollout with its last status, the clusters, and the OperatorInstalls of
// the operator. Its output is a list of actions and the next status. It keeps no state between two calls, and must
// never read a clock, a client or a logger.
//
// These rules make a crash, two concurrent runs and an old cache safe:
//
//   - A cluster is admitted only if its name is in status.batch, as it was
//     read from the API server; the executor compares the resource version of
//     the rollout before each admission. So a status write is the decision,
//     and it is a compare-and-swap.
//   - A batch entry counts as in progress until its stamp is seen.
//   - A batch entry of a cluster with a hold is marked as held. After that, no hub acts on the entry.
//   - status.observedInstalls orders views. A view that is older than the view
//     of the status is refused, and so is a cached view if the decision would
//     open the next wave. Then Decision.WantsLive is true.
//   - Membership is in labels of the OperatorInstalls, which are written while
//     nothing is admitted.
package rollouts

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// ActionKind is what an action does to an OperatorInstall.
type ActionKind string

const (
	// ActionAssign assigns a cluster to a wave: it writes the membership labels, and creates the OperatorInstall
	// without an admission if there is none.
	ActionAssign ActionKind = "Assign"
	// ActionAdmit writes the stamp of the rollout with the given time.
	ActionAdmit ActionKind = "Admit"
	// ActionRunJob requests a Job from the cluster's agent.
	ActionRunJob ActionKind = "RunJob"
)

// Action is a change of an OperatorInstall. It is idempotent and comparable.
type Action struct {
	Kind    ActionKind
	Cluster string
	Wave    string
	// AdmittedAt, in whole seconds, and Attempt are set for ActionAdmit.
	AdmittedAt metav1.Time
	Attempt    int64
	// Job is the name of the Job of an ActionRunJob: the Job of the gate, or the preflight Job if Gate is empty.
	// Template is the Job's template.
	Job, Gate string
	Template  *v1alpha1.JobTemplate
	// NotAfter is the time after which an ActionAdmit must not be carried out, because a window closes; zero if there
	// is no limit.
	NotAfter metav1.Time
}

// Standing is the state of a rollout in the terms of kstatus.
type Standing int

const (
	// Underway means that no person needs to act, or that the rollout waits for a planned step.
	Underway Standing = iota
	// Done means that every wave is verified.
	Done
	// Stuck means that a person needs to act, or that the rollout will never succeed.
	Stuck
)

// Event is a change that a person needs to see.
type Event struct {
	Reason  string
	Message string
}

// Decision is the result of a pass: what to do and what to write.
type Decision struct {
	// WantsLive is true if nothing was decided, because a cached view is not sufficient: call Next again with a
	// live view.
	WantsLive bool
	// Actions follow from the status that was read, never from Status below.
	Actions []Action
	// Status is complete except for conditions, which are carried over.
	Status v1alpha1.OperatorRolloutStatus
	// Standing and Reason, with Status.Message, make the conditions.
	Standing Standing
	Reason   string
	// Events report the changes from the last status to Status.
	Events []Event
	// Questions must be answered for later decisions. The caller need not wait for the answers.
	Questions []Question
	// RecheckAfter is when the decision can change without any event; zero if never.
	RecheckAfter time.Duration
}

// Limits of one pass.
const (
	// MaxBatch is the maximum number of admissions whose stamps are not seen yet.
	MaxBatch = 500
	// MaxAssignments is the maximum number of clusters that one pass assigns to waves.
	MaxAssignments = 500
	// MaxUnready is the maximum number of clusters that the status records as not Ready.
	MaxUnready = 500
	// MaxJobRequests is the maximum number of Jobs that one pass requests.
	MaxJobRequests = 100

	recheckPlanning = time.Second
)

// Next returns the next decision. It is a pure function of its input and never panics. Each stage is in the file with
// its name:
//
//	observe ──▶ classify ──▶ judge ──▶ choose ──▶ record
//
//	observe   indexes the input, and finds out which policies and which pace apply
//	classify  says how each cluster counts: pending, in progress, succeeded, failed, deferred or removed
//	judge     says which gates a wave passes, when its soak ends, and whether it stops the rollout
//	choose    admits the clusters in the last status, and chooses the clusters for the next status
//	record    writes the next status, explains it, and says when to look again
//
// If there is nothing to judge, observe returns the decision: a newer rollout took over, the view is too old, the spec
// is not valid, or the membership is not frozen.
//
// The phases of a rollout:
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
// A rollback is a separate rollout: its members are the clusters that were admitted, each member has its own release,
// and a failure of a member does not block other members.
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
// A soaking wave is verified only while every updated cluster of the wave is Ready, except for the permitted number of
// failures. A verified wave is not judged again: a cluster that fails there later does not stop the rollout.
//
// A wave without gates that measure passes Verifying at once. Gates are measured while the wave soaks and verifies:
// Next returns questions, and later calls have the answers in their input. Each pass derives every phase again from
// the observation, except for Verified and the phases of an ended rollout, and every verdict, except for a failure.
func Next(in Input) Decision {
	observed, early := observe(in)
	if early != nil {
		return *early
	}
	classified := classify(observed)
	judged := judge(observed, classified)
	choice := choose(observed, judged)
	return record(observed, judged, choice)
}
