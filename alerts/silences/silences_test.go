// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package silences_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/alertmanager"
	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/silences"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

const hub = "bellwether-system"

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// fixture plays Alertmanager and PagerDuty for the planner.
type fixture struct {
	t  *testing.T
	in silences.Input
	// resolved and opened are the alerts' names of events for PagerDuty, in order.
	resolved, opened []string
	// dropped has incidents whose resolution PagerDuty does not take.
	ids int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	policy := func(namespace string, scope v1alpha1.PagingScope, op paging.Operator) paging.Policy {
		return paging.Policy{Namespace: namespace, Name: "policy", Operators: []paging.Operator{op},
			Spec: v1alpha1.PagingPolicySpec{
				Scope:         scope,
				SingleCluster: v1alpha1.SingleClusterAll,
				Pages: v1alpha1.PageTarget{
					Receivers: []string{"oncall"},
				},
				Receivers: []v1alpha1.PagingReceiver{{Name: "oncall",
					PagerDuty: &v1alpha1.PagerDutyReceiver{RoutingKey: v1alpha1.SecretKey{Name: "s", Key: "k"}}}},
			}}
	}
	policies := []paging.Policy{
		policy(hub, v1alpha1.PagingFleet, paging.Operator{Namespace: "tools", Name: "echo"}),
		policy("payments", v1alpha1.PagingNamespace, paging.Operator{Namespace: "payments", Name: "echo"}),
	}
	text, err := paging.BuildConfig(policies, "/etc/alertmanager/config")
	if err != nil {
		t.Fatal(err)
	}
	router, err := paging.NewRouter(text)
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t: t, in: silences.Input{Now: noon, Namespace: hub, Max: silences.DefaultMax, Router: router,
		Policies: policies}}
}

// alert makes an alert; further are names and values of labels.
func alert(name, severity, scope string, further ...string) alertmanager.Alert {
	labels := map[string]string{"alertname": name, "severity": severity, "scope": scope}
	for i := 0; i+1 < len(further); i += 2 {
		labels[further[i]] = further[i+1]
	}
	return alertmanager.Alert{
		Labels:      labels,
		Annotations: map[string]string{"summary": name},
		Since:       noon.Add(-time.Hour),
	}
}

func release(namespace, sli string) alertmanager.Alert {
	return alert(slo.AlertRelease, "page", "release", "operator_namespace", namespace, "operator", "echo", "version",
		"1.1.0", "sli", sli)
}

func single(namespace, cluster string) alertmanager.Alert {
	return alert(slo.AlertOperator, "page", "operator", "operator_namespace", namespace, "operator", "echo", "cluster",
		cluster, "sli", "csv")
}

func cluster(name string) alertmanager.Alert {
	return alert(slo.AlertCluster, "page", "cluster", "cluster", name)
}

func silence(namespace, name string, change ...func(*v1alpha1.AlertSilenceSpec)) v1alpha1.AlertSilence {
	s := v1alpha1.AlertSilence{ObjectMeta: metav1.ObjectMeta{
		Namespace:  namespace,
		Name:       name,
		Generation: 1,
		CreationTimestamp: metav1.NewTime(
			noon,
		),
	}, Spec: v1alpha1.AlertSilenceSpec{Owner: "anna", Reason: "disk is replaced",
		End: metav1.NewTime(noon.Add(time.Hour)), Scope: v1alpha1.SilenceNamespace, Alerts: v1alpha1.SilenceAll}}
	for _, c := range change {
		c(&s.Spec)
	}
	return s
}

func operators(names ...string) func(*v1alpha1.AlertSilenceSpec) {
	return func(s *v1alpha1.AlertSilenceSpec) { s.Operators = names }
}

func clusters(names ...string) func(*v1alpha1.AlertSilenceSpec) {
	return func(s *v1alpha1.AlertSilenceSpec) { s.Clusters = &v1alpha1.SilencedClusters{Names: names} }
}

func wholeFleet(s *v1alpha1.AlertSilenceSpec) { s.Scope = v1alpha1.SilenceFleet }

// canHide reports whether Alertmanager would hide an alert. Matchers in these tests are literals or lists.
func canHide(s alertmanager.Silence, a alertmanager.Alert) bool {
	for _, m := range s.Matchers {
		value := a.Labels[m.Name]
		matches := value == m.Value
		if m.Regex {
			matches = slices.Contains(strings.Split(m.Value, "|"), value) ||
				m.Value == "Bellwether.+" && strings.HasPrefix(value, "Bellwether")
		}
		if matches == m.Negated {
			return false
		}
	}
	return true
}

