// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package incidents_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/bellwether-dev/bellwether/alerts/incidents"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

var midnight = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

// minutes are from the first to the last one after midnight, both included.
type minutes [2]int

// recorded is a Prometheus with series that are there for some minutes.
type recorded struct {
	evaluated []minutes
	alerts    map[string][]minutes
	// active is ALERTS_FOR_STATE at the start of the span.
	active  map[string]float64
	current []prometheus.Alert
	err     error
}

func labels(text string) model.Metric {
	out := model.Metric{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		out[model.LabelName(name)] = model.LabelValue(value)
	}
	return out
}

func points(of []minutes, start, end time.Time, step time.Duration) []model.SamplePair {
	var out []model.SamplePair
	for at := start; !at.After(end); at = at.Add(step) {
		for _, m := range of {
			if !at.Before(midnight.Add(time.Duration(m[0])*time.Minute)) &&
				!at.After(midnight.Add(time.Duration(m[1])*time.Minute)) {
				out = append(out, model.SamplePair{Timestamp: model.TimeFromUnixNano(at.UnixNano() + 500_000),
					Value: 1})
			}
		}
	}
	return out
}

func (r recorded) QueryRange(_ context.Context, query string, start, end time.Time,
	step time.Duration) (model.Matrix, error) {
	if !strings.HasPrefix(query, "ALERTS{") {
		if seen := points(r.evaluated, start, end, step); len(seen) > 0 {
			return model.Matrix{{Values: seen}}, r.err
		}
		return nil, r.err
	}
	var out model.Matrix
	for text, of := range r.alerts {
		if values := points(of, start, end, step); len(values) > 0 {
			out = append(out, &model.SampleStream{Metric: labels(text), Values: values})
		}
	}
	return out, r.err
}

func (r recorded) Query(context.Context, string, time.Time) (model.Vector, error) {
	var out model.Vector
	for text, value := range r.active {
		out = append(out, &model.Sample{Metric: labels(text), Value: model.SampleValue(value)})
	}
	return out, r.err
}

func (r recorded) Alerts(context.Context) ([]prometheus.Alert, error) {
	if r.current == nil {
		return nil, errors.New("this server has no alerts")
	}
	return r.current, nil
}

const (
	page   = "alertname=BellwetherOperatorSLOBurn,severity=page,cluster=prod-1,operator=echo,team=sre"
	ticket = "alertname=BellwetherOperatorSLOBurn,severity=ticket,cluster=prod-1,operator=echo"
	halted = "alertname=BellwetherRolloutHalted,severity=ticket,operator=echo"
)

func at(minute int) *time.Time {
	t := midnight.Add(time.Duration(minute) * time.Minute)
	return &t
}

