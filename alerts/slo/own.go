// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// OwnSLI is an indicator from metrics of the operator itself: bad requests
// of all requests, or a gauge that is 1 while the operator is good.
type OwnSLI struct {
	// Name is the value of the label sli.
	Name string
	// Bad and Total are PromQL that gives requests per second, as rate does over 5
	// minutes. The label cluster is kept; the values are summed over all other labels.
	Bad, Total string
	// Ratio is PromQL in place of Bad and Total that gives a share of bad requests, from
	// 0 to 1. A slice is the mean of a cluster's series. The Method is RatioTimeslices.
	Ratio string
	// Good is PromQL in place of Bad and Total. A slice is good if every series of a cluster is 1,
	// and bad if any series has another value or NaN. If there are no series, there are no slices.
	Good string
	// Method is how the budget is counted. Empty: Occurrences. It must be empty for Good.
	Method Method
	// SliceTarget is the share of requests that must be good for a slice to be good. It is only for Timeslices.
	SliceTarget PPM
	// MinRequests is the minimum number of requests before bad requests count: with Occurrences
	// in a tier's long window, with the other methods in the 5 minutes of a slice. At least
	// Guard requests must be bad in any case; if MinRequests is 0, this is the only condition.
	MinRequests int
}

// Method is how a budget of requests is counted. The names are the names of OpenSLO.
type Method string

const (
	// Occurrences counts requests: the share of bad requests among all requests of a window.
	Occurrences Method = "Occurrences"
	// Timeslices counts slices. Each slice is good or bad by its share of good requests.
	Timeslices Method = "Timeslices"
	// RatioTimeslices is the average over slices of their shares of bad requests.
	RatioTimeslices Method = "RatioTimeslices"
)

// LookbackFor is the window of the rates of own SLIs.
const LookbackFor = 5 * time.Minute

// minBadRequests is the number of bad requests below which bad requests never
// count. Prometheus extrapolates one request to a little more or less than one.
const minBadRequests = Guard - 0.5

// isCountedByRequests reports whether the budget counts requests, not slices.
func (o OwnSLI) isCountedByRequests() bool {
	return o.Good == "" && (o.Method == "" || o.Method == Occurrences)
}

// check returns the errors in the definition of an own SLI.
func (o OwnSLI) check() error {
	queries := []struct{ name, text string }{{"bad requests", o.Bad}, {"all requests", o.Total}}
	switch {
	case o.Good != "":
		if o.Bad != "" || o.Total != "" || o.Ratio != "" || o.Method != "" || o.MinRequests != 0 {
			return fmt.Errorf("%w %q: it has a gauge, so it cannot have queries of requests, a budgeting method or a "+
				"minimum of requests", ErrSLI, o.Name)
		}
		queries = []struct{ name, text string }{{"the gauge", o.Good}}
	case o.Ratio != "":
		if o.Bad != "" || o.Total != "" || o.Method != RatioTimeslices || o.MinRequests != 0 {
			return fmt.Errorf("%w %q: it has a share of bad requests, so it cannot have queries of requests, a "+
				"minimum of requests, or another budgeting method than %s", ErrSLI, o.Name, RatioTimeslices)
		}
		queries = []struct{ name, text string }{{"the share of bad requests", o.Ratio}}
	}
	var errs []error
	for _, query := range queries {
		if err := CheckQuery(query.text); err != nil {
			errs = append(errs, fmt.Errorf("own SLI %q: %s: %w", o.Name, query.name, err))
		}
	}
	return errors.Join(append(errs, o.checkMethod())...)
}

// checkMethod returns an error if the configuration of the budget's method is invalid.
func (o OwnSLI) checkMethod() error {
	switch {
	case o.Method != "" && !slices.Contains([]Method{Occurrences, Timeslices, RatioTimeslices}, o.Method):
		return fmt.Errorf("%w %q: method %q: choose one of %s, %s, %s", ErrSLI, o.Name, o.Method, Occurrences,
			Timeslices, RatioTimeslices)
	case o.MinRequests < 0:
		return fmt.Errorf("%w %q: a minimum of %d requests", ErrSLI, o.Name, o.MinRequests)
	case o.Method == Timeslices:
		return o.checkSliceTarget()
	case o.SliceTarget != 0:
		return fmt.Errorf("%w %q: only %s have a target for each slice", ErrSLI, o.Name, Timeslices)
	}
	return nil
}

// checkSliceTarget returns an error unless the target of a slice is above 0 and at most 1.
func (o OwnSLI) checkSliceTarget() error {
	err := o.SliceTarget.check()
	if err == nil || o.SliceTarget == One { // 1 is valid: one bad request may make a slice bad
		return nil
	}
	return errors.Join(fmt.Errorf("%w %q: a slice needs a target", ErrSLI, o.Name), err)
}

