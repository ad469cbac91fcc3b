// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/OpenSLO/go-sdk/pkg/openslo/v1"
	"github.com/OpenSLO/go-sdk/pkg/openslosdk"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// readOpenSLO reads SLOs, and the SLIs that they refer to, from one file. The
// service is the operator. Alert policies are left to Bellwether's own alerts.
func readOpenSLO(into *set, text []byte) error {
	objects, err := openslosdk.Decode(bytes.NewReader(text), openslosdk.FormatYAML)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if err := openslosdk.Validate(objects...); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	slis := map[string]v1.SLISpec{}
	for _, s := range openslosdk.FilterByType[v1.SLI](objects) {
		slis[s.Metadata.Name] = s.Spec
	}
	for _, s := range openslosdk.FilterByType[v1.SLO](objects) {
		into.refuse("SLO "+s.Metadata.Name, addOpenSLO(into, s, slis))
	}
	return nil
}

func addOpenSLO(into *set, s v1.SLO, slis map[string]v1.SLISpec) error {
	if s.Spec.BudgetingMethod == v1.SLOBudgetingMethodTimeslices {
		return fmt.Errorf("%w: budgetingMethod Timeslices; use RatioTimeslices or Occurrences", ErrUnsupported)
	}
	if len(s.Spec.Objectives) != 1 || s.IsComposite() {
		return fmt.Errorf("%w: %d objectives or a composite; write an SLO for each", ErrUnsupported,
			len(s.Spec.Objectives))
	}
	o := slo.Objective{SLI: s.Metadata.Name}
	var err error
	if o.Target, err = openTarget(s.Spec.Objectives[0]); err != nil {
		return err
	}
	for _, w := range s.Spec.TimeWindow {
		if !w.IsRolling || w.Calendar != nil {
			return fmt.Errorf("%w: a calendar window; only rolling ones alert the same way on each day", ErrUnsupported)
		}
		if o.Period, err = slo.ParsePeriod(w.Duration.String()); err != nil {
			return err
		}
	}
	spec, err := indicator(s, slis)
	if err != nil {
		return err
	}
	sli, err := ratio(s.Metadata.Name, spec)
	if err != nil {
		return err
	}
	return into.add(s.Spec.Service, o, sli)
}

func openTarget(o v1.SLOObjective) (slo.PPM, error) {
	switch {
	case o.TargetPercent != nil:
		return slo.ParseTarget(decimal(*o.TargetPercent))
	case o.Target != nil:
		// Shift the decimal point in the text: 100 times the float is not always what was written.
		whole, fraction, _ := strings.Cut(decimal(*o.Target), ".")
		fraction += strings.Repeat("0", max(0, 2-len(fraction)))
		return slo.ParseTarget(strings.TrimSuffix(strings.TrimLeft(whole, "0")+fraction[:2]+"."+fraction[2:], "."))
	}
	return 0, fmt.Errorf("%w: an objective without target or targetPercent", ErrFormat)
}

func indicator(s v1.SLO, slis map[string]v1.SLISpec) (v1.SLISpec, error) {
	if s.Spec.Indicator != nil {
		return s.Spec.Indicator.Spec, nil
	}
	if s.Spec.IndicatorRef == nil {
		return v1.SLISpec{}, fmt.Errorf("%w: it has no indicator", ErrFormat)
	}
	spec, ok := slis[*s.Spec.IndicatorRef]
	if !ok {
		return spec, fmt.Errorf("%w: there is no SLI %q in the same file", ErrFormat, *s.Spec.IndicatorRef)
	}
	return spec, nil
}

// ratio reads a ratio of requests, by bad or by good ones.
func ratio(name string, spec v1.SLISpec) (slo.OwnSLI, error) {
	r := spec.RatioMetric
	if r == nil || r.Total == nil || r.Raw != nil {
		return slo.OwnSLI{}, fmt.Errorf("%w: only a ratioMetric with total and good or bad can be read", ErrUnsupported)
	}
	out := slo.OwnSLI{Name: name}
	total, err := query(r.Total, r.Counter)
	if err != nil {
		return out, err
	}
	out.Total = total
	if r.Bad != nil {
		out.Bad, err = query(r.Bad, r.Counter)
		return out, err
	}
	good, err := query(r.Good, r.Counter)
	// Both are summed before they are subtracted: their other labels may differ.
	out.Bad = fmt.Sprintf("sum by (cluster) (%s) - sum by (cluster) (%s)", total, good)
	return out, err
}

// query reads a Prometheus query. A counter is made a rate if it is not one already.
func query(m *v1.SLIMetricSpec, counter bool) (string, error) {
	if m == nil {
		return "", fmt.Errorf("%w: a ratioMetric without good or bad", ErrFormat)
	}
	if t := m.MetricSource.Type; t != "" && !strings.EqualFold(t, "prometheus") {
		return "", fmt.Errorf("%w: a metric source of type %s; only Prometheus can be asked", ErrUnsupported, t)
	}
	text, ok := m.MetricSource.Spec["query"].(string)
	if !ok || strings.TrimSpace(text) == "" {
		return "", fmt.Errorf("%w: a metric source without spec.query", ErrFormat)
	}
	expr, err := slo.ParseQuery(text)
	if err != nil {
		return "", err
	}
	text = strings.TrimSpace(text)
	switch _, isSelector := expr.(*parser.VectorSelector); {
	case counter && isSelector:
		return "rate(" + text + "[" + slo.Lookback + "])", nil
	case counter && !hasRate(expr):
		return "", fmt.Errorf("%w: %q is an expression of a counter; write a plain selector, or the rate itself",
			ErrUnsupported, text)
	}
	return text, nil
}

// hasRate tells whether an expression looks at how a counter changes.
func hasRate(expr parser.Expr) bool {
	found := false
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if call, ok := node.(*parser.Call); ok {
			found = found || slices.Contains([]string{"rate", "irate", "increase"}, call.Func.Name)
		}
		return nil
	})
	return found
}
