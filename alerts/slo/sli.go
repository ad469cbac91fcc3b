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
	// Bad describes when a slice is bad.
	Bad string
	// Target is the target in the default profile.
	Target PPM
	// Ticket is true for SLIs that never page, however fast their budget burns.
	Ticket bool
	// Required is true for SLIs that have slices wherever the operator is
	// expected. Other SLIs have slices if the operator exports their metrics.
	Required bool
	// Thresholds are the thresholds that an objective may set, with their default values.
	Thresholds Thresholds
	// judge returns the expr for some operators with other thresholds. It is nil for SLIs without thresholds.
	judge func(operators, Thresholds) string
	// buildExpr returns the expr for some operators. It is set for SLIs that read
	// only the current values of gauges and may page, and nil for other SLIs.
	buildExpr func(operators) string
	// previous is PromQL that gives 1 for each cluster and operator that was bad at
	// the scrape before the newest one. Empty: slices of the SLI are not confirmed.
	previous string
	// expr is PromQL that gives 0 or 1 for each cluster and operator,
	// or for each cluster, operator and sli if the SLI is a family.
	expr string
}

const (
	// counterWindow is the window of rates over the counters of every operator.
	// It contains two scrapes at 60 s, so one event makes at most two slices bad.
	counterWindow = "2m"
	// severalEvents is a rate that one event in the window does not
	// reach, even if Prometheus extrapolates it to twice as much.
	severalEvents = "0.02"
	// Lookback is the window of the rates of own SLIs in PromQL: LookbackFor.
	Lookback = "5m"
)

// SLIs returns the indicators that every operator has, in the order of their rules. Conditions describe the good
// state and are negated: NaN compares false with everything, so a value that is not a number is bad and not ignored.
func SLIs() []SLI {
	slis := []SLI{
		newGaugeSLI(SLI{Name: "csv", Target: 995_000, Required: true, previous: checkPreviousCSV(),
			Bad: "the ClusterServiceVersion is not Succeeded, outside the bounded grace of an upgrade"}, buildCSVExpr),
		newGaugeSLI(SLI{Name: "available", Target: 999_000, Required: true, previous: checkPreviousAvailable(),
			Bad: "a Deployment of the operator has fewer available replicas than half of those it asks for, " +
				"rounded up"}, buildAvailableExpr),
		{Name: Redundancy, Target: 990_000, Ticket: true, expr: buildRedundancyExpr(),
			Bad: "a Deployment of the operator has fewer available replicas than it asks for, but `available` is " +
				"good; only a ticket"},
		newThresholdSLI(SLI{Name: "reconcile", Target: 990_000,
			Bad: "more than 10 % of the reconciles of 2 minutes, and more than one, returned an error"},
			Thresholds{BadShare: 100_000}, judgeReconciles),
		newThresholdSLI(SLI{Name: latency, Target: 990_000,
			Bad: "more than 5 % of the reconciles of 2 minutes, and more than one, took longer than 10 s"},
			Thresholds{BadShare: 50_000, Duration: 10 * time.Second}, judgeLatency),
		{Name: "panic", Target: 999_000,
			expr: aggregateByOperator(operators{}, func(from pods) string {
				return negate(compareBool(from.buildRate(series.ReconcilePanicsTotal), "==", "0"))
			}),
			Bad: "a reconcile panicked within 2 minutes"},
		newThresholdSLI(SLI{Name: "queue", Target: 990_000,
			Bad: "a work item has been running for more than 300 s, or a queue was deeper than 10 for 10 minutes"},
			Thresholds{Duration: 5 * time.Minute, Depth: 10}, judgeQueue),
		{Name: "leader", Target: 999_000, expr: aggregateByOperator(operators{}, buildLeaderExpr),
			Bad: "a leader election has not exactly one leader"},
		newThresholdSLI(SLI{Name: "webhook", Target: 999_000,
			Bad: "more than 1 % of the admission requests of 2 minutes ended with a server error, or API servers " +
				"could not call a webhook in more than 1 % of its requests"},
			Thresholds{BadShare: 10_000}, judgeWebhooks),
		newThresholdSLI(SLI{Name: "operands", Target: 990_000,
			Bad: "more than 5 % of the operator's custom resources are not Ready"},
			Thresholds{BadShare: 50_000}, judgeOperands),
		newGaugeSLI(SLI{Name: "catalog", Target: 990_000, Required: true, previous: checkPreviousCatalog(),
			Bad: "the operator's CatalogSource is not ready"}, buildCatalogExpr),
		newProbeSLI(),
	}
	return append(append(append(slis, listPodSLIs()...), listKubeletSLIs()...), newCustomResourcesSLI())
}

