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
	// Edge is for the Prometheus of each cluster. It makes slices, and
	// sends the series of series.Travelling to the Prometheus of the hub.
	Edge Part = "edge"
	// Hub is for the Prometheus that receives these series and scrapes the hub. It reads no other series of clusters.
	Hub Part = "hub"
)

// ErrPart is wrapped by errors about an unknown part of the rules.
var ErrPart = errors.New("unknown part of the rules")

// ParsePart reads a part: edge, hub, or empty for the whole.
func ParsePart(text string) (Part, error) {
	switch p := Part(text); p {
	case Whole, Edge, Hub:
		return p, nil
	}
	return Whole, fmt.Errorf("%w %q", ErrPart, text)
}

// QueryOffset is the delay of the evaluation of the hub part's
// groups. It covers samples that take some seconds to arrive.
const QueryOffset = 30 * time.Second

// matchSlices returns the matchers of the slices that a part makes. Slices of
// probes are made where the results from all vantage points are available.
func (p Part) matchSlices() string {
	switch p {
	case Edge:
		return agentSlices
	case Hub:
		return probeSlices
	}
	return ""
}

// probeSlices matches the slices of probes, and agentSlices all other slices.
const (
	probeSlices = `{sli=~"probe:.+"}`
	agentSlices = `{sli!~"probe:.+"}`
)

// setQueryOffset changes groups in place: their evaluation is delayed by QueryOffset.
func setQueryOffset(groups []monitoringv1.RuleGroup) {
	for i := range groups {
		d := monitoringv1.Duration(formatDuration(QueryOffset))
		groups[i].QueryOffset = &d
	}
}

// buildHeartbeat returns the rule that records when slices of a cluster were made, with the version of
// their schema. Slices of probes are excluded, because the hub may also probe clusters without other data.
func buildHeartbeat() monitoringv1.Rule {
	return newRecord(series.SlicesRecorded, "time() * "+aggregate("group", series.Cluster, series.SLIBad+agentSlices),
		series.Schema, series.SliceSchema)
}

// lateAfter is the age of a cluster's newest slices from which they
// count as late. Queries without a window do not find older samples.
const lateAfter = 5 * time.Minute

// buildClusterStates returns the rules that record which clusters have slices, late slices, or no data.
func buildClusterStates() []monitoringv1.Rule {
	lag := series.SliceLag
	// If no slices arrive, the lag grows as fast as the time: the cluster is then lost and not late.
	late := fmt.Sprintf("%[1]s ^ 0\nand %[1]s > %[2]d\nand %[1]s - (%[1]s offset %[3]s) < %[4]d", lag,
		int(lateAfter.Seconds()), formatDuration(lateAfter), int((lateAfter - Step).Seconds()))
	return []monitoringv1.Rule{
		newRecord(series.ClusterMeasured, aggregate("group", series.Cluster, series.SlicesRecorded)),
		newRecord(lag, "time() - "+aggregate("max", series.Cluster,
			fmt.Sprintf("last_over_time(%s[1h])", series.SlicesRecorded))),
		newRecord(series.ClusterLate, late),
		newRecord(series.ClusterSilent, fmt.Sprintf("%s unless on (cluster) %s",
			aggregate("group", series.Cluster, series.ClusterOnline), series.ClusterMeasured)),
		buildLostRule(),
	}
}

// buildPartAlerts returns the alerts about data that arrives from clusters with the edge part.
func buildPartAlerts() []monitoringv1.Rule {
	return []monitoringv1.Rule{
		setFor(newAlert(AlertLate, series.Ticket, series.ScopeCluster,
			series.SliceLag+" and on (cluster) "+series.ClusterLate, map[string]string{
				"summary": "Measurements of cluster {{ $labels.cluster }} arrive {{ humanizeDuration $value }} late",
				"description": "Alerts about the cluster fire late or not at all until its measurements arrive " +
					"within " + formatDuration(lateAfter) +
					". Check the remote write of the cluster's Prometheus, and the " +
					"receiver.",
			}), absentWindow),
		setFor(newAlert(AlertSchema, series.Ticket, series.ScopeCluster,
			fmt.Sprintf("group by (cluster, schema) (%s{schema!=%q})", series.SlicesRecorded, series.SliceSchema),
			map[string]string{
				"summary": "Cluster {{ $labels.cluster }} sends measurements of the unknown schema " +
					"{{ $labels.schema }}",
				"description": "The rules here know schema " + series.SliceSchema + ". Generate the rules of the " +
					"cluster and those of the hub with the same version of Bellwether.",
			}), absentWindow),
	}
}

// TravellingRegex returns the regular expression of a remote-write
// relabelling that keeps the series of series.Travelling.
func TravellingRegex() string { return strings.Join(series.Travelling(), "|") }

// Comment returns YAML comment lines that describe what a Prometheus with this part needs.
func (p Part) Comment() string {
	switch p {
	case Edge:
		return `# The edge part, for the Prometheus of each cluster. It is the same for all clusters. What that
# Prometheus sends to the hub's is written by: bellwether slo edge-config
`
	case Hub:
		return `# The hub part, for the Prometheus that scrapes the hub and to which the Prometheus of each cluster,
# with the edge part, sends its slices. Samples of the last hours may arrive late: set
# storage.tsdb.out_of_order_time_window to ` + formatDuration(OutOfOrderWindow) + ".\n"
	}
	return ""
}
