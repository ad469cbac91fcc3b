// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Labels that rules group by and join on. The namespace and the name together identify an operator.
const (
	operatorLabels = series.OperatorNamespace + ", " + series.Operator
	// installLabels identify an operator on a cluster.
	installLabels = series.Cluster + ", " + operatorLabels
	// objectiveLabels identify an objective, and budgetLabels its budget on one cluster.
	objectiveLabels = operatorLabels + ", " + series.SLI
	budgetLabels    = series.Cluster + ", " + objectiveLabels
	// versionLabels identify a version of an operator, and releaseLabels an objective of a version.
	versionLabels = operatorLabels + ", " + series.Version
	releaseLabels = objectiveLabels + ", " + series.Version
	// namespaceLabels identify the source namespace of scraped
	// series, and ownLabels also the operator that the series name.
	namespaceLabels = series.Cluster + ", " + series.Namespace
	ownLabels       = namespaceLabels + ", " + operatorLabels
	// clusterReleaseLabels identify an objective of a version on one cluster.
	clusterReleaseLabels = series.Cluster + ", " + releaseLabels
)

// aggregate returns PromQL that aggregates expr by labels, such as sum by (labels) (expr).
func aggregate(operation, labels, expr string) string {
	return fmt.Sprintf("%s by (%s) (%s)", operation, labels, expr)
}

// matchOn returns the clause for the labels that the two sides of a binary operation are matched on.
func matchOn(labels string) string { return "on (" + labels + ")" }

// quote returns a PromQL string literal.
func quote(text string) string { return fmt.Sprintf("%q", text) }

// matchOperator returns the matchers of one operator.
func matchOperator(id types.NamespacedName) string {
	return fmt.Sprintf("%s=%q,%s=%q", series.OperatorNamespace, id.Namespace, series.Operator, id.Name)
}

// selectOperators selects the series of some operators that
// also meet further matchers: one selector for each namespace.
func selectOperators(metric string, operators []types.NamespacedName, matchers ...string) string {
	selectors := listOperatorSelectors(metric, operators, matchers...)
	if len(selectors) == 1 {
		return selectors[0]
	}
	return "(" + strings.Join(selectors, " or ") + ")"
}

// listOperatorSelectors returns the single selectors of selectOperators.
func listOperatorSelectors(metric string, operators []types.NamespacedName, matchers ...string) []string {
	names := map[string][]string{}
	for _, id := range operators {
		names[id.Namespace] = append(names[id.Namespace], regexp.QuoteMeta(id.Name))
	}
	var selectors []string
	for _, namespace := range slices.Sorted(maps.Keys(names)) {
		slices.Sort(names[namespace])
		all := append(slices.Clone(matchers), fmt.Sprintf("%s=%q", series.OperatorNamespace, namespace),
			fmt.Sprintf("%s=~%q", series.Operator, strings.Join(names[namespace], "|")))
		selectors = append(selectors, metric+"{"+strings.Join(all, ",")+"}")
	}
	return selectors
}

// selectOthers selects the series of all operators except some, with further matchers.
func selectOthers(metric string, except []types.NamespacedName, matchers ...string) string {
	all := metric
	if len(matchers) > 0 {
		all += "{" + strings.Join(matchers, ",") + "}"
	}
	if len(except) == 0 {
		return all
	}
	return "(" + all + " unless " + selectOperators(metric, except, matchers...) + ")"
}
