// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budgets reads error budgets from Prometheus: what the rules of SLOs
// recorded there, and which of their alerts fire. It decides nothing about how
// they are shown, and reads nothing of the hub.
package budgets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

var (
	// ErrNoRules says that Prometheus has no objectives.
	ErrNoRules = errors.New("no objectives are recorded")
	// ErrUnknownOperator says that there are objectives, and none of this operator.
	ErrUnknownOperator = errors.New("no objectives of this operator are recorded")
)

// Querier is Prometheus's API for queries.
type Querier interface {
	Query(ctx context.Context, query string, at time.Time, opts ...prometheus.Option) (model.Value, prometheus.Warnings,
		prometheus.Infos, error)
	QueryRange(ctx context.Context, query string, r prometheus.Range, opts ...prometheus.Option) (model.Value,
		prometheus.Warnings, prometheus.Infos, error)
}

// Points is how many values a trend has.
const Points = 12

// Question says which budgets to read.
type Question struct {
	// Operator narrows it to one; empty: all.
	Operator string
	// Clusters asks for each cluster's budgets beside the worst ones.
	Clusters bool
	Now      time.Time
	// Since is how far back trends go.
	Since time.Duration
}

// Answer is what was read.
type Answer struct {
	// Objectives has one entry for each operator and SLI, with the cluster that
	// has the least left, the worst first. Clusters has one for each cluster, if
	// that was asked for.
	Objectives []Budget `json:"objectives"`
	Clusters   []Budget `json:"clusters,omitempty"`
}

// Budget is what is left of one. What is not known is nil.
type Budget struct {
	Operator string `json:"operator"`
	SLI      string `json:"sli"`
	// Cluster whose budget it is: in a list of objectives, the worst one.
	Cluster string `json:"cluster,omitempty"`
	// Target in percent, and Period as in 30d.
	Target string `json:"target"`
	Period string `json:"period"`
	// Left is the part that is left: 1 is all, less than 0 overspent.
	Left *float64 `json:"left"`
	// Burn is the burn rate over the last hour: at 1 the budget lasts for just its
	// period. Of an objective it is that of the fastest cluster.
	Burn   *float64 `json:"burn1h"`
	Firing []Alert  `json:"firing"`
	// Trend is what was left over the time that was asked for, oldest first.
	Trend []*float64 `json:"trend"`
}

// Alert is one that fires.
type Alert struct {
	Name     string `json:"name"`
	Severity string `json:"severity"`
	Scope    string `json:"scope"`
	Tier     string `json:"tier,omitempty"`
	Cluster  string `json:"cluster,omitempty"`
	Version  string `json:"version,omitempty"`
}

// Absent tells whether the alert is about missing data.
func (a Alert) Absent() bool { return a.Name == slo.AlertSLIAbsent }

// place is what a budget is of; without a cluster, it is an objective's.
type place struct{ operator, sli, cluster string }

type reader struct {
	Querier
	q Question
}

// Read asks Prometheus.
func Read(ctx context.Context, from Querier, q Question) (*Answer, error) {
	r := reader{from, q}
	targets, err := r.vector(ctx, series.SLOObjective+r.selector(), false)
	if err != nil {
		return nil, err
	}
	if len(targets) == 0 {
		return nil, r.nothing(ctx)
	}
	periods, err := r.vector(ctx, series.SLOPeriod+r.selector(), false)
	if err != nil {
		return nil, err
	}
	worst, err := r.worst(ctx)
	if err != nil {
		return nil, err
	}
	known := map[place]Budget{}
	for at, target := range targets {
		known[at] = Budget{
			Operator: at.operator, SLI: at.sli, Target: percent(target), Period: period(periods[at]),
			Cluster: worst[at],
		}
	}
	alerts, err := r.alerts(ctx)
	if err != nil {
		return nil, err
	}
	answer := &Answer{}
	if answer.Objectives, err = r.fill(ctx, known, alerts, "min", "max"); err != nil || !q.Clusters {
		return answer, err
	}
	answer.Clusters, err = r.byCluster(ctx, known, alerts)
	return answer, err
}

