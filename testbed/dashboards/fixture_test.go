// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
)

// The fleet of which there is history: two clusters, two operators, each of them in two namespaces. Half way, canary
// got version 1.1.0 of echo of the namespace staging, which fails there since; somebody paused its rollout for ten
// minutes, and edited an objective.
const (
	history = 4 * time.Hour
	step    = time.Minute
	old     = "1.0.0"
	next    = "1.1.0"
)

// releaseOf is the hash of the release that brings a version.
func releaseOf(version string) string { return "release-" + version }

var domains = map[string][]string{
	series.Cluster: {"canary", "prod-eu"}, series.Operator: {"echo", "cert-manager"},
	series.OperatorNamespace: {"fleet", "staging"}, series.Release: {releaseOf(old), releaseOf(next)},
	series.Namespace: {"ns-echo", "ns-cert-manager"},
	series.CSV:       {"echo.v" + old, "echo.v" + next, "cert-manager.v" + old}, series.Version: {old, next},
	series.SLI: {"csv", "reconcile", "probe:api", "catalog"}, series.Tier: {"1h"}, series.Team: {"payments"},
	series.Criticality: {"Standard"}, series.Severity: {series.Page},
	series.Deployment: {"controller"}, series.ConditionType: {"Upgradeable"}, series.Kind: {"EchoServer"},
	series.Ready: {series.ReadyTrue, series.ReadyFalse}, series.Reason: {series.ReasonTooMany},
	series.Outcome: {series.OutcomeSucceeded, series.OutcomeFailed},
	series.State: {"online", "offline", "never_joined", "ready", "not_ready", "selected", "updated", "pending",
		"in_progress", "succeeded", "failed", "deferred", "removed"},
	series.Phase: {"Progressing", "Paused", "Updating", "Verified"}, series.Wave: {"canary", "production"},
	series.Rollout: {"echo-2"}, series.From: {old}, series.ApprovedBy: {"jane"},
	series.Policy: {"platform"}, series.Silence: {"work"}, series.Owner: {"anna"}, series.Cause: {"upgrade"},
	series.Catalog: {"community"}, series.Digest: {"sha256:1"}, series.Package: {"echo"},
	series.Agent: {"0.1.0"}, series.Kubernetes: {"1.36.3"}, series.OLM: {"0.46.0"},
	series.VolumeClaim: {"data"}, series.Probe: {"api"}, series.Name: {"v1.echo.example.com"},
	series.Vantage: {"agent"},
}

// fixture makes the history that ends at a time.
type fixture struct {
	end time.Time
	out []prometheus.History
}

func newFixture(end time.Time) []prometheus.History {
	f := &fixture{end: end}
	for _, s := range series.Exported() {
		f.family(s.Name, s.Type, map[string]string{"job": "agent"}, append([]string{series.Cluster}, s.Labels...))
	}
	for _, s := range series.Hub() {
		f.family(s.Name, s.Type, map[string]string{"job": "hub", "instance": "hub:8080"},
			s.Labels)
	}
	for _, s := range series.Recorded() {
		windows := map[string][]string{
			series.SLIBadVersionSum: {"5m", "1h", "6h", "1d", "3d"}, series.SLIBadClusterSum: {"1h"},
		}[s.Name]
		if windows == nil {
			windows = []string{""}
		}
		for _, window := range windows {
			f.family(s.Name+window, s.Type, nil, s.Labels)
		}
	}
	f.controllers()
	f.probes()
	f.alerts()
	f.paging()
	return f.out
}

func (f *fixture) start() time.Time { return f.end.Add(-history) }
func (f *fixture) half() time.Time  { return f.end.Add(-history / 2) }

// family adds a series for each combination of values that the fleet has, and several for a histogram.
func (f *fixture) family(name, kind string, fixed map[string]string, labels []string) {
	if kind != "histogram" {
		f.product(name, fixed, labels)
		return
	}
	f.product(name+"_count", fixed, labels)
	f.product(name+"_sum", fixed, labels)
	for _, le := range []string{"1.0", "10.0", "+Inf"} {
		bucket := maps.Clone(fixed)
		bucket["le"] = le
		f.product(name+"_bucket", bucket, labels)
	}
}

