// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budgets reads how much is left of error budgets: it queries the series that the rules
// of SLOs recorded in a Prometheus, and which of their alerts fire. It also has the texts about
// the remaining budget. It has no client, clock or logger, and reads nothing of the hub.
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
	// ErrNoRules is returned if Prometheus has no objectives.
	ErrNoRules = errors.New("no objectives are recorded")
	// ErrUnknownOperator is wrapped by errors about an operator without objectives in Prometheus.
	ErrUnknownOperator = errors.New("no objectives of this operator are recorded")
	// ErrAmbiguous is wrapped by errors about a name that operators of several namespaces have.
	ErrAmbiguous = errors.New("several operators have this name")
)

// Prometheus evaluates queries. alerts/prometheus has a client.
type Prometheus interface {
	// Query evaluates a query at a time.
	Query(ctx context.Context, query string, at time.Time) (model.Vector, error)
	// QueryRange evaluates a query at every step from start to end.
	QueryRange(ctx context.Context, query string, start, end time.Time, step time.Duration) (model.Matrix, error)
}

// Points is the number of values of a trend.
const Points = 12

// Query selects the budgets to read.
type Query struct {
	// Operator is the operator whose budgets are read. Empty: all operators.
	Operator types.NamespacedName
	// Clusters adds the budget of each cluster, the exclusions and the gaps.
	Clusters bool
	Now      time.Time
	// Since is the length of the trends. 0: no trends are read.
	Since time.Duration
}

// Report contains the budgets.
type Report struct {
	// Objectives has one entry for each operator and SLI, with the cluster that has the smallest remaining
	// budget, the worst first. Clusters has one entry for each cluster, if Query.Clusters is set.
	Objectives []Budget `json:"objectives"`
	Clusters   []Budget `json:"clusters,omitempty"`
	// Exclusions are the AlertSilences that excluded time of the
	// operator in its longest period, if Query.Clusters is set.
	Exclusions []Exclusion `json:"exclusions,omitempty"`
	// Gaps are the clusters with missing slices in the longest period, the worst first, if Query.Clusters is set.
	Gaps []Gap `json:"gaps,omitempty"`
}

// Gap means that budgets of a cluster are computed from fewer
// slices than their period has. Missing slices count as good.
type Gap struct {
	Cluster string `json:"cluster"`
	// Missing is the part of the slices that never arrived, between 0 and 1.
	Missing float64 `json:"missing"`
}

// Exclusion is an AlertSilence that excluded time from error budgets. The AlertSilence may have been deleted.
type Exclusion struct {
	Namespace string `json:"namespace"`
	Silence   string `json:"silence"`
	Owner     string `json:"owner"`
	// Reason is the beginning of the silence's reason.
	Reason string `json:"reason"`
}

// Budget is the state of one error budget. Unknown values are nil.
type Budget struct {
	// Namespace and Operator identify the ManagedOperator.
	Namespace string `json:"namespace"`
	Operator  string `json:"operator"`
	SLI       string `json:"sli"`
	// Cluster is the cluster of the budget. In a list of objectives it is the worst cluster.
	Cluster string `json:"cluster,omitempty"`
	// Target is in percent, and Period has the form 30d.
	Target string `json:"target"`
	Period string `json:"period"`
	// Left is the remaining part: 1 is the whole budget, and a negative value is overspent.
	Left *float64 `json:"left"`
	// LeftExcluding is the remaining part without the time that
	// AlertSilences exclude. It equals Left if no time is excluded.
	LeftExcluding *float64 `json:"leftExcluding"`
	// Burn is the burn rate over the last hour: at 1 the budget lasts exactly
	// for its period. For an objective it is the highest burn rate of a cluster.
	Burn   *float64 `json:"burn1h"`
	Firing []Alert  `json:"firing"`
	// Trend is the remaining part over Query.Since, the oldest first.
	Trend []*float64 `json:"trend"`
}