// step plans, carries everything out, and lets time pass.
func (f *fixture) step(pass time.Duration) silences.Decision {
	for i := range f.in.Alerts {
		f.in.Alerts[i].SilencedBy = nil
		for _, s := range f.in.Present {
			if s.Ends.After(f.in.Now) && canHide(s, f.in.Alerts[i]) {
				f.in.Alerts[i].SilencedBy = append(f.in.Alerts[i].SilencedBy, s.ID)
			}
		}
	}
	d := silences.Next(f.in)
	records := slices.Clone(d.Records)
	set := func(r silences.Record, forget bool) {
		records = slices.DeleteFunc(records, func(o silences.Record) bool { return o.Key() == r.Key() })
		if !forget {
			records = append(records, r)
		}
	}
	for _, r := range d.Resolve {
		f.resolved = append(f.resolved, r.Labels["alertname"])
		set(r.Record, r.Forget)
	}
	for _, s := range d.Start {
		for _, r := range s.Resolve {
			f.resolved = append(f.resolved, r.Labels["alertname"])
		}
		f.ids++
		s.Silence.ID, s.Silence.Starts = fmt.Sprint("s", f.ids), f.in.Now
		f.in.Present = append(f.in.Present, s.Silence)
	}
	f.in.Present = slices.DeleteFunc(
		f.in.Present,
		func(s alertmanager.Silence) bool { return slices.Contains(d.End, s.ID) },
	)
	for _, r := range d.Reopen {
		f.opened = append(f.opened, r.Labels["alertname"])
		now := f.in.Now
		r.Reopened = &now
		set(r.Record, false)
	}
	f.in.Records, f.in.Now = records, f.in.Now.Add(pass)
	return d
}

func (f *fixture) want(what string, resolved, opened []string) {
	f.t.Helper()
	if diff := cmp.Diff([][]string{resolved, opened}, [][]string{f.resolved, f.opened}); diff != "" {
		f.t.Errorf("%s: resolved and opened again (-want +got):\n%s", what, diff)
	}
	f.resolved, f.opened = nil, nil
}

// TestWhatIsHidden has each form of a silence against each kind of alert.
func TestWhatIsHidden(t *testing.T) {
	all := map[string]alertmanager.Alert{
		"release of tools":    release("tools", "csv"),
		"release of payments": release("payments", "csv"),
		"tools on a": single(
			"tools",
			"a",
		),
		"payments on a": single("payments", "a"),
		"tools on b":    single("tools", "b"),
		"cluster a":     cluster("a"),
		"fleet":         alert(slo.AlertFleetSilent, "page", "fleet"),
		"ticket of tools": alert(
			slo.AlertRolloutHalted,
			"ticket",
			"release",
			"operator_namespace",
			"tools",
			"operator",
			"echo",
		),
		"hidden pages of tools": alert(
			slo.AlertSilenceHides,
			"ticket",
			"release",
			"operator_namespace",
			"tools",
			"operator",
			"echo",
		),
		"an alert of somebody else": alert(
			"NodeDown",
			"page",
			"",
			"cluster",
			"a",
			"operator",
			"echo",
			"operator_namespace",
			"tools",
		),
	}
	onA := v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"site": "x"}}}
	upgrade := silence("tools", "up", operators("echo"), clusters("a"))
	upgrade.Labels = map[string]string{v1alpha1.LabelAutomaticSilence: silences.CauseUpgrade}
	for name, test := range map[string]struct {
		silence v1alpha1.AlertSilence
		want    []string
	}{
		"an operator": {silence("tools", "s", operators("echo")),
			[]string{"release of tools", "ticket of tools", "tools on a", "tools on b"}},
		"an operator on clusters": {silence("tools", "s", operators("echo", "other"), clusters("a", "c")), []string{"tools on a"}},
		"clusters":                {silence("tools", "s", clusters("a", "b")), []string{"tools on a", "tools on b"}},
		"clusters by label": {silence("tools", "s", func(s *v1alpha1.AlertSilenceSpec) {
			s.Clusters = &v1alpha1.SilencedClusters{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"site": "x"}},
			}
		}), []string{"tools on a"}},
		"tickets only": {silence("tools", "s", operators("echo"), func(s *v1alpha1.AlertSilenceSpec) {
			s.Alerts = v1alpha1.SilenceTickets
		}), []string{"ticket of tools"}},
		"a whole cluster":            {silence(hub, "s", wholeFleet, clusters("a")), []string{"cluster a", "payments on a", "tools on a"}},
		"a whole cluster, elsewhere": {silence("tools", "s", wholeFleet, clusters("a")), nil},
		"an upgrade":                 {upgrade, []string{"tools on a"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.in.Silences, f.in.Clusters = []v1alpha1.AlertSilence{test.silence}, []v1alpha1.FleetCluster{onA}
			f.step(0)
			var got []string
			for what, a := range all {
				if slices.ContainsFunc(f.in.Present, func(s alertmanager.Silence) bool { return canHide(s, a) }) {
					got = append(got, what)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("hidden alerts (-want +got):\n%s", diff)
			}
		})
	}
}

