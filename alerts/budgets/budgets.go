// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budgets says how much is left of error budgets: it queries what the
// rules of SLOs recorded in a Prometheus, and which of their alerts fire. It has
// the words for what is left, no client, clock or logger, and reads nothing of the hub.
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
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

var (
	// ErrNoRules says that Prometheus has no objectives.
	ErrNoRules = errors.New("no objectives are recorded")
	// ErrUnknownOperator says that Prometheus has objectives, but not of this
	// operator.
	ErrUnknownOperator = errors.New("no objectives of this operator are recorded")
	// ErrAmbiguous says that operators of several namespaces have the same name.
	ErrAmbiguous = errors.New("several operators have this name")
)

// Prometheus evaluates queries. alerts/prometheus has a client.
type Prometheus interface {
	// Query evaluates a query at a time.
	Query(ctx context.Context, query string, at time.Time) (model.Vector, error)
	// QueryRange evaluates a query at every step from start to end.
	QueryRange(ctx context.Context, query string, start, end time.Time, step time.Duration) (model.Matrix, error)
}

// Points is how many values a trend has.
const Points = 12

// Query says which budgets to read.
type Query struct {
	// Operator is the one whose budgets are read; empty: those of all operators.
	Operator types.NamespacedName
	// Clusters adds the budget of each cluster to the worst ones, and the exclusions.
	Clusters bool
	Now      time.Time
	// Since is how far back trends go; 0: none are read.
	Since time.Duration
}

// Report is what was read.
type Report struct {
	// Objectives has one entry for each operator and SLI, with the cluster that
	// has the least left, the worst first. Clusters has one for each cluster, if
	// the query says so.
	Objectives []Budget `json:"objectives"`
	Clusters   []Budget `json:"clusters,omitempty"`
	// Exclusions are the AlertSilences that excluded time of the operator in its longest
	// period, if the query says so.
	Exclusions []Exclusion `json:"exclusions,omitempty"`
	// Gaps are the clusters of which slices of the longest period are missing, the worst
	// first, if the query says so.
	Gaps []Gap `json:"gaps,omitempty"`
}

// Gap says that budgets of a cluster rest on less than all slices of their period. What is
// missing counts as good.
type Gap struct {
	Cluster string `json:"cluster"`
	// Missing is the part of the slices that never arrived, between 0 and 1.
	Missing float64 `json:"missing"`
}

// Exclusion is an AlertSilence that excluded time from error budgets. The object itself may
// be gone.
type Exclusion struct {
	Namespace string `json:"namespace"`
	Silence   string `json:"silence"`
	Owner     string `json:"owner"`
	// Reason is the beginning of the silence's.
	Reason string `json:"reason"`
}

// Budget is what is left of one. What is not known is nil.
type Budget struct {
	// Namespace and Operator are those of the ManagedOperator.
	Namespace string `json:"namespace"`
	Operator  string `json:"operator"`
	SLI       string `json:"sli"`
	// Cluster whose budget it is: in a list of objectives, the worst one.
	Cluster string `json:"cluster,omitempty"`
	// Target in percent, and Period as in 30d.
	Target string `json:"target"`
	Period string `json:"period"`
	// Left is the part that is left: 1 is all, less than 0 overspent.
	Left *float64 `json:"left"`
	// LeftExcluding is what would be left without the time that AlertSilences exclude. It
	// is Left where they exclude none.
	LeftExcluding *float64 `json:"leftExcluding"`
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
	Cluster  string `json:"cluster,omitempty"`
	Version  string `json:"version,omitempty"`
	// Notified is as what people are notified of it, page or ticket, where that differs from the severity of its rule
	// and is known: PagingPolicies decide it.
	Notified string `json:"notified,omitempty"`
}

// Kind is as what people are notified of the alert, as far as it is known.
func (a Alert) Kind() string { return cmp.Or(a.Notified, a.Severity) }

// Absent tells whether the alert is about missing data.
func (a Alert) Absent() bool { return a.Name == slo.AlertSLIAbsent }

// Exhausted tells whether the alert is about a budget of which nothing is left.
func (a Alert) Exhausted() bool { return a.Name == slo.AlertExhausted }

// key identifies a budget; without a cluster, an objective.
type key struct {
	operator     types.NamespacedName
	sli, cluster string
}

