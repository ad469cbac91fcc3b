// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain says why an object is in its state: the state, its cause with evidence, what a person can do, what
// happens without a person and when, and which observations are not current. It also decides which marks a list shows
// beside a state.
//
// No other package decides this. Its input is observed objects and the time; its output is data, which `bellwether
// why` and other commands render. The package is pure: it has no client, clock or logger.
package explain

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// State is the state of a subject, or of one link of its chain.
type State string

// The states, from the best to the worst. A subject has the state of the link that a person must see first, which is
// mostly the link with the worst state (see precedence).
const (
	// Healthy means that current evidence shows that everything that was checked is as specified.
	Healthy State = "Healthy"
	// Progressing means that a change is in progress and no error was found.
	Progressing State = "Progressing"
	// Waiting means that the subject waits for a person or for another object, which is named.
	Waiting State = "Waiting"
	// Degraded means that the subject works but is not as specified.
	Degraded State = "Degraded"
	// Failed means that the subject does not work, or that nothing changes until a person acts.
	Failed State = "Failed"
	// Unknown means that the observations are not current.
	Unknown State = "Unknown"
)

// severity orders the states from the best to the worst.
var severity = map[State]int{Healthy: 1, Progressing: 2, Waiting: 3, Degraded: 4, Failed: 5, Unknown: 6}

// APIVersion and Kind of an explanation as data.
const (
	APIVersion = "explain.bellwether.dev/v1alpha1"
	Kind       = "Explanation"
)

// Explanation explains the state of one subject.
type Explanation struct {
	// APIVersion and Kind identify the format of the explanation.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	Subject Subject `json:"subject"`
	State   State   `json:"state"`
	// Reason is the key in the reference of reasons. It is empty if the state is Healthy.
	Reason string `json:"reason,omitempty"`
	// Since is when the state began, if that is known.
	Since *metav1.Time `json:"since,omitempty"`
	// Summary is one sentence.
	Summary string `json:"summary"`
	// Means is the meaning of the reason.
	Means string `json:"means,omitempty"`
	// Cause is the deepest link of the chain that explains the state.
	Cause *Cause `json:"cause,omitempty"`
	// Chain has everything that was checked, from the ManagedOperator to the pods.
	Chain []Link `json:"chain"`
	// Remedies are what a person can do, the most likely remedy first.
	Remedies []remedy.Action `json:"remedies,omitempty"`
	// Next is what happens without a person.
	Next []Next `json:"next,omitempty"`
	// Stale lists the observations that are not current.
	Stale []Stale `json:"stale,omitempty"`
	// Checked lists the checks that found no problem.
	Checked []string `json:"checked,omitempty"`
	// Members are the clusters of a rollout, or the operators on a cluster.
	Members []Member `json:"members,omitempty"`
	// Budgets are the error budgets of objectives.
	Budgets []Budget `json:"budgets,omitempty"`
}

// Subject is the object that is explained. An install has the kind OperatorInstall and the name of
// the ManagedOperator.
type Subject struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Cluster is the cluster of an install.
	Cluster string `json:"cluster,omitempty"`
}

// Link is the result of one check.
type Link struct {
	// State is empty for information that does not affect the subject's state.
	State  State        `json:"state,omitempty"`
	Reason string       `json:"reason,omitempty"`
	Text   string       `json:"text"`
	Since  *metav1.Time `json:"since,omitempty"`
	// Check says what was checked, if the link is Healthy.
	Check    string     `json:"check,omitempty"`
	Evidence []Evidence `json:"evidence,omitempty"`
	Links    []Link     `json:"links,omitempty"`
	next     []Next
	stale    []Stale
	remedies []remedy.Action
	// about is the aspect of the link, which determines the precedence of the link.
	about aspect
	// by is the program that found the reason of a condition.
	by remedy.Observer
}

// Evidence is an observation that a link is based on.
type Evidence struct {
	// Object is the object, as in "OperatorInstall bellwether-prod-1/fleet.echo".
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

// Next is what happens without a person, and when, if that is known.
type Next struct {
	Text string       `json:"text"`
	At   *metav1.Time `json:"at,omitempty"`
}

// Stale is a part of the observations that is not current.
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
	// MovedTo is the wave that the labels of the cluster select now, if that is not the cluster's wave.
	MovedTo string `json:"movedTo,omitempty"`
	// Attention is true if a person should look at the member.
	Attention bool `json:"attention,omitempty"`
}

// Budget is the remaining part of an error budget.
type Budget struct {
	SLI     string `json:"sli"`
	Cluster string `json:"cluster,omitempty"`
	// Target is in percent. Period is a duration such as 30d.
	Target string `json:"target,omitempty"`
	Period string `json:"period,omitempty"`
	// Left is the remaining part: 1 is the whole budget, less than 0 means overspent. nil means not known.
	Left *float64 `json:"left"`
	// LeftExcluding is Left without the time that AlertSilences exclude.
	LeftExcluding *float64 `json:"leftExcluding,omitempty"`
	// Burn is the burn rate of the last hour.
	Burn *float64 `json:"burn1h,omitempty"`
	// Firing lists the names of the firing alerts.
	Firing []string `json:"firing,omitempty"`
}

// toTime returns a pointer to the time, or nil for a zero time.
func toTime(t metav1.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// formatTime formats a time for a sentence.
func formatTime(t time.Time) string { return phrase.Time(t) }

// formatSince returns " since TIME", or "" if the time is not known.
func formatSince(t *metav1.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return " since " + formatTime(t.Time)
}