// TestIncidents plays incidents before, during and after silences.
func TestIncidents(t *testing.T) {
	only := []string{slo.AlertRelease}
	t.Run("it still fires when the silence ends", func(t *testing.T) {
		f := newFixture(t)
		f.in.Alerts = []alertmanager.Alert{release("tools", "csv"), release("tools", "available")}
		f.in.Silences = []v1alpha1.AlertSilence{silence("tools", "s", operators("echo"))}
		f.step(time.Second)
		f.want("when it starts", only, nil)
		f.step(time.Minute)
		f.want("at once", nil, nil)
		f.step(58 * time.Minute)
		f.want("once more, for a notification that was on its way", only, nil)
		f.step(time.Minute)
		f.step(0)
		f.want("when it ends", nil, only)
		f.step(time.Minute)
		f.step(time.Minute)
		f.want("afterwards", nil, nil)
		if len(f.in.Records) > 0 {
			t.Errorf("records %+v are left", f.in.Records)
		}
	})
	t.Run("it recovered, and fails again after the silence", func(t *testing.T) {
		f := newFixture(t)
		f.in.Alerts = []alertmanager.Alert{release("tools", "csv")}
		f.in.Silences = []v1alpha1.AlertSilence{silence("tools", "s", operators("echo"))}
		f.step(time.Minute)
		f.in.Alerts = nil
		f.step(2 * time.Hour)
		f.step(time.Hour)
		f.want("after it recovered", []string{slo.AlertRelease, slo.AlertRelease}, nil)
		f.in.Alerts = []alertmanager.Alert{release("tools", "csv")}
		f.step(time.Minute)
		f.want("when it fails again, which Alertmanager says nothing of", nil, only)
		f.step(20 * time.Hour)
		f.step(time.Minute)
		f.want("afterwards", nil, nil)
	})
	t.Run("another alert of the incident is not silenced", func(t *testing.T) {
		f := newFixture(t)
		f.in.Alerts = []alertmanager.Alert{release("tools", "csv"), release("tools", "available")}
		f.in.Silences = []v1alpha1.AlertSilence{silence("tools", "s", operators("echo"))}
		f.in.Alerts[1].Labels["severity"] = "ticket"
		f.in.Silences[0].Spec.Alerts = v1alpha1.SilenceTickets
		f.step(time.Minute)
		f.step(2 * time.Hour)
		f.step(time.Minute)
		f.want("ever", nil, nil)
	})
	t.Run("Alertmanager had forgotten the alert when the silence began", func(t *testing.T) {
		f := newFixture(t)
		f.in.Silences = []v1alpha1.AlertSilence{silence("tools", "s", operators("echo"))}
		f.step(time.Second)
		f.in.Alerts = []alertmanager.Alert{release("tools", "csv")}
		f.step(time.Second)
		f.want("when it is known again", only, nil)
		f.step(time.Second)
		f.want("afterwards", nil, nil)
	})
	t.Run("an alert that begins during the silence", func(t *testing.T) {
		f := newFixture(t)
		f.in.Silences = []v1alpha1.AlertSilence{silence("tools", "s", operators("echo"))}
		f.step(time.Minute)
		f.in.Alerts = []alertmanager.Alert{release("tools", "csv")}
		f.in.Alerts[0].Since = f.in.Now
		f.step(2 * time.Hour)
		f.step(time.Minute)
		f.want("ever: Alertmanager notifies of it", nil, nil)
	})
	t.Run("the incident of another tenant", func(t *testing.T) {
		f := newFixture(t)
		f.in.Alerts = []alertmanager.Alert{release("payments", "csv")}
		f.in.Silences = []v1alpha1.AlertSilence{silence("tools", "s", operators("echo"))}
		f.step(2 * time.Hour)
		f.step(time.Minute)
		f.want("ever", nil, nil)
	})
	t.Run("it ended right when it was opened again", func(t *testing.T) {
		f := newFixture(t)
		f.in.Alerts = []alertmanager.Alert{release("tools", "csv")}
		f.in.Silences = []v1alpha1.AlertSilence{silence("tools", "s", operators("echo"))}
		f.step(2 * time.Hour)
		f.step(time.Second)
		f.want("when it ends", only, only)
		f.in.Alerts = nil
		f.step(5 * time.Minute)
		f.want("while Alertmanager may have restarted", nil, nil)
		f.step(6 * time.Minute)
		f.step(time.Minute)
		f.want("then", only, nil)
		if len(f.in.Records) > 0 {
			t.Errorf("records %+v are left", f.in.Records)
		}
	})
}

