// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package changes_test

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
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fixture is a rollout with its stored record.
type fixture struct {
	t  *testing.T
	in changes.Input
}

func newFixture(t *testing.T, transitions ...string) *fixture {
	t.Helper()
	f := &fixture{t: t, in: changes.Input{Now: noon,
		Receivers: []changes.Receiver{{ID: "a/p/x", Since: noon.Add(-24 * time.Hour)}}}}
	for _, name := range transitions {
		f.happens(name, 0)
	}
	return f
}

func (f *fixture) happens(name string, ago time.Duration) {
	f.in.Transitions = append(f.in.Transitions, changes.Transition{Name: name, At: metav1.NewTime(noon.Add(-ago))})
}

// pass decides and stores the record, as a hub that ends right after that.
func (f *fixture) pass() changes.Decision {
	f.t.Helper()
	d := changes.Next(f.in)
	f.in.Deliveries = d.Deliveries
	return d
}

// result stores the result of an attempt.
func (f *fixture) result(s *changes.Send, state v1alpha1.ChangeEventState) {
	f.t.Helper()
	if s == nil {
		f.t.Fatal("nothing is sent")
	}
	deliveries, changed := changes.Record(f.in.Deliveries, *s, changes.Result{State: state})
	if !changed {
		f.t.Fatalf("the result of %+v is not recorded", s)
	}
	f.in.Deliveries = deliveries
}

// sends repeats Next until nothing is left to send, and returns the sent events.
func (f *fixture) sends(state v1alpha1.ChangeEventState) []string {
	f.t.Helper()
	var sent []string
	for range 20 {
		d := f.pass()
		if d.Send == nil {
			return sent
		}
		sent = append(sent, d.Send.Transition+" to "+d.Send.Receiver.ID)
		f.result(d.Send, state)
	}
	f.t.Fatalf("it never ends: %v", sent)
	return nil
}

func (f *fixture) want(sent []string, want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, sent); diff != "" {
		f.t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func (f *fixture) record() string {
	var lines []string
	for _, d := range f.in.Deliveries {
		lines = append(lines, fmt.Sprintf("%s %s %d", d.Transition, d.State, d.Attempts))
	}
	return strings.Join(lines, ", ")
}

func TestEachIsSentOnceToEachReceiver(t *testing.T) {
	f := newFixture(t, "started", "wave/canary/started")
	f.in.Receivers = append(f.in.Receivers, changes.Receiver{ID: "a/p/y", Since: noon})
	f.want(f.sends(v1alpha1.ChangeEventSent), "started to a/p/x", "started to a/p/y", "wave/canary/started to a/p/x",
		"wave/canary/started to a/p/y")
	f.happens("paused", -time.Minute)
	f.want(f.sends(v1alpha1.ChangeEventSent), "paused to a/p/x", "paused to a/p/y")
	f.happens("paused", -2*time.Minute) // once more
	f.want(f.sends(v1alpha1.ChangeEventSent), "paused to a/p/x", "paused to a/p/y")
	f.in.Now = noon.Add(48 * time.Hour)
	f.want(f.sends(v1alpha1.ChangeEventSent))
}

// TestCrash ends the hub at each point between the decision and the record of the result.
func TestCrash(t *testing.T) {
	f := newFixture(t, "started")
	if d := changes.Next(f.in); d.Send == nil || len(f.in.Deliveries) != 0 {
		t.Fatalf("decided %+v", d)
	}
	// It ended before the record was written: the event was not sent.
	d := f.pass()
	if d.Send == nil || f.record() != "started Sending 1" {
		t.Fatalf("record is %q, send %+v; want it recorded before it is sent", f.record(), d.Send)
	}
	// It ended after that: the event may have been sent.
	if again := f.pass(); again.Send != nil || f.record() != "started Unknown 1" {
		t.Errorf("record is %q, send %+v; want it unknown and not sent again", f.record(), again.Send)
	}
	f.want(f.sends(v1alpha1.ChangeEventSent))
	// The hub that sent the event was slow, but still running: its result replaces the assumed one.
	f.result(d.Send, v1alpha1.ChangeEventSent)
	if f.record() != "started Sent 1" {
		t.Errorf("record is %q", f.record())
	}
}

func TestFinalResultsAreNotTriedAgain(t *testing.T) {
	for _, state := range []v1alpha1.ChangeEventState{v1alpha1.ChangeEventRefused, v1alpha1.ChangeEventUnknown,
		v1alpha1.ChangeEventGivenUp} {
		f := newFixture(t, "started")
		f.want(f.sends(state), "started to a/p/x")
		f.in.Now = noon.Add(10 * time.Minute)
		f.want(f.sends(v1alpha1.ChangeEventSent))
	}
}

// TestRetries has PagerDuty accept nothing for longer than an hour.
func TestRetries(t *testing.T) {
	f := newFixture(t, "started")
	var waits []time.Duration
	for {
		d := f.pass()
		if d.Send != nil {
			f.result(d.Send, v1alpha1.ChangeEventWaiting)
			d = f.pass()
		}
		if d.Send != nil {
			t.Fatal("it is sent again at once")
		}
		if d.RecheckAfter == 0 {
			break
		}
		waits = append(waits, d.RecheckAfter)
		f.in.Now = f.in.Now.Add(d.RecheckAfter)
	}
	want := []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second}
	for range 11 {
		want = append(want, 5*time.Minute)
	}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	if f.record() != "started GivenUp 16" {
		t.Errorf("record is %q", f.record())
	}

	f = newFixture(t, "started")
	f.result(f.pass().Send, v1alpha1.ChangeEventWaiting)
	f.happens("paused", -time.Second)
	f.want(f.sends(v1alpha1.ChangeEventSent), "paused to a/p/x")
	f.in.Now = noon.Add(10 * time.Second)
	f.want(f.sends(v1alpha1.ChangeEventSent), "started to a/p/x")

	f = newFixture(t, "started")
	f.result(f.pass().Send, v1alpha1.ChangeEventWaiting)
	f.in.Receivers = nil
	if f.pass(); f.record() != "started GivenUp 1" {
		t.Errorf("nobody asks for it any more, and the record is %q", f.record())
	}
}

