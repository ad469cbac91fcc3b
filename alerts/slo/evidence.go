// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"slices"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Restarts explain all SLIs but these, and the number of custom resources only explains those. Prometheus evaluates
// what an annotation quotes for each alert and each time, so that nothing is looked up that explains nothing: there may
// be thousands of tickets, most of them about what happened hours ago.
var (
	notByRestarts     = []string{"catalog", CustomResources, Storage, Throttling}
	byCustomResources = []string{CustomResources, Memory, OOM, latency, "queue", Throttling}
)

// addEvidence adds what is known of the cause of an alert about an operator on a
// cluster to its annotations; they are empty where nothing is known. Recent restarts
// are told by pages, and by tickets about SLIs that never page.
func addEvidence(severity string, annotations map[string]string) map[string]string {
	byRestarts := fmt.Sprintf("not (%s)", isOneOf(notByRestarts))
	if severity == series.Ticket {
		byRestarts = isOneOf(slices.DeleteFunc(neverPaging(), func(sli string) bool {
			return slices.Contains(notByRestarts, sli)
		}))
	}
	annotations["restarts"] = fmt.Sprintf("{{ if %s }}%s{{ end }}", byRestarts, restartsOf())
	annotations["custom_resources"] = fmt.Sprintf("{{ if %s }}%s{{ end }}", isOneOf(byCustomResources),
		customResourcesOf())
	return annotations
}

// isOneOf is a template's condition that an alert is about one of these SLIs.
func isOneOf(slis []string) string {
	condition := "eq $labels.sli"
	for _, name := range slis {
		condition += " " + quote(name)
	}
	return condition
}

// ofAlert is a format of a selector of the operator and cluster of an alert.
const ofAlert = series.Cluster + "=%q," + series.OperatorNamespace + "=%q," + series.Operator + "=%q"

// listOfAlert is a list of the results of a query with ofAlert.
func listOfAlert(query, each string) string {
	return list(query, each, series.Cluster, series.OperatorNamespace, series.Operator)
}

// restartsOf says how often containers restarted lately, and why.
func restartsOf() string {
	return listOfAlert(fmt.Sprintf("sum by (%s) (max_over_time(%s{%s}[1h]))", series.RestartReason,
		series.RecentRestarts, ofAlert),
		`{{ if not $i }}within 10 minutes: {{ end }}{{ $x | value | printf "%.0f" }} {{ $x | label "reason" }}`)
}

// customResourcesOf lists the kinds that are above their limit, with their number
// or their growth within a day.
func customResourcesOf() string {
	return listOfAlert(fmt.Sprintf("topk(%d, max by (%s, %s) (%s{%s}))", listed, series.Kind, series.Of,
		series.CustomResourcesExcess, ofAlert), `{{ $x | value | printf "%.0f" }} {{ $x | label "kind" }}`+
		`{{ if eq ($x | label "of") "growth" }} more than a day before{{ end }}`)
}

// evidence records what alerts quote, where there is something to say: few series
// travel to a hub for it.
func evidence() monitoringv1.Rule {
	return record(series.RecentRestarts, fmt.Sprintf("%s >= 0.5", aggregate("sum", installLabels+", "+
		series.RestartReason, fmt.Sprintf("increase(%s[%s])", series.OperatorRestarts, restartWindow))))
}