func (f *fixture) product(name string, fixed map[string]string, labels []string) {
	sets := []map[string]string{maps.Clone(fixed)}
	if fixed == nil {
		sets = []map[string]string{{}}
	}
	for _, label := range labels {
		if fixed[label] != "" {
			continue
		}
		var longer []map[string]string
		for _, set := range sets {
			for _, value := range domains[label] {
				with := maps.Clone(set)
				with[label] = value
				longer = append(longer, with)
			}
		}
		sets = longer
	}
	for _, set := range sets {
		if set["job"] == "agent" {
			set["instance"] = set[series.Cluster] + ":8080"
		}
		f.add(name, set, func(at time.Time) (float64, bool) { return f.value(name, set, at), f.has(name, set, at) })
	}
}

// add adds one series.
func (f *fixture) add(name string, labels map[string]string, value func(time.Time) (float64, bool)) {
	f.out = append(f.out, prometheus.History{Name: name, Labels: labels, From: f.start(), To: f.end, Interval: step,
		Value: value})
}

// has says whether a combination of labels is real at a time.
func (f *fixture) has(name string, l map[string]string, at time.Time) bool {
	second := !at.Before(f.half())
	operator, cluster, version := l[series.Operator], l[series.Cluster], l[series.Version]
	changed := operator == "echo" && l[series.OperatorNamespace] == "staging"
	running := old
	if changed && cluster == "canary" && second {
		running = next
	}
	troubled := (cluster == "" || cluster == "canary") && changed && l[series.SLI] == "csv" && second
	if release := l[series.Release]; release != "" && release != releaseOf(version) {
		return false
	}
	switch name {
	case series.OperatorInfo:
		return version == running && l[series.CSV] == operator+".v"+version && l[series.Namespace] == "ns-"+operator
	case series.SLIBadSlice, series.SLIBadBlamed, series.SLIBadExcluded, series.SLOBudgetExcluding:
		return troubled
	case series.BudgetExcluded:
		return changed && cluster == "canary" && second
	case series.SLIBadVersion, series.SLIBadVersionSum + "5m", series.SLIBadVersionSum + "1h",
		series.SLIBadVersionSum + "6h", series.SLIBadVersionSum + "1d", series.SLIBadVersionSum + "3d",
		series.SLIBadVersionClusters, series.SLOVersionBurn, series.SLOReleaseBurn:
		return troubled && version == next
	case series.SLIBadCluster, series.SLIBadClusterSum + "1h", series.SLOBurn:
		return troubled
	case series.SLOClusterBurn, series.ClusterSilent, series.ClusterLost:
		return second && cluster == "canary"
	case series.RolloutWaveFailed:
		return version == next && l[series.Wave] == "production"
	case series.SLOEdited:
		return changed && l[series.SLI] == "csv" && second
	case series.SLIBad: // nobody measures the SLI catalog
		return l[series.SLI] != "catalog"
	case series.RolloutInfo, series.RolloutChangeStart:
		return version == next
	case series.RolloutPhase:
		paused := second && at.Before(f.half().Add(10*time.Minute))
		return l[series.Phase] == map[bool]string{true: "Paused", false: "Progressing"}[paused]
	case series.RolloutWavePhase:
		return l[series.Phase] == map[string]string{"canary": "Verified", "production": "Updating"}[l[series.Wave]]
	}
	return true
}

