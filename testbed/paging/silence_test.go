// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/bellwether-dev/bellwether/alerts/alertmanager"
	alerts "github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/hub/silence"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
)

// silencer is the hub's controller of silences, on the real Alertmanager and Events API. Its objects are in memory,
// and its clock may be ahead.
type silencer struct {
	*fixture
	client.Client
	reconciler *silence.Reconciler
	ahead      time.Duration
}

func (f *fixture) silencer() *silencer {
	f.t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			f.t.Fatal(err)
		}
	}
	written := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: platform, Name: alerts.SecretName},
		Data:       f.written,
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(written).
		WithStatusSubresource(&v1alpha1.AlertSilence{})
	for _, index := range kit.Indexes() {
		builder = builder.WithIndex(index.Object, index.Field, index.Keys)
	}
	out := &silencer{fixture: f, Client: builder.Build()}
	var err error
	out.reconciler, err = silence.New(silence.Options{Namespace: platform,
		Alertmanager: api.Endpoint{URL: f.managers[0].URL()}, PagerDutyHosts: []string{f.events.Host()}})
	if err != nil {
		f.t.Fatal(err)
	}
	out.reconciler.Client, out.reconciler.Live, out.reconciler.Events = out, out, events.NewFakeRecorder(1000)
	out.reconciler.Now = func() time.Time { return time.Now().Add(out.ahead) }
	return out
}

// reconcile reconciles until done.
func (s *silencer) reconcile(what string, done func(pagerduty.Ledger) bool) pagerduty.Ledger {
	s.t.Helper()
	return s.until(what, func(pagerduty.Ledger) bool {
		if _, err := s.reconciler.Reconcile(s.t.Context(), reconcile.Request{}); err != nil {
			s.t.Fatal(err)
		}
		return done(s.events.Ledger())
	})
}

