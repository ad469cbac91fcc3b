// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"slices"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

const (
	// failedRecently is how long a verdict on a wave counts for a page
	// without a burn rate. A failure that lasts longer has a burn rate.
	failedRecently = 30 * time.Minute
	// runningMemory and goneMemory are how long the page continues after the last bad slice of the
	// version: while a cluster runs the version, and when no cluster runs it. A verdict may be scraped
	// after the last cluster has changed its version; the last bad slice is then up to three slices old.
	runningMemory = 10 * time.Minute
	goneMemory    = 3 * time.Minute
)

// selectFailedReleases returns PromQL for the versions whose newest rollout recently had a
// wave that was judged failed. While there is no data from the hub, its last samples count.
func selectFailedReleases() string {
	failed := series.RolloutWaveFailed
	return fmt.Sprintf("(\n  (%s or (%s unless on () %s))\n  unless %s %s offset %s\n)",
		aggregate("group", versionLabels, failed),
		aggregate("group", versionLabels, fmt.Sprintf("last_over_time(%s[%s])", failed, formatDuration(hubMemory))),
		series.FleetClusters, matchOn(versionLabels), failed, formatDuration(failedRecently))
}

// buildFailedReleaseAlert returns the page about a version with a wave that was judged failed. It fires
// from the first bad slice: a gate and an SLI that agree replace the burn rate. It is about all SLIs of
// the version. It has the same name as the pages about single SLIs, and so belongs to the same incident.
//
// It is not held: a version that no cluster runs cannot have bad slices.
func (s Set) buildFailedReleaseAlert() monitoringv1.Rule {
	selectBad := func(window time.Duration) string {
		return fmt.Sprintf("last_over_time(%s{version!=\"\"}[%s])", series.SLIBadVersion, formatDuration(window))
	}
	badSlices := fmt.Sprintf("\n  (%s or %s and on (%s, %s) %s)\n  and %s %s{tier=%q}\n", selectBad(goneMemory),
		selectBad(runningMemory), series.Cluster, versionLabels, series.OperatorInfo, matchOn(objectiveLabels),
		thresholdMetric, pickFastestTier().Name)
	expr := addTeam(addRegrown(fmt.Sprintf("%s\nand %s %s", aggregate("group", versionLabels, badSlices),
		matchOn(versionLabels), selectFailedReleases()), versionLabels))
	out := newAlert(AlertRelease, series.Page, series.ScopeRelease, expr, s.annotateFailedRelease())
	// An empty label equals no label. It distinguishes this rule from the rule about single SLIs.
	out.Labels[series.SLI] = ""
	return out
}

// annotateFailedRelease returns the annotations of the page about a version with a failed wave.
func (s Set) annotateFailedRelease() map[string]string {
	labels := slices.Clone(operatorAndVersion)
	selectBadBy := func(label string) string {
		return fmt.Sprintf("max by (%s) (last_over_time(%s{%s=%%q,%s=%%q,%s=%%q}[%s]))", label, series.SLIBadVersion,
			series.OperatorNamespace, series.Operator, series.Version, formatDuration(runningMemory))
	}
	count := listResults("count("+selectBadBy(series.Cluster)+")", `{{ $x | value | printf "%.0f" }}`, labels...)
	out := addChange(map[string]string{
		"summary": "A wave of the rollout of " + operatorName + " {{ $labels.version }} was judged failed, and the " +
			"version is bad on " + listResults("count("+selectBadBy(series.Cluster)+")",
			`{{ $x | value | printf "%.0f" }} cluster{{ if ne ($x | value) 1.0 }}s{{ end }}`, labels...) + " (" +
			listSortedResults(series.SLI, selectBadBy(series.SLI), `{{ $x | label "sli" }}`, labels...) + ")",
		"description": "A gate of the wave failed, or more of its clusters failed than may, and SLIs of the version " +
			"were bad. The failure policy of the rollout says what the hub does about it.",
		"budget_left": formatBudgetLeft("min(%s)", series.OperatorNamespace, series.Operator),
		"clusters": listSortedResults(series.Cluster,
			fmt.Sprintf("topk(%d, %s)", maxListed, selectBadBy(series.Cluster)),
			`{{ $x | label "cluster" }}`, labels...),
		"cluster_count": count,
		"criticality":   s.buildCriticality(),
	}, "a wave of {{ $labels.version }} was judged failed")
	if s.DashboardURL != "" {
		out["dashboard_url"] = s.buildDashboardURL()
	}
	return out
}
