// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package incidents reads from a Prometheus which alerts of Bellwether's rules fired in a span of time:
// when each alert began and ended, how often it fired, and with which severity. It has no client, clock
// or logger. It does not report who was notified, which only Alertmanager and its receivers record.
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

// ErrNoRules means that Prometheus has not evaluated Bellwether's
// rules in the whole span, so the incidents are unknown.
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

// Query selects the incidents to read.
type Query struct {
	// From and To are the span. Now is To or later.
	From, To, Now time.Time
	// Namespace limits incidents to operators of a namespace on the
	// hub, and to incidents that are not about an operator. Empty: all.
	Namespace string
	// Notified returns the severity with which users are notified of an alert, page or
	// ticket, from its labels including the severity. Nil: the severity of the rule.
	Notified func(labels map[string]string) string
}

// Incident is an alert that fired in the span, or fires now. The
// page and the ticket about the same failure are one incident.
type Incident struct {
	Name string `json:"name"`
	// Labels are the labels that identify the alert, without its name and its severity.
	Labels map[string]string `json:"labels"`
	// Severity is the most urgent severity with which users were notified: page or ticket.
	Severity string `json:"severity"`
	// Firing is the severity with which the alert fires now. Empty: it does not fire.
	Firing string `json:"firing,omitempty"`
	// Began is the start of the incident, with the precision of a step.
	// If EarlierStart is true, it began earlier, at an unknown time.
	Began        time.Time `json:"began"`
	EarlierStart bool      `json:"earlierStart,omitempty"`
	// Ended is the last end of the incident, with the precision of a step. It is nil while the alert fires.
	Ended *time.Time `json:"ended,omitempty"`
	// Pages and Tickets are how often the alert began to fire with that severity since Began.
	Pages   int `json:"pages"`
	Tickets int `json:"tickets"`
	// Summary and Runbook are annotations. They are known only for alerts that fire now.
	Summary string `json:"summary,omitempty"`
	Runbook string `json:"runbook,omitempty"`
}

// Gap is a time in which Prometheus evaluated none of Bellwether's rules.
type Gap struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Report contains the incidents of a span.
type Report struct {
	// Incidents has incidents that fire now first, pages before tickets,
	// the oldest first; then ended incidents, the last one first.
	Incidents []Incident
	// Gaps are times without data, the oldest first.
	Gaps []Gap
}

// Select matches Bellwether's alerts that page or make tickets, in the syntax of PromQL and Alertmanager.
const Select = `alertname=~"Bellwether.+",` + series.Severity + `=~"` + series.Page + `|` + series.Ticket + `"`

// Step is the resolution, because alerts are evaluated every minute. Spans of more than
// maxPoints minutes have a longer step, because Prometheus returns at most 11,000 points.
const (
	Step      = time.Minute
	maxPoints = 10_000
)

// Read returns the incidents and the gaps of a span. The error
// wraps ErrNoRules if the rules were not evaluated in the whole span.
func Read(ctx context.Context, from Prometheus, q Query) (*Report, error) {
	// Prometheus rounds times to milliseconds, so whole seconds are used.
	q.From, q.To, q.Now = q.From.Truncate(time.Second), q.To.Truncate(time.Second), q.Now.Truncate(time.Second)
	r := reader{Prometheus: from, q: q, step: Step}
	if span := q.Now.Sub(q.From); span > maxPoints*Step {
		r.step = (span/maxPoints + Step).Truncate(Step) // rounded up to a whole minute
	}
	// The last point is now. The first point is at or before the start of the span.
	points := (q.Now.Sub(q.From) + r.step - 1) / r.step
	r.start = q.Now.Add(-points * r.step)
	evaluated, err := r.QueryRange(ctx, "max("+series.RulesEvaluated+")", r.start, q.Now, r.step)
	if err != nil {
		return nil, err
	}
	if r.gaps = r.listGaps(evaluated); len(evaluated) == 0 {
		return nil, ErrNoRules
	}
	fired, err := r.QueryRange(ctx, `ALERTS{alertstate="firing",`+Select+r.buildNamespaceMatcher()+"}", r.start, q.Now,
		r.step)
	if err != nil {
		return nil, err
	}
	found, err := r.listIncidents(ctx, fired)
	if err != nil {
		return nil, err
	}
	return &Report{Incidents: found, Gaps: r.clipGaps(q.From)}, nil
}