type reader struct {
	Prometheus
	q Query
}

// Read queries Prometheus. The error wraps ErrNoRules or ErrUnknownOperator if
// there are no such objectives.
func Read(ctx context.Context, from Prometheus, q Query) (*Report, error) {
	r := reader{from, q}
	targets, err := r.vector(ctx, series.SLOObjective+r.selector(), false)
	if err != nil {
		return nil, err
	}
	if len(targets) == 0 {
		return nil, r.noObjectives(ctx)
	}
	periods, err := r.vector(ctx, series.SLOPeriod+r.selector(), false)
	if err != nil {
		return nil, err
	}
	worst, err := r.worst(ctx)
	if err != nil {
		return nil, err
	}
	known := map[key]Budget{}
	for k, target := range targets {
		known[k] = Budget{
			Namespace: k.operator.Namespace, Operator: k.operator.Name, SLI: k.sli, Target: percent(target),
			Period: period(periods[k]), Cluster: worst[k],
		}
	}
	alerts, err := r.alerts(ctx)
	if err != nil {
		return nil, err
	}
	report := &Report{}
	if report.Objectives, err = r.fill(ctx, known, alerts, "min", "max"); err != nil || !q.Clusters {
		return report, err
	}
	if report.Clusters, err = r.byCluster(ctx, known, alerts); err != nil {
		return report, err
	}
	if report.Exclusions, err = r.exclusions(ctx, periods); err != nil {
		return report, err
	}
	report.Gaps, err = r.gaps(ctx, longest(periods), report.Clusters)
	return report, err
}

// longest is the longest of periods, which are seconds; 0 if no rule has recorded one yet.
func longest(periods map[key]float64) time.Duration {
	most := 0.
	for _, seconds := range periods {
		most = max(most, seconds)
	}
	return time.Duration(most) * time.Second
}

// gaps reads of which clusters slices are missing, of those that have budgets.
func (r reader) gaps(ctx context.Context, period time.Duration, clusters []Budget) ([]Gap, error) {
	if period == 0 {
		return nil, nil
	}
	found, err := r.Query(ctx, slo.MissingShare("", period), r.q.Now)
	var out []Gap
	for _, s := range found {
		cluster := string(s.Metric[series.Cluster])
		if share := rounded(s.Value); share != nil && slices.ContainsFunc(clusters,
			func(b Budget) bool { return b.Cluster == cluster }) {
			out = append(out, Gap{cluster, *share})
		}
	}
	slices.SortFunc(out, func(a, b Gap) int {
		return cmp.Or(cmp.Compare(b.Missing, a.Missing), cmp.Compare(a.Cluster, b.Cluster))
	})
	return out, err
}

// exclusions reads the AlertSilences that excluded time in the longest period, of seconds.
func (r reader) exclusions(ctx context.Context, periods map[key]float64) ([]Exclusion, error) {
	period := longest(periods)
	if period == 0 {
		return nil, nil
	}
	found, err := r.Query(ctx, fmt.Sprintf("group by (%s, %s, %s, %s) (last_over_time(%s%s[%ds]))", series.Namespace,
		series.Silence, series.Owner, series.Reason, series.BudgetExcluded, r.selector(),
		int(period.Seconds())), r.q.Now)
	out := make([]Exclusion, 0, len(found))
	for _, s := range found {
		label := func(name string) string { return string(s.Metric[model.LabelName(name)]) }
		out = append(out, Exclusion{Namespace: label(series.Namespace), Silence: label(series.Silence),
			Owner: label(series.Owner), Reason: label(series.Reason)})
	}
	slices.SortFunc(out, func(a, b Exclusion) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Silence, b.Silence),
			cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Reason, b.Reason))
	})
	return out, err
}

// noObjectives says why there are none.
func (r reader) noObjectives(ctx context.Context) error {
	all, err := Operators(ctx, r.Prometheus, r.q.Now)
	switch {
	case err != nil:
		return err
	case len(all) == 0:
		return ErrNoRules
	}
	return fmt.Errorf("%w: %s", ErrUnknownOperator, r.q.Operator)
}

