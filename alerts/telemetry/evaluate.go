// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// ErrRules is wrapped by errors about rules that cannot be evaluated here.
var ErrRules = errors.New("invalid rules")

const (
	// lookback is how long a sample without a successor is valid, as in Prometheus.
	lookback = 5 * time.Minute
	// queryTimeout and maxSamples limit the evaluation of a rule.
	queryTimeout = 20 * time.Second
	maxSamples   = 1_000_000
)

// Sample is a sample of a series that is sent. The last sample of an
// ended series has the staleness marker of Prometheus as its value.
type Sample struct {
	Labels labels.Labels
	// T is in milliseconds since 1970.
	T int64
	V float64
}

// Evaluator evaluates recording rules. It must not be used by several goroutines at the same time.
type Evaluator struct {
	engine *promql.Engine
	memory *memory
	rules  []rule
	// travels are the names of the series that are sent, and cluster is the value of their label cluster.
	travels map[string]bool
	cluster string
	// observed are the series of the last observation.
	observed map[uint64]labels.Labels
}

// rule is a recording rule.
type rule struct {
	name, expr string
	labels     map[string]string
	// recorded are the series of the last evaluation.
	recorded map[uint64]labels.Labels
}

// NewEvaluator returns an evaluator of the groups of a cluster's edge part. It evaluates all groups together,
// in their order. It returns an error that wraps ErrRules if a group contains an alert or an invalid query.
func NewEvaluator(cluster string, groups []monitoringv1.RuleGroup) (*Evaluator, error) {
	e := &Evaluator{cluster: cluster, travels: map[string]bool{}, observed: map[uint64]labels.Labels{}}
	for _, name := range series.Travelling() {
		e.travels[name] = true
	}
	keepFor := map[string]time.Duration{}
	parse := parser.NewParser(parser.Options{})
	for _, g := range groups {
		for _, r := range g.Rules {
			if r.Record == "" {
				return nil, fmt.Errorf("%w: group %s has the alert %s", ErrRules, g.Name, r.Alert)
			}
			expr, err := parse.ParseExpr(r.Expr.String())
			if err != nil {
				return nil, fmt.Errorf("%w: %s of group %s: %w", ErrRules, r.Record, g.Name, err)
			}
			recordLookback(expr, keepFor)
			e.rules = append(e.rules, rule{name: r.Record, expr: r.Expr.String(), labels: r.Labels,
				recorded: map[uint64]labels.Labels{}})
		}
	}
	for name := range e.travels {
		keepFor[name] = max(keepFor[name], lookback)
	}
	e.memory = newMemory(keepFor)
	e.engine = promql.NewEngine(promql.EngineOpts{Logger: slog.New(slog.DiscardHandler), MaxSamples: maxSamples,
		Timeout: queryTimeout, LookbackDelta: lookback, EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() }, Parser: parse})
	return e, nil
}

// recordLookback adds to keepFor how far back a query reads each name, including
// the ranges and offsets of the expressions that contain its selector.
func recordLookback(expr parser.Expr, keepFor map[string]time.Duration) {
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		s, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		back := lookback + s.OriginalOffset
		for _, ancestor := range path {
			switch n := ancestor.(type) {
			case *parser.MatrixSelector:
				back += n.Range
			case *parser.SubqueryExpr:
				back += n.Range + n.OriginalOffset
			}
		}
		keepFor[s.Name] = max(keepFor[s.Name], back)
		return nil
	})
}

// Observe stores the samples of a registry that rules read or that are sent. It returns the samples
// that are sent, with staleness markers for series that existed at the last call and are missing now.
func (e *Evaluator) Observe(families []*dto.MetricFamily, now time.Time) []Sample {
	t := timestamp.FromTime(now)
	current := map[uint64]labels.Labels{}
	var out []Sample
	record := func(metric labels.Labels, v float64) {
		e.memory.add(metric, t, v)
		if e.travels[metric.Get(model.MetricNameLabel)] {
			out = append(out, Sample{metric, t, v})
		}
	}
	for _, family := range families {
		if _, wanted := e.memory.keepFor[family.GetName()]; !wanted {
			continue
		}
		for _, m := range family.GetMetric() {
			v, ok := readValue(m)
			if !ok {
				continue
			}
			metric := e.buildLabels(family.GetName(), m)
			current[metric.Hash()] = metric
			record(metric, v)
		}
	}
	for _, metric := range listEnded(e.observed, current) {
		record(metric, math.Float64frombits(value.StaleNaN))
	}
	e.observed = current
	return out
}

