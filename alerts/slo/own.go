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

// OwnSLI is an indicator from metrics that an operator brings itself: bad
// requests of all requests, or a value that is 1 while all is well.
type OwnSLI struct {
	// Name is the value of the label sli.
	Name string
	// Bad and Total are PromQL that give requests per second, as rate does over 5
	// minutes. A label cluster is kept, all others are summed over.
	Bad, Total string
	// Ratio is PromQL in place of Bad and Total that gives a share of bad requests, from 0
	// to 1; a slice is the mean of a cluster's series. The Method is RatioTimeslices.
	Ratio string
	// Good is PromQL in place of Bad and Total. A slice is good if every series of a
	// cluster is 1, and bad if one has another value or NaN. Where there are no
	// series, there are no slices.
	Good string
	// Method is how the budget is counted. Empty: Occurrences. It is not for Good.
	Method Method
	// SliceTarget is, for Timeslices only, the share of requests that have to be good
	// for a slice to be good.
	SliceTarget PPM
	// MinRequests is how many requests there have to be for bad ones to count: with
	// Occurrences in a tier's long window, with the other methods in the 5 minutes of
	// a slice. At least Guard of them have to be bad in any case, which is all there
	// is if it is 0.
	MinRequests int
}

// Method is how a budget of requests is counted. The names are OpenSLO's.
type Method string

const (
	// Occurrences counts requests: the share of bad ones among all of a window.
	Occurrences Method = "Occurrences"
	// Timeslices counts slices, each of which is good or bad by its share of good
	// requests.
	Timeslices Method = "Timeslices"
	// RatioTimeslices is the average over slices of their shares of bad requests.
	RatioTimeslices Method = "RatioTimeslices"
)

// LookbackFor is how far back own SLIs look.
const LookbackFor = 5 * time.Minute

// few is the number of bad requests below which they never count. One request is
// extrapolated to a little more or less than one.
const few = Guard - 0.5

// countsRequests tells whether the budget is of requests, not of slices.
func (o OwnSLI) countsRequests() bool {
	return o.Good == "" && (o.Method == "" || o.Method == Occurrences)
}

// check says what is wrong with the definition of an own SLI.
func (o OwnSLI) check() error {
	queries := []struct{ of, text string }{{"bad requests", o.Bad}, {"all requests", o.Total}}
	switch {
	case o.Good != "":
		if o.Bad != "" || o.Total != "" || o.Ratio != "" || o.Method != "" || o.MinRequests != 0 {
			return fmt.Errorf("%w %q: it has a gauge, so it cannot have queries of requests, a budgeting method or a "+
				"minimum of requests", ErrSLI, o.Name)
		}
		queries = []struct{ of, text string }{{"the gauge", o.Good}}
	case o.Ratio != "":
		if o.Bad != "" || o.Total != "" || o.Method != RatioTimeslices || o.MinRequests != 0 {
			return fmt.Errorf("%w %q: it has a share of bad requests, so it cannot have queries of requests, a "+
				"minimum of requests, or another budgeting method than %s", ErrSLI, o.Name, RatioTimeslices)
		}
		queries = []struct{ of, text string }{{"the share of bad requests", o.Ratio}}
	}
	var errs []error
	for _, query := range queries {
		if err := CheckQuery(query.text); err != nil {
			errs = append(errs, fmt.Errorf("own SLI %q: %s: %w", o.Name, query.of, err))
		}
	}
	return errors.Join(append(errs, o.checkMethod())...)
}

// checkMethod says what is wrong with how the budget is counted.
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

func (o OwnSLI) checkSliceTarget() error {
	err := o.SliceTarget.check()
	if err == nil || o.SliceTarget == One { // one bad request may make a slice bad
		return nil
	}
	return errors.Join(fmt.Errorf("%w %q: a slice needs a target", ErrSLI, o.Name), err)
}