// value is what a series says at a time. Counters grow by one a minute.
func (f *fixture) value(name string, l map[string]string, at time.Time) float64 {
	minutes := at.Sub(f.start()).Minutes()
	switch {
	case strings.HasSuffix(name, "_timestamp_seconds"):
		return float64(f.half().Unix())
	case strings.HasSuffix(name, "_total"), strings.HasSuffix(name, "_count"), strings.HasSuffix(name, "_sum"),
		strings.HasSuffix(name, "_bucket"):
		if l["le"] == "1.0" {
			return minutes / 2
		}
		return minutes
	case strings.HasPrefix(name, series.SLIBadVersionSum), strings.HasPrefix(name, series.SLIBadClusterSum):
		return 5
	}
	switch name {
	case series.SLOBudgetLeft:
		if f.has(series.SLOEdited, l, f.half()) {
			return -0.2
		}
		return 0.9
	case series.SLOBudgetExcluding:
		return 0.3
	case series.SLOObjective:
		return 0.99
	case series.SLOPeriod:
		return 30 * 24 * 3600
	case series.SLOGuard:
		return 2.5
	case series.SLIBad:
		if f.has(series.SLIBadSlice, l, at) {
			return 1
		}
		return 0
	}
	return 1
}

// controllers are what controller-runtime, client-go and Go itself export of hub, agents and operators, and API servers
// of the operators' webhooks.
func (f *fixture) controllers() {
	for _, cluster := range domains[series.Cluster] {
		for _, job := range []map[string]string{
			{"job": "agent", "instance": cluster + ":8080"}, {"job": "hub", "instance": "hub:8080"},
			{"job": "operators", "instance": cluster + "-echo:8080"},
		} {
			job[series.Cluster], job[series.Namespace] = cluster, "ns-echo"
			f.controller(job)
		}
		api := map[string]string{"job": "apiserver", "instance": cluster + ":6443", series.Cluster: cluster,
			series.Name: domains[series.Name][0]}
		f.one(series.AdmissionRequestsTotal, api, map[string]string{"code": "200"})
		f.one(series.AdmissionRejectionCount, api, map[string]string{"error_type": series.AdmissionCallingError})
		f.one(series.AdmissionFailOpenCount, api)
		kubelet := map[string]string{"job": "kubelet", "instance": cluster + ":10250", series.Cluster: cluster,
			series.Namespace: "ns-echo"}
		for _, name := range []string{series.ContainerMemory, series.ContainerMemoryLimit, series.ContainerThrottled,
			series.ContainerPeriods} {
			f.one(name, kubelet, map[string]string{"pod": "controller-0", "container": "manager"})
		}
		for _, name := range []string{series.VolumeAvailable, series.VolumeCapacity} {
			f.one(name, kubelet, map[string]string{series.VolumeClaim: "data"})
		}
	}
}

func (f *fixture) controller(job map[string]string) {
	for name, more := range map[string]map[string]string{
		series.ReconcileTotal:       {"controller": "install", "result": "success"},
		series.ReconcileErrorsTotal: {"controller": "install"}, series.ReconcilePanicsTotal: {"controller": "install"},
		series.ReconcileTimeCount: {"controller": "install"}, series.QueueDepth: {"name": "install"},
		series.QueueLongestRunning: {"name": "install"},
		series.LeaderStatus:        {"name": "lease"}, "rest_client_requests_total": {"code": "200", "method": "GET",
			"host": "api"},
		"process_resident_memory_bytes": nil, "process_cpu_seconds_total": nil, "go_goroutines": nil,
	} {
		f.one(name, job, more)
	}
	for _, code := range []string{"200", "500"} {
		f.one(series.WebhookRequestsTotal, job, map[string]string{"webhook": "/mutate", "code": code})
	}
	for _, le := range []string{"1.0", "10.0", "+Inf"} {
		f.one(series.ReconcileTimeBucket, job, map[string]string{"controller": "install", "le": le})
		f.one("workqueue_queue_duration_seconds_bucket", job, map[string]string{"name": "install", "le": le})
	}
}

// one adds a series that is there all the time.
func (f *fixture) one(name string, labels ...map[string]string) {
	all := map[string]string{}
	for _, some := range labels {
		maps.Copy(all, some)
	}
	f.add(name, all, func(at time.Time) (float64, bool) { return f.value(name, all, at), true })
}