// Operators returns all operators that have objectives, in order.
func Operators(ctx context.Context, from Prometheus, now time.Time) ([]types.NamespacedName, error) {
	all, err := reader{from, Query{Now: now}}.vector(ctx, by("group", series.SLOObjective), false)
	var out []types.NamespacedName
	for k := range all {
		out = append(out, k.operator)
	}
	slices.SortFunc(out, compareOperators)
	return out, err
}

func compareOperators(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
}

// Find returns the operator that a person names as NAME, if only one operator has
// that name, or as NAMESPACE/NAME. The error wraps ErrNoRules, ErrUnknownOperator
// or ErrAmbiguous.
func Find(ctx context.Context, from Prometheus, now time.Time, name string) (types.NamespacedName, error) {
	all, err := Operators(ctx, from, now)
	if err != nil {
		return types.NamespacedName{}, err
	}
	found := slices.DeleteFunc(slices.Clone(all), func(o types.NamespacedName) bool {
		return o.Name != name && o.String() != name
	})
	switch {
	case len(all) == 0:
		return types.NamespacedName{}, ErrNoRules
	case len(found) == 0:
		return types.NamespacedName{}, fmt.Errorf("%w: %s", ErrUnknownOperator, name)
	case len(found) > 1:
		return types.NamespacedName{}, fmt.Errorf("%w: %s", ErrAmbiguous, name)
	}
	return found[0], nil
}

// objectiveLabels identify an objective.
const objectiveLabels = series.OperatorNamespace + ", " + series.Operator + ", " + series.SLI

// by aggregates by operator.
func by(operation, expr string) string {
	return fmt.Sprintf("%s by (%s, %s) (%s)", operation, series.OperatorNamespace, series.Operator, expr)
}

// worst is the cluster with the least left of each objective.
func (r reader) worst(ctx context.Context) (map[key]string, error) {
	least, err := r.vector(ctx, "bottomk by ("+objectiveLabels+") (1, "+series.SLOBudgetLeft+r.selector()+")", true)
	out := map[key]string{}
	for k := range least {
		out[key{k.operator, k.sli, ""}] = k.cluster
	}
	return out, err
}

func (r reader) byCluster(ctx context.Context, objectives map[key]Budget, alerts map[key][]Alert) ([]Budget,
	error) {
	left, err := r.vector(ctx, series.SLOBudgetLeft+r.selector(), true)
	if err != nil {
		return nil, err
	}
	known := map[key]Budget{}
	for k := range left {
		b := objectives[key{k.operator, k.sli, ""}]
		b.Namespace, b.Operator, b.SLI, b.Cluster = k.operator.Namespace, k.operator.Name, k.sli, k.cluster
		known[k] = b
	}
	return r.fill(ctx, known, alerts, "", "")
}

// fill adds what changes: of each cluster, or aggregated over clusters.
func (r reader) fill(ctx context.Context, known map[key]Budget, alerts map[key][]Alert, least,
	most string) ([]Budget, error) {
	over := func(operation, expr string) string {
		if operation == "" {
			return expr
		}
		return operation + " by (" + objectiveLabels + ") (" + expr + ")"
	}
	byCluster := least == ""
	left, err := r.vector(ctx, over(least, series.SLOBudgetLeft+r.selector()), byCluster)
	if err != nil {
		return nil, err
	}
	const hour = 60 // slices
	bad := "sum without (" + series.Version + ") (" + series.SLIBadVersionSum + "1h" + r.selector() + ")"
	burn, err := r.vector(ctx, fmt.Sprintf("%s / %d / on (%s) group_left () (1 - %s)", over(most, bad), hour,
		objectiveLabels, series.SLOObjective+r.selector()), byCluster)
	if err != nil {
		return nil, err
	}
	trends, err := r.trends(ctx, over(least, series.SLOBudgetLeft+r.selector()), byCluster)
	if err != nil {
		return nil, err
	}
	excluding, err := r.vector(ctx, series.SLOBudgetExcluding+r.selector(), true)
	if err != nil {
		return nil, err
	}
	out := make([]Budget, 0, len(known))
	for k, b := range known {
		b.Firing, b.Trend = alerts[k], trends[k]
		if v, ok := left[k]; ok {
			b.Left = &v
			b.LeftExcluding = leftExcluding(excluding, key{k.operator, k.sli, b.Cluster}, v)
			rate := burn[k] // no series: nothing was bad
			b.Burn = &rate
		}
		out = append(out, b)
	}
	slices.SortFunc(out, worseFirst)
	return out, nil
}

