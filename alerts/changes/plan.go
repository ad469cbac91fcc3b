// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

const (
	// MaxAge is how long after a transition its event is sent at most. An
	// older event does not help to find the change that caused an incident.
	MaxAge = time.Hour
	// maxDeliveries is the limit of the API.
	maxDeliveries = 150
	maxMessage    = 256

	firstDelay, maxDelay = 10 * time.Second, 5 * time.Minute
	// recheckSoon is the delay before another pending event is sent.
	recheckSoon = 100 * time.Millisecond
)

// Input is the observed state.
type Input struct {
	Now time.Time
	// Deliveries are the deliveries in the status of the rollout.
	Deliveries  []v1alpha1.ChangeEventDelivery
	Transitions []Transition
	// Receivers are the current receivers of change events of the rollout.
	Receivers []Receiver
}

// Send is an event to send.
type Send struct {
	// Transition and At are the name and the time of a transition.
	Transition string
	At         metav1.Time
	Receiver   Receiver
}

// Decision contains the actions.
type Decision struct {
	// Deliveries must be written before anything is sent.
	Deliveries []v1alpha1.ChangeEventDelivery
	// Send is nil if no event is sent now.
	Send *Send
	// RecheckAfter is when there may be an event to send. Zero: never.
	RecheckAfter time.Duration
}

// Result is the result of an attempt.
type Result struct {
	State v1alpha1.ChangeEventState
	// Message is the reason why the event was not accepted. It must not contain a routing key.
	Message string
}

// Next returns the event to send now, if any, and the deliveries to write before it is sent.
func Next(in Input) Decision {
	d := Decision{Deliveries: slices.Clone(in.Deliveries)}
	for i := range d.Deliveries {
		d.Deliveries[i] = in.settle(d.Deliveries[i])
	}
	due, wait := in.listDue(d.Deliveries)
	d.RecheckAfter = wait
	if len(due) == 0 {
		return d
	}
	next := due[0]
	if !d.claim(in.Now, next) {
		// Space becomes available when the oldest delivery is too old to be sent again.
		d.RecheckAfter = minDelay(d.RecheckAfter, maxDelay)
		return d
	}
	d.Send = &next
	if len(due) > 1 {
		d.RecheckAfter = recheckSoon
	}
	return d
}

// settle returns a delivery with its final state if it cannot continue, and otherwise unchanged.
func (in Input) settle(d v1alpha1.ChangeEventDelivery) v1alpha1.ChangeEventDelivery {
	switch {
	case d.State == v1alpha1.ChangeEventSending: // it was recorded before sending, but no result was recorded
		d.State = v1alpha1.ChangeEventUnknown
		d.Message = "the hub ended while it sent the event, and does not know whether PagerDuty accepted it"
	case d.State != v1alpha1.ChangeEventWaiting: // the state is already final
	case in.Now.Sub(d.At.Time) > MaxAge:
		d.State = v1alpha1.ChangeEventGivenUp
	case !slices.ContainsFunc(in.Receivers, func(r Receiver) bool { return r.ID == d.Receiver }):
		d.State, d.Message = v1alpha1.ChangeEventGivenUp, "no PagingPolicy in force requests the event now"
	}
	return d
}

// listDue returns the events to send now, the oldest transition first, and the time until another event can be sent.
func (in Input) listDue(deliveries []v1alpha1.ChangeEventDelivery) (due []Send, wait time.Duration) {
	for _, t := range in.Transitions {
		if in.Now.Sub(t.At.Time) > MaxAge {
			continue
		}
		for _, r := range in.Receivers {
			if t.At.Time.Before(r.Since) { // the receiver did not request change events at that time
				continue
			}
			i := slices.IndexFunc(deliveries, Send{t.Name, t.At, r}.isDelivery)
			switch {
			case i < 0:
				due = append(due, Send{t.Name, t.At, r})
			case deliveries[i].State != v1alpha1.ChangeEventWaiting: // the state is final
			case in.Now.Before(computeRetryTime(deliveries[i])):
				wait = minDelay(wait, computeRetryTime(deliveries[i]).Sub(in.Now))
			default:
				due = append(due, Send{t.Name, t.At, r})
			}
		}
	}
	return due, wait
}

// isDelivery reports whether a delivery is a delivery of this event.
func (s Send) isDelivery(d v1alpha1.ChangeEventDelivery) bool {
	return d.Transition == s.Transition && d.At.Equal(&s.At) && d.Receiver == s.Receiver.ID
}

// computeRetryTime returns when an event that was not accepted is sent again.
func computeRetryTime(d v1alpha1.ChangeEventDelivery) time.Time {
	delay := firstDelay
	for range d.Attempts - 1 {
		delay = min(2*delay, maxDelay)
	}
	return d.LastAttempt.Add(delay)
}

// minDelay returns the shorter of two delays. Zero means never.
func minDelay(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// claim records that an event is about to be sent. It returns false if there is no space for the record.
func (d *Decision) claim(now time.Time, s Send) bool {
	i := slices.IndexFunc(d.Deliveries, s.isDelivery)
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

// dropOldest removes the oldest delivery if its transition is
// too old to be sent again. Otherwise it returns false.
func (d *Decision) dropOldest(now time.Time) bool {
	oldest := slices.MinFunc(d.Deliveries, func(a, b v1alpha1.ChangeEventDelivery) int {
		return a.At.Compare(b.At.Time)
	})
	// The limit is doubled, because a clock that is set back a little must not make the transition young again.
	if now.Sub(oldest.At.Time) <= 2*MaxAge {
		return false
	}
	d.Deliveries = slices.DeleteFunc(d.Deliveries, func(o v1alpha1.ChangeEventDelivery) bool { return o == oldest })
	return true
}

// Record writes the result of an attempt into deliveries, which may have changed since the
// decision. It reports whether the deliveries changed. A delivery that was removed is not added.
func Record(deliveries []v1alpha1.ChangeEventDelivery, s Send, r Result) ([]v1alpha1.ChangeEventDelivery, bool) {
	i := slices.IndexFunc(deliveries, s.isDelivery)
	if i < 0 {
		return deliveries, false
	}
	out := slices.Clone(deliveries)
	out[i].State, out[i].Message = r.State, phrase.Truncate(phrase.OneLine(r.Message), maxMessage)
	return out, out[i] != deliveries[i]
}

// ListLost returns the events that PagerDuty does not have, or might not have, and
// that are not sent again. Events that were already lost before are not included.
func ListLost(before, after []v1alpha1.ChangeEventDelivery) []v1alpha1.ChangeEventDelivery {
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

// isLost reports whether an event in the state might be missing in PagerDuty and is not sent again.
func isLost(s v1alpha1.ChangeEventState) bool {
	return s == v1alpha1.ChangeEventRefused || s == v1alpha1.ChangeEventGivenUp || s == v1alpha1.ChangeEventUnknown
}