// create makes an AlertSilence of the operator echo for an hour.
func (s *silencer) create(name string) *v1alpha1.AlertSilence {
	s.t.Helper()
	now := s.reconciler.Now()
	out := &v1alpha1.AlertSilence{ObjectMeta: metav1.ObjectMeta{Namespace: echo.Namespace, Name: name},
		Spec: v1alpha1.AlertSilenceSpec{Owner: "anna", Reason: "disk is replaced", Operators: []string{echo.Name},
			Start: &metav1.Time{Time: now.Add(-time.Second)}, End: metav1.NewTime(now.Add(time.Hour)),
			Scope: v1alpha1.SilenceNamespace, Alerts: v1alpha1.SilenceAll}}
	if err := s.Create(s.t.Context(), out); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// is tells whether an AlertSilence is Ready for this reason.
func (s *silencer) is(of *v1alpha1.AlertSilence, reason string) func(pagerduty.Ledger) bool {
	return func(pagerduty.Ledger) bool {
		if err := s.Get(s.t.Context(), client.ObjectKeyFromObject(of), of); err != nil {
			s.t.Fatal(err)
		}
		return conditions.Get(of.Status.Conditions, v1alpha1.ConditionReady).Reason == reason
	}
}

// endSilence ends an AlertSilence as a person does.
func (s *silencer) endSilence(of *v1alpha1.AlertSilence) {
	s.t.Helper()
	if err := s.Get(s.t.Context(), client.ObjectKeyFromObject(of), of); err != nil {
		s.t.Fatal(err)
	}
	of.Spec.End = metav1.NewTime(s.reconciler.Now().Add(-time.Millisecond))
	if err := s.Update(s.t.Context(), of); err != nil {
		s.t.Fatal(err)
	}
}

// incidentOf is the incident of an operator, by what PagerDuty got.
func incidentOf(l pagerduty.Ledger, component string) pagerduty.Incident {
	for _, i := range l.Incidents {
		if i.Last.Payload.Component == component || i.Last.Payload.CustomDetails["operator"] == "tools/"+component {
			return i
		}
	}
	return pagerduty.Incident{}
}

// pass lets Alertmanager notify of everything that it would notify of: another operator fails, and its incident gets
// a second alert, which takes one interval of groups at least.
func (s *silencer) pass(version string) {
	s.t.Helper()
	other := release(router, "page", "reconcile").with("version", version)
	s.fire(other)
	s.until("another incident is open", func(l pagerduty.Ledger) bool { return incidentAbout(l, version, 1) })
	s.fire(other.with("sli", "csv"))
	s.until("another incident has two alerts", func(l pagerduty.Ledger) bool { return incidentAbout(l, version, 2) })
}

// incidentAbout tells whether there is an incident about a version of router with so many alerts.
func incidentAbout(l pagerduty.Ledger, version string, alerts int) bool {
	for _, i := range l.Incidents {
		details := i.Last.Payload.CustomDetails
		if details["version"] == "router "+version && fmt.Sprint(details["num_firing"]) == fmt.Sprint(alerts) {
			return true
		}
	}
	return false
}

// wantIncident allows for one anomaly: the hub resolves an incident once more, in case a notification was on its way,
// and PagerDuty ignores that.
func (s *silencer) wantIncident(what string, state pagerduty.State, opened, resolved int) {
	s.t.Helper()
	l := s.events.Ledger()
	good := len(l.Anomalies) <= 1
	for _, a := range l.Anomalies {
		good = good && slices.Equal(a.Reasons, []string{"resolve of what is not open"})
	}
	if i := incidentOf(l, echo.Name); !good || i.State != state || i.Opened != opened || i.Resolved != resolved {
		s.t.Errorf(
			"%s: the incident is %s, was opened %d times and resolved %d times, want %s, %d, %d; anomalies %+v",
			what,
			i.State,
			i.Opened,
			i.Resolved,
			state,
			opened,
			resolved,
			l.Anomalies,
		)
	}
}

// TestSilenceInMidIncident has a release that still fails when the silence ends.
func TestSilenceInMidIncident(t *testing.T) {
	t.Parallel()
	for _, replicas := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d Alertmanagers", replicas), func(t *testing.T) {
			t.Parallel()
			f := start(t, replicas)
			s := f.silencer()
			page := release(echo, "page", "reconcile")
			f.fire(page)
			f.untilOpen(1)
			of := s.create("work")
			s.reconcile("the silence is in force", s.is(of, v1alpha1.ReasonInForce))
			s.wantIncident("when it began", pagerduty.Resolved, 1, 1)

			f.fire(page, page.with("sli", "csv"))
			s.pass("2.0.0")
			s.ahead = 30 * time.Second // long enough for what is sent once more
			s.reconcile("the silence hides two pages", func(l pagerduty.Ledger) bool {
				return s.is(of, v1alpha1.ReasonInForce)(l) && of.Status.HiddenPages == 2
			})
			s.wantIncident("while it is in force", pagerduty.Resolved, 1, 1)
			if got := of.Status.ResolvedIncidents; len(got) != 1 || got[0].Alert != page["alertname"] {
				t.Errorf("the status has the incidents %+v", got)
			}

			s.endSilence(of)
			s.reconcile("the incident is open again", func(l pagerduty.Ledger) bool {
				return incidentOf(l, echo.Name).State == pagerduty.Open
			})
			s.reconcile("the silence has ended", s.is(of, v1alpha1.ReasonEnded))
			s.pass("2.1.0")
			s.ahead = time.Minute
			s.reconcile("nothing is remembered", func(pagerduty.Ledger) bool { return !s.remembers() })
			s.wantIncident("afterwards", pagerduty.Open, 2, 1)
			f.end(page, page.with("sli", "csv"))
			f.until("it is resolved", func(l pagerduty.Ledger) bool {
				return incidentOf(l, echo.Name).State == pagerduty.Resolved
			})
			s.wantIncident("in the end", pagerduty.Resolved, 2, 2)
		})
	}
}