// leftExcluding is what would be left of a budget without excluded time, of which there may
// be none.
func leftExcluding(known map[key]float64, of key, left float64) *float64 {
	if v, excluded := known[of]; excluded {
		return &v
	}
	return &left
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
		cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.SLI, b.SLI),
		cmp.Compare(a.Cluster, b.Cluster))
}

func (b Budget) urgency() int {
	worst := 0
	for _, a := range b.Firing {
		if a.Kind() == series.Page {
			return 2
		}
		worst = 1
	}
	return worst
}

// alerts that fire, by cluster and by objective.
func (r reader) alerts(ctx context.Context) (map[key][]Alert, error) {
	value, err := r.Query(ctx, fmt.Sprintf("ALERTS{alertname=~\"%s|%s|%s|%s\",alertstate=\"firing\"%s}",
		slo.AlertOperator, slo.AlertRelease, slo.AlertSLIAbsent, slo.AlertExhausted, r.matcher()), r.q.Now)
	if err != nil {
		return nil, err
	}
	out := map[key][]Alert{}
	for _, s := range value {
		label := func(name string) string { return string(s.Metric[model.LabelName(name)]) }
		a := Alert{
			Name: label(model.AlertNameLabel), Severity: label(series.Severity), Scope: label(series.Scope),
			Cluster: label(series.Cluster), Version: label(series.Version),
		}
		k := keyOf(s.Metric, false)
		out[k] = append(out[k], a)
		if a.Cluster != "" {
			k.cluster = a.Cluster
			out[k] = append(out[k], a)
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

// matcher selects the operator of the query, after other matchers.
func (r reader) matcher() string {
	if (r.q.Operator == types.NamespacedName{}) {
		return ""
	}
	return fmt.Sprintf(",%s=%q,%s=%q", series.OperatorNamespace, r.q.Operator.Namespace, series.Operator,
		r.q.Operator.Name)
}

// selector selects the operator of the query.
func (r reader) selector() string {
	if m := r.matcher(); m != "" {
		return "{" + strings.TrimPrefix(m, ",") + "}"
	}
	return ""
}

// vector reads numbers by operator, SLI and, if asked for, cluster. What is not
// a number is left out.
func (r reader) vector(ctx context.Context, query string, byCluster bool) (map[key]float64, error) {
	vector, err := r.Query(ctx, query, r.q.Now)
	if err != nil {
		return nil, err
	}
	out := map[key]float64{}
	for _, s := range vector {
		if v := rounded(s.Value); v != nil {
			out[keyOf(s.Metric, byCluster)] = *v
		}
	}
	return out, nil
}

func keyOf(m model.Metric, byCluster bool) key {
	operator := types.NamespacedName{Namespace: string(m[series.OperatorNamespace]), Name: string(m[series.Operator])}
	out := key{operator: operator, sli: string(m[series.SLI])}
	if byCluster {
		out.cluster = string(m[series.Cluster])
	}
	return out
}

// trends reads Points values of each series; what is missing is nil.
func (r reader) trends(ctx context.Context, query string, byCluster bool) (map[key][]*float64, error) {
	if r.q.Since == 0 {
		return nil, nil
	}
	step := r.q.Since / Points
	// The first point is one step in: the last one is now.
	start := r.q.Now.Add(-step * (Points - 1))
	matrix, err := r.QueryRange(ctx, query, start, r.q.Now, step)
	if err != nil {
		return nil, err
	}
	out := map[key][]*float64{}
	for _, s := range matrix {
		points := make([]*float64, Points)
		for _, sample := range s.Values {
			i := int((sample.Timestamp.Time().Sub(start) + step/2) / step)
			if i >= 0 && i < Points {
				points[i] = rounded(sample.Value)
			}
		}
		out[keyOf(s.Metric, byCluster)] = points
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
	seen := map[types.NamespacedName]bool{}
	return slices.DeleteFunc(slices.Clone(objectives), func(b Budget) bool {
		operator := types.NamespacedName{Namespace: b.Namespace, Name: b.Operator}
		was := seen[operator]
		seen[operator] = true
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