// newGaugeSLI returns the SLI with an expression that can be limited to some operators.
func newGaugeSLI(s SLI, gauges func(operators) string) SLI {
	s.buildExpr, s.expr = gauges, gauges(operators{})
	return s
}

// compareBool returns a comparison with the result 1 or 0. negate returns PromQL that swaps 1 and 0.
func compareBool(a, op, b string) string { return fmt.Sprintf("%s %s bool %s", a, op, b) }
func negate(good string) string          { return fmt.Sprintf("(%s) == bool 0", good) }

// requireSeveral returns PromQL that is 1 (bad) if a rate of bad events is above the maximum and
// is not the rate of a single event, and otherwise 0. bad and maxRate are PromQL of rates.
func requireSeveral(bad, maxRate string) string {
	// The sum of the two good conditions is 0 only if neither of them is true.
	return negate(fmt.Sprintf("(%s) + (%s)", compareBool(bad, "<=", maxRate), compareBool(bad, "<", severalEvents)))
}

// Redundancy is the SLI that is bad where some replicas are missing.
const Redundancy = "redundancy"

// joinWebhooks returns PromQL that maps values by cluster and webhook to operators.
func joinWebhooks(ops operators, bad string) string {
	return fmt.Sprintf("  %s\n  * on (cluster, name) group_left ()\n  (%s)",
		aggregate("max", installLabels+", "+series.Name, ops.selectSeries(series.OperatorWebhook)), bad)
}

// buildCSVExpr returns PromQL for the slices of csv. They are good during the grace period of an upgrade.
func buildCSVExpr(ops operators) string {
	upgrading := ops.selectSeries(series.OperatorUpgrading) + " == 1"
	return fmt.Sprintf("%s\nunless %s (%s)\nor %s 0 * %s",
		aggregate("max", installLabels, ops.selectSeries(series.OperatorCSVSucceeded)+" != bool 1"),
		matchOn(installLabels), upgrading, matchOn(installLabels), aggregate("max", installLabels, upgrading))
}

// buildAvailableExpr returns PromQL for the slices of available. A Deployment without
// the series of available replicas counts as a Deployment without available replicas.
func buildAvailableExpr(ops operators) string { return buildFewerReplicas(ops, "ceil(%s / 2)") }

func buildCatalogExpr(ops operators) string {
	return aggregate("max", installLabels, ops.selectSeries(series.OperatorCatalogReady)+" != bool 1")
}

// buildRedundancyExpr returns PromQL for the slices of Redundancy. They
// are good while the SLI available is bad, which an earlier rule of the group records.
func buildRedundancyExpr() string {
	return fmt.Sprintf("%s\n* %s (%s{sli=\"available\"} == bool 0)", buildFewerReplicas(operators{}, "%s"),
		matchOn(installLabels), series.SLIBad)
}

// buildFewerReplicas returns PromQL that is bad if a Deployment has fewer available replicas
// than a threshold. threshold is a format that computes it from the PromQL of the desired replicas.
func buildFewerReplicas(ops operators, threshold string) string {
	each := installLabels + ", " + series.Deployment
	desired := aggregate("max", each, ops.selectSeries(series.OperatorReplicasDesired))
	return aggregate("max", installLabels, fmt.Sprintf("\n  (\n    (%s or 0 * %s)\n    >= bool\n    %s\n  ) == "+
		"bool 0\n", aggregate("min", each, ops.selectSeries(series.OperatorReplicasAvailable)), desired,
		fmt.Sprintf(threshold, desired)))
}

// buildLeaderExpr returns PromQL for the slices of leader. It reads each
// election by its name, because a namespace may have several elections.
func buildLeaderExpr(from pods) string {
	return aggregate("max", from.labels, aggregate("sum", from.labels+", name", from.selectSeries(series.LeaderStatus))+
		" != bool 1")
}

