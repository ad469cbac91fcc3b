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

// Labels that rules group by and join on. An operator is identified by its
// namespace and its name together.
const (
	operatorLabels = series.OperatorNamespace + ", " + series.Operator
	// installLabels are those of an operator on a cluster.
	installLabels = series.Cluster + ", " + operatorLabels
	// objectiveLabels are those of an objective, and budgetLabels those of its budget
	// on one cluster.
	objectiveLabels = operatorLabels + ", " + series.SLI
	budgetLabels    = series.Cluster + ", " + objectiveLabels
	// versionLabels are those of a version of an operator, and releaseLabels those of
	// an objective of a version.
	versionLabels = operatorLabels + ", " + series.Version
	releaseLabels = objectiveLabels + ", " + series.Version
	// namespaceLabels are those of what is scraped from a namespace of a cluster, and ownLabels
	// those of what also names its operator.
	namespaceLabels = series.Cluster + ", " + series.Namespace
	ownLabels       = namespaceLabels + ", " + operatorLabels
	// clusterReleaseLabels are those of an objective of a version on one cluster.
	clusterReleaseLabels = series.Cluster + ", " + releaseLabels
)

// aggregate writes an aggregation by labels.
func aggregate(operation, labels, expr string) string {
	return fmt.Sprintf("%s by (%s) (%s)", operation, labels, expr)
}

// on writes the labels that two sides of a binary operation are matched on.
func on(labels string) string { return "on (" + labels + ")" }

// quote writes a string of PromQL.
func quote(text string) string { return fmt.Sprintf("%q", text) }

// matchOperator selects one operator.
func matchOperator(id types.NamespacedName) string {
	return fmt.Sprintf("%s=%q,%s=%q", series.OperatorNamespace, id.Namespace, series.Operator, id.Name)
}

// selectOperators selects the series of some operators that also meet further
// matchers: one selector for each namespace.
func selectOperators(metric string, operators []types.NamespacedName, matchers ...string) string {
	selectors := operatorSelectors(metric, operators, matchers...)
	if len(selectors) == 1 {
		return selectors[0]
	}
	return "(" + strings.Join(selectors, " or ") + ")"
}

// operatorSelectors are the selectors of selectOperators.
func operatorSelectors(metric string, operators []types.NamespacedName, matchers ...string) []string {
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

// selectOthers selects the series of all operators but some that also meet
// further matchers.
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