func TestRead(t *testing.T) {
	echo := map[string]string{"cluster": "prod-1", "operator": "echo"}
	burn := func(i incidents.Incident) incidents.Incident {
		i.Name, i.Labels = slo.AlertOperator, echo
		return i
	}
	always := []minutes{{-100, 100}}
	const odd = 999_700 * time.Nanosecond // which Prometheus rounds
	for name, test := range map[string]struct {
		in   recorded
		want incidents.Report
		err  error
	}{
		"nothing fired": {in: recorded{evaluated: always}},
		"no rules":      {in: recorded{}, err: incidents.ErrNoRules},
		"ended": {in: recorded{evaluated: always, alerts: map[string][]minutes{page: {{5, 9}}}},
			want: incidents.Report{Incidents: []incidents.Incident{
				burn(incidents.Incident{Severity: "page", Began: *at(5), Ended: at(10), Pages: 1})}}},
		"fires": {in: recorded{evaluated: always, alerts: map[string][]minutes{page: {{50, 60}}},
			current: []prometheus.Alert{{Labels: model.LabelSet(labels(page)),
				Annotations: model.LabelSet{"summary": "echo burns", "runbook_url": "https://r/#x"}}}},
			want: incidents.Report{Incidents: []incidents.Incident{burn(incidents.Incident{Severity: "page",
				Firing: "page", Began: *at(50), Pages: 1, Summary: "echo burns", Runbook: "https://r/#x"})}}},
		"flaps": {in: recorded{evaluated: always, alerts: map[string][]minutes{page: {{5, 9}, {20, 20}, {30, 31}}}},
			want: incidents.Report{Incidents: []incidents.Incident{
				burn(incidents.Incident{Severity: "page", Began: *at(5), Ended: at(32), Pages: 3})}}},
		"a page, then a ticket": {
			in: recorded{evaluated: always, alerts: map[string][]minutes{page: {{5, 9}}, ticket: {{20, 60}}}},
			want: incidents.Report{Incidents: []incidents.Incident{burn(incidents.Incident{Severity: "page",
				Firing: "ticket", Began: *at(5), Pages: 1, Tickets: 1})}}},
		"pages before tickets, those that ended last": {
			in: recorded{evaluated: always, alerts: map[string][]minutes{page: {{30, 60}}, halted: {{10, 60}},
				"alertname=BellwetherHubDown,severity=page": {{1, 4}}}},
			want: incidents.Report{Incidents: []incidents.Incident{
				burn(incidents.Incident{Severity: "page", Firing: "page", Began: *at(30), Pages: 1}),
				{Name: slo.AlertRolloutHalted, Labels: map[string]string{"operator": "echo"}, Severity: "ticket",
					Firing: "ticket", Began: *at(10), Tickets: 1},
				{Name: slo.AlertHubDown, Labels: map[string]string{}, Severity: "page", Began: *at(1), Ended: at(5),
					Pages: 1}}}},
		"before the span": {in: recorded{evaluated: always, alerts: map[string][]minutes{page: {{-50, -1}}}}},
		"after the span":  {in: recorded{evaluated: always, alerts: map[string][]minutes{page: {{55, 57}}}}},
		"began before the span, and it is known when": {
			in: recorded{evaluated: always, alerts: map[string][]minutes{page: {{-50, 9}}},
				active: map[string]float64{page: float64(at(-50).Unix())}},
			want: incidents.Report{Incidents: []incidents.Incident{
				burn(incidents.Incident{Severity: "page", Began: *at(-50), Ended: at(10), Pages: 1})}}},
		"began before the span, nobody knows when": {
			in: recorded{evaluated: always, alerts: map[string][]minutes{page: {{-50, 9}}},
				active: map[string]float64{page: float64(at(30).Unix())}},
			want: incidents.Report{Incidents: []incidents.Incident{burn(incidents.Incident{Severity: "page",
				Began: *at(0), EarlierStart: true, Ended: at(10), Pages: 1})}}},
		"Prometheus was down meanwhile": {
			in: recorded{evaluated: []minutes{{-100, 20}, {35, 100}},
				alerts: map[string][]minutes{page: {{10, 20}, {36, 40}}}},
			want: incidents.Report{Incidents: []incidents.Incident{
				burn(incidents.Incident{Severity: "page", Began: *at(10), Ended: at(41), Pages: 1})},
				Gaps: []incidents.Gap{{From: *at(21), To: *at(35)}}}},
		"nothing is evaluated now": {
			in: recorded{evaluated: []minutes{{10, 30}}, alerts: map[string][]minutes{page: {{20, 30}},
				halted: {{20, 25}}}},
			want: incidents.Report{Incidents: []incidents.Incident{
				burn(incidents.Incident{Severity: "page", Firing: "page", Began: *at(20), Pages: 1}),
				{Name: slo.AlertRolloutHalted, Labels: map[string]string{"operator": "echo"}, Severity: "ticket",
					Began: *at(20), Ended: at(26), Tickets: 1}},
				Gaps: []incidents.Gap{{From: *at(0), To: *at(10)}, {From: *at(31), To: *at(60)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := incidents.Read(t.Context(), test.in, incidents.Query{From: at(0).Add(odd), To: at(50).Add(odd),
				Now: at(60).Add(odd)})
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(test.want, *got); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

// queries records the queries.
type queries struct {
	recorded
	steps []time.Duration
	texts []string
}

func (q *queries) QueryRange(ctx context.Context, query string, start, end time.Time,
	step time.Duration) (model.Matrix, error) {
	q.steps, q.texts = append(q.steps, step), append(q.texts, query)
	if n := end.Sub(start)/step + 1; n > 11_000 || end.Sub(start)%step != 0 {
		return nil, errors.New("Prometheus refuses so many points, or the last one is not the end")
	}
	return q.recorded.QueryRange(ctx, query, start, end, step)
}

func TestLongSpans(t *testing.T) {
	for since, want := range map[time.Duration]time.Duration{12 * time.Hour: time.Minute, 90 * time.Second: time.Minute,
		7 * 24 * time.Hour: 2 * time.Minute, 31 * 24 * time.Hour: 5 * time.Minute} {
		q := &queries{recorded: recorded{evaluated: []minutes{{-100_000, 100}}}}
		_, err := incidents.Read(t.Context(), q, incidents.Query{From: at(60).Add(-since), To: *at(60), Now: *at(60),
			Namespace: "fleet"})
		if err != nil || q.steps[0] != want {
			t.Errorf("%s: steps of %s (%v), want %s", since, q.steps, err, want)
		}
		if !strings.Contains(q.texts[1], `operator_namespace=~"fleet|"`) {
			t.Errorf("%s: the query is about all namespaces: %s", since, q.texts[1])
		}
	}
}

func TestFailures(t *testing.T) {
	down := errors.New("down")
	_, err := incidents.Read(t.Context(), recorded{evaluated: []minutes{{0, 60}}, err: down},
		incidents.Query{From: *at(0), To: *at(60), Now: *at(60)})
	if !errors.Is(err, down) {
		t.Errorf("error %v, want %v", err, down)
	}
}

// TestNotifiedAsTickets reads pages of which people were notified as tickets.
func TestNotifiedAsTickets(t *testing.T) {
	in := recorded{evaluated: []minutes{{-100, 100}}, alerts: map[string][]minutes{page: {{5, 9}, {20, 60}},
		halted: {{10, 60}}}}
	got, err := incidents.Read(t.Context(), in, incidents.Query{From: *at(0), To: *at(60), Now: *at(60),
		Notified: func(labels map[string]string) string {
			if labels["alertname"] == slo.AlertOperator && labels["cluster"] == "prod-1" {
				return "ticket"
			}
			return labels["severity"]
		}})
	if err != nil {
		t.Fatal(err)
	}
	want := []incidents.Incident{
		{Name: slo.AlertOperator, Labels: map[string]string{"cluster": "prod-1", "operator": "echo"}, Severity: "ticket",
			Firing: "ticket", Began: *at(5), Tickets: 2},
		{Name: slo.AlertRolloutHalted, Labels: map[string]string{"operator": "echo"}, Severity: "ticket", Firing: "ticket",
			Began: *at(10), Tickets: 1},
	}
	if diff := cmp.Diff(want, got.Incidents); diff != "" {
		t.Errorf("incidents (-want +got):\n%s", diff)
	}
}
