// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/changes"
	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/changeevents/plan"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a rollout with its record, as it is stored.
type world struct {
	t  *testing.T
	in plan.Input
}

func newWorld(t *testing.T, transitions ...string) *world {
	t.Helper()
	w := &world{t: t, in: plan.Input{Now: noon,
		Receivers: []plan.Receiver{{ID: "a/p/x", Since: noon.Add(-24 * time.Hour)}}}}
	for _, name := range transitions {
		w.happens(name, 0)
	}
	return w
}

func (w *world) happens(name string, ago time.Duration) {
	w.in.Transitions = append(w.in.Transitions, changes.Transition{Name: name, At: metav1.NewTime(noon.Add(-ago))})
}

// pass decides and stores the record, as a hub that ends right after that.
func (w *world) pass() plan.Decision {
	w.t.Helper()
	d := plan.Next(w.in)
	w.in.Deliveries = d.Deliveries
	return d
}

// result stores what became of an attempt.
func (w *world) result(s *plan.Send, state v1alpha1.ChangeEventState) {
	w.t.Helper()
	if s == nil {
		w.t.Fatal("nothing is sent")
	}
	deliveries, changed := plan.Record(w.in.Deliveries, *s, plan.Result{State: state})
	if !changed {
		w.t.Fatalf("the result of %+v is not recorded", s)
	}
	w.in.Deliveries = deliveries
}

// sends passes until nothing is left to send, and returns what was sent.
func (w *world) sends(state v1alpha1.ChangeEventState) []string {
	w.t.Helper()
	var sent []string
	for range 20 {
		d := w.pass()
		if d.Send == nil {
			return sent
		}
		sent = append(sent, d.Send.Transition+" to "+d.Send.Receiver.ID)
		w.result(d.Send, state)
	}
	w.t.Fatalf("it never ends: %v", sent)
	return nil
}

func (w *world) want(sent []string, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, sent); diff != "" {
		w.t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func (w *world) record() string {
	var lines []string
	for _, d := range w.in.Deliveries {
		lines = append(lines, fmt.Sprintf("%s %s %d", d.Transition, d.State, d.Attempts))
	}
	return strings.Join(lines, ", ")
}

func TestEachIsSentOnceToEachReceiver(t *testing.T) {
	w := newWorld(t, "started", "wave/canary/started")
	w.in.Receivers = append(w.in.Receivers, plan.Receiver{ID: "a/p/y", Since: noon})
	w.want(w.sends(v1alpha1.ChangeEventSent), "started to a/p/x", "started to a/p/y", "wave/canary/started to a/p/x",
		"wave/canary/started to a/p/y")
	w.happens("paused", -time.Minute)
	w.want(w.sends(v1alpha1.ChangeEventSent), "paused to a/p/x", "paused to a/p/y")
	w.happens("paused", -2*time.Minute) // once more
	w.want(w.sends(v1alpha1.ChangeEventSent), "paused to a/p/x", "paused to a/p/y")
	w.in.Now = noon.Add(48 * time.Hour)
	w.want(w.sends(v1alpha1.ChangeEventSent))
}

// TestCrash ends the hub at each point between the decision and the record of the result.
func TestCrash(t *testing.T) {
	w := newWorld(t, "started")
	if d := plan.Next(w.in); d.Send == nil || len(w.in.Deliveries) != 0 {
		t.Fatalf("decided %+v", d)
	}
	// It ended before the record was written: the event was not sent.
	d := w.pass()
	if d.Send == nil || w.record() != "started Sending 1" {
		t.Fatalf("record is %q, send %+v; want it recorded before it is sent", w.record(), d.Send)
	}
	// It ended after that: the event may have been sent.
	if again := w.pass(); again.Send != nil || w.record() != "started Unknown 1" {
		t.Errorf("record is %q, send %+v; want it unknown and not sent again", w.record(), again.Send)
	}
	w.want(w.sends(v1alpha1.ChangeEventSent))
	// The hub that sent it was slow, and not dead: it knows better.
	w.result(d.Send, v1alpha1.ChangeEventSent)
	if w.record() != "started Sent 1" {
		t.Errorf("record is %q", w.record())
	}
}

func TestFinalResultsAreNotTriedAgain(t *testing.T) {
	for _, state := range []v1alpha1.ChangeEventState{v1alpha1.ChangeEventRefused, v1alpha1.ChangeEventUnknown,
		v1alpha1.ChangeEventGivenUp} {
		w := newWorld(t, "started")
		w.want(w.sends(state), "started to a/p/x")
		w.in.Now = noon.Add(10 * time.Minute)
		w.want(w.sends(v1alpha1.ChangeEventSent))
	}
}

// TestRetries has PagerDuty accept nothing for longer than an hour.
func TestRetries(t *testing.T) {
	w := newWorld(t, "started")
	var waits []time.Duration
	for {
		d := w.pass()
		if d.Send != nil {
			w.result(d.Send, v1alpha1.ChangeEventWaiting)
			d = w.pass()
		}
		if d.Send != nil {
			t.Fatal("it is sent again at once")
		}
		if d.RecheckAfter == 0 {
			break
		}
		waits = append(waits, d.RecheckAfter)
		w.in.Now = w.in.Now.Add(d.RecheckAfter)
	}
	want := []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second}
	for range 11 {
		want = append(want, 5*time.Minute)
	}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	if w.record() != "started GivenUp 16" {
		t.Errorf("record is %q", w.record())
	}

	w = newWorld(t, "started")
	w.result(w.pass().Send, v1alpha1.ChangeEventWaiting)
	w.happens("paused", -time.Second)
	w.want(w.sends(v1alpha1.ChangeEventSent), "paused to a/p/x")
	w.in.Now = noon.Add(10 * time.Second)
	w.want(w.sends(v1alpha1.ChangeEventSent), "started to a/p/x")

	w = newWorld(t, "started")
	w.result(w.pass().Send, v1alpha1.ChangeEventWaiting)
	w.in.Receivers = nil
	if w.pass(); w.record() != "started GivenUp 1" {
		t.Errorf("nobody asks for it any more, and the record is %q", w.record())
	}
}

