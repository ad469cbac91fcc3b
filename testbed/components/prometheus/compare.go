// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
)

// start is the time at which all tests begin.
var start = time.Unix(0, 0).UTC()

// runTest evaluates the rules from the start to the last time that the test looks at, and returns each difference.
func runTest(file testFile, test testCase, load *loader) (errs []error) {
	e, err := newEvaluation(file, test, load)
	if err != nil {
		return []error{err}
	}
	defer func() {
		if err := e.close(); err != nil {
			errs = append(errs, fmt.Errorf("close storage: %w", err))
		}
	}()
	for at := time.Duration(0); at <= test.end(); at += e.step {
		if err := e.evaluate(start.Add(at)); err != nil {
			return append(errs, err)
		}
		for _, a := range test.Alerts {
			// Alerts are those of the last evaluation before the time.
			if wanted := time.Duration(a.At); wanted >= at && wanted < at+e.step {
				errs = append(errs, e.compareAlerts(a)...)
			}
		}
	}
	for _, expr := range test.Exprs {
		if err := e.compareExpr(expr, file.Fuzzy); err != nil {
			errs = append(errs, fmt.Errorf("query %s at %s: %w", expr.Expr, expr.At, err))
		}
	}
	return errs
}

// firing is an alert with what it says.
type firing struct{ labels, annotations labels.Labels }

func compareFiring(a, b firing) int {
	return cmp.Or(labels.Compare(a.labels, b.labels), labels.Compare(a.annotations, b.annotations))
}

// compareAlerts compares the alerts of a name that fire with those that the test expects.
func (e *evaluation) compareAlerts(test alertTest) []error {
	var got, want []firing
	for rule := range e.alertingRules() {
		if rule.Name() != test.Alert {
			continue
		}
		for _, a := range rule.ActiveAlerts() {
			if a.State == rules.StateFiring {
				got = append(got, firing{a.Labels, a.Annotations})
			}
		}
	}
	for _, w := range test.Want {
		of := labels.NewBuilder(labels.FromMap(w.Labels)).Set(labels.AlertName, test.Alert).Labels()
		want = append(want, firing{of, labels.FromMap(w.Annotations)})
	}
	slices.SortFunc(got, compareFiring)
	slices.SortFunc(want, compareFiring)
	if slices.EqualFunc(got, want, func(a, b firing) bool { return compareFiring(a, b) == 0 }) {
		return nil
	}
	return []error{fmt.Errorf("alert %s at %s:\nwant %v\n got %v", test.Alert, test.At, want, got)}
}

// sample is what a query returns for one series.
type sample struct {
	labels labels.Labels
	value  float64
}

func compareLabels(a, b sample) int { return labels.Compare(a.labels, b.labels) }

// compareExpr compares what a query returns with what the test expects.
func (e *evaluation) compareExpr(test exprTest, fuzzy bool) error {
	result, err := e.query(context.Background(), test.Expr, start.Add(time.Duration(test.At)))
	if err != nil {
		return err
	}
	var got, want []sample
	for _, s := range result {
		if s.H != nil {
			return fmt.Errorf("%s is a histogram", s.Metric)
		}
		got = append(got, sample{s.Metric, s.F})
	}
	for _, w := range test.Want {
		of, err := e.parser.ParseMetric(w.Labels)
		if err != nil {
			return fmt.Errorf("parse labels: %w", err)
		}
		want = append(want, sample{of, w.Value})
	}
	slices.SortFunc(got, compareLabels)
	slices.SortFunc(want, compareLabels)
	if !slices.EqualFunc(want, got, func(a, b sample) bool {
		return labels.Equal(a.labels, b.labels) && isEqual(a.value, b.value, fuzzy)
	}) {
		return fmt.Errorf("\nwant %v\n got %v", want, got)
	}
	return nil
}

// isEqual compares two numbers. A fuzzy comparison accepts the next smaller and the next larger one too.
func isEqual(a, b float64, fuzzy bool) bool {
	return a == b || fuzzy && (math.Nextafter(a, math.Inf(-1)) == b || math.Nextafter(a, math.Inf(1)) == b)
}
