// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"regexp"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// fromOthers are metrics of Prometheus, Alertmanager, client-go and Go itself:
// names of theirs, not ours.
var fromOthers = []string{
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

// ofOperators are series of the operators, of API servers, of kubelets, and of the probes,
// that package series names and does not describe.
var ofOperators = []string{
	series.ReconcileTotal, series.ReconcileErrorsTotal, series.ReconcilePanicsTotal, series.ReconcileTimeBucket,
	series.ReconcileTimeCount,
	series.QueueLongestRunning, series.QueueDepth, series.LeaderStatus, series.WebhookRequestsTotal,
	series.AdmissionRequestsTotal, series.AdmissionRejectionCount, series.AdmissionFailOpenCount,
	series.ContainerMemory, series.ContainerMemoryLimit, series.ContainerThrottled, series.ContainerPeriods,
	series.VolumeAvailable, series.VolumeCapacity,
}

var ofProbes = []string{
	series.ProbeSuccess, series.ProbeDuration, series.ProbeHTTPStatusCode, series.ProbeSSLEarliestExpiry,
	series.ProbeSSLChainExpiry, series.ProbeHTTPDuration, series.ProbeDNSLookupTime,
}

// summed are the series whose names end in a window.
var summed = []string{series.SLIBadVersionSum, series.SLIBadClusterSum}

// known tells whether there is a series of that name, and its labels as far as
// they are selected by variables.
func known(name string) (labels []string, ok bool) {
	for _, s := range series.Exported() {
		if name == s.Name || (s.Type == "histogram" &&
			slices.Contains([]string{"_bucket", "_sum", "_count"}, strings.TrimPrefix(name, s.Name))) {
			return append([]string{series.Cluster}, s.Labels...), true
		}
	}
	for _, s := range slices.Concat(series.Hub(), series.Recorded()) {
		if name == s.Name || (slices.Contains(summed, s.Name) && strings.HasPrefix(name, s.Name)) {
			return s.Labels, true
		}
	}
	switch {
	case slices.Contains(ofProbes, name):
		return append([]string{series.Cluster}, series.OfOperator()...), true
	case slices.Contains(ofOperators, name):
		return []string{series.Cluster}, true
	case name == "ALERTS":
		return append([]string{series.Cluster}, series.OfOperator()...), true
	}
	return nil, slices.Contains(fromOthers, name)
}

func (c *checker) metrics() {
	for _, q := range c.queries {
		for _, s := range selectors(q.Expr) {
			if _, ok := known(s.name); !ok {
				c.find(q.Where, "no program is known to export %s: use a name of package series, or add it to the "+
					"list "+
					"of others'", s.name)
			}
		}
	}
}

func (c *checker) selections() {
	for _, q := range c.queries {
		if q.Kind == OfVariable {
			continue // the variable's own values cannot depend on it
		}
		for _, s := range selectors(q.Expr) {
			labels, _ := known(s.name)
			for _, l := range []string{series.Cluster, series.OperatorNamespace, series.Operator} {
				selected := strings.Contains(","+s.matchers, ","+l+`=~"$`+l+`"`) ||
					strings.Contains(","+s.matchers, ","+l+`=~"$`+l+`|"`)
				if slices.Contains(labels, l) && !selected {
					c.find(q.Where, "%s has to be selected by %s=~\"$%s\"", s.name, l, l)
				}
			}
		}
	}
}

// groups are the labels that a query groups by or joins on.
var groups = regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`)

func (c *checker) operators() {
	for _, q := range c.queries {
		for _, m := range groups.FindAllStringSubmatch(q.Expr, -1) {
			labels := strings.Split(strings.ReplaceAll(m[1], " ", ""), ",")
			if slices.Contains(labels, series.Operator) != slices.Contains(labels, series.OperatorNamespace) {
				c.find(q.Where, "(%s) has only one of the labels operator_namespace and operator: both identify an "+
					"operator", m[1])
			}
		}
	}
}

func (c *checker) counters() {
	for _, q := range c.queries {
		if q.Kind == OfVariable {
			continue
		}
		for _, s := range selectors(q.Expr) {
			counter := strings.HasSuffix(s.name, "_total") || strings.HasSuffix(s.name, "_bucket")
			if counter && (!s.ranged || !slices.Contains([]string{"rate", "irate", "increase"}, s.function)) {
				c.find(q.Where, "%s is a counter: take its rate() or increase()", s.name)
			}
		}
	}
}