// buildLabels returns the labels of a series. It adds the label cluster if the series has none.
func (e *Evaluator) buildLabels(name string, m *dto.Metric) labels.Labels {
	builder := labels.NewScratchBuilder(len(m.GetLabel()) + 2)
	builder.Add(model.MetricNameLabel, name)
	hasCluster := false
	for _, l := range m.GetLabel() {
		builder.Add(l.GetName(), l.GetValue())
		hasCluster = hasCluster || l.GetName() == series.Cluster
	}
	if !hasCluster {
		builder.Add(series.Cluster, e.cluster)
	}
	builder.Sort()
	return builder.Labels()
}

// readValue returns the value of a gauge, a counter or an untyped metric. It returns false for histograms.
func readValue(m *dto.Metric) (float64, bool) {
	switch {
	case m.Gauge != nil:
		return m.Gauge.GetValue(), true
	case m.Counter != nil:
		return m.Counter.GetValue(), true
	case m.Untyped != nil:
		return m.Untyped.GetValue(), true
	}
	return 0, false
}

// listEnded returns the series that exist in previous but not in current.
func listEnded(previous, current map[uint64]labels.Labels) []labels.Labels {
	var out []labels.Labels
	for hash, metric := range previous {
		if _, still := current[hash]; !still {
			out = append(out, metric)
		}
	}
	return out
}

// Evaluate evaluates all rules, and returns the recorded samples that are sent. A rule
// that fails records nothing, and does not prevent the evaluation of other rules.
func (e *Evaluator) Evaluate(ctx context.Context, now time.Time) ([]Sample, error) {
	t := timestamp.FromTime(now)
	e.memory.dropOld(t)
	var out []Sample
	var errs []error
	for i := range e.rules {
		r := &e.rules[i]
		recorded, err := e.evaluate(ctx, r, now)
		if err != nil {
			errs = append(errs, fmt.Errorf("evaluate %s: %w", r.name, err))
			continue
		}
		for _, s := range recorded {
			e.memory.add(s.Labels, t, s.V)
			if e.travels[r.name] {
				out = append(out, s)
			}
		}
	}
	return out, errors.Join(errs...)
}

// evaluate evaluates one rule. The result includes staleness markers for series that have ended.
func (e *Evaluator) evaluate(ctx context.Context, r *rule, now time.Time) ([]Sample, error) {
	query, err := e.engine.NewInstantQuery(ctx, e.memory, nil, r.expr, now)
	if err != nil {
		return nil, err
	}
	defer query.Close()
	vector, err := query.Exec(ctx).Vector()
	if err != nil {
		return nil, err
	}
	t := timestamp.FromTime(now)
	current := map[uint64]labels.Labels{}
	out := make([]Sample, 0, len(vector))
	for _, s := range vector {
		builder := labels.NewBuilder(s.Metric).Set(model.MetricNameLabel, r.name)
		for name, v := range r.labels {
			builder.Set(name, v)
		}
		if s.Metric.Get(series.Cluster) == "" {
			builder.Set(series.Cluster, e.cluster)
		}
		l := builder.Labels()
		if _, twice := current[l.Hash()]; twice {
			return nil, fmt.Errorf("two results have the same labels: %s", l)
		}
		current[l.Hash()] = l
		out = append(out, Sample{l, t, s.F})
	}
	for _, metric := range listEnded(r.recorded, current) {
		out = append(out, Sample{metric, t, math.Float64frombits(value.StaleNaN)})
	}
	r.recorded = maps.Clone(current)
	return out, nil
}