// buildAnsweredExpr returns PromQL that is bad if too many responses of an operator's webhooks are server errors.
func buildAnsweredExpr(from pods, maxShare PPM) string {
	total := from.buildRate(series.WebhookRequestsTotal)
	errors := fmt.Sprintf("(%s or 0 * %s)", from.buildRate(series.WebhookRequestsTotal, `code=~"5.."`), total)
	return negate(compareBool(errors, "<=", maxShare.formatDecimal()+" * "+total))
}

// buildCalledExpr returns PromQL that is bad if API servers could not make too many calls of a webhook. It
// reads each webhook by its name, so that a busy webhook does not hide another webhook that cannot be called.
func buildCalledExpr(maxShare PPM) string {
	buildRate := func(metric, matcher string) string {
		return fmt.Sprintf("rate(%s%s[%s])", metric, matcher, counterWindow)
	}
	aggregateByName := func(expr string) string { return aggregate("sum", "cluster, name", expr) }
	total := aggregateByName(buildRate(series.AdmissionRequestsTotal, ""))
	// The label error_type exists only for refused requests, so the two sets of series are disjoint.
	closed := buildRate(series.AdmissionRejectionCount, fmt.Sprintf("{error_type=%q}", series.AdmissionCallingError))
	failed := aggregateByName(closed + " or " + buildRate(series.AdmissionFailOpenCount, ""))
	return negate(compareBool(fmt.Sprintf("(%s or 0 * %s)", failed, total), "<=", maxShare.formatDecimal()+" * "+total))
}

// Matcher is a label matcher of PromQL: Label, Op (=, !=, =~ or !~) and Value.
type Matcher struct{ Label, Op, Value string }

// OfOperator adds matchers that exclude the series of other operators to the matchers of an operator's own
// series. Series that Bellwether's PodMonitors scrape have the labels operator_namespace and operator;
// series without these labels are kept. A label that the matchers already contain is not changed.
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

// buildSelector returns a selector of a metric with matchers.
func buildSelector(metric string, matchers []Matcher) string {
	var parts []string
	for _, m := range matchers {
		parts = append(parts, m.Label+m.Op+quote(m.Value))
	}
	return metric + "{" + strings.Join(parts, ",") + "}"
}

// RequestRatio returns an SLI from a counter of requests. Requests that also match the bad matchers are bad.
func RequestRatio(name, counter string, all, bad []Matcher) OwnSLI {
	return OwnSLI{
		Name:  name,
		Bad:   fmt.Sprintf("rate(%s[%s])", buildSelector(counter, slices.Concat(all, bad)), Lookback),
		Total: fmt.Sprintf("rate(%s[%s])", buildSelector(counter, all), Lookback),
	}
}

// BoolGauge returns an SLI from a gauge that is 1 while the operator is good.
func BoolGauge(name, gauge string, all []Matcher) OwnSLI {
	return OwnSLI{Name: name, Good: buildSelector(gauge, all)}
}

// LatencyThreshold returns an SLI from a classic histogram, which is named without its suffixes. Requests above
// the threshold are bad. The threshold in seconds must be one of the histogram's bounds, in the notation of its
// label le; 1000 and 1000.0 mean the same bound. If the histogram does not have the bound, there are no slices.
func LatencyThreshold(name, histogram, le string, all []Matcher) OwnSLI {
	total := fmt.Sprintf("sum by (cluster) (rate(%s[%s]))", buildSelector(histogram+"_count", all), Lookback)
	fast := fmt.Sprintf("sum by (cluster) (rate(%s[%s]))",
		buildSelector(histogram+"_bucket", slices.Concat(all, []Matcher{matchBound(le)})), Lookback)
	return OwnSLI{Name: name, Bad: total + " - " + fast, Total: total + " and on (cluster) " + fast}
}

// matchBound returns a matcher of a bound of a histogram. Prometheus
// 3 writes whole numbers as 1000.0, and Prometheus 2 as 1000.
func matchBound(le string) Matcher {
	whole := strings.TrimSuffix(le, ".0")
	if whole == "" || strings.Trim(whole, "0123456789") != "" {
		return Matcher{"le", "=", le}
	}
	return Matcher{"le", "=~", whole + "|" + whole + ".0"}
}
