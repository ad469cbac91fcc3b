// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// references contains the objects that SLOs of a file can refer to, by name.
type references struct {
	slis map[string]openSLISpec
	// systems are the types of DataSources.
	systems map[string]string
	// invalid are the names of SLIs that are refused.
	invalid map[string]bool
}

// readOpenSLO reads SLOs, and the objects that they refer to, from the documents of one file. The
// service is the operator. Alert policies are ignored, because Bellwether has its own alerts.
func readOpenSLO(into *set, documents []document) {
	refs := references{slis: map[string]openSLISpec{}, systems: map[string]string{}, invalid: map[string]bool{}}
	var slos []openSLO
	for _, doc := range documents {
		err := refs.add(doc, &slos)
		into.refuse(doc.kind+" "+doc.name, err)
		refs.invalid[doc.name] = refs.invalid[doc.name] || err != nil && doc.kind == openKindSLI
	}
	for _, s := range slos {
		name := "SLO " + s.Metadata.Name
		into.refuse(name, addOpenSLO(into, s, refs))
		var u unused
		u.add("description", s.Spec.Description != "")
		u.add("alertPolicies", len(s.Spec.AlertPolicies) > 0)
		into.noteUnused(name, u)
	}
}

// add decodes and checks the object of a document, and keeps it: an SLO in slos, what SLOs refer to in refs.
func (refs references) add(doc document, slos *[]openSLO) error {
	switch {
	case doc.kind == openKindSLO:
		s, err := decodeOpen(doc.text, checkOpenSLO)
		if err != nil {
			return err
		}
		*slos = append(*slos, s)
	case doc.kind == openKindSLI:
		s, err := decodeOpen(doc.text, checkOpenSLI)
		if err != nil {
			return err
		}
		refs.slis[s.Metadata.Name] = s.Spec
	case doc.kind == openKindDataSource:
		s, err := decodeOpen(doc.text, checkOpenDataSource)
		if err != nil {
			return err
		}
		refs.systems[s.Metadata.Name] = s.Spec.Type
	case !slices.Contains(openIgnoredKinds, doc.kind):
		return fmt.Errorf("%w: OpenSLO has no kind %q", ErrFormat, doc.kind)
	}
	return nil
}

// addOpenSLO adds an SLO to the set. It returns an error if the SLO cannot be read.
func addOpenSLO(into *set, s openSLO, refs references) error {
	if len(s.Spec.Objectives) != 1 || s.Spec.isComposite() {
		return fmt.Errorf("%w: %d objectives or a composite; write an SLO for each", ErrUnsupported,
			len(s.Spec.Objectives))
	}
	o := slo.Objective{SLI: s.Metadata.Name}
	var err error
	if o.Target, err = readTarget(s.Spec.Objectives[0]); err != nil {
		return err
	}
	for _, w := range s.Spec.TimeWindow {
		if !w.IsRolling || w.Calendar != nil {
			return fmt.Errorf("%w: a calendar window; only rolling ones alert the same way on each day", ErrUnsupported)
		}
		if o.Period, err = slo.ParsePeriod(w.Duration); err != nil {
			return err
		}
	}
	spec, err := refs.findIndicator(s)
	if err != nil {
		return err
	}
	sli, notes, err := refs.readRatio(s.Metadata.Name, spec, s.Metadata.Annotations[annotationUnit])
	if err != nil {
		return err
	}
	for _, note := range notes {
		into.note("SLO "+s.Metadata.Name, note)
	}
	if err := setMethod(&sli, s); err != nil {
		return err
	}
	if sli.MinRequests, err = parseMinRequests(s.Metadata.Annotations[annotationMinRequests],
		spec.RatioMetric.Raw != nil); err != nil {
		return fmt.Errorf("annotation %s: %w", annotationMinRequests, err)
	}
	return into.addOwnSLI(s.Spec.Service, o, sli)
}

// Annotations of an SLO: annotationMinRequests has OwnSLI.MinRequests, and annotationUnit
// the unit of the queries of requests, if the queries do not show their unit.
const (
	annotationMinRequests = "bellwether.dev/min-requests"
	annotationUnit        = "bellwether.dev/unit"
)

// setMethod reads how the budget is counted. A ratio that was computed before can only be counted by slices.
func setMethod(sli *slo.OwnSLI, s openSLO) error {
	method := slo.Method(s.Spec.BudgetingMethod)
	if sli.Method != "" && method != sli.Method {
		return fmt.Errorf("%w: budgetingMethod %s of a raw ratio; use %s", ErrUnsupported, method, sli.Method)
	}
	if method != slo.Occurrences { // the default
		sli.Method = method
	}
	o := s.Spec.Objectives[0]
	w := o.TimeSliceWindow
	if d, err := time.ParseDuration(w); w != "" && (err != nil || d != slo.Step) {
		return fmt.Errorf("%w: a timeSliceWindow of %s; slices are of %s", ErrUnsupported, w, slo.Step)
	}
	if method != slo.Timeslices {
		return nil
	}
	if o.TimeSliceTarget == nil {
		return fmt.Errorf("%w: an objective without timeSliceTarget", ErrFormat)
	}
	var err error
	sli.SliceTarget, err = slo.ParseSliceTarget(formatPercent(*o.TimeSliceTarget))
	return err
}

