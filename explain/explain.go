// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain says why something is in the state that it is in: the state,
// its cause with evidence, what a person can do, what happens without a person
// and when, and which part of what was observed is not current.
//
// It is the one place where that is decided. Its input is observed objects and
// the time; its output is data, which `bellwether why` and the other commands
// render. The package is pure: it has no client, clock or logger.
package explain

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/phrase"
)

// State is the state of a subject, or of one link of its chain.
type State string

// The states, from the best to the worst. A subject is in the state of that of its links which a person has to
// know of first: mostly the worst one (precedence).
const (
	// Healthy has current evidence that everything that was checked is as asked.
	Healthy State = "Healthy"
	// Progressing is being worked on, and no error was found.
	Progressing State = "Progressing"
	// Waiting waits for a person or for something else that is named.
	Waiting State = "Waiting"
	// Degraded works, and is not as asked.
	Degraded State = "Degraded"
	// Failed does not work, or nothing will change until a person acts.
	Failed State = "Failed"
	// Unknown says that what was observed is not current.
	Unknown State = "Unknown"
)

var severity = map[State]int{Healthy: 1, Progressing: 2, Waiting: 3, Degraded: 4, Failed: 5, Unknown: 6}

// APIVersion and Kind of an explanation as data.
const (
	APIVersion = "explain.bellwether.dev/v1alpha1"
	Kind       = "Explanation"
)

// Explanation explains the state of one subject.
type Explanation struct {
	// APIVersion and Kind are those of the model.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	Subject Subject `json:"subject"`
	State   State   `json:"state"`
	// Reason is the key of the reference of reasons. It is empty if Healthy.
	Reason string `json:"reason,omitempty"`
	// Since is when the state began, where that is known.
	Since *metav1.Time `json:"since,omitempty"`
	// Summary is one sentence.
	Summary string `json:"summary"`
	// Means is what the reason means.
	Means string `json:"means,omitempty"`
	// Cause is the deepest link of the chain that explains the state.
	Cause *Cause `json:"cause,omitempty"`
	// Chain is everything that was checked, from the intention to the pod.
	Chain []Link `json:"chain"`
	// Remedies are what a person can do, the likeliest first.
	Remedies []remedy.Action `json:"remedies,omitempty"`
	// Next is what happens without a person.
	Next []Next `json:"next,omitempty"`
	// Stale lists what is not current.
	Stale []Stale `json:"stale,omitempty"`
	// Checked lists what was found as asked.
	Checked []string `json:"checked,omitempty"`
	// Members are the clusters of a rollout, and what runs on a cluster.
	Members []Member `json:"members,omitempty"`
	// Budgets of objectives.
	Budgets []Budget `json:"budgets,omitempty"`
}

// Subject is what is explained. An install has the kind OperatorInstall and, in
// Name, the name of the ManagedOperator.
type Subject struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Cluster of an install.
	Cluster string `json:"cluster,omitempty"`
}

// Link is one thing that was checked.
type Link struct {
	// State is empty for information that does not count for the state.
	State  State        `json:"state,omitempty"`
	Reason string       `json:"reason,omitempty"`
	Text   string       `json:"text"`
	Since  *metav1.Time `json:"since,omitempty"`
	// Check says what was checked, where the link is Healthy.
	Check    string     `json:"check,omitempty"`
	Evidence []Evidence `json:"evidence,omitempty"`
	Links    []Link     `json:"links,omitempty"`
	next     []Next
	stale    []Stale
	remedies []remedy.Action
	// about is what the link is about, as far as that decides what is told first.
	about aspect
	// by is who found the reason, where it is on a condition.
	by remedy.Observer
}

// Evidence is what a link rests on.
type Evidence struct {
	// Object as in "OperatorInstall bellwether-prod-1/fleet.echo".
	Object string `json:"object"`
	// Field is a path in the object, or "condition Ready".
	Field    string       `json:"field"`
	Observed string       `json:"observed"`
	Time     *metav1.Time `json:"time,omitempty"`
}

// Cause is why a subject is in its state.
type Cause struct {
	Reason   string     `json:"reason,omitempty"`
	Text     string     `json:"text"`
	Evidence []Evidence `json:"evidence,omitempty"`
}

// Next is what happens without a person, and when, where that is known.
type Next struct {
	Text string       `json:"text"`
	At   *metav1.Time `json:"at,omitempty"`
}

// Stale is a part of what was observed that is not current.
type Stale struct {
	What  string       `json:"what"`
	Why   string       `json:"why"`
	Since *metav1.Time `json:"since,omitempty"`
}

// Member is a cluster in a rollout, or an operator on a cluster.
type Member struct {
	Cluster  string       `json:"cluster,omitempty"`
	Operator string       `json:"operator,omitempty"`
	Wave     string       `json:"wave,omitempty"`
	State    string       `json:"state"`
	Reason   string       `json:"reason,omitempty"`
	Message  string       `json:"message,omitempty"`
	Since    *metav1.Time `json:"since,omitempty"`
	// MovedTo is the wave that the labels of the cluster select now, if it is another one than its own.
	MovedTo string `json:"movedTo,omitempty"`
	// Attention says that a person should look at it.
	Attention bool `json:"attention,omitempty"`
}

// Budget is what is left of an error budget.
type Budget struct {
	SLI     string `json:"sli"`
	Cluster string `json:"cluster,omitempty"`
	// Target in percent, and Period as in 30d.
	Target string `json:"target,omitempty"`
	Period string `json:"period,omitempty"`
	// Left is the part that is left: 1 is all, less than 0 overspent. Nil: not known.
	Left *float64 `json:"left"`
	// LeftExcluding is that without the time that AlertSilences exclude.
	LeftExcluding *float64 `json:"leftExcluding,omitempty"`
	// Burn is the burn rate of the last hour.
	Burn *float64 `json:"burn1h,omitempty"`
	// Firing names the alerts that fire.
	Firing []string `json:"firing,omitempty"`
}

// timeOf is nil for a time that is not set.
func timeOf(t metav1.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// clock writes a time for a sentence.
func clock(t time.Time) string { return phrase.Time(t) }

// since is ", since TIME" where the time is known.
func since(t *metav1.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return " since " + clock(t.Time)
}