// reader reads the incidents that a Query selects, from points at every step from start until now.
type reader struct {
	Prometheus
	q     Query
	start time.Time
	step  time.Duration
	gaps  []Gap
}

// buildNamespaceMatcher returns the matcher of the query's namespace,
// to follow other matchers. It is empty for all namespaces.
func (r *reader) buildNamespaceMatcher() string {
	if r.q.Namespace == "" {
		return ""
	}
	return fmt.Sprintf(`,%s=~%q`, series.OperatorNamespace, r.q.Namespace+"|")
}

// span is a time in which an alert fired without an interruption.
type span struct{ from, to time.Time }

// listSpans joins consecutive points of a series to spans. A span ends one step after its last point, so the span of a
// series that exists now ends after now.
func (r *reader) listSpans(points []model.SamplePair) []span {
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

// listGaps returns the times without points of a series that exists whenever the rules are evaluated.
func (r *reader) listGaps(evaluated model.Matrix) []Gap {
	var gaps []Gap
	lastEnd := r.start
	for _, s := range evaluated { // at most one series
		for _, run := range r.listSpans(s.Values) {
			if run.from.After(lastEnd) {
				gaps = append(gaps, Gap{lastEnd, run.from})
			}
			lastEnd = run.to
		}
	}
	if !lastEnd.After(r.q.Now) { // the rules are not evaluated now
		gaps = append(gaps, Gap{lastEnd, r.q.Now})
	}
	return gaps
}

// clipGaps returns the gaps after a time, and cuts them at that time.
func (r *reader) clipGaps(from time.Time) []Gap {
	var out []Gap
	for _, g := range r.gaps {
		if g.To.After(from) {
			out = append(out, Gap{pickLater(g.From, from), g.To})
		}
	}
	return out
}

// joinSpans joins spans that are separated only by a gap: an alert
// that fired before and after a gap is assumed to have fired in it.
func (r *reader) joinSpans(spans []span) []span {
	var out []span
	for _, s := range spans {
		if last := len(out) - 1; last >= 0 && r.isUnevaluated(out[last].to, s.from) {
			out[last].to = s.to
			continue
		}
		out = append(out, s)
	}
	// If the rules are not evaluated now, the last known state is assumed to continue.
	if last := len(out) - 1; last >= 0 && !out[last].to.After(r.q.Now) && r.isUnevaluated(out[last].to, r.q.Now) {
		out[last].to = r.q.Now.Add(r.step)
	}
	return out
}

// isUnevaluated reports whether the time is within a gap. It tolerates one step
// at each end, because alerts are evaluated after the rules that show a gap.
func (r *reader) isUnevaluated(from, to time.Time) bool {
	return slices.ContainsFunc(r.gaps, func(g Gap) bool {
		return !from.Before(g.From.Add(-r.step)) && !to.After(g.To.Add(r.step))
	})
}

// ignoredLabels are labels that do not identify an alert, or
// that may change while it fires. The label slo is redundant.
var ignoredLabels = []model.LabelName{model.MetricNameLabel, model.AlertNameLabel, "alertstate", series.Severity,
	series.SLO, series.Team, series.Criticality}

// readIdentity returns the labels that identify an alert: all labels except ignoredLabels and empty labels.
func readIdentity(labels model.LabelSet) map[string]string {
	out := map[string]string{}
	for name, value := range labels {
		if !slices.Contains(ignoredLabels, name) && value != "" {
			out[string(name)] = string(value)
		}
	}
	return out
}

// buildKey returns a unique text for the name and the labels of an alert.
func buildKey(name string, labels map[string]string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%q", name)
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&out, ",%s=%q", label, labels[label])
	}
	return out.String()
}