// maxRequests is more than a cluster can have in a slice. Queries of users can
// give any value, such as NaN or infinity. Impossible values are not recorded,
// because the hub would refuse everything that is sent together with them.
const maxRequests = 1e12

// buildRules returns the rules that record the slices, and the number of requests if the budget counts requests.
func (o OwnSLI) buildRules(operator Operator) []monitoringv1.Rule {
	labels := []string{series.OperatorNamespace, operator.Namespace, series.Operator, operator.Name, series.SLI, o.Name}
	rules := []monitoringv1.Rule{newRecord(series.SLIBad, o.buildExpr(operator), labels...)}
	if o.isCountedByRequests() {
		bad := parseBad(o.Bad, o.Total).buildSum(o.buildTotal())
		rules = append(rules, newRecord(series.SLIRequests, fmt.Sprintf("clamp_min(%s * %s, 0) <= %s",
			formatNumber(Step.Seconds()), buildLarger(bad, o.buildTotal()), formatNumber(maxRequests)), labels...))
	}
	return rules
}

func (o OwnSLI) buildTotal() string { return sumByCluster(o.Total) }

// buildLarger returns PromQL for the number of all requests, or for the number of bad requests if it is larger.
// Bad requests may have a counter of their own, so in a total failure the number of all requests may be 0.
func buildLarger(bad, total string) string {
	return fmt.Sprintf("(%s < Inf > on (cluster) %s or on (cluster) %s)", bad, total, total)
}

// buildExpr returns PromQL for a slice: 0 or 1, or the share of bad requests. An infinite number of bad requests, or
// an infinite share, is bad. Other values that are not finite make no slice: 0 / 0 is a cluster without requests.
func (o OwnSLI) buildExpr(operator Operator) string {
	if o.Good != "" {
		return fmt.Sprintf("max by (cluster) ((%s) != bool 1)", o.Good)
	}
	if o.Ratio != "" {
		return fmt.Sprintf("avg by (cluster) (clamp((%s) > -Inf, 0, 1))", o.Ratio)
	}
	// The comparisons below drop NaN and clusters with too few or infinitely many requests. buildFallback
	// returns slices for clusters for which the quotient has no result.
	query, total := parseBad(o.Bad, o.Total), o.buildTotal()
	bad := query.buildSum(total)
	if o.isCountedByRequests() {
		return fmt.Sprintf("clamp(\n  (%s > -Inf)\n  / (%s > 0 < Inf),\n  0, 1\n)", bad, buildLarger(bad, total)) +
			query.buildFallback(operator, o.Name, total, 0)
	}
	minRate := (float64(max(o.MinRequests, Guard)) - 0.5) / LookbackFor.Seconds()
	share := fmt.Sprintf("clamp(\n  (%s >= %s)\n  / (%s >= %s < Inf),\n  0, 1\n)", bad,
		formatNumber(minBadRequests/LookbackFor.Seconds()), buildLarger(bad, total), formatNumber(minRate))
	if o.Method == Timeslices {
		share += " > bool " + formatNumber((One - o.SliceTarget).Ratio())
	}
	return share + query.buildFallback(operator, o.Name, total, minRate)
}

