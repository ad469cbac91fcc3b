// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// SLI is an indicator that can be derived for any operator.
type SLI struct {
	// Name is the value of the label sli. Probe is a family: probe:NAME, probe:NAME:hub.
	Name string
	// Bad says when a slice is bad.
	Bad string
	// Target is the default profile's.
	Target PPM
	// Ticket SLIs never page, however fast their budget burns.
	Ticket bool
	// Required SLIs have slices wherever the operator is expected. The others
	// have some if the operator exports their metrics.
	Required bool
	// Thresholds are those that an objective may set, with what they are if it does not.
	Thresholds Thresholds
	// judge gives the expr of some operators with other thresholds. Nil: there are none.
	judge func(operators, Thresholds) string
	// gauges gives the expr of some operators, for SLIs that look at nothing but the
	// present values of gauges, and may page. Nil for the others.
	gauges func(operators) string
	// before is PromQL that gives 1 for each cluster and operator that was bad by the
	// scrape before the newest one. Empty: slices of the SLI are not confirmed.
	before string
	// expr is PromQL that gives 0 or 1 for each cluster and operator, or for each
	// cluster, operator and sli if the SLI is a family.
	expr string
}

const (
	// interval is how far back the counters of every operator are looked at for a
	// slice. It has two scrapes at 60 s, so one event makes at most two slices bad.
	interval = "2m"
	// severalEvents is a rate that one event in the interval does not reach, also if
	// Prometheus extrapolates it to twice as much.
	severalEvents = "0.02"
	// Lookback is how far back own SLIs look, as a duration of PromQL: LookbackFor.
	Lookback = "5m"
)

// SLIs are the indicators that every operator has, in the order of their rules.
// Conditions are written for what is good, and negated: NaN compares false with
// everything, so a value that is not a number is bad and not ignored.
func SLIs() []SLI {
	slis := []SLI{
		ofGauges(SLI{Name: "csv", Target: 995_000, Required: true, before: csvBefore(),
			Bad: "the ClusterServiceVersion is not Succeeded, outside the bounded grace of an upgrade"}, csvExpr),
		ofGauges(SLI{Name: "available", Target: 999_000, Required: true, before: availableBefore(),
			Bad: "a Deployment of the operator has fewer available replicas than half of those it asks for, " +
				"rounded up"}, availableExpr),
		{Name: Redundancy, Target: 990_000, Ticket: true, expr: redundancyExpr(),
			Bad: "a Deployment of the operator has fewer available replicas than it asks for, but `available` is " +
				"good; only a ticket"},
		judged(SLI{Name: "reconcile", Target: 990_000,
			Bad: "more than 10 % of the reconciles of 2 minutes, and more than one, returned an error"},
			Thresholds{BadShare: 100_000}, judgeReconciles),
		judged(SLI{Name: latency, Target: 990_000,
			Bad: "more than 5 % of the reconciles of 2 minutes, and more than one, took longer than 10 s"},
			Thresholds{BadShare: 50_000, Duration: 10 * time.Second}, judgeLatency),
		{Name: "panic", Target: 999_000,
			expr: ofOperator(operators{}, func(from pods) string {
				return not(at(from.rate(series.ReconcilePanicsTotal), "==", "0"))
			}),
			Bad: "a reconcile panicked within 2 minutes"},
		judged(SLI{Name: "queue", Target: 990_000,
			Bad: "a work item has been running for more than 300 s, or a queue was deeper than 10 for 10 minutes"},
			Thresholds{Duration: 5 * time.Minute, Depth: 10}, judgeQueue),
		{Name: "leader", Target: 999_000, expr: ofOperator(operators{}, leaderExpr),
			Bad: "a leader election has not exactly one leader"},
		judged(SLI{Name: "webhook", Target: 999_000,
			Bad: "more than 1 % of the admission requests of 2 minutes ended with a server error, or API servers " +
				"could not call a webhook in more than 1 % of its requests"},
			Thresholds{BadShare: 10_000}, judgeWebhooks),
		judged(SLI{Name: "operands", Target: 990_000,
			Bad: "more than 5 % of the operator's custom resources are not Ready"},
			Thresholds{BadShare: 50_000}, judgeOperands),
		ofGauges(SLI{Name: "catalog", Target: 990_000, Required: true, before: catalogBefore(),
			Bad: "the operator's CatalogSource is not ready"}, catalogExpr),
		probeSLI(),
	}
	return append(append(append(slis, podSLIs()...), kubeletSLIs()...), customResourcesSLI())
}