// Alert is an alert that fires.
type Alert struct {
	Name     string `json:"name"`
	Severity string `json:"severity"`
	Scope    string `json:"scope"`
	Cluster  string `json:"cluster,omitempty"`
	Version  string `json:"version,omitempty"`
	// Notified is the kind of notification, page or ticket, if it is known
	// and differs from the severity of the rule. PagingPolicies decide it.
	Notified string `json:"notified,omitempty"`
}

// Kind returns the kind of notification if it is known, and otherwise the severity of the rule.
func (a Alert) Kind() string { return cmp.Or(a.Notified, a.Severity) }

// IsAbsent reports whether the alert is about missing data.
func (a Alert) IsAbsent() bool { return a.Name == slo.AlertSLIAbsent }

// IsExhausted reports whether the alert is about a budget that is used up.
func (a Alert) IsExhausted() bool { return a.Name == slo.AlertExhausted }

// key identifies a budget, or an objective if the cluster is empty.
type key struct {
	operator     types.NamespacedName
	sli, cluster string
}

// reader reads the values that a Query selects.
type reader struct {
	Prometheus
	q Query
}

// Read returns the budgets that a query selects. The error wraps ErrNoRules
// or ErrUnknownOperator if there are no matching objectives.
func Read(ctx context.Context, from Prometheus, q Query) (*Report, error) {
	r := reader{from, q}
	targets, err := r.readVector(ctx, series.SLOObjective+r.buildSelector(), false)
	if err != nil {
		return nil, err
	}
	if len(targets) == 0 {
		return nil, r.explainNoObjectives(ctx)
	}
	periods, err := r.readVector(ctx, series.SLOPeriod+r.buildSelector(), false)
	if err != nil {
		return nil, err
	}
	worstClusters, err := r.readWorst(ctx)
	if err != nil {
		return nil, err
	}
	objectives := map[key]Budget{}
	for k, target := range targets {
		objectives[k] = Budget{
			Namespace: k.operator.Namespace, Operator: k.operator.Name, SLI: k.sli, Target: formatPercent(target),
			Period: formatPeriod(periods[k]), Cluster: worstClusters[k],
		}
	}
	alerts, err := r.readAlerts(ctx)
	if err != nil {
		return nil, err
	}
	report := &Report{}
	if report.Objectives, err = r.fillBudgets(ctx, objectives, alerts, "min", "max"); err != nil || !q.Clusters {
		return report, err
	}
	if report.Clusters, err = r.readClusters(ctx, objectives, alerts); err != nil {
		return report, err
	}
	if report.Exclusions, err = r.readExclusions(ctx, periods); err != nil {
		return report, err
	}
	report.Gaps, err = r.readGaps(ctx, findLongest(periods), report.Clusters)
	return report, err
}

// findLongest returns the longest of the periods, which are in seconds. It is 0 if there are none.
func findLongest(periods map[key]float64) time.Duration {
	longest := 0.
	for _, seconds := range periods {
		longest = max(longest, seconds)
	}
	return time.Duration(longest) * time.Second
}

// readGaps reads the clusters with missing slices in a period, limited to clusters
// that have budgets, the worst first. It returns nil if the period is 0.
func (r reader) readGaps(ctx context.Context, period time.Duration, clusters []Budget) ([]Gap, error) {
	if period == 0 {
		return nil, nil
	}
	found, err := r.Query(ctx, slo.MissingShare("", period), r.q.Now)
	var out []Gap
	for _, s := range found {
		cluster := string(s.Metric[series.Cluster])
		if share := roundValue(s.Value); share != nil && slices.ContainsFunc(clusters,
			func(b Budget) bool { return b.Cluster == cluster }) {
			out = append(out, Gap{cluster, *share})
		}
	}
	slices.SortFunc(out, func(a, b Gap) int {
		return cmp.Or(cmp.Compare(b.Missing, a.Missing), cmp.Compare(a.Cluster, b.Cluster))
	})
	return out, err
}

