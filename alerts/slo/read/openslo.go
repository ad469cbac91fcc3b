// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"bytes"
	"fmt"
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
	if err := setMethod(&sli, s); err != nil {
		return err
	}
	if sli.MinRequests, err = minRequests(s.Metadata.Annotations[annotationMinRequests],
		spec.RatioMetric.Raw != nil); err != nil {
		return fmt.Errorf("annotation %s: %w", annotationMinRequests, err)
	}
	return into.add(s.Spec.Service, o, sli)
}

// annotationMinRequests is an annotation of an SLO that has OwnSLI.MinRequests.
const annotationMinRequests = "bellwether.dev/min-requests"

// setMethod reads how the budget is counted. A ratio that was computed before can
// only be counted by slices.
func setMethod(sli *slo.OwnSLI, s v1.SLO) error {
	method := slo.Method(s.Spec.BudgetingMethod)
	if sli.Method != "" && method != sli.Method {
		return fmt.Errorf("%w: budgetingMethod %s of a raw ratio; use %s", ErrUnsupported, method, sli.Method)
	}
	if method != slo.Occurrences { // the default
		sli.Method = method
	}
	o := s.Spec.Objectives[0]
	if w := o.TimeSliceWindow; w != nil && w.Duration() != slo.Step {
		return fmt.Errorf("%w: a timeSliceWindow of %s; slices are of %s", ErrUnsupported, w, slo.Step)
	}
	if method != slo.Timeslices {
		return nil
	}
	if o.TimeSliceTarget == nil {
		return fmt.Errorf("%w: an objective without timeSliceTarget", ErrFormat)
	}
	var err error
	sli.SliceTarget, err = slo.ParseSliceTarget(percent(*o.TimeSliceTarget))
	return err
}

// percent writes a ratio as a percentage. The point is shifted in the text: 100
// times the float is not always what was written.
func percent(ratio float64) string {
	whole, fraction, _ := strings.Cut(decimal(ratio), ".")
	fraction += strings.Repeat("0", max(0, 2-len(fraction)))
	return strings.TrimSuffix(strings.TrimLeft(whole, "0")+fraction[:2]+"."+fraction[2:], ".")
}

func openTarget(o v1.SLOObjective) (slo.PPM, error) {
	switch {
	case o.TargetPercent != nil:
		return slo.ParseTarget(decimal(*o.TargetPercent))
	case o.Target != nil:
		return slo.ParseTarget(percent(*o.Target))
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

// ratio reads a ratio of requests, by bad or by good ones, or as it is.
func ratio(name string, spec v1.SLISpec) (slo.OwnSLI, error) {
	r := spec.RatioMetric
	switch {
	case r != nil && r.Raw != nil:
		return rawRatio(name, r)
	case r == nil || r.Total == nil:
		return slo.OwnSLI{}, fmt.Errorf("%w: only a ratioMetric with raw, or with total and good or bad, can be read",
			ErrUnsupported)
	}
	total, err := query(r.Total, r.Counter)
	if err != nil {
		return slo.OwnSLI{}, err
	}
	if r.Bad != nil {
		bad, err := query(r.Bad, r.Counter)
		if err != nil {
			return slo.OwnSLI{}, err
		}
		return ofRequests(name, bad, total)
	}
	good, err := query(r.Good, r.Counter)
	if err != nil {
		return slo.OwnSLI{}, err
	}
	// Both are summed before they are subtracted: their other labels may differ.
	return ofRequests(name, fmt.Sprintf("sum by (cluster) (%s) - sum by (cluster) (%s)", total, good), total)
}

func rawRatio(name string, r *v1.SLIRatioMetric) (slo.OwnSLI, error) {
	text, err := query(r.Raw, false)
	if err != nil {
		return slo.OwnSLI{}, err
	}
	if r.RawType == v1.SLIRawMetricTypeSuccess {
		text = "1 - (" + text + ")"
	}
	return ofRatio(name, text)
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
	case counter && !calls(expr, "rate", "irate", "increase"):
		return "", fmt.Errorf("%w: %q is an expression of a counter; write a plain selector, or the rate itself",
			ErrUnsupported, text)
	}
	return text, nil
}