func (f *fixture) probes() {
	for _, name := range []string{
		series.ProbeSuccess, series.ProbeDuration, series.ProbeHTTPStatusCode, series.ProbeSSLEarliestExpiry,
		series.ProbeSSLChainExpiry, series.ProbeDNSLookupTime,
	} {
		f.product(name, map[string]string{"job": "agent"},
			append([]string{series.Cluster}, series.OfOperator(series.Probe, series.Vantage)...))
	}
	f.product(series.ProbeHTTPDuration, map[string]string{"job": "agent", "phase": "connect"},
		append([]string{series.Cluster}, series.OfOperator(series.Probe, series.Vantage)...))
}

// alerts are a cluster's page and ticket, and a release's page.
func (f *fixture) alerts() {
	base := map[string]string{"alertstate": "firing", series.OperatorNamespace: "staging", series.Operator: "echo",
		series.SLI: "csv", series.SLO: "staging/echo/csv", series.Team: "payments"}
	for _, labels := range []map[string]string{
		{"alertname": "BellwetherOperatorSLOBurn", series.Severity: series.Page, series.Scope: series.ScopeOperator,
			series.Cluster: "canary"},
		{"alertname": "BellwetherOperatorSLOBurn", series.Severity: series.Ticket,
			series.Scope: series.ScopeOperator, series.Cluster: "prod-eu"},
		{"alertname": "BellwetherReleaseSLOBurn", series.Severity: series.Page, series.Scope: series.ScopeRelease,
			series.Version: next},
	} {
		f.one("ALERTS", base, labels)
	}
}

// paging is what Prometheus and Alertmanager export of themselves.
func (f *fixture) paging() {
	self := map[string]string{"job": "prometheus", "instance": "prometheus:9090"}
	for _, name := range []string{"iterations_missed_total", "last_duration_seconds",
		"last_evaluation_timestamp_seconds"} {
		f.one("prometheus_rule_group_"+name, self, map[string]string{"rule_group": "/rules/slo.yaml;bellwether-sli"})
	}
	f.one("prometheus_rule_evaluation_failures_total", self,
		map[string]string{"rule_group": "/rules/slo.yaml;bellwether-sli"})
	for _, name := range []string{"alertmanagers_discovered", "dropped_total"} {
		f.one("prometheus_notifications_"+name, self)
	}
	for _, name := range []string{"sent_total", "errors_total"} {
		f.one("prometheus_notifications_"+name, self, map[string]string{"alertmanager": "http://alertmanager:9093"})
	}
	manager := map[string]string{"job": "alertmanager", "instance": "alertmanager:9093"}
	f.one("alertmanager_config_last_reload_successful", manager)
	f.one("alertmanager_silences", manager, map[string]string{"state": "active"})
	f.one("alertmanager_alerts", manager, map[string]string{"state": "suppressed"})
	pager := map[string]string{"integration": "pagerduty"}
	f.one("alertmanager_notifications_total", manager, pager)
	f.one("alertmanager_notifications_failed_total", manager, pager, map[string]string{"reason": "authError"})
	for _, le := range []string{"1.0", "10.0", "+Inf"} {
		f.one("alertmanager_notification_latency_seconds_bucket", manager, pager, map[string]string{"le": le})
	}
}

// names are those of all series.
func names(all []prometheus.History) map[string]bool {
	out := map[string]bool{}
	for _, h := range all {
		out[h.Name] = true
	}
	return out
}

// check finds mistakes of the fixture itself: the same series twice, or one that is never there.
func check(all []prometheus.History) error {
	seen := map[string]bool{}
	present := map[string]bool{}
	for _, h := range all {
		var pairs []string
		for _, name := range slices.Sorted(maps.Keys(h.Labels)) {
			pairs = append(pairs, name+"="+h.Labels[name])
		}
		id := h.Name + strings.Join(pairs, ",")
		if seen[id] {
			return fmt.Errorf("%s is there twice", id)
		}
		seen[id] = true
		for at := h.From; at.Before(h.To) && !present[h.Name]; at = at.Add(h.Interval) {
			_, present[h.Name] = h.Value(at)
		}
	}
	for name := range names(all) {
		if !present[name] {
			return fmt.Errorf("%s is never there", name)
		}
	}
	return nil
}