// readExclusions reads the AlertSilences that excluded time in the longest of the periods, which are in seconds.
func (r reader) readExclusions(ctx context.Context, periods map[key]float64) ([]Exclusion, error) {
	period := findLongest(periods)
	if period == 0 {
		return nil, nil
	}
	found, err := r.Query(ctx, fmt.Sprintf("group by (%s, %s, %s, %s) (last_over_time(%s%s[%ds]))", series.Namespace,
		series.Silence, series.Owner, series.Reason, series.BudgetExcluded, r.buildSelector(),
		int(period.Seconds())), r.q.Now)
	out := make([]Exclusion, 0, len(found))
	for _, s := range found {
		readLabel := func(name string) string { return string(s.Metric[model.LabelName(name)]) }
		out = append(out, Exclusion{Namespace: readLabel(series.Namespace), Silence: readLabel(series.Silence),
			Owner: readLabel(series.Owner), Reason: readLabel(series.Reason)})
	}
	slices.SortFunc(out, func(a, b Exclusion) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Silence, b.Silence),
			cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Reason, b.Reason))
	})
	return out, err
}

// explainNoObjectives returns the error for a query without objectives:
// ErrNoRules, or ErrUnknownOperator if other operators have objectives.
func (r reader) explainNoObjectives(ctx context.Context) error {
	all, err := Operators(ctx, r.Prometheus, r.q.Now)
	switch {
	case err != nil:
		return err
	case len(all) == 0:
		return ErrNoRules
	}
	return fmt.Errorf("%w: %s", ErrUnknownOperator, r.q.Operator)
}

// Operators returns all operators that have objectives, sorted by name.
func Operators(ctx context.Context, from Prometheus, now time.Time) ([]types.NamespacedName, error) {
	all, err := reader{from, Query{Now: now}}.readVector(ctx, aggregateByOperator("group", series.SLOObjective), false)
	var out []types.NamespacedName
	for k := range all {
		out = append(out, k.operator)
	}
	slices.SortFunc(out, compareOperators)
	return out, err
}

// compareOperators orders operators by name, then by namespace.
func compareOperators(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
}

// Find returns the operator for a name: NAME if only one operator has it, or
// NAMESPACE/NAME. The error wraps ErrNoRules, ErrUnknownOperator or ErrAmbiguous.
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

// aggregateByOperator returns PromQL that aggregates by operator.
func aggregateByOperator(operation, expr string) string {
	return fmt.Sprintf("%s by (%s, %s) (%s)", operation, series.OperatorNamespace, series.Operator, expr)
}

// readWorst reads for each objective the cluster with the smallest remaining budget.
func (r reader) readWorst(ctx context.Context) (map[key]string, error) {
	lowest, err := r.readVector(ctx, "bottomk by ("+objectiveLabels+") (1, "+series.SLOBudgetLeft+r.buildSelector()+")",
		true)
	out := map[key]string{}
	for k := range lowest {
		out[key{k.operator, k.sli, ""}] = k.cluster
	}
	return out, err
}

// readClusters reads the budget of each cluster. The target and the period are from its objective.
func (r reader) readClusters(ctx context.Context, objectives map[key]Budget, alerts map[key][]Alert) ([]Budget,
	error) {
	remaining, err := r.readVector(ctx, series.SLOBudgetLeft+r.buildSelector(), true)
	if err != nil {
		return nil, err
	}
	budgets := map[key]Budget{}
	for k := range remaining {
		b := objectives[key{k.operator, k.sli, ""}]
		b.Namespace, b.Operator, b.SLI, b.Cluster = k.operator.Namespace, k.operator.Name, k.sli, k.cluster
		budgets[k] = b
	}
	return r.fillBudgets(ctx, budgets, alerts, "", "")
}