// maxRequests is more than a cluster has in a slice. Queries of users can give anything, such as what is not a number
// or infinite; what cannot be is not recorded, since the hub would refuse all that is sent together with it.
const maxRequests = 1e12

// rules record the slices, and how many requests there were if the budget counts them.
func (o OwnSLI) rules(of Operator) []monitoringv1.Rule {
	labels := []string{series.OperatorNamespace, of.Namespace, series.Operator, of.Name, series.SLI, o.Name}
	rules := []monitoringv1.Rule{record(series.SLIBad, o.expr(of), labels...)}
	if o.countsRequests() {
		bad := parseBad(o.Bad, o.Total).sum(o.total())
		rules = append(rules, record(series.SLIRequests, fmt.Sprintf("clamp_min(%s * %s, 0) <= %s",
			number(Step.Seconds()), atLeast(bad, o.total()), number(maxRequests)), labels...))
	}
	return rules
}

func (o OwnSLI) total() string { return byCluster(o.Total) }

// atLeast is the number of all requests, and that of bad ones where it is larger: if another counter than that of all
// requests has them, a failure of all of them is no ratio of something to nothing.
func atLeast(bad, total string) string {
	return fmt.Sprintf("(%s < Inf > on (cluster) %s or on (cluster) %s)", bad, total, total)
}

// expr is a slice: 0 or 1, or the share of bad requests. An infinite number of bad requests, or an infinite share, is
// bad. Other values that are not finite say nothing, and make no slice: 0 / 0 is a cluster without requests.
func (o OwnSLI) expr(of Operator) string {
	if o.Good != "" {
		return fmt.Sprintf("max by (cluster) ((%s) != bool 1)", o.Good)
	}
	if o.Ratio != "" {
		return fmt.Sprintf("avg by (cluster) (clamp((%s) > -Inf, 0, 1))", o.Ratio)
	}
	query, total := parseBad(o.Bad, o.Total), o.total()
	bad := query.sum(total)
	if o.countsRequests() {
		return fmt.Sprintf("clamp(\n  (%s > -Inf)\n  / (%s > 0 < Inf),\n  0, 1\n)", bad, atLeast(bad, total)) +
			query.without(of, o.Name, total, 0)
	}
	enough := (float64(max(o.MinRequests, Guard)) - 0.5) / LookbackFor.Seconds()
	share := fmt.Sprintf("clamp(\n  (%s >= %s)\n  / (%s >= %s < Inf),\n  0, 1\n)", bad,
		number(few/LookbackFor.Seconds()), atLeast(bad, total), number(enough))
	if o.Method == Timeslices {
		share += " > bool " + number((One - o.SliceTarget).Ratio())
	}
	return share + query.without(of, o.Name, total, enough)
}

