// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/teststorage"
)

// cachingParser parses each expression once.
type cachingParser struct {
	parser.Parser
	parsed map[string]parser.Expr
}

// ParseExpr implements parser.Parser.
func (p *cachingParser) ParseExpr(text string) (parser.Expr, error) {
	if expr, ok := p.parsed[text]; ok {
		return expr, nil
	}
	expr, err := p.Parser.ParseExpr(text)
	if err == nil {
		p.parsed[text] = expr
	}
	return expr, err
}

// queryParser parses for queries of one test.
type queryParser struct {
	*cachingParser
	metrics metrics
}

// ParseExpr returns a copy of the expression, since the engine changes expressions while it evaluates them.
func (p queryParser) ParseExpr(text string) (parser.Expr, error) {
	expr, err := p.cachingParser.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	return p.metrics.copyExpr(expr), nil
}

// copyExpr copies all parts that the engine changes. Literals, matchers and labels stay the same.
func (m metrics) copyExpr(expr parser.Expr) parser.Expr {
	expr = m.withoutEmpty(expr)
	switch e := expr.(type) {
	case *parser.AggregateExpr:
		out := *e
		out.Expr, out.Param = m.copyExpr(e.Expr), m.copyExpr(e.Param)
		return &out
	case *parser.BinaryExpr:
		out := *e
		out.LHS, out.RHS = m.copyExpr(e.LHS), m.copyExpr(e.RHS)
		return &out
	case *parser.Call:
		out := *e
		out.Args = make(parser.Expressions, len(e.Args))
		for i, arg := range e.Args {
			out.Args[i] = m.copyExpr(arg)
		}
		return &out
	case *parser.MatrixSelector:
		out := *e
		out.VectorSelector = m.copyExpr(e.VectorSelector)
		return &out
	case *parser.SubqueryExpr:
		out := *e
		out.Expr = m.copyExpr(e.Expr)
		return &out
	case *parser.ParenExpr:
		out := *e
		out.Expr = m.copyExpr(e.Expr)
		return &out
	case *parser.UnaryExpr:
		out := *e
		out.Expr = m.copyExpr(e.Expr)
		return &out
	case *parser.VectorSelector:
		out := *e
		return &out
	}
	return expr
}

// loader reads files of rules once for all tests. Rules write their expression as text at each evaluation, so it keeps
// that text too.
type loader struct {
	parser *cachingParser
	// annotations says whether a test compares them. Rules expand them at each evaluation, and no query returns them.
	annotations bool
	files       map[string]*rulefmt.RuleGroups
	written     map[string]writtenExpr
}

// writtenExpr is an expression with its text.
type writtenExpr struct {
	parser.Expr
	text string
}

func (e writtenExpr) String() string { return e.text }

func newLoader(annotations bool) *loader {
	parse := &cachingParser{parser.NewParser(parser.Options{}), map[string]parser.Expr{}}
	return &loader{parse, annotations, map[string]*rulefmt.RuleGroups{}, map[string]writtenExpr{}}
}

// Load implements rules.GroupLoader.
func (l *loader) Load(path string, lenient bool, scheme model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	if groups, ok := l.files[path]; ok {
		return groups, nil
	}
	groups, errs := rulefmt.ParseFile(path, lenient, scheme, l.parser.Parser, nil)
	if errs != nil {
		return nil, errs
	}
	for _, group := range groups.Groups {
		for i := range group.Rules {
			if !l.annotations {
				group.Rules[i].Annotations = nil
			}
		}
	}
	l.files[path] = groups
	return groups, nil
}

// Parse implements rules.GroupLoader.
func (l *loader) Parse(query string) (parser.Expr, error) {
	expr, err := l.parser.ParseExpr(query)
	if err != nil {
		return nil, err
	}
	if _, ok := l.written[query]; !ok {
		l.written[query] = writtenExpr{expr, expr.String()}
	}
	return l.written[query], nil
}

// noDependencies leaves out what concurrent evaluation would need.
type noDependencies struct{}

// AnalyseRules implements rules.RuleDependencyController.
func (noDependencies) AnalyseRules([]rules.Rule) {}

// evaluation is one test: its storage, rules and series.
type evaluation struct {
	storage *teststorage.TestStorage
	metrics metrics
	parser  queryParser
	engine  *promql.Engine
	groups  []*rules.Group
	series  []samples
	step    time.Duration
}

// samples are those of a series, one at each evaluation.
type samples struct {
	labels labels.Labels
	values []parser.SequenceValue
}