// fillBudgets adds the current values, trends and alerts to the budgets, and returns them sorted, the worst first.
// lowest and highest are PromQL's aggregations over clusters: min and max. If they are empty, the budgets are
// budgets of one cluster each. A budget without a current value has only its alerts and its trend.
func (r reader) fillBudgets(ctx context.Context, budgets map[key]Budget, alerts map[key][]Alert, lowest,
	highest string) ([]Budget, error) {
	aggregate := func(operation, expr string) string {
		if operation == "" {
			return expr
		}
		return operation + " by (" + objectiveLabels + ") (" + expr + ")"
	}
	byCluster := lowest == ""
	remaining, err := r.readVector(ctx, aggregate(lowest, series.SLOBudgetLeft+r.buildSelector()), byCluster)
	if err != nil {
		return nil, err
	}
	const hour = 60 // slices
	// The burn rate is the bad share of an hour's slices, divided by the share that the objective allows to be bad.
	bad := "sum without (" + series.Version + ") (" + series.SLIBadVersionSum + "1h" + r.buildSelector() + ")"
	burn, err := r.readVector(ctx, fmt.Sprintf("%s / %d / on (%s) group_left () (1 - %s)", aggregate(highest, bad),
		hour, objectiveLabels, series.SLOObjective+r.buildSelector()), byCluster)
	if err != nil {
		return nil, err
	}
	trends, err := r.readTrends(ctx, aggregate(lowest, series.SLOBudgetLeft+r.buildSelector()), byCluster)
	if err != nil {
		return nil, err
	}
	// The values are read by cluster, because an objective has the value of its worst cluster.
	excluding, err := r.readVector(ctx, series.SLOBudgetExcluding+r.buildSelector(), true)
	if err != nil {
		return nil, err
	}
	out := make([]Budget, 0, len(budgets))
	for k, b := range budgets {
		b.Firing, b.Trend = alerts[k], trends[k]
		if v, ok := remaining[k]; ok {
			b.Left = &v
			b.LeftExcluding = findLeftExcluding(excluding, key{k.operator, k.sli, b.Cluster}, v)
			rate := burn[k] // 0 without a series, because nothing was bad
			b.Burn = &rate
		}
		out = append(out, b)
	}
	slices.SortFunc(out, compareUrgency)
	return out, nil
}

// findLeftExcluding returns the remaining part of a budget without excluded time.
// If excluding has no value for the budget, no time is excluded, and it returns remaining.
func findLeftExcluding(excluding map[key]float64, budget key, remaining float64) *float64 {
	if v, excluded := excluding[budget]; excluded {
		return &v
	}
	return &remaining
}

// compareUrgency orders by the firing alerts, then by the remaining budget. Unknown budgets are last.
func compareUrgency(a, b Budget) int {
	readLeft := func(b Budget) float64 {
		if b.Left == nil {
			return math.Inf(1)
		}
		return *b.Left
	}
	return cmp.Or(cmp.Compare(b.urgency(), a.urgency()), cmp.Compare(readLeft(a), readLeft(b)),
		cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.SLI, b.SLI),
		cmp.Compare(a.Cluster, b.Cluster))
}

// urgency is 2 if a page fires, 1 if only other alerts fire, and otherwise 0.
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

