// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"regexp"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// externalMetrics are metrics of Prometheus, Alertmanager, client-go and Go. Package
// series does not have their names.
var externalMetrics = []string{
	"ALERTS",
	"alertmanager_alerts", "alertmanager_config_last_reload_successful",
	"alertmanager_notification_latency_seconds_bucket",
	"alertmanager_notifications_failed_total", "alertmanager_notifications_total", "alertmanager_silences",
	"go_goroutines", "process_cpu_seconds_total", "process_resident_memory_bytes",
	"prometheus_notifications_alertmanagers_discovered", "prometheus_notifications_dropped_total",
	"prometheus_notifications_errors_total", "prometheus_notifications_sent_total",
	"prometheus_rule_evaluation_failures_total", "prometheus_rule_group_iterations_missed_total",
	"prometheus_rule_group_last_duration_seconds", "prometheus_rule_group_last_evaluation_timestamp_seconds",
	"rest_client_requests_total", "workqueue_queue_duration_seconds_bucket",
}

// operatorSeries are series of operators, API servers and kubelets. Package series has
// their names, but not their labels.
var operatorSeries = []string{
	series.ReconcileTotal, series.ReconcileErrorsTotal, series.ReconcilePanicsTotal, series.ReconcileTimeBucket,
	series.ReconcileTimeCount,
	series.QueueLongestRunning, series.QueueDepth, series.LeaderStatus, series.WebhookRequestsTotal,
	series.AdmissionRequestsTotal, series.AdmissionRejectionCount, series.AdmissionFailOpenCount,
	series.ContainerMemory, series.ContainerMemoryLimit, series.ContainerThrottled, series.ContainerPeriods,
	series.VolumeAvailable, series.VolumeCapacity,
}

var probeSeries = []string{
	series.ProbeSuccess, series.ProbeDuration, series.ProbeHTTPStatusCode, series.ProbeSSLEarliestExpiry,
	series.ProbeSSLChainExpiry, series.ProbeHTTPDuration, series.ProbeDNSLookupTime,
}

// windowedSeries are the series whose names end in a window.
var windowedSeries = []string{series.SLIBadVersionSum, series.SLIBadClusterSum}

// findLabels returns the labels of a series, at least the labels that variables select; nil for a metric of another
// program. It returns false if no program exports the series.
func findLabels(name string) (labels []string, ok bool) {
	for _, s := range series.Exported() {
		isPartOfHistogram := s.Type == "histogram" &&
			slices.Contains([]string{"_bucket", "_sum", "_count"}, strings.TrimPrefix(name, s.Name))
		if name == s.Name || isPartOfHistogram {
			return append([]string{series.Cluster}, s.Labels...), true
		}
	}
	for _, s := range slices.Concat(series.Hub(), series.Recorded()) {
		hasWindow := slices.Contains(windowedSeries, s.Name) && strings.HasPrefix(name, s.Name)
		if name == s.Name || hasWindow {
			return s.Labels, true
		}
	}
	switch {
	case slices.Contains(probeSeries, name):
		return append([]string{series.Cluster}, series.OfOperator()...), true
	case slices.Contains(operatorSeries, name):
		return []string{series.Cluster}, true
	case name == "ALERTS":
		return append([]string{series.Cluster}, series.OfOperator()...), true
	}
	return nil, slices.Contains(externalMetrics, name)
}

// checkMetrics checks that a program exports the series of each selector.
func (c *checker) checkMetrics() {
	for _, q := range c.queries {
		for _, s := range findSelectors(q.Expr) {
			if _, ok := findLabels(s.name); !ok {
				c.addFinding(q.Where,
					"no program is known to export %s: use a name of package series, or add it to the "+
						"list "+
						"of others'", s.name)
			}
		}
	}
}

// checkSelections checks that each selector has a matcher for the selected cluster and operator.
func (c *checker) checkSelections() {
	for _, q := range c.queries {
		if q.Kind == KindVariable {
			continue // the values of a variable cannot depend on the variable itself
		}
		for _, s := range findSelectors(q.Expr) {
			labels, _ := findLabels(s.name)
			for _, l := range []string{series.Cluster, series.OperatorNamespace, series.Operator} {
				// A matcher that ends in "|" also selects series without the label.
				selected := strings.Contains(","+s.matchers, ","+l+`=~"$`+l+`"`) ||
					strings.Contains(","+s.matchers, ","+l+`=~"$`+l+`|"`)
				if slices.Contains(labels, l) && !selected {
					c.addFinding(q.Where, "%s must be selected by %s=~\"$%s\"", s.name, l, l)
				}
			}
		}
	}
}

// groupingLabels matches the labels by which a query groups or joins.
var groupingLabels = regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`)

// checkOperators checks that groupings have both labels that identify an operator, or neither of them.
func (c *checker) checkOperators() {
	for _, q := range c.queries {
		for _, m := range groupingLabels.FindAllStringSubmatch(q.Expr, -1) {
			labels := strings.Split(strings.ReplaceAll(m[1], " ", ""), ",")
			if slices.Contains(labels, series.Operator) != slices.Contains(labels, series.OperatorNamespace) {
				c.addFinding(q.Where,
					"(%s) has only one of the labels operator_namespace and operator: both identify an "+
						"operator", m[1])
			}
		}
	}
}

// checkCounters checks that queries use the rate or the increase of a counter, and not its value. It skips the queries
// of variables, which read only labels.
func (c *checker) checkCounters() {
	for _, q := range c.queries {
		if q.Kind == KindVariable {
			continue
		}
		for _, s := range findSelectors(q.Expr) {
			isCounter := strings.HasSuffix(s.name, "_total") || strings.HasSuffix(s.name, "_bucket")
			if isCounter && (!s.ranged || !slices.Contains([]string{"rate", "irate", "increase"}, s.function)) {
				c.addFinding(q.Where, "%s is a counter: take its rate() or increase()", s.name)
			}
		}
	}
}