// ofGauges makes an SLI of an expr of some operators.
func ofGauges(s SLI, gauges func(operators) string) SLI {
	s.gauges, s.expr = gauges, gauges(operators{})
	return s
}

func at(a, op, b string) string { return fmt.Sprintf("%s %s bool %s", a, op, b) }
func not(good string) string    { return fmt.Sprintf("(%s) == bool 0", good) }

// notOrFew is bad where a rate of bad events is above what may be, unless it is of
// a single event.
func notOrFew(bad, most string) string {
	return not(fmt.Sprintf("(%s) + (%s)", at(bad, "<=", most), at(bad, "<", severalEvents)))
}

// Redundancy is the SLI that is bad where some replicas are missing.
const Redundancy = "redundancy"

// ofWebhook finds the operator that a value by cluster and webhook belongs to.
func ofWebhook(of operators, bad string) string {
	return fmt.Sprintf("  %s\n  * on (cluster, name) group_left ()\n  (%s)",
		aggregate("max", installLabels+", "+series.Name, of.of(series.OperatorWebhook)), bad)
}

func csvExpr(of operators) string {
	upgrading := of.of(series.OperatorUpgrading) + " == 1"
	return fmt.Sprintf("%s\nunless %s (%s)\nor %s 0 * %s",
		aggregate("max", installLabels, of.of(series.OperatorCSVSucceeded)+" != bool 1"), on(installLabels), upgrading,
		on(installLabels), aggregate("max", installLabels, upgrading))
}

// availableExpr counts a Deployment without the series of available replicas as
// one with none.
func availableExpr(of operators) string { return fewerReplicas(of, "ceil(%s / 2)") }

func catalogExpr(of operators) string {
	return aggregate("max", installLabels, of.of(series.OperatorCatalogReady)+" != bool 1")
}

// redundancyExpr leaves to the SLI available, which is recorded before, what that
// is bad for.
func redundancyExpr() string {
	return fmt.Sprintf("%s\n* %s (%s{sli=\"available\"} == bool 0)", fewerReplicas(operators{}, "%s"),
		on(installLabels), series.SLIBad)
}

// fewerReplicas looks for a Deployment with fewer available replicas than a
// function of those that it asks for.
func fewerReplicas(of operators, than string) string {
	each := installLabels + ", " + series.Deployment
	desired := aggregate("max", each, of.of(series.OperatorReplicasDesired))
	return aggregate("max", installLabels, fmt.Sprintf("\n  (\n    (%s or 0 * %s)\n    >= bool\n    %s\n  ) == "+
		"bool 0\n", aggregate("min", each, of.of(series.OperatorReplicasAvailable)), desired,
		fmt.Sprintf(than, desired)))
}

// leaderExpr looks at each election by its name: a namespace may have several.
func leaderExpr(from pods) string {
	return aggregate("max", from.labels, aggregate("sum", from.labels+", name", from.of(series.LeaderStatus))+
		" != bool 1")
}

// answeredExpr looks at what an operator answered.
func answeredExpr(from pods, most PPM) string {
	total := from.rate(series.WebhookRequestsTotal)
	errors := fmt.Sprintf("(%s or 0 * %s)", from.rate(series.WebhookRequestsTotal, `code=~"5.."`), total)
	return not(at(errors, "<=", most.decimal()+" * "+total))
}

