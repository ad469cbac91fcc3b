// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	"github.com/prometheus/alertmanager/config"
	"github.com/prometheus/alertmanager/timeinterval"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

const folder = "/etc/alertmanager/config"

func secret(name string) v1alpha1.SecretKey { return v1alpha1.SecretKey{Name: name, Key: "value"} }

func pagerDuty(name string) v1alpha1.PagingReceiver {
	return v1alpha1.PagingReceiver{Name: name, PagerDuty: &v1alpha1.PagerDutyReceiver{RoutingKey: secret("pagerduty")}}
}

// fleet is the platform team's policy, with everything in it.
func fleet(operators ...paging.Operator) paging.Policy {
	return paging.Policy{Namespace: "bellwether-system", Name: "platform", Generation: 1, Operators: operators,
		Spec: v1alpha1.PagingPolicySpec{
			Scope: v1alpha1.PagingFleet, SingleCluster: v1alpha1.SingleClusterCritical,
			Pages: v1alpha1.PageTarget{Receivers: []string{"oncall"}},
			Tickets: &v1alpha1.TicketTarget{Receivers: []string{"channel", "tracker", "mail"},
				Hours: &v1alpha1.TicketHours{TimeZone: "UTC", Start: "09:00", End: "17:00",
					Days: []v1alpha1.Weekday{"Monday", "Friday"}}},
			Heartbeat: &v1alpha1.HeartbeatTarget{URL: secret("heartbeat")},
			Receivers: []v1alpha1.PagingReceiver{
				pagerDuty("oncall"),
				{Name: "channel", Slack: &v1alpha1.SlackReceiver{APIURL: secret("slack"), Channel: "#operators"}},
				{Name: "tracker", Webhook: &v1alpha1.WebhookReceiver{URL: secret("tracker")}},
				{Name: "mail", Email: &v1alpha1.EmailReceiver{To: "sre@example.com", From: "bellwether@example.com",
					Smarthost: "mail.example.com:587", Username: "bellwether", Password: &v1alpha1.SecretKey{
						Name: "mail", Key: "password"}}},
			},
		}}
}

// tenant is a team's policy whose pages and tickets go to the same service.
func tenant(namespace string, operators ...paging.Operator) paging.Policy {
	return paging.Policy{Namespace: namespace, Name: "team", Generation: 3, Operators: operators,
		Spec: v1alpha1.PagingPolicySpec{
			Scope:         v1alpha1.PagingNamespace,
			SingleCluster: v1alpha1.SingleClusterCritical,
			Pages: v1alpha1.PageTarget{
				Receivers: []string{"oncall"},
			},
			Receivers: []v1alpha1.PagingReceiver{pagerDuty("oncall")},
			SelfTest:  &v1alpha1.PagingSelfTest{Every: metav1.Duration{Duration: 24 * time.Hour}},
		}}
}

var (
	echo     = paging.Operator{Namespace: "tools", Name: "echo"}
	critical = paging.Operator{Namespace: "tools", Name: "router", Critical: true}
	others   = paging.Operator{Namespace: "payments", Name: "echo"}
	ledger   = paging.Operator{Namespace: "payments", Name: "ledger", Critical: true}
)

func configOf(t *testing.T, policies ...paging.Policy) []byte {
	t.Helper()
	text, err := paging.BuildConfig(policies, folder)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestConfig(t *testing.T) {
	golden(t, "alertmanager.yaml", configOf(t, fleet(echo, critical), tenant("payments", others, ledger)))
}

func TestObject(t *testing.T) {
	for name, p := range map[string]paging.Policy{"fleet": fleet(echo, critical),
		"tenant": tenant("payments", others, ledger)} {
		t.Run(name, func(t *testing.T) {
			spec, err := paging.BuildObject(p, []paging.Policy{p})
			if err != nil {
				t.Fatal(err)
			}
			text, err := yaml.Marshal(spec)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "object-"+name+".yaml", text)
		})
	}
}

