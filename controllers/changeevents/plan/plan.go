// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides which change event of a rollout is sent next, and what is written
// down about it. It is pure: no client, no clock.
//
// That an event is about to be sent is written before it is sent, and the result after
// that. What was written and has no result when it is looked at again may have been
// sent: it never is again.
package plan

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/changes"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

const (
	// MaxAge is how long after a transition its event is sent at most: what is older is of
	// no use to who looks for the change that caused an incident.
	MaxAge = time.Hour
	// maxDeliveries is the limit of the API.
	maxDeliveries = 150
	maxMessage    = 256

	firstDelay, maxDelay = 10 * time.Second, 5 * time.Minute
	// soon is when another event that is due is looked at.
	soon = 100 * time.Millisecond
)

// Input is what was observed.
type Input struct {
	Now time.Time
	// Deliveries are those in the status of the rollout.
	Deliveries  []v1alpha1.ChangeEventDelivery
	Transitions []changes.Transition
	// Receivers are those who get change events of the rollout now.
	Receivers []Receiver
}

// Send is an event to send.
type Send struct {
	// Transition and At are the name and the time of a transition.
	Transition string
	At         metav1.Time
	Receiver   Receiver
}

// Decision is what to do.
type Decision struct {
	// Deliveries are written before anything is sent.
	Deliveries []v1alpha1.ChangeEventDelivery
	// Send is nil where nothing is to be sent now.
	Send *Send
	// RecheckAfter is when there may be something to send; zero if never.
	RecheckAfter time.Duration
}

// Result is what became of an attempt.
type Result struct {
	State v1alpha1.ChangeEventState
	// Message is why it was not accepted. It must not have a routing key.
	Message string
}

// Next decides.
func Next(in Input) Decision {
	d := Decision{Deliveries: slices.Clone(in.Deliveries)}
	for i := range d.Deliveries {
		d.Deliveries[i] = in.settle(d.Deliveries[i])
	}
	due, wait := in.due(d.Deliveries)
	d.RecheckAfter = wait
	if len(due) == 0 {
		return d
	}
	first := due[0]
	if !d.claim(in.Now, first) {
		// The oldest one makes room when it is too old to be sent again.
		d.RecheckAfter = shorter(d.RecheckAfter, maxDelay)
		return d
	}
	d.Send = &first
	if len(due) > 1 {
		d.RecheckAfter = soon
	}
	return d
}

// settle ends what cannot go on.
func (in Input) settle(d v1alpha1.ChangeEventDelivery) v1alpha1.ChangeEventDelivery {
	switch {
	case d.State == v1alpha1.ChangeEventSending:
		d.State = v1alpha1.ChangeEventUnknown
		d.Message = "the hub ended while it sent the event, and does not know whether PagerDuty accepted it"
	case d.State != v1alpha1.ChangeEventWaiting:
	case in.Now.Sub(d.At.Time) > MaxAge:
		d.State = v1alpha1.ChangeEventGivenUp
	case !slices.ContainsFunc(in.Receivers, func(r Receiver) bool { return r.ID == d.Receiver }):
		d.State, d.Message = v1alpha1.ChangeEventGivenUp, "no PagingPolicy in force asks for it any more"
	}
	return d
}

// due are the events to send now, the oldest transition first, and after which time there
// is another one.
func (in Input) due(deliveries []v1alpha1.ChangeEventDelivery) (due []Send, wait time.Duration) {
	for _, t := range in.Transitions {
		if in.Now.Sub(t.At.Time) > MaxAge {
			continue
		}
		for _, r := range in.Receivers {
			if t.At.Time.Before(r.Since) {
				continue
			}
			i := slices.IndexFunc(deliveries, Send{t.Name, t.At, r}.is)
			switch {
			case i < 0:
				due = append(due, Send{t.Name, t.At, r})
			case deliveries[i].State != v1alpha1.ChangeEventWaiting:
			case in.Now.Before(retryAt(deliveries[i])):
				wait = shorter(wait, retryAt(deliveries[i]).Sub(in.Now))
			default:
				due = append(due, Send{t.Name, t.At, r})
			}
		}
	}
	return due, wait
}

// is tells whether a delivery is of this event.
func (s Send) is(d v1alpha1.ChangeEventDelivery) bool {
	return d.Transition == s.Transition && d.At.Equal(&s.At) && d.Receiver == s.Receiver.ID
}

// retryAt is when an event that was not accepted is sent again.
func retryAt(d v1alpha1.ChangeEventDelivery) time.Time {
	delay := firstDelay
	for range d.Attempts - 1 {
		delay = min(2*delay, maxDelay)
	}
	return d.LastAttempt.Add(delay)
}

// shorter is the shorter one of two times to wait, of which zero is never.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// claim writes down that an event is about to be sent. It is false if there is no room.
func (d *Decision) claim(now time.Time, s Send) bool {
	i := slices.IndexFunc(d.Deliveries, s.is)
	if i < 0 {
		if len(d.Deliveries) >= maxDeliveries && !d.dropOldest(now) {
			return false
		}
		i = len(d.Deliveries)
		d.Deliveries = append(d.Deliveries, v1alpha1.ChangeEventDelivery{Transition: s.Transition,
			At: s.At, Receiver: s.Receiver.ID})
	}
	claimed := &d.Deliveries[i]
	claimed.State, claimed.Message = v1alpha1.ChangeEventSending, ""
	claimed.Attempts++
	claimed.LastAttempt = metav1.NewTime(now.UTC().Truncate(time.Second))
	return true
}

// dropOldest makes room: a transition that is too old to be sent does not need its record.
func (d *Decision) dropOldest(now time.Time) bool {
	oldest := slices.MinFunc(d.Deliveries, func(a, b v1alpha1.ChangeEventDelivery) int {
		return a.At.Compare(b.At.Time)
	})
	// A clock that is set back a little must not make it young again.
	if now.Sub(oldest.At.Time) <= 2*MaxAge {
		return false
	}
	d.Deliveries = slices.DeleteFunc(d.Deliveries, func(o v1alpha1.ChangeEventDelivery) bool { return o == oldest })
	return true
}

// Record writes the result of an attempt into deliveries, which may have changed since the
// decision. It reports whether that changes anything: a delivery that is gone is not
// added.
func Record(deliveries []v1alpha1.ChangeEventDelivery, s Send, r Result) ([]v1alpha1.ChangeEventDelivery, bool) {
	i := slices.IndexFunc(deliveries, s.is)
	if i < 0 {
		return deliveries, false
	}
	out := slices.Clone(deliveries)
	out[i].State, out[i].Message = r.State, phrase.Truncate(phrase.OneLine(r.Message), maxMessage)
	return out, out[i] != deliveries[i]
}

// Lost are the events that PagerDuty does not have, or may not have, and that are not sent
// again, of which that was not so before.
func Lost(before, after []v1alpha1.ChangeEventDelivery) []v1alpha1.ChangeEventDelivery {
	var out []v1alpha1.ChangeEventDelivery
	for _, d := range after {
		if isLost(d.State) && !slices.ContainsFunc(before, func(old v1alpha1.ChangeEventDelivery) bool {
			return old.Transition == d.Transition && old.At.Equal(&d.At) && old.Receiver == d.Receiver &&
				old.State == d.State
		}) {
			out = append(out, d)
		}
	}
	return out
}

func isLost(s v1alpha1.ChangeEventState) bool {
	return s == v1alpha1.ChangeEventRefused || s == v1alpha1.ChangeEventGivenUp || s == v1alpha1.ChangeEventUnknown
}