func TestWhatIsNotSent(t *testing.T) {
	w := newWorld(t)
	w.happens("started", time.Hour+time.Second)
	w.happens("wave/canary/started", time.Hour)
	w.happens("wave/canary/verified", 31*time.Minute)
	w.in.Receivers[0].Since = noon.Add(-30 * time.Minute)
	w.in.Receivers = append(w.in.Receivers, plan.Receiver{ID: "a/p/old"})
	w.want(w.sends(v1alpha1.ChangeEventSent), "wave/canary/started to a/p/old", "wave/canary/verified to a/p/old")
}

// TestRoom fills the record. Only what is too old to be sent makes room.
func TestRoom(t *testing.T) {
	w := newWorld(t)
	for i := range 150 {
		w.in.Deliveries = append(w.in.Deliveries, v1alpha1.ChangeEventDelivery{Transition: "paused", Receiver: "a/p/x",
			At: metav1.NewTime(noon.Add(-time.Duration(150-i) * time.Second)), State: v1alpha1.ChangeEventSent})
	}
	w.happens("resumed", 0)
	if d := w.pass(); d.Send != nil || d.RecheckAfter == 0 || len(w.in.Deliveries) != 150 {
		t.Errorf("without room it decides %+v", d.Send)
	}
	w.in.Deliveries[0].At = metav1.NewTime(noon.Add(-3 * time.Hour))
	w.want(w.sends(v1alpha1.ChangeEventSent), "resumed to a/p/x")
	if len(w.in.Deliveries) != 150 {
		t.Errorf("%d are recorded", len(w.in.Deliveries))
	}
}