func TestWhatIsNotSent(t *testing.T) {
	f := newFixture(t)
	f.happens("started", time.Hour+time.Second)
	f.happens("wave/canary/started", time.Hour)
	f.happens("wave/canary/verified", 31*time.Minute)
	f.in.Receivers[0].Since = noon.Add(-30 * time.Minute)
	f.in.Receivers = append(f.in.Receivers, changes.Receiver{ID: "a/p/old"})
	f.want(f.sends(v1alpha1.ChangeEventSent), "wave/canary/started to a/p/old", "wave/canary/verified to a/p/old")
}

// TestRoom fills the record. Space becomes available only from deliveries that are too old to be sent.
func TestRoom(t *testing.T) {
	f := newFixture(t)
	for i := range 150 {
		f.in.Deliveries = append(f.in.Deliveries, v1alpha1.ChangeEventDelivery{Transition: "paused", Receiver: "a/p/x",
			At: metav1.NewTime(noon.Add(-time.Duration(150-i) * time.Second)), State: v1alpha1.ChangeEventSent})
	}
	f.happens("resumed", 0)
	if d := f.pass(); d.Send != nil || d.RecheckAfter == 0 || len(f.in.Deliveries) != 150 {
		t.Errorf("without room it decides %+v", d.Send)
	}
	f.in.Deliveries[0].At = metav1.NewTime(noon.Add(-3 * time.Hour))
	f.want(f.sends(v1alpha1.ChangeEventSent), "resumed to a/p/x")
	if len(f.in.Deliveries) != 150 {
		t.Errorf("%d are recorded", len(f.in.Deliveries))
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
			for _, r := range changes.Receivers(test.policies, paging.Operator{Namespace: "a", Name: "echo"}) {
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
	if diff := cmp.Diff(want, changes.ListLost(before, after)); diff != "" {
		t.Errorf("lost (-want +got):\n%s", diff)
	}
	if got := changes.ListLost(after, after); len(got) != 0 {
		t.Errorf("lost again: %+v", got)
	}
}