// ownSLIs selects the own SLIs of all operators; empty if there is none.
func (s Set) ownSLIs() string {
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

// requestSLIs are the names of own SLIs whose budgets count requests. Their bad
// slices are numbers of bad requests.
type requestSLIs []string

func (s Set) requestSLIs() requestSLIs {
	var out requestSLIs
	for _, op := range s.Operators {
		for _, own := range op.Own {
			if own.countsRequests() && !slices.Contains(out, own.Name) {
				out = append(out, own.Name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// matcher selects them by name. Another operator may have an SLI of the same name
// that counts slices, so what is selected still has to be joined.
func (r requestSLIs) matcher() string { return fmt.Sprintf("%s=~%q", series.SLI, strings.Join(r, "|")) }

// weigh gives the bad slices their weight: the number of bad requests, if the
// budget counts these.
func (r requestSLIs) weigh(bad string) string {
	if len(r) == 0 {
		return bad
	}
	return fmt.Sprintf("%s{%s} * %s %s > 0\nor %s", series.SLIBad, r.matcher(), on(budgetLabels),
		series.SLIRequests, bad)
}

// sum adds up the bad slices of a window. Of bad requests it makes slices: their
// share of all requests, times the slices of the window.
func (r requestSLIs) sum(metric string, window time.Duration) string {
	over := func(matcher string) string {
		return fmt.Sprintf("sum_over_time(%s%s[%s])", metric, matcher, duration(window))
	}
	if len(r) == 0 {
		return over("")
	}
	return fmt.Sprintf("%s * %s / on (%s) group_left () %s\nor (%s unless %s %s)", number(count(window)),
		over("{"+r.matcher()+"}"), budgetLabels, sum(series.SLIRequestsSum, window), over(""), on(objectiveLabels),
		series.SLOMinRequests)
}

// spent is what a period took of the budgets of a part, in slices of the period. Slices
// without measurements count as good ones with as many requests as the others have.
func (b budgetPart) spent(period time.Duration) string {
	over := func(matcher string) string {
		return fmt.Sprintf("sum_over_time(%s{%s}[%s])", series.SLIBadSlice, matcher, duration(period))
	}
	if len(b.requests) == 0 {
		return over(b.matcher)
	}
	// A sample has the requests of 5 minutes, so one in 5 minutes has them all.
	return fmt.Sprintf("(\n  %s / on (%s) group_left () avg_over_time(%s[%s:%s])\n  or (%s unless %s %s)\n)",
		over(b.requests.matcher()), budgetLabels, series.SLIRequests, duration(period), Lookback, over(b.matcher),
		on(objectiveLabels), series.SLOMinRequests)
}

// enough leaves out burn rates of too few requests, of all or of bad ones, in a
// tier's long window.
func (r requestSLIs) enough(burn, identity, prefix string, t Tier) string {
	if len(r) == 0 {
		return burn
	}
	requests := sum(series.SLIRequestsSum, t.Long)
	return fmt.Sprintf("%s\nunless %s (%s{%s} * on (%s) group_left () %s < %s)\nunless %s (%s < %s (%s - 0.5))", burn,
		on(identity), sum(prefix, t.Long), r.matcher(), budgetLabels, requests, number(few*count(t.Long)),
		on(budgetLabels), requests, ofSLO, series.SLOMinRequests)
}

// badNow selects sums of the last 5 minutes of those that are bad at this moment: by
// slices, one of which is enough if it is confirmed, or by more than one bad request and a
// share that pages if it lasts.
func (r requestSLIs) badNow(matcher string) string {
	now := sum(series.SLIBadVersionSum, fastest().Short)
	bySlices := func(sums string) string {
		return fmt.Sprintf("(%[1]s %[2]s or %[1]s and %[3]s %[4]s > 0)", sums, badNow, on(clusterReleaseLabels),
			series.SLIBadConfirmed)
	}
	if len(r) == 0 {
		return bySlices(now + "{" + matcher + "}")
	}
	of := fmt.Sprintf("%s{%s,%s}", now, matcher, r.matcher())
	slices := bySlices(fmt.Sprintf("(%s{%s} unless %s %s)", now, matcher, on(objectiveLabels), series.SLOMinRequests))
	return aggregate("group", clusterReleaseLabels, fmt.Sprintf("\n  %s\n  or %s / %s > %s "+
		"%s{tier=%q}\n  and %s * on (%s) group_left () %s > %s\n", slices, of, number(count(fastest().Short)), ofSLO,
		threshold, fastest().Name, of, budgetLabels, sum(series.SLIRequestsSum, fastest().Short),
		number((Guard-1.5)*count(fastest().Short))))
}

// minRequests records how many requests are needed, for objectives whose budgets
// count them.
func (s Set) minRequests() []monitoringv1.Rule {
	var rules []monitoringv1.Rule
	for _, op := range s.Operators {
		for _, own := range op.Own {
			if own.countsRequests() {
				rules = append(rules, record(series.SLOMinRequests, fmt.Sprintf("0 * %s{%s,sli=%q} + %d",
					series.SLOObjective, matchOperator(op.ID()), own.Name, max(own.MinRequests, Guard))))
			}
		}
	}
	return rules
}