func TestReceivers(t *testing.T) {
	policy := func(namespace, name string, ready bool, asks ...string) v1alpha1.PagingPolicy {
		p := v1alpha1.PagingPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		p.Spec.Scope = v1alpha1.PagingNamespace
		p.Spec.Receivers = []v1alpha1.PagingReceiver{{Name: "chat", Slack: &v1alpha1.SlackReceiver{}},
			{Name: "oncall", PagerDuty: &v1alpha1.PagerDutyReceiver{URL: name}}}
		if len(asks) > 0 {
			p.Spec.ChangeEvents = &v1alpha1.ChangeEventTarget{Receivers: asks}
			for _, r := range asks {
				p.Status.ChangeEvents = append(p.Status.ChangeEvents, v1alpha1.ChangeEventReceiver{Receiver: r})
			}
		}
		p.Status.Configuration = &v1alpha1.PagingConfiguration{}
		if ready {
			p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
		}
		return p
	}
	edit := func(p v1alpha1.PagingPolicy, edit func(*v1alpha1.PagingPolicy)) v1alpha1.PagingPolicy {
		edit(&p)
		return p
	}
	fleet := edit(policy("hub", "fleet", true, "oncall"), func(p *v1alpha1.PagingPolicy) {
		p.Spec.Scope = v1alpha1.PagingFleet
	})
	for name, test := range map[string]struct {
		policies []v1alpha1.PagingPolicy
		want     string
	}{
		"none":             {},
		"the fleet's":      {[]v1alpha1.PagingPolicy{fleet, policy("tools", "p", true, "oncall")}, "hub/fleet/oncall"},
		"the namespace's":  {[]v1alpha1.PagingPolicy{fleet, policy("a", "p", true, "oncall")}, "a/p/oncall"},
		"it does not ask":  {[]v1alpha1.PagingPolicy{fleet, policy("a", "p", true)}, ""},
		"not by PagerDuty": {[]v1alpha1.PagingPolicy{policy("a", "p", true, "chat")}, ""},
		"not seen by the paging controller": {[]v1alpha1.PagingPolicy{edit(policy("a", "p", true, "oncall"),
			func(p *v1alpha1.PagingPolicy) { p.Status.ChangeEvents = nil })}, ""},
		"never applied": {[]v1alpha1.PagingPolicy{fleet, edit(policy("a", "p", false, "oncall"),
			func(p *v1alpha1.PagingPolicy) { p.Status.Configuration = nil })}, "hub/fleet/oncall"},
		"of two the one that is right": {[]v1alpha1.PagingPolicy{policy("a", "a", false, "oncall"),
			policy("a", "b", true, "oncall")}, "a/b/oncall"},
		"wrong now": {[]v1alpha1.PagingPolicy{fleet, policy("a", "p", false, "oncall")}, "a/p/oncall"},
		"deleted": {[]v1alpha1.PagingPolicy{edit(policy("a", "p", true, "oncall"),
			func(p *v1alpha1.PagingPolicy) { p.DeletionTimestamp = &metav1.Time{Time: noon} })}, ""},
		"another operator": {[]v1alpha1.PagingPolicy{edit(policy("a", "p", true, "oncall"),
			func(p *v1alpha1.PagingPolicy) { p.Spec.Operators = []string{"ledger"} })}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range plan.Receivers(test.policies, paging.Operator{Namespace: "a", Name: "echo"}) {
				got = append(got, r.ID)
			}
			if strings.Join(got, ", ") != test.want {
				t.Errorf("receivers are %v, want %s", got, test.want)
			}
		})
	}
}

// TestLost has one event in each state before and after.
func TestLost(t *testing.T) {
	of := func(transition string, state v1alpha1.ChangeEventState) v1alpha1.ChangeEventDelivery {
		return v1alpha1.ChangeEventDelivery{Transition: transition, At: metav1.NewTime(noon), Receiver: "a/p/x",
			State: state}
	}
	before := []v1alpha1.ChangeEventDelivery{of("started", v1alpha1.ChangeEventSending),
		of("wave", v1alpha1.ChangeEventWaiting), of("paused", v1alpha1.ChangeEventRefused),
		of("ended", v1alpha1.ChangeEventSending)}
	after := []v1alpha1.ChangeEventDelivery{of("started", v1alpha1.ChangeEventUnknown),
		of("wave", v1alpha1.ChangeEventGivenUp), of("paused", v1alpha1.ChangeEventRefused),
		of("ended", v1alpha1.ChangeEventSent), of("resumed", v1alpha1.ChangeEventRefused)}
	want := []v1alpha1.ChangeEventDelivery{after[0], after[1], after[4]}
	if diff := cmp.Diff(want, plan.Lost(before, after)); diff != "" {
		t.Errorf("lost (-want +got):\n%s", diff)
	}
	if got := plan.Lost(after, after); len(got) != 0 {
		t.Errorf("lost again: %+v", got)
	}
}