// nothing says why there are no objectives.
func (r reader) nothing(ctx context.Context) error {
	if r.q.Operator == "" {
		return ErrNoRules
	}
	all, err := r.vector(ctx, "group by (operator, sli) ("+series.SLOObjective+")", false)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return ErrNoRules
	}
	return ErrUnknownOperator
}

// Operators are all that have objectives.
func Operators(ctx context.Context, from Querier, now time.Time) ([]string, error) {
	all, err := reader{from, Question{Now: now}}.vector(ctx, "group by (operator) ("+series.SLOObjective+")", false)
	var out []string
	for at := range all {
		out = append(out, at.operator)
	}
	slices.Sort(out)
	return out, err
}

// worst is the cluster with the least left of each objective.
func (r reader) worst(ctx context.Context) (map[place]string, error) {
	least, err := r.vector(ctx, "bottomk by (operator, sli) (1, "+series.SLOBudgetLeft+r.selector()+")", true)
	out := map[place]string{}
	for at := range least {
		out[place{at.operator, at.sli, ""}] = at.cluster
	}
	return out, err
}

func (r reader) byCluster(ctx context.Context, objectives map[place]Budget, alerts map[place][]Alert) ([]Budget,
	error) {
	left, err := r.vector(ctx, series.SLOBudgetLeft+r.selector(), true)
	if err != nil {
		return nil, err
	}
	known := map[place]Budget{}
	for at := range left {
		b := objectives[place{at.operator, at.sli, ""}]
		b.Operator, b.SLI, b.Cluster = at.operator, at.sli, at.cluster
		known[at] = b
	}
	return r.fill(ctx, known, alerts, "", "")
}

// fill adds what changes: of each cluster, or aggregated over clusters.
func (r reader) fill(ctx context.Context, known map[place]Budget, alerts map[place][]Alert, least,
	most string) ([]Budget, error) {
	over := func(operator, expr string) string {
		if operator == "" {
			return expr
		}
		return operator + " by (operator, sli) (" + expr + ")"
	}
	byCluster := least == ""
	left, err := r.vector(ctx, over(least, series.SLOBudgetLeft+r.selector()), byCluster)
	if err != nil {
		return nil, err
	}
	const hour = 60 // slices
	burn, err := r.vector(ctx, fmt.Sprintf("%s / %d / on (operator, sli) group_left () (1 - %s)",
		over(most, series.SLIBadSum+"1h"+r.selector()), hour, series.SLOObjective+r.selector()), byCluster)
	if err != nil {
		return nil, err
	}
	trends, err := r.trends(ctx, over(least, series.SLOBudgetLeft+r.selector()), byCluster)
	if err != nil {
		return nil, err
	}
	out := make([]Budget, 0, len(known))
	for at, b := range known {
		b.Firing, b.Trend = alerts[at], trends[at]
		if v, ok := left[at]; ok {
			b.Left = &v
			rate := burn[at] // no series: nothing was bad
			b.Burn = &rate
		}
		out = append(out, b)
	}
	slices.SortFunc(out, worseFirst)
	return out, nil
}

// worseFirst orders by what fires, then by what is left; what is unknown is last.
func worseFirst(a, b Budget) int {
	left := func(b Budget) float64 {
		if b.Left == nil {
			return math.Inf(1)
		}
		return *b.Left
	}
	return cmp.Or(cmp.Compare(b.urgency(), a.urgency()), cmp.Compare(left(a), left(b)),
		cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.SLI, b.SLI), cmp.Compare(a.Cluster, b.Cluster))
}

func (b Budget) urgency() int {
	worst := 0
	for _, a := range b.Firing {
		if a.Severity == series.Page {
			return 2
		}
		worst = 1
	}
	return worst
}