// matchOwnSLIs returns a matcher of the own SLIs of all operators. It is empty if there are none.
func (s Set) matchOwnSLIs() string {
	var names []string
	for _, op := range s.Operators {
		for _, own := range op.Own {
			names = append(names, own.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return fmt.Sprintf("%s=~%q", series.SLI, strings.Join(slices.Compact(names), "|"))
}

// requestSLIs are the names of own SLIs whose budgets count requests. Their bad slices are numbers of bad requests.
type requestSLIs []string

// listRequestSLIs returns the sorted names of own SLIs whose budgets count requests.
func (s Set) listRequestSLIs() requestSLIs {
	var out requestSLIs
	for _, op := range s.Operators {
		for _, own := range op.Own {
			if own.isCountedByRequests() && !slices.Contains(out, own.Name) {
				out = append(out, own.Name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// matchNames returns a matcher of the SLIs by name. Another operator may have an
// SLI with the same name that counts slices, so the result must still be joined.
func (r requestSLIs) matchNames() string {
	return fmt.Sprintf("%s=~%q", series.SLI, strings.Join(r, "|"))
}

// weigh multiplies the bad slices by the number of requests if the
// budget counts requests, which gives numbers of bad requests.
func (r requestSLIs) weigh(bad string) string {
	if len(r) == 0 {
		return bad
	}
	return fmt.Sprintf("%s{%s} * %s %s > 0\nor %s", series.SLIBad, r.matchNames(), matchOn(budgetLabels),
		series.SLIRequests, bad)
}

// buildSum returns PromQL that adds up the bad slices of a window. It converts bad requests
// to slices: their share of all requests, times the number of slices in the window.
func (r requestSLIs) buildSum(metric string, window time.Duration) string {
	sumOver := func(matcher string) string {
		return fmt.Sprintf("sum_over_time(%s%s[%s])", metric, matcher, formatDuration(window))
	}
	if len(r) == 0 {
		return sumOver("")
	}
	return fmt.Sprintf("%s * %s / on (%s) group_left () %s\nor (%s unless %s %s)", formatNumber(countSlices(window)),
		sumOver("{"+r.matchNames()+"}"), budgetLabels, nameSum(series.SLIRequestsSum, window), sumOver(""),
		matchOn(objectiveLabels), series.SLOMinRequests)
}

// buildSpent returns PromQL for the part of the budgets that was used in a period, in slices of the
// period. Slices without measurements count as good slices with the average number of requests.
func (b budgetPart) buildSpent(period time.Duration) string {
	sumOver := func(matcher string) string {
		return fmt.Sprintf("sum_over_time(%s{%s}[%s])", series.SLIBadSlice, matcher, formatDuration(period))
	}
	if len(b.requests) == 0 {
		return sumOver(b.matcher)
	}
	// A sample contains the requests of 5 minutes, so one sample in 5 minutes is enough.
	return fmt.Sprintf("(\n  %s / on (%s) group_left () avg_over_time(%s[%s:%s])\n  or (%s unless %s %s)\n)",
		sumOver(b.requests.matchNames()), budgetLabels, series.SLIRequests, formatDuration(period), Lookback,
		sumOver(b.matcher), matchOn(objectiveLabels), series.SLOMinRequests)
}

// requireRequests returns burn without burn rates with too few
// requests, or too few bad requests, in a tier's long window.
func (r requestSLIs) requireRequests(burn, identity, prefix string, t Tier) string {
	if len(r) == 0 {
		return burn
	}
	requests := nameSum(series.SLIRequestsSum, t.Long)
	return fmt.Sprintf("%s\nunless %s (%s{%s} * on (%s) group_left () %s < %s)\nunless %s (%s < %s (%s - 0.5))", burn,
		matchOn(identity), nameSum(prefix, t.Long), r.matchNames(), budgetLabels, requests,
		formatNumber(minBadRequests*countSlices(t.Long)), matchOn(budgetLabels), requests, onObjective,
		series.SLOMinRequests)
}

// selectBadNow returns PromQL for the sums of the last 5 minutes of the operators that are bad now: by slices
// (one slice is enough if it is confirmed), or by more than one bad request and a share that pages if it lasts.
func (r requestSLIs) selectBadNow(matcher string) string {
	now := nameSum(series.SLIBadVersionSum, pickFastestTier().Short)
	selectBySlices := func(sums string) string {
		return fmt.Sprintf("(%[1]s %[2]s or %[1]s and %[3]s %[4]s > 0)", sums, badNowCondition,
			matchOn(clusterReleaseLabels),
			series.SLIBadConfirmed)
	}
	if len(r) == 0 {
		return selectBySlices(now + "{" + matcher + "}")
	}
	requests := fmt.Sprintf("%s{%s,%s}", now, matcher, r.matchNames())
	slices := selectBySlices(fmt.Sprintf("(%s{%s} unless %s %s)", now, matcher, matchOn(objectiveLabels),
		series.SLOMinRequests))
	return aggregate("group", clusterReleaseLabels, fmt.Sprintf("\n  %s\n  or %s / %s > %s "+
		"%s{tier=%q}\n  and %s * on (%s) group_left () %s > %s\n", slices, requests,
		formatNumber(countSlices(pickFastestTier().Short)), onObjective,
		thresholdMetric, pickFastestTier().Name, requests, budgetLabels,
		nameSum(series.SLIRequestsSum, pickFastestTier().Short),
		formatNumber((Guard-1.5)*countSlices(pickFastestTier().Short))))
}

// buildMinRequests returns the rules that record how many requests
// are needed, for objectives whose budgets count requests.
func (s Set) buildMinRequests() []monitoringv1.Rule {
	var rules []monitoringv1.Rule
	for _, op := range s.Operators {
		for _, own := range op.Own {
			if own.isCountedByRequests() {
				rules = append(rules, newRecord(series.SLOMinRequests, fmt.Sprintf("0 * %s{%s,sli=%q} + %d",
					series.SLOObjective, matchOperator(op.ID()), own.Name, max(own.MinRequests, Guard))))
			}
		}
	}
	return rules
}