// newEvaluation sets up what promtool sets up for a test.
func newEvaluation(file testFile, test testCase, load *loader) (*evaluation, error) {
	e := &evaluation{step: time.Duration(file.Interval), metrics: metrics{}}
	e.parser = queryParser{load.parser, e.metrics}
	if err := e.parseSeries(test.Series); err != nil {
		return nil, err
	}
	var err error
	if e.storage, err = teststorage.NewWithError(func(opts *tsdb.Options) {
		opts.WALSegmentSize, opts.EnableExemplarStorage = -1, false
	}); err != nil {
		return nil, fmt.Errorf("open storage: %w", err)
	}
	e.engine = promql.NewEngine(promql.EngineOpts{MaxSamples: 10_000, Timeout: 100 * time.Second,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: e.parser,
		NoStepSubqueryIntervalFn: func(int64) int64 { return e.step.Milliseconds() }})
	groups, errs := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: e.query, Appendable: recordingStorage{e.storage, e.metrics},
		NotifyFunc:  func(context.Context, string, ...*rules.Alert) {},
		GroupLoader: load, RuleDependencyController: noDependencies{},
	}).LoadGroups(e.step, labels.EmptyLabels(), "", nil, false, file.RuleFiles...)
	if errs != nil {
		return nil, errors.Join(append(errs, e.close())...)
	}
	e.groups = slices.SortedFunc(maps.Values(groups), func(a, b *rules.Group) int {
		return cmp.Or(cmp.Compare(slices.Index(file.Order, a.Name()), slices.Index(file.Order, b.Name())),
			cmp.Compare(a.File(), b.File()), cmp.Compare(a.Name(), b.Name()))
	})
	for alert := range e.alertingRules() {
		alert.SetRestored(true) // it records no ALERTS before
	}
	return e, nil
}

// parseSeries keeps the last one of equal series, as promtool does.
func (e *evaluation) parseSeries(inputs []input) error {
	notation, seen := parser.NewParser(parser.Options{}), map[string]bool{}
	for _, in := range slices.Backward(inputs) {
		metric, values, err := notation.ParseSeriesDesc(in.Series + " " + in.Values)
		if err != nil {
			return fmt.Errorf("parse series: %w", err)
		}
		if name := metric.String(); !seen[name] {
			seen[name] = true
			e.series = append(e.series, samples{metric, values})
		}
	}
	return nil
}

// query is what rules and tests query with.
func (e *evaluation) query(ctx context.Context, text string, at time.Time) (promql.Vector, error) {
	if expr, err := e.parser.cachingParser.ParseExpr(text); err == nil && e.metrics.isEmpty(expr) {
		return nil, nil
	}
	return rules.EngineQueryFunc(e.engine, e.storage)(ctx, text, at)
}

func (e *evaluation) close() error { return errors.Join(e.engine.Close(), e.storage.Close()) }

// alertingRules returns all alerts of all groups.
func (e *evaluation) alertingRules() func(func(*rules.AlertingRule) bool) {
	return func(yield func(*rules.AlertingRule) bool) {
		for _, g := range e.groups {
			for _, r := range g.Rules() {
				if alert, ok := r.(*rules.AlertingRule); ok && !yield(alert) {
					return
				}
			}
		}
	}
}

// evaluate appends the samples of a time and evaluates all groups at it.
func (e *evaluation) evaluate(at time.Time) error {
	if err := e.appendSamples(at); err != nil {
		return err
	}
	var errs []error
	for _, g := range e.groups {
		g.Eval(context.Background(), at)
		for _, r := range g.Rules() {
			if err := r.LastError(); err != nil {
				errs = append(errs, fmt.Errorf("evaluate rule %s at %s: %w", r.Name(), at.Sub(start), err))
			}
		}
	}
	return errors.Join(errs...)
}

func (e *evaluation) appendSamples(at time.Time) error {
	i := int(at.Sub(start) / e.step)
	out := recordingStorage{e.storage, e.metrics}.Appender(context.Background())
	for _, s := range e.series {
		if i >= len(s.values) || s.values[i].Omitted {
			continue
		}
		var err error
		if h := s.values[i].Histogram; h != nil {
			_, err = out.AppendHistogram(0, s.labels, at.UnixMilli(), nil, h)
		} else {
			_, err = out.Append(0, s.labels, at.UnixMilli(), s.values[i].Value)
		}
		if err != nil {
			return fmt.Errorf("append sample of %s: %w", s.labels, errors.Join(err, out.Rollback()))
		}
	}
	if err := out.Commit(); err != nil {
		return fmt.Errorf("append samples: %w", err)
	}
	return nil
}
