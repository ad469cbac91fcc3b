// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package incidents reads from a Prometheus which alerts of Bellwether's rules fired
// in a span of time: when each began and ended, how often it fired, and as what. It
// has no client, clock or logger. It does not know who was notified: that is for
// Alertmanager and what it notifies.
package incidents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// ErrNoRules says that Prometheus has not evaluated Bellwether's rules in the whole
// span: it cannot tell what happened.
var ErrNoRules = errors.New("the rules of Bellwether were not evaluated")

// Prometheus evaluates queries. alerts/prometheus has a client.
type Prometheus interface {
	// Query evaluates a query at a time.
	Query(ctx context.Context, query string, at time.Time) (model.Vector, error)
	// QueryRange evaluates a query at every step from start to end.
	QueryRange(ctx context.Context, query string, start, end time.Time, step time.Duration) (model.Matrix, error)
	// Alerts returns the alerts that fire or are pending now.
	Alerts(ctx context.Context) ([]prometheus.Alert, error)
}

// Query says which incidents to read.
type Query struct {
	// From and To are the span. Now is To or later.
	From, To, Now time.Time
	// Namespace limits incidents to operators of a namespace on the hub, and to those
	// that are not about an operator. Empty: all.
	Namespace string
	// Notified says as what people are notified of an alert with some labels, its severity among them: page or ticket.
	// Nil: what its rule says.
	Notified func(labels map[string]string) string
}

// Incident is an alert that fired in the span, or fires now. Page and ticket about
// the same are one incident.
type Incident struct {
	Name string `json:"name"`
	// Labels are those that identify the alert, without its name and its severity.
	Labels map[string]string `json:"labels"`
	// Severity is the most urgent one of which people were notified: page or ticket.
	Severity string `json:"severity"`
	// Firing is the severity with which it fires now; empty if it does not.
	Firing string `json:"firing,omitempty"`
	// Began is when it began, to a step. If EarlierStart is true, it began before
	// that, and nothing is known of when.
	Began        time.Time `json:"began"`
	EarlierStart bool      `json:"earlierStart,omitempty"`
	// Ended is when it ended last, to a step; nil while it fires.
	Ended *time.Time `json:"ended,omitempty"`
	// Pages and Tickets are how often it began to fire as such from Began on.
	Pages   int `json:"pages"`
	Tickets int `json:"tickets"`
	// Summary and Runbook are annotations, which are known of those that fire now.
	Summary string `json:"summary,omitempty"`
	Runbook string `json:"runbook,omitempty"`
}

// Gap is a time in which Prometheus evaluated none of Bellwether's rules.
type Gap struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Report is what was read.
type Report struct {
	// Incidents has those that fire now first, pages before tickets, the oldest first;
	// then those that ended, the last one first.
	Incidents []Incident
	// Gaps are times of which nothing is known, the oldest first.
	Gaps []Gap
}

// Select matches Bellwether's alerts that page or make tickets, as PromQL and
// Alertmanager take it.
const Select = `alertname=~"Bellwether.+",` + series.Severity + `=~"` + series.Page + `|` + series.Ticket + `"`

// Step is the resolution: alerts are evaluated every minute. Longer spans than
// maxPoints minutes have a longer step, because Prometheus answers with 11,000 points
// at most.
const (
	Step      = time.Minute
	maxPoints = 10_000
)

// Read queries Prometheus. The error wraps ErrNoRules if it cannot tell.
func Read(ctx context.Context, from Prometheus, q Query) (*Report, error) {
	// Prometheus rounds times to milliseconds.
	q.From, q.To, q.Now = q.From.Truncate(time.Second), q.To.Truncate(time.Second), q.Now.Truncate(time.Second)
	r := reader{Prometheus: from, q: q, step: Step}
	if span := q.Now.Sub(q.From); span > maxPoints*Step {
		r.step = (span/maxPoints + Step).Truncate(Step)
	}
	// The last point is now; the first one is not after the start of the span.
	points := (q.Now.Sub(q.From) + r.step - 1) / r.step
	r.start = q.Now.Add(-points * r.step)
	evaluated, err := r.QueryRange(ctx, "max("+series.RulesEvaluated+")", r.start, q.Now, r.step)
	if err != nil {
		return nil, err
	}
	if r.gaps = r.unevaluated(evaluated); len(evaluated) == 0 {
		return nil, ErrNoRules
	}
	fired, err := r.QueryRange(ctx, `ALERTS{alertstate="firing",`+Select+r.ofNamespace()+"}", r.start, q.Now, r.step)
	if err != nil {
		return nil, err
	}
	found, err := r.incidents(ctx, fired)
	if err != nil {
		return nil, err
	}
	return &Report{Incidents: found, Gaps: r.gapsWithin(q.From)}, nil
}