// formatPercent returns a ratio as a percentage. It moves the decimal point
// in the text, because 100 times the float may differ from the written value.
func formatPercent(ratio float64) string {
	whole, fraction, _ := strings.Cut(formatDecimal(ratio), ".")
	fraction += strings.Repeat("0", max(0, 2-len(fraction)))
	return strings.TrimSuffix(strings.TrimLeft(whole, "0")+fraction[:2]+"."+fraction[2:], ".")
}

// readTarget reads the target of an objective.
func readTarget(o openObjective) (slo.PPM, error) {
	switch {
	case o.TargetPercent != nil:
		return slo.ParseTarget(formatDecimal(*o.TargetPercent))
	case o.Target != nil:
		return slo.ParseTarget(formatPercent(*o.Target))
	}
	return 0, fmt.Errorf("%w: an objective without target or targetPercent", ErrFormat)
}

// findIndicator returns the spec of an SLO's indicator: its own, or the SLI that it refers to.
func (refs references) findIndicator(s openSLO) (openSLISpec, error) {
	if s.Spec.Indicator != nil {
		return s.Spec.Indicator.Spec, nil
	}
	if s.Spec.IndicatorRef == nil {
		return openSLISpec{}, fmt.Errorf("%w: it has no indicator", ErrFormat)
	}
	spec, ok := refs.slis[*s.Spec.IndicatorRef]
	if refs.invalid[*s.Spec.IndicatorRef] {
		return spec, fmt.Errorf("%w: the SLI %q is invalid", ErrFormat, *s.Spec.IndicatorRef)
	}
	if !ok {
		return spec, fmt.Errorf("%w: there is no SLI %q in the same file", ErrFormat, *s.Spec.IndicatorRef)
	}
	return spec, nil
}

// readRatio reads an SLI from a ratio of requests: by bad requests, by good
// requests, or as a raw ratio. The notes explain how queries were interpreted.
func (refs references) readRatio(name string, spec openSLISpec, givenUnit string) (sli slo.OwnSLI, notes []string,
	err error) {
	r := spec.RatioMetric
	switch {
	case r != nil && r.Raw != nil && givenUnit != "":
		return sli, nil, fmt.Errorf("annotation %s: %w: a raw ratio has no unit", annotationUnit, ErrUnsupported)
	case r != nil && r.Raw != nil:
		sli, err = refs.readRawRatio(name, r)
		return sli, nil, err
	case r == nil || r.Total == nil:
		return sli, nil, fmt.Errorf("%w: only a ratioMetric with raw, or with total and good or bad, can be read",
			ErrUnsupported)
	}
	total, err := refs.readRequests("all requests", r.Total, r.Counter, givenUnit)
	if err != nil {
		return sli, nil, err
	}
	if r.Bad != nil {
		bad, err := refs.readRequests("bad requests", r.Bad, r.Counter, givenUnit)
		if err != nil {
			return sli, nil, err
		}
		sli, notes = newRequestSLI(name, bad, total)
		return sli, notes, nil
	}
	good, err := refs.readRequests("good requests", r.Good, r.Counter, givenUnit)
	if err != nil {
		return sli, nil, err
	}
	// The two queries are summed before the subtraction, because their other labels may differ.
	good.text = fmt.Sprintf("sum by (cluster) (%s) - sum by (cluster) (%s)", total.text, good.text)
	sli, notes = newRequestSLI(name, good, total)
	return sli, notes, nil
}

// readRequests reads a query of requests. kind is the kind of requests, for messages.
func (refs references) readRequests(kind string, m *openMetric, counter bool, givenUnit string) (requestQuery,
	error) {
	text, err := refs.readQuery(m, counter)
	if err != nil {
		return requestQuery{}, err
	}
	if counter {
		givenUnit = "" // a counter becomes a rate, so the given unit does not apply
	}
	return readRequestQuery(kind, text, givenUnit)
}

// readRawRatio reads an SLI from a ratio of good or bad requests that was computed before.
func (refs references) readRawRatio(name string, r *openRatio) (slo.OwnSLI, error) {
	text, err := refs.readQuery(r.Raw, false)
	if err != nil {
		return slo.OwnSLI{}, err
	}
	if r.RawType == openRawSuccess {
		text = "1 - (" + text + ")"
	}
	return newRatioSLI(name, text)
}

// readQuery reads a Prometheus query. It wraps a plain counter in a rate.
func (refs references) readQuery(m *openMetric, counter bool) (string, error) {
	if m == nil {
		return "", fmt.Errorf("%w: a ratioMetric without good or bad", ErrFormat)
	}
	if err := refs.checkSource(m.MetricSource); err != nil {
		return "", err
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
	case counter && !hasCall(expr, "rate", "irate", "increase"):
		return "", fmt.Errorf("%w: %q is an expression of a counter; write a plain selector, or the rate itself",
			ErrUnsupported, text)
	}
	return text, nil
}

// checkSource returns an error if a query is not for Prometheus, by
// its own type and the type of the DataSource that it refers to.
func (refs references) checkSource(source openMetricSource) error {
	system, known := refs.systems[source.MetricSourceRef]
	if source.MetricSourceRef != "" && !known && source.Type == "" {
		return fmt.Errorf("%w: there is no DataSource %q in the same file, so its type is not known: add it, or set "+
			"type: Prometheus", ErrUnsupported, source.MetricSourceRef)
	}
	for _, t := range []string{source.Type, system} {
		if t != "" && !strings.EqualFold(t, "prometheus") {
			return fmt.Errorf("%w: a metric source of type %s; only Prometheus can be queried", ErrUnsupported, t)
		}
	}
	return nil
}
