// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"slices"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Restarts can explain all SLIs except unexplainedByRestarts, and the number of custom
// resources explains only explainedByCustomResources. Prometheus evaluates the queries of
// annotations for every alert at each evaluation, so queries that explain nothing are skipped:
// there may be thousands of tickets, most of them about failures that happened hours ago.
var (
	unexplainedByRestarts      = []string{"catalog", CustomResources, Storage, Throttling}
	explainedByCustomResources = []string{CustomResources, Memory, OOM, latency, "queue", Throttling}
)

// addEvidence adds the known causes of an alert about an operator on a cluster to
// its annotations, and returns them. The annotations are empty where no cause is
// known. Recent restarts are in pages, and in tickets about SLIs that never page.
func addEvidence(severity string, annotations map[string]string) map[string]string {
	byRestarts := fmt.Sprintf("not (%s)", buildSLICondition(unexplainedByRestarts))
	if severity == series.Ticket {
		byRestarts = buildSLICondition(slices.DeleteFunc(listTicketSLIs(), func(sli string) bool {
			return slices.Contains(unexplainedByRestarts, sli)
		}))
	}
	annotations["restarts"] = fmt.Sprintf("{{ if %s }}%s{{ end }}", byRestarts, listRestarts())
	annotations["custom_resources"] = fmt.Sprintf("{{ if %s }}%s{{ end }}",
		buildSLICondition(explainedByCustomResources),
		listCustomResources())
	return annotations
}

// buildSLICondition returns a template condition that an alert is about one of the SLIs.
func buildSLICondition(slis []string) string {
	condition := "eq $labels.sli"
	for _, name := range slis {
		condition += " " + quote(name)
	}
	return condition
}

// alertSelector is the format of a selector of the operator and cluster of an alert.
const alertSelector = series.Cluster + "=%q," + series.OperatorNamespace + "=%q," + series.Operator + "=%q"

// listAlertResults returns a template that lists the results of a query with alertSelector.
func listAlertResults(query, each string) string {
	return listResults(query, each, series.Cluster, series.OperatorNamespace, series.Operator)
}

// listRestarts returns a template with the number of recent container restarts by reason.
func listRestarts() string {
	return listAlertResults(fmt.Sprintf("sum by (%s) (max_over_time(%s{%s}[1h]))", series.RestartReason,
		series.RecentRestarts, alertSelector),
		`{{ if not $i }}within 10 minutes: {{ end }}{{ $x | value | printf "%.0f" }} {{ $x | label "reason" }}`)
}

// listCustomResources returns a template that lists the kinds that are
// above their limit, with their number or their increase within a day.
func listCustomResources() string {
	return listAlertResults(fmt.Sprintf("topk(%d, max by (%s, %s) (%s{%s}))", maxListed, series.Kind, series.Of,
		series.CustomResourcesExcess, alertSelector), `{{ $x | value | printf "%.0f" }} {{ $x | label "kind" }}`+
		`{{ if eq ($x | label "of") "growth" }} more than a day before{{ end }}`)
}

// buildEvidenceRule returns the rule that records recent restarts for
// alerts, only where there are any, so that few series are sent to a hub.
func buildEvidenceRule() monitoringv1.Rule {
	return newRecord(series.RecentRestarts, fmt.Sprintf("%s >= 0.5", aggregate("sum", installLabels+", "+
		series.RestartReason, fmt.Sprintf("increase(%s[%s])", series.OperatorRestarts, restartWindow))))
}