type reader struct {
	Prometheus
	q     Query
	start time.Time
	step  time.Duration
	gaps  []Gap
}

func (r *reader) ofNamespace() string {
	if r.q.Namespace == "" {
		return ""
	}
	return fmt.Sprintf(`,%s=~%q`, series.OperatorNamespace, r.q.Namespace+"|")
}

// span is a time in which an alert fired without an interruption.
type span struct{ from, to time.Time }

// spans are the runs of points of a series, each up to the point after its last one,
// which is when it was seen to be over.
func (r *reader) spans(points []model.SamplePair) []span {
	var out []span
	for _, p := range points {
		at := p.Timestamp.Time()
		if last := len(out) - 1; last >= 0 && !at.After(out[last].to) {
			out[last].to = at.Add(r.step)
			continue
		}
		out = append(out, span{at, at.Add(r.step)})
	}
	return out
}

// unevaluated are the times between the points of a series that is always there.
func (r *reader) unevaluated(always model.Matrix) []Gap {
	var gaps []Gap
	at := r.start
	for _, s := range always { // at most one
		for _, seen := range r.spans(s.Values) {
			if seen.from.After(at) {
				gaps = append(gaps, Gap{at, seen.from})
			}
			at = seen.to
		}
	}
	if !at.After(r.q.Now) {
		gaps = append(gaps, Gap{at, r.q.Now})
	}
	return gaps
}

// gapsWithin leaves out what is before the span.
func (r *reader) gapsWithin(from time.Time) []Gap {
	var out []Gap
	for _, g := range r.gaps {
		if g.To.After(from) {
			out = append(out, Gap{later(g.From, from), g.To})
		}
	}
	return out
}

// joined are spans without the interruptions in which nothing was evaluated: an alert
// that fired before and after them did not end, as far as anybody knows.
func (r *reader) joined(spans []span) []span {
	var out []span
	for _, s := range spans {
		if last := len(out) - 1; last >= 0 && r.isUnevaluated(out[last].to, s.from) {
			out[last].to = s.to
			continue
		}
		out = append(out, s)
	}
	// Where nothing is evaluated now, the last that is known is what there is.
	if last := len(out) - 1; last >= 0 && !out[last].to.After(r.q.Now) && r.isUnevaluated(out[last].to, r.q.Now) {
		out[last].to = r.q.Now.Add(r.step)
	}
	return out
}

// isUnevaluated tolerates a step at each end: alerts are evaluated after the rules
// that tell of a gap.
func (r *reader) isUnevaluated(from, to time.Time) bool {
	return slices.ContainsFunc(r.gaps, func(g Gap) bool {
		return !from.Before(g.From.Add(-r.step)) && !to.After(g.To.Add(r.step))
	})
}

// unidentifying are labels that do not say which alert it is, or that change during
// one. Summaries name the operator, so the objective's name is not needed either.
var unidentifying = []model.LabelName{model.MetricNameLabel, model.AlertNameLabel, "alertstate", series.Severity,
	series.SLO, series.Team, series.Criticality}

// identity are the labels that identify an alert, without its name.
func identity(labels model.LabelSet) map[string]string {
	out := map[string]string{}
	for name, value := range labels {
		if !slices.Contains(unidentifying, name) && value != "" {
			out[string(name)] = string(value)
		}
	}
	return out
}

func key(name string, labels map[string]string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%q", name)
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&out, ",%s=%q", label, labels[label])
	}
	return out.String()
}

