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
	// failedRecently is how long a verdict on a wave counts for a page without a burn
	// rate. What still burns by then has one.
	failedRecently = 30 * time.Minute
	// badOfRunning and badOfGone are how long the page goes on after the last bad slice
	// of the version: while a cluster runs it, and when none does. A verdict may be
	// scraped after the version that it is about is gone; its last slice is then up to
	// three slices old.
	badOfRunning = 10 * time.Minute
	badOfGone    = 3 * time.Minute
)

// failedReleases are the versions a wave of whose newest rollout was judged failed
// lately. While nothing is known of the hub, what it said last counts.
func failedReleases() string {
	failed := series.RolloutWaveFailed
	return fmt.Sprintf("(\n  (%s or (%s unless on () %s))\n  unless %s %s offset %s\n)",
		aggregate("group", versionLabels, failed),
		aggregate("group", versionLabels, fmt.Sprintf("last_over_time(%s[%s])", failed, duration(hubMemory))),
		series.FleetClusters, on(versionLabels), failed, duration(failedRecently))
}

// failedReleaseAlert is the page about a version with a wave that was judged failed, from
// its first bad slice on: that a gate and an SLI agree takes the place of the burn rate.
// It is about all SLIs of the version, and has the name, and so the incident, of the pages
// about single ones.
//
// It is not held: of a version that no cluster runs any more, no slice can be bad again.
func (s Set) failedReleaseAlert() monitoringv1.Rule {
	bad := func(window time.Duration) string {
		return fmt.Sprintf("last_over_time(%s{version!=\"\"}[%s])", series.SLIBadVersion, duration(window))
	}
	slices := fmt.Sprintf("\n  (%s or %s and on (%s, %s) %s)\n  and %s %s{tier=%q}\n", bad(badOfGone),
		bad(badOfRunning), series.Cluster, versionLabels, series.OperatorInfo, on(objectiveLabels), threshold,
		fastest().Name)
	expr := ofTeam(withRegrown(fmt.Sprintf("%s\nand %s %s", aggregate("group", versionLabels, slices),
		on(versionLabels), failedReleases()), versionLabels))
	out := rule(AlertRelease, series.Page, series.ScopeRelease, expr, s.annotateFailedRelease())
	// An empty label is none. It tells this rule from that about single SLIs.
	out.Labels[series.SLI] = ""
	return out
}

func (s Set) annotateFailedRelease() map[string]string {
	of := slices.Clone(operatorAndVersion)
	by := func(label string) string {
		return fmt.Sprintf("max by (%s) (last_over_time(%s{%s=%%q,%s=%%q,%s=%%q}[%s]))", label, series.SLIBadVersion,
			series.OperatorNamespace, series.Operator, series.Version, duration(badOfRunning))
	}
	count := list("count("+by(series.Cluster)+")", `{{ $x | value | printf "%.0f" }}`, of...)
	out := addChange(map[string]string{
		"summary": "A wave of the rollout of " + nameOfOperator + " {{ $labels.version }} was judged failed, and the " +
			"version is bad on " + list("count("+by(series.Cluster)+")",
			`{{ $x | value | printf "%.0f" }} cluster{{ if ne ($x | value) 1.0 }}s{{ end }}`, of...) + " (" +
			listBy(series.SLI, by(series.SLI), `{{ $x | label "sli" }}`, of...) + ")",
		"description": "A gate of the wave failed, or more of its clusters failed than may, and SLIs of the version " +
			"were bad. The failure policy of the rollout says what the hub does about it.",
		"budget_left": budgetLeft("min(%s)", series.OperatorNamespace, series.Operator),
		"clusters": listBy(series.Cluster, fmt.Sprintf("topk(%d, %s)", listed, by(series.Cluster)),
			`{{ $x | label "cluster" }}`, of...),
		"cluster_count": count,
		"criticality":   s.criticality(),
	}, "a wave of {{ $labels.version }} was judged failed")
	if s.DashboardURL != "" {
		out["dashboard_url"] = s.dashboard()
	}
	return out
}