// remembers tells whether the hub remembers an incident.
func (s *silencer) remembers() bool {
	var state corev1.ConfigMap
	if err := s.Get(
		s.t.Context(),
		client.ObjectKey{Namespace: platform, Name: "bellwether-silences"},
		&state,
	); err != nil {
		s.t.Fatal(err)
	}
	return state.Data["incidents.json"] != "[]" && state.Data["incidents.json"] != "null"
}

// TestRecoveryDuringSilence has a release that recovers while it is silenced, and fails again later: Alertmanager says
// nothing of it then, because it never said that it had recovered.
func TestRecoveryDuringSilence(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	s := f.silencer()
	page := release(echo, "page", "reconcile")
	f.fire(page)
	f.untilOpen(1)
	of := s.create("work")
	s.reconcile("the silence is in force", s.is(of, v1alpha1.ReasonInForce))
	f.end(page)
	s.pass("2.0.0")
	s.endSilence(of)
	s.reconcile("the silence has ended", s.is(of, v1alpha1.ReasonEnded))
	s.pass("2.1.0")
	s.wantIncident("after it recovered", pagerduty.Resolved, 1, 1)

	f.fire(page)
	s.reconcile("it is paged of again", func(l pagerduty.Ledger) bool {
		return incidentOf(l, echo.Name).State == pagerduty.Open
	})
	f.end(page)
	f.until(
		"it is resolved",
		func(l pagerduty.Ledger) bool { return incidentOf(l, echo.Name).State == pagerduty.Resolved },
	)
	s.wantIncident("in the end", pagerduty.Resolved, 2, 2)
}

// TestSilenceWaits has PagerDuty, and then Alertmanager, away when a silence is to begin.
func TestSilenceWaits(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	s := f.silencer()
	page := release(echo, "page", "reconcile")
	f.fire(page)
	f.untilOpen(1)
	if err := f.events.SetFaults(pagerduty.Faults{Unavailable: true}); err != nil {
		t.Fatal(err)
	}
	of := s.create("work")
	s.reconcile("the silence waits for PagerDuty", s.is(of, v1alpha1.ReasonIncidentUnresolved))
	client, err := api.Endpoint{URL: f.managers[0].URL()}.Client()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.Silences(t.Context()); err != nil || len(got) > 0 {
		t.Errorf("silences %v (%v), want none before the incident is resolved", got, err)
	}
	f.managers[0].Stop(t.Context())
	s.reconcile("the silence waits for Alertmanager", s.is(of, v1alpha1.ReasonAlertmanagerUnreachable))
	if err := f.events.SetFaults(pagerduty.Faults{}); err != nil {
		t.Fatal(err)
	}
	if err := f.managers[0].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Alertmanager has forgotten its alerts, and Prometheus sends them again.
	byHand := api.Silence{By: "otto", Comment: "by hand", Starts: time.Now(), Ends: time.Now().Add(time.Hour),
		Matchers: []api.Matcher{{Name: "operator", Value: "another"}}}
	if _, err := client.SetSilence(t.Context(), byHand); err != nil {
		t.Fatal(err)
	}
	s.reconcile("the silence is in force", s.is(of, v1alpha1.ReasonInForce))
	f.post(time.Now().Add(time.Hour), []alert{page})
	s.reconcile("the incident is resolved", func(l pagerduty.Ledger) bool {
		return incidentOf(l, echo.Name).State == pagerduty.Resolved
	})
	s.endSilence(of)
	s.reconcile("the incident is open again", func(l pagerduty.Ledger) bool {
		return incidentOf(l, echo.Name).State == pagerduty.Open
	})
	if got, err := client.Silences(t.Context()); err != nil || inForce(got) != 1 {
		t.Errorf("%d silences are in force (%v), want the one that was made by hand", inForce(got), err)
	}
}

func inForce(silences []api.Silence) int {
	n := 0
	for _, s := range silences {
		if s.Ends.After(time.Now()) {
			n++
		}
	}
	return n
}