// TestObjectSaysTheSame holds that both kinds of configuration have the same texts and receivers.
func TestObjectSaysTheSame(t *testing.T) {
	p := fleet(echo, critical)
	spec, err := paging.BuildObject(p, []paging.Policy{p})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := config.Load(string(configOf(t, p)))
	if err != nil {
		t.Fatal(err)
	}
	texts := func(details map[string]string) string {
		raw, err := json.Marshal(details)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	fromPlain, fromObject := map[string]string{}, map[string]string{}
	for _, r := range plain.Receivers {
		for _, c := range r.PagerdutyConfigs {
			for name, text := range c.Details {
				fromPlain[r.Name+" "+name] = text.(string)
			}
			fromPlain[r.Name] = strings.Join(
				[]string{c.Description, c.Severity, c.Class, c.Component, c.Group, c.Source,
					c.Client, c.ClientURL},
				"|",
			)
		}
	}
	for _, r := range spec.Receivers {
		for _, c := range r.PagerDutyConfigs {
			for _, d := range c.Details {
				fromObject[r.Name+" "+d.Key] = d.Value
			}
			fromObject[r.Name] = strings.Join([]string{*c.Description, *c.Severity, *c.Class, *c.Component, *c.Group,
				*c.Source, *c.Client, *c.ClientURL}, "|")
		}
	}
	if diff := cmp.Diff(texts(fromPlain), texts(fromObject)); diff != "" {
		t.Errorf("incidents (-plain +object):\n%s", diff)
	}
}

func TestConfigNeedsAFleetPolicy(t *testing.T) {
	if _, err := paging.BuildConfig(
		[]paging.Policy{tenant("payments", others)},
		folder,
	); !errors.Is(
		err,
		paging.ErrNoFleetPolicy,
	) {
		t.Errorf("error %v, want ErrNoFleetPolicy", err)
	}
}

func TestObjectHasNoTimeZones(t *testing.T) {
	p := fleet()
	p.Spec.Tickets.Hours.TimeZone = "Europe/Berlin"
	if _, err := paging.BuildObject(p, []paging.Policy{p}); !errors.Is(err, paging.ErrTimeZone) {
		t.Errorf("error %v, want ErrTimeZone", err)
	}
}

// alert are the labels of an alert about an operator.
func alert(op paging.Operator, name, severity, scope string, further ...string) map[string]string {
	out := map[string]string{"alertname": name, "severity": severity, "scope": scope, "sli": "available",
		"operator_namespace": op.Namespace, "operator": op.Name}
	for i := 0; i < len(further); i += 2 {
		out[further[i]] = further[i+1]
	}
	return out
}

func TestRoutes(t *testing.T) {
	text := configOf(t, fleet(echo, critical), tenant("payments", others, ledger))
	for name, c := range map[string]struct {
		labels   map[string]string
		receiver string
		notifies []string
	}{
		"a release of an operator pages": {
			alert(echo, slo.AlertRelease, "page", "release", "version", "1.1.0"),
			"bellwether-system/platform/pages", []string{"pagerduty"}},
		"a ticket about a release": {
			alert(echo, slo.AlertRelease, "ticket", "release", "version", "1.1.0"),
			"bellwether-system/platform/tickets", []string{"email", "slack", "webhook"}},
		"a single cluster of an operator that is not critical makes a ticket": {
			alert(echo, slo.AlertOperator, "page", "operator", "cluster", "a"),
			"bellwether-system/platform/tickets", []string{"email", "slack", "webhook"}},
		"a single cluster of a critical operator pages": {
			alert(critical, slo.AlertOperator, "page", "operator", "cluster", "a"),
			"bellwether-system/platform/pages", []string{"pagerduty"}},
		"an operator with the same name in another namespace is another one": {
			alert(others, slo.AlertRelease, "page", "release", "version", "1.1.0"),
			"payments/team/standard", []string{"pagerduty"}},
		"a critical one of theirs": {
			alert(ledger, slo.AlertOperator, "page", "operator", "cluster", "a"),
			"payments/team/pages", []string{"pagerduty"}},
		"a cluster": {
			map[string]string{"alertname": slo.AlertCluster, "severity": "page", "scope": "cluster", "cluster": "a"},
			"bellwether-system/platform/pages", []string{"pagerduty"}},
		"the fleet": {
			map[string]string{"alertname": slo.AlertRulesNotLoaded, "severity": "ticket", "scope": "fleet"},
			"bellwether-system/platform/tickets", []string{"email", "slack", "webhook"}},
		"the heartbeat": {
			map[string]string{"alertname": slo.AlertHeartbeat, "severity": "heartbeat", "scope": "fleet"},
			"bellwether-system/platform/heartbeat", []string{"webhook"}},
		"an operator that the hub does not know (any more)": {
			alert(paging.Operator{Namespace: "gone", Name: "gone"}, slo.AlertRelease, "page", "release"),
			"bellwether-system/platform/pages", []string{"pagerduty"}},
		"an alert of somebody else": {
			map[string]string{"alertname": "DiskFull", "severity": "page"},
			"bellwether-system/platform/tickets", []string{"email", "slack", "webhook"}},
		"an alert of a team's own, with the labels that a PodMonitor adds": {
			alert(ledger, "LedgerQueueInfo", "info", "", "pod", "ledger-0"),
			"bellwether-system/platform/tickets", []string{"email", "slack", "webhook"}},
		"an alert of somebody else that looks like a page": {
			alert(echo, "Whatever", "page", "release", "version", "1.1.0"),
			"bellwether-system/platform/tickets", []string{"email", "slack", "webhook"}},
	} {
		t.Run(name, func(t *testing.T) {
			router, err := paging.NewRouter(text)
			if err != nil {
				t.Fatal(err)
			}
			got := router.Incidents(c.labels)
			if len(got) != 1 {
				t.Fatalf("%d incidents, want 1: %+v", len(got), got)
			}
			if got[0].Receiver != c.receiver || !slices.Equal(got[0].Notifies, c.notifies) {
				t.Errorf("goes to %s (%v), want %s (%v)", got[0].Receiver, got[0].Notifies, c.receiver, c.notifies)
			}
		})
	}
}

// TestHours holds when tickets are sent, by both kinds of configuration.
func TestHours(t *testing.T) {
	at := func(day int, clock string) time.Time {
		moment, err := time.Parse("2006-01-02 15:04", fmt.Sprintf("2026-11-%02d %s", 22+day, clock)) // 22: a Sunday
		if err != nil {
			t.Fatal(err)
		}
		return moment
	}
	const sunday, monday, tuesday, friday, saturday = 0, 1, 2, 5, 6
	work := []v1alpha1.Weekday{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday"}
	for name, c := range map[string]struct {
		hours       v1alpha1.TicketHours
		sent, quiet []time.Time
	}{
		"in a day": {v1alpha1.TicketHours{Start: "09:00", End: "17:00", Days: work},
			[]time.Time{at(monday, "09:00"), at(friday, "16:59")},
			[]time.Time{at(monday, "08:59"), at(monday, "17:00"), at(saturday, "10:00")}},
		"over midnight": {v1alpha1.TicketHours{Start: "22:00", End: "06:00", Days: work},
			[]time.Time{at(monday, "22:00"), at(monday, "23:59"), at(tuesday, "00:00"), at(tuesday, "05:59"),
				at(saturday, "05:59")},
			[]time.Time{at(monday, "00:00"), at(monday, "21:59"), at(tuesday, "06:00"), at(saturday, "22:00"),
				at(sunday, "01:00")}},
		"over midnight, from Saturday": {v1alpha1.TicketHours{Start: "22:00", End: "06:00",
			Days: []v1alpha1.Weekday{"Saturday"}},
			[]time.Time{at(saturday, "23:00"), at(sunday, "05:00")},
			[]time.Time{at(saturday, "05:00"), at(sunday, "22:00")}},
		"over midnight, each day": {v1alpha1.TicketHours{Start: "22:00", End: "06:00"},
			[]time.Time{at(sunday, "01:00"), at(saturday, "22:00")}, []time.Time{at(sunday, "06:00")}},
		"until midnight": {v1alpha1.TicketHours{Start: "22:00", End: "00:00", Days: []v1alpha1.Weekday{"Monday"}},
			[]time.Time{at(monday, "23:59")}, []time.Time{at(tuesday, "00:00")}},
		"the whole day": {v1alpha1.TicketHours{Start: "00:00", End: "24:00", Days: []v1alpha1.Weekday{"Monday"}},
			[]time.Time{at(monday, "00:00"), at(monday, "23:59")},
			[]time.Time{at(sunday, "23:59"), at(tuesday, "00:00")}},
	} {
		t.Run(name, func(t *testing.T) {
			p := fleet(echo)
			p.Spec.Tickets.Hours = &c.hours
			plain, err := config.Load(string(configOf(t, p)))
			if err != nil {
				t.Fatal(err)
			}
			spec, err := paging.BuildObject(p, []paging.Policy{p})
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(map[string]any{"route": map[string]any{"receiver": "a"}, "receivers": []any{
				map[string]any{"name": "a"}}, "time_intervals": []any{ofObject(spec.MuteTimeIntervals[0])}})
			if err != nil {
				t.Fatal(err)
			}
			object, err := config.Load(string(text))
			if err != nil {
				t.Fatal(err)
			}
			for kind, loaded := range map[string]*config.Config{"plain": plain, "object": object} {
				intervals := loaded.TimeIntervals[0].TimeIntervals
				for want, moments := range map[bool][]time.Time{true: c.sent, false: c.quiet} {
					for _, moment := range moments {
						got := slices.ContainsFunc(intervals, func(i timeinterval.TimeInterval) bool {
							return i.ContainsTime(moment)
						})
						if got != want {
							t.Errorf("%s: sent %t on %s, want %t", kind, got, moment.Format("Monday 15:04"), want)
						}
					}
				}
			}
		})
	}
}

// ofObject is an interval of an AlertmanagerConfig as prometheus-operator writes it.
func ofObject(in monitoring.MuteTimeInterval) map[string]any {
	var intervals []map[string]any
	for _, i := range in.TimeIntervals {
		out := map[string]any{}
		if len(i.Weekdays) > 0 {
			out["weekdays"] = i.Weekdays
		}
		var times []map[string]any
		for _, r := range i.Times {
			times = append(times, map[string]any{"start_time": r.StartTime, "end_time": r.EndTime})
		}
		out["times"] = times
		intervals = append(intervals, out)
	}
	return map[string]any{"name": in.Name, "time_intervals": intervals}
}

// key is PagerDuty's key of the one incident of an alert.
func key(t *testing.T, text []byte, labels map[string]string) string {
	t.Helper()
	router, err := paging.NewRouter(text)
	if err != nil {
		t.Fatal(err)
	}
	in := router.Incidents(labels)
	if len(in) != 1 || in[0].DedupKey == "" {
		t.Fatalf("incidents %+v, want 1 with a key", in)
	}
	return in[0].DedupKey
}

// TestKeysStay holds that what happens elsewhere does not change the key of an incident that is open.
func TestKeysStay(t *testing.T) {
	release := alert(echo, slo.AlertRelease, "page", "release", "version", "1.1.0")
	before := key(t, configOf(t, fleet(echo)), release)
	urgent := echo
	urgent.Critical = true
	for name, policies := range map[string][]paging.Policy{
		"an operator comes":             {fleet(echo, critical)},
		"another team gets a policy":    {fleet(echo), tenant("payments", others)},
		"the operator becomes critical": {fleet(urgent)},
	} {
		t.Run(name, func(t *testing.T) {
			if after := key(t, configOf(t, policies...), release); after != before {
				t.Errorf("the key becomes %s, was %s", after, before)
			}
		})
	}
}

// TestSeverityGrowsOnOneIncident holds that a ticket that becomes a page keeps its incident where both go to the same
// receivers, and that SLIs and clusters of one release are one incident.
func TestSeverityGrowsOnOneIncident(t *testing.T) {
	text := configOf(t, fleet(), tenant("payments", others))
	first := key(t, text, alert(others, slo.AlertRelease, "ticket", "release", "version", "1.1.0"))
	for name, labels := range map[string]map[string]string{
		"as a page":   alert(others, slo.AlertRelease, "page", "release", "version", "1.1.0"),
		"another SLI": alert(others, slo.AlertRelease, "page", "release", "version", "1.1.0", "sli", "reconcile"),
	} {
		if got := key(t, text, labels); got != first {
			t.Errorf("%s: key %s, want that of the ticket, %s", name, got, first)
		}
	}
	for name, labels := range map[string]map[string]string{
		"another version": alert(others, slo.AlertRelease, "page", "release", "version", "1.2.0"),
		"a cluster":       alert(others, slo.AlertOperator, "page", "operator", "cluster", "a"),
	} {
		if got := key(t, text, labels); got == first {
			t.Errorf("%s has the same key", name)
		}
	}
}

// TestEveryAlertHasAReceiver holds it for all alerts that rules can make.
func TestEveryAlertHasAReceiver(t *testing.T) {
	set := slo.Set{Default: slo.DefaultProfile()}
	for _, op := range []paging.Operator{echo, critical, others, ledger} {
		o := slo.Operator{Namespace: op.Namespace, Name: op.Name}
		if op.Critical {
			o.Criticality = string(v1alpha1.CriticalityCritical)
		}
		set.Operators = append(set.Operators, o)
	}
	rules, err := slo.Build(set)
	if err != nil {
		t.Fatal(err)
	}
	operators := []paging.Operator{echo, critical, others, ledger}
	alerts := paging.Alerts(rules.All(), operators)
	names := map[string]bool{}
	for _, a := range alerts {
		names[a.Name] = true
	}
	if len(names) < 15 || !names[slo.AlertCluster] || !names[slo.AlertRelease] || !names[slo.AlertHeartbeat] {
		t.Errorf("alerts %v: too few of them", slices.Sorted(maps.Keys(names)))
	}
	router, err := paging.NewRouter(configOf(t, fleet(echo, critical), tenant("payments", others, ledger)))
	if err != nil {
		t.Fatal(err)
	}
	if lost := router.Unrouted(alerts); len(lost) > 0 {
		t.Errorf("nobody gets %+v", lost)
	}
	nobody, err := paging.NewRouter([]byte("route: {receiver: a, routes: [{matchers: [scope=fleet], receiver: b}]}\n" +
		"receivers: [{name: a, webhook_configs: [{url: http://localhost/}]}, {name: b}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range nobody.Unrouted(alerts) {
		if a.Scope != "fleet" || a.Severity == "heartbeat" {
			t.Errorf("%+v is said to reach nobody", a)
		}
	}
	if len(nobody.Unrouted(alerts)) == 0 {
		t.Error("alerts about the fleet reach nobody, and it is not said")
	}
}

func TestSecrets(t *testing.T) {
	var got []string
	for _, use := range fleet().Secrets() {
		got = append(got, strings.Join([]string{use.Field, use.Name, use.Key, string(use.Format), use.File}, " "))
	}
	want := []string{
		"receivers[oncall] pagerduty value routing key secret_bellwether-system_platform_oncall",
		"receivers[channel] slack value URL secret_bellwether-system_platform_channel",
		"receivers[tracker] tracker value URL secret_bellwether-system_platform_tracker",
		"receivers[mail] mail password password secret_bellwether-system_platform_mail",
		"heartbeat heartbeat value URL secret_bellwether-system_platform",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
	text := configOf(t, fleet())
	for _, use := range fleet().Secrets() {
		if !bytes.Contains(text, []byte(folder+"/"+use.File)) {
			t.Errorf("the configuration does not read %s", use.File)
		}
	}
}

func TestSelects(t *testing.T) {
	named, ofTeam := tenant("payments"), tenant("payments")
	named.Spec.Operators = []string{"ledger"}
	ofTeam.Spec.Teams = []string{"money"}
	withTeam := ledger
	withTeam.Team = "money"
	for name, c := range map[string]struct {
		policy paging.Policy
		op     paging.Operator
		want   bool
	}{
		"all of its namespace":      {tenant("payments"), ledger, true},
		"none of another namespace": {tenant("payments"), echo, false},
		"by name":                   {named, ledger, true},
		"not by name":               {named, others, false},
		"by team":                   {ofTeam, withTeam, true},
		"without a team":            {ofTeam, ledger, false},
		"the fleet's selects none":  {fleet(), echo, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.policy.Selects(c.op); got != c.want {
				t.Errorf("Selects(%s/%s) = %v", c.op.Namespace, c.op.Name, got)
			}
		})
	}
}
