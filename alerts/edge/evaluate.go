// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

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

// ErrRules says that rules cannot be evaluated here.
var ErrRules = errors.New("invalid rules")

const (
	// lookback is how long a sample without a successor counts, as in Prometheus.
	lookback = 5 * time.Minute
	// queryTimeout and maxSamples bound the evaluation of a rule.
	queryTimeout = 20 * time.Second
	maxSamples   = 1_000_000
)

// Sample is one of a series that travels. A series that has ended has a last one, whose
// value is Prometheus' mark for that.
type Sample struct {
	Labels labels.Labels
	// T is in milliseconds since 1970.
	T int64
	V float64
}

// Evaluator evaluates recording rules. Only one goroutine may use it.
type Evaluator struct {
	engine *promql.Engine
	memory *memory
	rules  []rule
	// travels are the names of what is sent, and cluster is the label that all of it has.
	travels map[string]bool
	cluster string
	// observed are the series of the last observation.
	observed map[uint64]labels.Labels
}

type rule struct {
	name, expr string
	labels     map[string]string
	// recorded are the series of the last evaluation.
	recorded map[uint64]labels.Labels
}

// New makes an evaluator of the groups of a cluster's edge part. All of them are evaluated
// at once, in their order: alerts are not.
func New(cluster string, groups []monitoringv1.RuleGroup) (*Evaluator, error) {
	e := &Evaluator{cluster: cluster, travels: map[string]bool{}, observed: map[uint64]labels.Labels{}}
	for _, name := range series.Travelling() {
		e.travels[name] = true
	}
	keep := map[string]time.Duration{}
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
			lookedFor(expr, keep)
			e.rules = append(e.rules, rule{r.Record, r.Expr.String(), r.Labels, map[uint64]labels.Labels{}})
		}
	}
	for name := range e.travels {
		keep[name] = max(keep[name], lookback)
	}
	e.memory = newMemory(keep)
	e.engine = promql.NewEngine(promql.EngineOpts{Logger: slog.New(slog.DiscardHandler), MaxSamples: maxSamples,
		Timeout: queryTimeout, LookbackDelta: lookback, EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() }, Parser: parse})
	return e, nil
}

// lookedFor notes how far back a query looks for each name.
func lookedFor(expr parser.Expr, keep map[string]time.Duration) {
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		s, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		back := lookback + s.OriginalOffset
		for _, above := range path {
			switch n := above.(type) {
			case *parser.MatrixSelector:
				back += n.Range
			case *parser.SubqueryExpr:
				back += n.Range + n.OriginalOffset
			}
		}
		keep[s.Name] = max(keep[s.Name], back)
		return nil
	})
}

// Observe takes the samples of a registry, of the names that rules look for or that
// travel. What travels as it is it returns.
func (e *Evaluator) Observe(families []*dto.MetricFamily, now time.Time) []Sample {
	t := timestamp.FromTime(now)
	seen := map[uint64]labels.Labels{}
	var out []Sample
	take := func(of labels.Labels, v float64) {
		e.memory.add(of, t, v)
		if e.travels[of.Get(model.MetricNameLabel)] {
			out = append(out, Sample{of, t, v})
		}
	}
	for _, family := range families {
		if _, wanted := e.memory.keep[family.GetName()]; !wanted {
			continue
		}
		for _, m := range family.GetMetric() {
			v, ok := valueOf(m)
			if !ok {
				continue
			}
			of := e.labelsOf(family.GetName(), m)
			seen[of.Hash()] = of
			take(of, v)
		}
	}
	for _, of := range ended(e.observed, seen) {
		take(of, math.Float64frombits(value.StaleNaN))
	}
	e.observed = seen
	return out
}

// labelsOf are the labels of a series, of which cluster is this one's if there is none.
func (e *Evaluator) labelsOf(name string, m *dto.Metric) labels.Labels {
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

// valueOf is the value of a gauge, a counter, or what is neither. Histograms have none.
func valueOf(m *dto.Metric) (float64, bool) {
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

// ended are the series that were there before.
func ended(before, now map[uint64]labels.Labels) []labels.Labels {
	var out []labels.Labels
	for hash, of := range before {
		if _, still := now[hash]; !still {
			out = append(out, of)
		}
	}
	return out
}

// Evaluate evaluates all rules, and returns what they recorded and what travels. A rule
// that fails records nothing, and does not keep others from it.
func (e *Evaluator) Evaluate(ctx context.Context, now time.Time) ([]Sample, error) {
	t := timestamp.FromTime(now)
	e.memory.forget(t)
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
	seen := map[uint64]labels.Labels{}
	out := make([]Sample, 0, len(vector))
	for _, s := range vector {
		of := labels.NewBuilder(s.Metric).Set(model.MetricNameLabel, r.name)
		for name, v := range r.labels {
			of.Set(name, v)
		}
		if s.Metric.Get(series.Cluster) == "" {
			of.Set(series.Cluster, e.cluster)
		}
		l := of.Labels()
		if _, twice := seen[l.Hash()]; twice {
			return nil, fmt.Errorf("two results have the same labels: %s", l)
		}
		seen[l.Hash()] = l
		out = append(out, Sample{l, t, s.F})
	}
	for _, of := range ended(r.recorded, seen) {
		out = append(out, Sample{of, t, math.Float64frombits(value.StaleNaN)})
	}
	r.recorded = maps.Clone(seen)
	return out, nil
}