// readAlerts reads the alerts that fire, by objective. Alerts that have
// a cluster are also in the list of their cluster's budget.
func (r reader) readAlerts(ctx context.Context) (map[key][]Alert, error) {
	value, err := r.Query(ctx, fmt.Sprintf("ALERTS{alertname=~\"%s|%s|%s|%s\",alertstate=\"firing\"%s}",
		slo.AlertOperator, slo.AlertRelease, slo.AlertSLIAbsent, slo.AlertExhausted, r.buildMatcher()), r.q.Now)
	if err != nil {
		return nil, err
	}
	out := map[key][]Alert{}
	for _, s := range value {
		readLabel := func(name string) string { return string(s.Metric[model.LabelName(name)]) }
		a := Alert{
			Name: readLabel(model.AlertNameLabel), Severity: readLabel(series.Severity), Scope: readLabel(series.Scope),
			Cluster: readLabel(series.Cluster), Version: readLabel(series.Version),
		}
		k := toKey(s.Metric, false)
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

// buildMatcher returns the matchers of the query's operator, to follow other matchers. It is empty for all operators.
func (r reader) buildMatcher() string {
	if (r.q.Operator == types.NamespacedName{}) {
		return ""
	}
	return fmt.Sprintf(",%s=%q,%s=%q", series.OperatorNamespace, r.q.Operator.Namespace, series.Operator,
		r.q.Operator.Name)
}

// buildSelector returns a selector of the query's operator. It is empty for all operators.
func (r reader) buildSelector() string {
	if m := r.buildMatcher(); m != "" {
		return "{" + strings.TrimPrefix(m, ",") + "}"
	}
	return ""
}

// readVector reads numbers by operator, SLI and, if byCluster
// is set, cluster. It ignores values that are not numbers.
func (r reader) readVector(ctx context.Context, query string, byCluster bool) (map[key]float64, error) {
	vector, err := r.Query(ctx, query, r.q.Now)
	if err != nil {
		return nil, err
	}
	out := map[key]float64{}
	for _, s := range vector {
		if v := roundValue(s.Value); v != nil {
			out[toKey(s.Metric, byCluster)] = *v
		}
	}
	return out, nil
}

// toKey returns the key from the labels of a series. The cluster is set only if byCluster is set.
func toKey(m model.Metric, byCluster bool) key {
	operator := types.NamespacedName{Namespace: string(m[series.OperatorNamespace]), Name: string(m[series.Operator])}
	out := key{operator: operator, sli: string(m[series.SLI])}
	if byCluster {
		out.cluster = string(m[series.Cluster])
	}
	return out
}

// readTrends reads Points values of each series. Missing values are nil.
func (r reader) readTrends(ctx context.Context, query string, byCluster bool) (map[key][]*float64, error) {
	if r.q.Since == 0 {
		return nil, nil
	}
	step := r.q.Since / Points
	// The first point is one step after the start of the time, because the last point is now.
	start := r.q.Now.Add(-step * (Points - 1))
	matrix, err := r.QueryRange(ctx, query, start, r.q.Now, step)
	if err != nil {
		return nil, err
	}
	out := map[key][]*float64{}
	for _, s := range matrix {
		points := make([]*float64, Points)
		for _, sample := range s.Values {
			// Half a step is added to round to the nearest point.
			i := int((sample.Timestamp.Time().Sub(start) + step/2) / step)
			if i >= 0 && i < Points {
				points[i] = roundValue(sample.Value)
			}
		}
		out[toKey(s.Metric, byCluster)] = points
	}
	return out, nil
}

func formatPercent(ratio float64) string {
	return slo.PPM(math.Round(ratio * float64(slo.One))).String()
}

// formatPeriod returns seconds in the form 30d. It is empty for less than an hour.
func formatPeriod(seconds float64) string {
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

// roundValue rounds a value for readers of the JSON output. It returns nil for NaN and infinity.
func roundValue(v model.SampleValue) *float64 {
	const places = 1e6
	f := math.Round(float64(v)*places) / places
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &f
}

// WorstByOperator returns only the worst objective of each operator. The objectives must be sorted, the worst first.
func WorstByOperator(objectives []Budget) []Budget {
	listed := map[types.NamespacedName]bool{}
	return slices.DeleteFunc(slices.Clone(objectives), func(b Budget) bool {
		operator := types.NamespacedName{Namespace: b.Namespace, Name: b.Operator}
		isRepeated := listed[operator]
		listed[operator] = true
		return isRepeated
	})
}

// CountClusters returns the number of different clusters of the budgets.
func CountClusters(budgets []Budget) int {
	clusters := map[string]bool{}
	for _, b := range budgets {
		clusters[b.Cluster] = true
	}
	return len(slices.Collect(maps.Keys(clusters)))
}