// listIncidents returns the incidents of the span from the series of firing alerts, sorted.
func (r *reader) listIncidents(ctx context.Context, fired model.Matrix) ([]Incident, error) {
	found := map[string]*Incident{}
	for _, s := range fired {
		labels := model.LabelSet(s.Metric)
		i := &Incident{Name: string(labels[model.AlertNameLabel]), Labels: readIdentity(labels)}
		if known := found[buildKey(i.Name, i.Labels)]; known != nil {
			i = known
		} else {
			found[buildKey(i.Name, i.Labels)] = i
		}
		i.addSpans(string(labels[series.Severity]), r.joinSpans(r.listSpans(s.Values)), r.q.Now)
	}
	if err := r.extendStarts(ctx, found); err != nil {
		return nil, err
	}
	r.annotate(ctx, found)
	if r.q.Notified != nil {
		for _, i := range found {
			i.applyNotified(r.q.Notified)
		}
	}
	var out []Incident
	for _, i := range found {
		// An incident that has ended must overlap the span: the queries begin before it and end after it.
		if i.Firing != "" || i.Ended.After(r.q.From) && !i.Began.After(r.q.To) {
			out = append(out, *i)
		}
	}
	slices.SortFunc(out, compareIncidents)
	return out, nil
}

// addSpans adds the times in which the alert fired with a severity.
func (i *Incident) addSpans(severity string, fired []span, now time.Time) {
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

// applyNotified converts the pages of the incident to tickets if users were notified of them as tickets.
func (i *Incident) applyNotified(notified func(map[string]string) string) {
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

// extendStarts finds the start of incidents whose alert already fired at the
// first point. It sets EarlierStart for incidents whose start it does not find.
func (r *reader) extendStarts(ctx context.Context, found map[string]*Incident) error {
	isEarly := func(i *Incident) bool { return !i.Began.After(r.start) }
	if !slices.ContainsFunc(slices.Collect(maps.Values(found)), isEarly) {
		return nil
	}
	active, err := r.Query(ctx, `ALERTS_FOR_STATE{`+Select+r.buildNamespaceMatcher()+"}", r.start)
	if err != nil {
		return err
	}
	for _, i := range found {
		i.EarlierStart = isEarly(i)
	}
	for _, s := range active {
		labels := model.LabelSet(s.Metric)
		i := found[buildKey(string(labels[model.AlertNameLabel]), readIdentity(labels))]
		seconds := float64(s.Value)
		if i == nil || !isEarly(i) || math.IsNaN(seconds) || seconds <= 0 {
			continue
		}
		// A Prometheus that was restarted may report a start that is too late.
		if since := time.Unix(int64(seconds), 0).UTC(); since.Before(i.Began) {
			i.Began, i.EarlierStart = since, false
		}
	}
	return nil
}

// annotate adds annotations to incidents that fire now. It ignores errors,
// because other servers with the API of Prometheus might not support alerts.
func (r *reader) annotate(ctx context.Context, found map[string]*Incident) {
	alerts, err := r.Alerts(ctx)
	if err != nil {
		return
	}
	for _, a := range alerts {
		i := found[buildKey(string(a.Labels[model.AlertNameLabel]), readIdentity(a.Labels))]
		if i != nil && i.Firing != "" && i.Firing == string(a.Labels[series.Severity]) {
			i.Summary, i.Runbook = string(a.Annotations["summary"]), string(a.Annotations["runbook_url"])
		}
	}
}

// compareIncidents orders incidents that fire by urgency and then by age, and ended incidents by their end.
func compareIncidents(a, b Incident) int {
	rankSeverity := func(severity string) int {
		return slices.Index([]string{series.Page, series.Ticket, ""}, severity)
	}
	if order := cmp.Compare(rankSeverity(a.Firing), rankSeverity(b.Firing)); order != 0 {
		return order
	}
	if a.Firing == "" { // both have ended, because their ranks are equal
		if order := b.Ended.Compare(*a.Ended); order != 0 {
			return order
		}
	}
	return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(buildKey(a.Name, a.Labels), buildKey(b.Name, b.Labels)))
}

func pickLater(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