// calledExpr looks at each webhook by its name: a busy one must not hide another
// that nobody can call.
func calledExpr(most PPM) string {
	rate := func(metric, matcher string) string { return fmt.Sprintf("rate(%s%s[%s])", metric, matcher, interval) }
	byName := func(of string) string { return aggregate("sum", "cluster, name", of) }
	total := byName(rate(series.AdmissionRequestsTotal, ""))
	// Only refused requests have an error_type, so that none of the series is another's.
	closed := rate(series.AdmissionRejectionCount, fmt.Sprintf("{error_type=%q}", series.AdmissionCallingError))
	failed := byName(closed + " or " + rate(series.AdmissionFailOpenCount, ""))
	return not(at(fmt.Sprintf("(%s or 0 * %s)", failed, total), "<=", most.decimal()+" * "+total))
}

// Matcher is a label matcher of PromQL: Label, Op (=, !=, =~ or !~) and Value.
type Matcher struct{ Label, Op, Value string }

// OfOperator adds, to the matchers of an operator's own series, those that leave
// out the series of other operators. Series that Bellwether's PodMonitors scrape
// have the labels operator_namespace and operator; series without these labels
// are kept. A label that the matchers name already is left as it is.
func OfOperator(id types.NamespacedName, matchers []Matcher) []Matcher {
	out := slices.Clone(matchers)
	for _, own := range []Matcher{
		{series.OperatorNamespace, "=~", "|" + regexp.QuoteMeta(id.Namespace)},
		{series.Operator, "=~", "|" + regexp.QuoteMeta(id.Name)},
	} {
		if !slices.ContainsFunc(matchers, func(m Matcher) bool { return m.Label == own.Label }) {
			out = append(out, own)
		}
	}
	return out
}

func selector(metric string, matchers []Matcher) string {
	var parts []string
	for _, m := range matchers {
		parts = append(parts, m.Label+m.Op+quote(m.Value))
	}
	return metric + "{" + strings.Join(parts, ",") + "}"
}

// RequestRatio is an SLI from a counter of requests: bad are those that also
// match the bad matchers.
func RequestRatio(name, counter string, all, bad []Matcher) OwnSLI {
	return OwnSLI{
		Name:  name,
		Bad:   fmt.Sprintf("rate(%s[%s])", selector(counter, slices.Concat(all, bad)), Lookback),
		Total: fmt.Sprintf("rate(%s[%s])", selector(counter, all), Lookback),
	}
}

// BoolGauge is an SLI from a gauge that is 1 while all is well.
func BoolGauge(name, gauge string, all []Matcher) OwnSLI {
	return OwnSLI{Name: name, Good: selector(gauge, all)}
}

// LatencyThreshold is an SLI from a classic histogram, named without its
// suffixes: bad are the requests above the threshold in seconds, which has to be
// one of the histogram's bounds, written as its label le; 1000 and 1000.0 are the same. Without that bound
// there are no slices: nothing is known of requests that nobody has timed by it.
func LatencyThreshold(name, histogram, le string, all []Matcher) OwnSLI {
	total := fmt.Sprintf("sum by (cluster) (rate(%s[%s]))", selector(histogram+"_count", all), Lookback)
	fast := fmt.Sprintf("sum by (cluster) (rate(%s[%s]))",
		selector(histogram+"_bucket", slices.Concat(all, []Matcher{bound(le)})), Lookback)
	return OwnSLI{Name: name, Bad: total + " - " + fast, Total: total + " and on (cluster) " + fast}
}

// bound selects a bound of a histogram. Prometheus 3 writes whole numbers as 1000.0, and Prometheus 2 as 1000.
func bound(le string) Matcher {
	whole := strings.TrimSuffix(le, ".0")
	if whole == "" || strings.Trim(whole, "0123456789") != "" {
		return Matcher{"le", "=", le}
	}
	return Matcher{"le", "=~", whole + "|" + whole + ".0"}
}