func (r *reader) incidents(ctx context.Context, fired model.Matrix) ([]Incident, error) {
	found := map[string]*Incident{}
	for _, s := range fired {
		labels := model.LabelSet(s.Metric)
		i := &Incident{Name: string(labels[model.AlertNameLabel]), Labels: identity(labels)}
		if known := found[key(i.Name, i.Labels)]; known != nil {
			i = known
		} else {
			found[key(i.Name, i.Labels)] = i
		}
		i.add(string(labels[series.Severity]), r.joined(r.spans(s.Values)), r.q.Now)
	}
	if err := r.extend(ctx, found); err != nil {
		return nil, err
	}
	r.annotate(ctx, found)
	if r.q.Notified != nil {
		for _, i := range found {
			i.notify(r.q.Notified)
		}
	}
	var out []Incident
	for _, i := range found {
		if i.Firing != "" || i.Ended.After(r.q.From) && !i.Began.After(r.q.To) {
			out = append(out, *i)
		}
	}
	slices.SortFunc(out, compare)
	return out, nil
}

// add adds the times in which an alert fired with a severity.
func (i *Incident) add(severity string, fired []span, now time.Time) {
	for _, s := range fired {
		if i.Began.IsZero() || s.from.Before(i.Began) {
			i.Began = s.from
		}
		if s.to.After(now) { // it fires at the last point
			i.Firing, i.Ended = severity, nil
		} else if i.Firing == "" && (i.Ended == nil || s.to.After(*i.Ended)) {
			i.Ended = &s.to
		}
	}
	if severity == series.Page {
		i.Pages += len(fired)
	} else {
		i.Tickets += len(fired)
	}
	if i.Severity == "" || severity == series.Page {
		i.Severity = severity
	}
}

// notify makes tickets of pages of which people were notified as tickets.
func (i *Incident) notify(notified func(map[string]string) string) {
	labels := maps.Clone(i.Labels)
	labels[model.AlertNameLabel], labels[series.Severity] = i.Name, series.Page
	if i.Severity != series.Page || notified(labels) != series.Ticket {
		return
	}
	i.Severity, i.Tickets, i.Pages = series.Ticket, i.Tickets+i.Pages, 0
	if i.Firing != "" {
		i.Firing = series.Ticket
	}
}

// extend finds out when those began that fired at the start of the span already.
func (r *reader) extend(ctx context.Context, found map[string]*Incident) error {
	early := func(i *Incident) bool { return !i.Began.After(r.start) }
	if !slices.ContainsFunc(slices.Collect(maps.Values(found)), early) {
		return nil
	}
	active, err := r.Query(ctx, `ALERTS_FOR_STATE{`+Select+r.ofNamespace()+"}", r.start)
	if err != nil {
		return err
	}
	for _, i := range found {
		i.EarlierStart = early(i)
	}
	for _, s := range active {
		labels := model.LabelSet(s.Metric)
		i := found[key(string(labels[model.AlertNameLabel]), identity(labels))]
		seconds := float64(s.Value)
		if i == nil || !early(i) || math.IsNaN(seconds) || seconds <= 0 {
			continue
		}
		// A Prometheus that was restarted may have a time that is too late.
		if since := time.Unix(int64(seconds), 0).UTC(); since.Before(i.Began) {
			i.Began, i.EarlierStart = since, false
		}
	}
	return nil
}

// annotate adds what only alerts that fire now have. Other servers with the API of
// Prometheus may not know of alerts, so a failure only leaves it out.
func (r *reader) annotate(ctx context.Context, found map[string]*Incident) {
	alerts, err := r.Alerts(ctx)
	if err != nil {
		return
	}
	for _, a := range alerts {
		i := found[key(string(a.Labels[model.AlertNameLabel]), identity(a.Labels))]
		if i != nil && i.Firing != "" && i.Firing == string(a.Labels[series.Severity]) {
			i.Summary, i.Runbook = string(a.Annotations["summary"]), string(a.Annotations["runbook_url"])
		}
	}
}

// compare orders those that fire by how urgent they are and then by age, and those
// that ended by their end.
func compare(a, b Incident) int {
	urgency := func(severity string) int {
		return slices.Index([]string{series.Page, series.Ticket, ""}, severity)
	}
	if by := cmp.Compare(urgency(a.Firing), urgency(b.Firing)); by != 0 {
		return by
	}
	if a.Firing == "" {
		if by := b.Ended.Compare(*a.Ended); by != 0 {
			return by
		}
	}
	return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(key(a.Name, a.Labels), key(b.Name, b.Labels)))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
