// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"errors"
	"fmt"
	"strings"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Part is the part of the rules that a Prometheus evaluates.
type Part string

const (
	// Whole is for one Prometheus that scrapes the hub and all clusters.
	Whole Part = ""
	// Edge is for the Prometheus of each cluster. It makes slices, and sends the hub's
	// Prometheus the series of series.Travelling.
	Edge Part = "edge"
	// Hub is for the Prometheus that receives them and that scrapes the hub. Of
	// clusters it reads no other series.
	Hub Part = "hub"
)

// ErrPart says that there is no such part of the rules.
var ErrPart = errors.New("unknown part of the rules")

// ParsePart reads a part: edge, hub, or nothing for the whole.
func ParsePart(text string) (Part, error) {
	switch p := Part(text); p {
	case Whole, Edge, Hub:
		return p, nil
	}
	return Whole, fmt.Errorf("%w %q", ErrPart, text)
}

// QueryOffset is how far behind the groups of the hub part are evaluated, so that
// samples which take some seconds to arrive are in.
const QueryOffset = 30 * time.Second

// slices selects the slices that a part makes. Those of probes are made where the
// results from all vantage points are.
func (p Part) slices() string {
	switch p {
	case Edge:
		return ofAgents
	case Hub:
		return ofProbes
	}
	return ""
}

// ofProbes selects the slices of probes, and ofAgents all others.
const (
	ofProbes = `{sli=~"probe:.+"}`
	ofAgents = `{sli!~"probe:.+"}`
)

// delay has groups evaluated QueryOffset behind.
func delay(groups []monitoringv1.RuleGroup) {
	for i := range groups {
		d := monitoringv1.Duration(duration(QueryOffset))
		groups[i].QueryOffset = &d
	}
}

// heartbeat records when slices of a cluster were made, with the version of their
// schema. The hub may also probe clusters that nothing else is known of.
func heartbeat() monitoringv1.Rule {
	return record(series.SlicesRecorded, "time() * "+aggregate("group", series.Cluster, series.SLIBad+ofAgents),
		series.Schema, series.SliceSchema)
}

// lateAfter is how old the newest slices of a cluster are when they are late. An
// older sample is not found by queries without a window.
const lateAfter = 5 * time.Minute

// clusterStates record which clusters have slices, whose slices are late, and of
// which nothing is known.
func clusterStates() []monitoringv1.Rule {
	lag := series.SliceLag
	late := fmt.Sprintf("%[1]s ^ 0\nand %[1]s > %[2]d\nand %[1]s - (%[1]s offset %[3]s) < %[4]d", lag,
		int(lateAfter.Seconds()), duration(lateAfter), int((lateAfter - Step).Seconds()))
	return []monitoringv1.Rule{
		record(series.ClusterMeasured, aggregate("group", series.Cluster, series.SlicesRecorded)),
		record(lag, "time() - "+aggregate("max", series.Cluster,
			fmt.Sprintf("last_over_time(%s[1h])", series.SlicesRecorded))),
		record(series.ClusterLate, late),
		record(series.ClusterSilent, fmt.Sprintf("%s unless on (cluster) %s",
			aggregate("group", series.Cluster, series.ClusterOnline), series.ClusterMeasured)),
		lost(),
	}
}

// partAlerts are about what arrives of clusters that evaluate the edge part.
func partAlerts() []monitoringv1.Rule {
	return []monitoringv1.Rule{
		wait(rule(AlertLate, series.Ticket, series.ScopeCluster,
			series.SliceLag+" and on (cluster) "+series.ClusterLate, map[string]string{
				"summary": "Measurements of cluster {{ $labels.cluster }} arrive {{ humanizeDuration $value }} late",
				"description": "Alerts about the cluster fire late or not at all until its measurements arrive " +
					"within " + duration(lateAfter) + ". Check the remote write of the cluster's Prometheus, and the " +
					"receiver.",
			}), absentWindow),
		wait(rule(AlertSchema, series.Ticket, series.ScopeCluster,
			fmt.Sprintf("group by (cluster, schema) (%s{schema!=%q})", series.SlicesRecorded, series.SliceSchema),
			map[string]string{
				"summary": "Cluster {{ $labels.cluster }} sends measurements of the unknown schema " +
					"{{ $labels.schema }}",
				"description": "The rules here know schema " + series.SliceSchema + ". Generate the rules of the " +
					"cluster and those of the hub with the same version of Bellwether.",
			}), absentWindow),
	}
}

// KeepTravelling is the regular expression of a relabelling of remote write that
// keeps the series of series.Travelling.
func KeepTravelling() string { return strings.Join(series.Travelling(), "|") }

// Comment says, as lines of comment in YAML, what a Prometheus that evaluates the
// part needs beside it.
func (p Part) Comment() string {
	switch p {
	case Edge:
		return `# The edge part, for the Prometheus of each cluster. It is the same for all clusters. What that
# Prometheus sends to the hub's is written by: bellwether slo edge-config
`
	case Hub:
		return `# The hub part, for the Prometheus that scrapes the hub and to which the Prometheus of each cluster,
# with the edge part, sends its slices. Samples of the last hours may arrive late: set
# storage.tsdb.out_of_order_time_window to ` + duration(OutOfOrderWindow) + ".\n"
	}
	return ""
}