// TestSilencesOfAlertmanager changes, deletes and ends AlertSilences.
func TestSilencesOfAlertmanager(t *testing.T) {
	f := newFixture(t)
	byHand := alertmanager.Silence{ID: "hand", By: "bellwether: otto", Comment: "by hand", Ends: noon.Add(time.Hour),
		Matchers: []alertmanager.Matcher{{Name: "operator", Value: "other"}}}
	f.in.Present = []alertmanager.Silence{byHand}
	f.in.Silences = []v1alpha1.AlertSilence{silence("tools", "s", operators("echo"))}
	if d := f.step(time.Minute); len(d.Start) != 1 || len(d.End) != 0 {
		t.Errorf("decision %+v, want one silence", d)
	}
	if d := f.step(time.Minute); len(d.Start)+len(d.End) != 0 {
		t.Errorf("decision %+v, want nothing", d)
	}
	f.in.Alerts = []alertmanager.Alert{release("tools", "csv")}
	f.in.Alerts[0].Since = f.in.Now
	f.in.Silences[0].Spec.End = metav1.NewTime(noon.Add(3 * time.Hour))
	if d := f.step(
		time.Minute,
	); len(d.Start) != 1 || !slices.Equal(d.End, []string{"s1"}) ||
		len(d.Start[0].Resolve) > 0 {
		t.Errorf("decision %+v, want another silence in place of the first one", d)
	}
	f.in.Silences = nil
	if d := f.step(time.Minute); len(d.Start) != 0 || !slices.Equal(d.End, []string{"s2"}) {
		t.Errorf("decision %+v, want the end of the second one", d)
	}
	if diff := cmp.Diff([]alertmanager.Silence{byHand}, f.in.Present); diff != "" {
		t.Errorf("silences (-want +got):\n%s", diff)
	}
}

// TestReport has the states of an AlertSilence.
func TestReport(t *testing.T) {
	for name, test := range map[string]struct {
		silence v1alpha1.AlertSilence
		failed  silences.Problem
		want    string
		message string
	}{
		"in force": {silence("tools", "s", operators("echo")), silences.Problem{}, "True InForce True",
			"until 2026-11-23T13:00:00Z; it hides 1 firing alert, of which 1 page"},
		"later": {silence("tools", "s", operators("echo"), func(s *v1alpha1.AlertSilenceSpec) {
			s.Start = &metav1.Time{Time: noon.Add(time.Minute)}
		}), silences.Problem{}, "True Scheduled False", "begins at 2026-11-23T12:01:00Z"},
		"over": {silence("tools", "s", operators("echo"), func(s *v1alpha1.AlertSilenceSpec) {
			s.End = metav1.NewTime(noon)
		}), silences.Problem{}, "True Ended False", "ended at 2026-11-23T12:00:00Z"},
		"too long": {silence("tools", "s", operators("echo"), func(s *v1alpha1.AlertSilenceSpec) {
			s.End = metav1.NewTime(noon.Add(25 * time.Hour))
		}), silences.Problem{}, "False EndTooLate False", "2026-11-24T12:00:00Z at the latest"},
		"no cluster": {silence("tools", "s", func(s *v1alpha1.AlertSilenceSpec) {
			s.Clusters = &v1alpha1.SilencedClusters{Selector: &metav1.LabelSelector{}}
		}), silences.Problem{}, "False NoClusters False", "no FleetCluster"},
		"fleet, elsewhere": {silence("tools", "s", wholeFleet, clusters("a")), silences.Problem{},
			"False InvalidSpec False", "must be in namespace bellwether-system"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.in.Alerts = []alertmanager.Alert{release("tools", "csv")}
			f.in.Silences = []v1alpha1.AlertSilence{test.silence}
			f.step(0)
			f.step(0)
			status := silences.Report(f.in, &test.silence, test.failed)
			ready := conditions.Get(status.Conditions, v1alpha1.ConditionReady)
			active := conditions.Get(status.Conditions, v1alpha1.ConditionActive)
			got := fmt.Sprint(ready.Status, " ", ready.Reason, " ", active.Status)
			if got != test.want || !strings.Contains(ready.Message, test.message) {
				t.Errorf("it is %s (%s), want %s (%s)", got, ready.Message, test.want, test.message)
			}
			if test.want != "True InForce True" {
				return
			}
			want := []v1alpha1.HiddenPages{{OperatorNamespace: "tools", Operator: "echo", Pages: 1}}
			if diff := cmp.Diff(want, status.Hidden); diff != "" || len(status.ResolvedIncidents) != 1 {
				t.Errorf(
					"%d incidents were resolved, and hidden are (-want +got):\n%s",
					len(status.ResolvedIncidents),
					diff,
				)
			}
		})
	}
}