// alerts that fire, by cluster and by objective.
func (r reader) alerts(ctx context.Context) (map[place][]Alert, error) {
	value, err := r.query(ctx, fmt.Sprintf("ALERTS{alertname=~\"%s|%s|%s|%s|%s\",alertstate=\"firing\"%s}",
		slo.AlertOperator, slo.AlertOperatorTicket, slo.AlertRelease, slo.AlertReleaseTicket, slo.AlertSLIAbsent,
		r.matcher()))
	if err != nil {
		return nil, err
	}
	out := map[place][]Alert{}
	for _, s := range value {
		label := func(name string) string { return string(s.Metric[model.LabelName(name)]) }
		a := Alert{
			Name: label(model.AlertNameLabel), Severity: label(series.Severity), Scope: label(series.Scope),
			Tier: label(series.Tier), Cluster: label(series.Cluster), Version: label(series.Version),
		}
		objective := place{label(series.Operator), label(series.SLI), ""}
		out[objective] = append(out[objective], a)
		if a.Cluster != "" {
			at := place{objective.operator, objective.sli, a.Cluster}
			out[at] = append(out[at], a)
		}
	}
	for _, alerts := range out {
		slices.SortFunc(alerts, func(a, b Alert) int {
			return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Scope, b.Scope),
				cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
		})
	}
	return out, nil
}

func (r reader) matcher() string {
	if r.q.Operator == "" {
		return ""
	}
	return fmt.Sprintf(",operator=%q", r.q.Operator)
}

func (r reader) selector() string {
	if r.q.Operator == "" {
		return ""
	}
	return fmt.Sprintf("{operator=%q}", r.q.Operator)
}

func (r reader) query(ctx context.Context, query string) (model.Vector, error) {
	value, _, _, err := r.Query(ctx, query, r.q.Now)
	if err != nil {
		return nil, fmt.Errorf("query %q: %w", query, err)
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("query %q: the answer is a %s and no vector", query, value.Type())
	}
	return vector, nil
}

// vector reads numbers by operator, SLI and, if asked for, cluster. What is not
// a number is left out.
func (r reader) vector(ctx context.Context, query string, byCluster bool) (map[place]float64, error) {
	vector, err := r.query(ctx, query)
	if err != nil {
		return nil, err
	}
	out := map[place]float64{}
	for _, s := range vector {
		if v := rounded(s.Value); v != nil {
			out[at(s.Metric, byCluster)] = *v
		}
	}
	return out, nil
}

func at(m model.Metric, byCluster bool) place {
	out := place{operator: string(m[series.Operator]), sli: string(m[series.SLI])}
	if byCluster {
		out.cluster = string(m[series.Cluster])
	}
	return out
}

// trends reads Points values of each series; what is missing is nil.
func (r reader) trends(ctx context.Context, query string, byCluster bool) (map[place][]*float64, error) {
	step := r.q.Since / Points
	// The first point is one step in: the last one is now.
	start := r.q.Now.Add(-step * (Points - 1))
	value, _, _, err := r.QueryRange(ctx, query, prometheus.Range{Start: start, End: r.q.Now, Step: step})
	if err != nil {
		return nil, fmt.Errorf("query %q over %s: %w", query, r.q.Since, err)
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("query %q: the answer is a %s and no matrix", query, value.Type())
	}
	out := map[place][]*float64{}
	for _, s := range matrix {
		points := make([]*float64, Points)
		for _, sample := range s.Values {
			i := int((sample.Timestamp.Time().Sub(start) + step/2) / step)
			if i >= 0 && i < Points {
				points[i] = rounded(sample.Value)
			}
		}
		out[at(s.Metric, byCluster)] = points
	}
	return out, nil
}

func percent(ratio float64) string { return slo.PPM(math.Round(ratio * float64(slo.One))).String() }

// period writes seconds as in 30d.
func period(seconds float64) string {
	hours := int(seconds / 3600)
	switch {
	case hours <= 0:
		return ""
	case hours%24 == 0:
		return strconv.Itoa(hours/24) + "d"
	default:
		return strconv.Itoa(hours) + "h"
	}
}

// rounded leaves out what floats add to a ratio, for people who read JSON. It is
// nil for what is no number.
func rounded(v model.SampleValue) *float64 {
	const places = 1e6
	f := math.Round(float64(v)*places) / places
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &f
}

// ByOperator keeps the worst objective of each operator.
func ByOperator(objectives []Budget) []Budget {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(objectives), func(b Budget) bool {
		was := seen[b.Operator]
		seen[b.Operator] = true
		return was
	})
}

// CountClusters counts those that budgets are of.
func CountClusters(budgets []Budget) int {
	seen := map[string]bool{}
	for _, b := range budgets {
		seen[b.Cluster] = true
	}
	return len(slices.Collect(maps.Keys(seen)))
}
