// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// selectSeries returns a selector for a series. It adds the matchers for the variables of the operator and the
// cluster, if the series has these labels, and the given matchers.
func selectSeries(name string, matchers ...string) string {
	labels := listLabels(name)
	for _, l := range []string{series.Operator, series.OperatorNamespace, series.Cluster} {
		if slices.Contains(labels, l) {
			matchers = append([]string{matchVariable(l)}, matchers...)
		}
	}
	if len(matchers) == 0 {
		return name
	}
	return name + "{" + strings.Join(matchers, ",") + "}"
}

// matchVariable returns a matcher of a label for the values of the variable with the same name.
func matchVariable(label string) string { return fmt.Sprintf(`%s=~"$%s"`, label, label) }

// matchLabel returns a matcher for one value of a label.
func matchLabel(label, value string) string { return fmt.Sprintf("%s=%q", label, value) }

// listLabels returns the labels of a series, from package series. The name can have a suffix of a histogram or of a
// window. Other series, which are scraped from operators, only have the label cluster.
func listLabels(name string) []string {
	for _, s := range series.Exported() {
		if strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count") == s.Name {
			return append([]string{series.Cluster}, s.Labels...)
		}
	}
	for _, s := range slices.Concat(series.Hub(), series.Recorded()) {
		hasWindow := strings.HasPrefix(name, s.Name) &&
			slices.Contains([]string{series.SLIBadVersionSum, series.SLIBadClusterSum}, s.Name)
		if name == s.Name || hasWindow {
			return s.Labels
		}
	}
	if strings.HasPrefix(name, "probe_") {
		return append([]string{series.Cluster}, series.OfOperator(series.Probe, series.Vantage)...)
	}
	return []string{series.Cluster}
}

// selectFiringAlerts returns a selector for firing alerts. Alerts about a release have no cluster, and
// are selected for every cluster.
func selectFiringAlerts(matchers ...string) string {
	all := append([]string{`alertname=~"Bellwether.+"`, `alertstate="firing"`, `severity=~"page|ticket"`,
		`cluster=~"$cluster|"`, `operator_namespace=~"$operator_namespace|"`, `operator=~"$operator|"`}, matchers...)
	return "ALERTS{" + strings.Join(all, ",") + "}"
}

// setMissingTeam returns a query in which a missing team is "nobody", because the legend would be empty.
func setMissingTeam(selector string) string {
	return fmt.Sprintf(`label_replace(%s, %q, "nobody", %q, "")`, selector, series.Team, series.Team)
}

// defaultToZero returns a query with the result of count, or 0 if only base has a result. If base has no result
// either, the query has none, because nothing was measured.
func defaultToZero(count, base string) string {
	return fmt.Sprintf("%s\nor\n0 * count(%s)", count, base)
}

// buildRate returns a query for the rate of a counter.
func buildRate(selector string) string { return "rate(" + selector + "[$__rate_interval])" }

// selectHighest selects the n highest series at each time, and selectLowest selects the n lowest. A panel that uses
// them has the number in its description.
func selectHighest(n int, expr string) string { return fmt.Sprintf("topk(%d, %s)", n, expr) }
func selectLowest(n int, expr string) string  { return fmt.Sprintf("bottomk(%d, %s)", n, expr) }

// buildIncrease returns a query for the increase of a counter within 15 minutes.
func buildIncrease(selector string) string { return "increase(" + selector + "[15m])" }

// buildAchieved returns a query for the part of the period's slices that was good, from 0 to 1. budgetLeft is the
// remaining budget, by objective and further labels.
func buildAchieved(budgetLeft, objective string) string {
	return fmt.Sprintf("1 - (1 - %s)\n* on (%s, sli) group_left ()\n(1 - %s)", budgetLeft, operatorLabels, objective)
}

// buildLink returns the address of another dashboard, with the current data source, the current time
// range and the given variables.
func buildLink(uid string, variables ...string) string {
	return "/d/" + uid + "?${datasource:queryparam}&${__url_time_range}&" + strings.Join(variables, "&")
}

// passColumn returns the part of a link that sets a variable to a column of the table's row.
func passColumn(variable, column string) string {
	return fmt.Sprintf("var-%s=${__data.fields.%s}", variable, column)
}

// passLabel returns the part of a link that sets a variable to the label of the series with the same name.
func passLabel(name string) string { return fmt.Sprintf("var-%s=${__field.labels.%s}", name, name) }

func newDatasourceVariable() dashboard.VariableModel {
	return dashboard.VariableModel{
		Type: dashboard.VariableTypeDatasource, Name: "datasource", Label: ptr.To("Data source"),
		Query:       &dashboard.StringOrMap{String: ptr.To(prometheusSource)},
		Description: ptr.To("The Prometheus that evaluates the SLOs' rules and scrapes hub and agents."),
		Refresh:     ptr.To(dashboard.VariableRefreshOnDashboardLoad),
	}
}

// newMultiVariable returns a variable of label values, of which the user can select several.
func newMultiVariable(name, title, values string) dashboard.VariableModel {
	v := newSingleVariable(name, title, values)
	v.Multi, v.IncludeAll, v.AllValue = ptr.To(true), ptr.To(true), ptr.To(".*")
	v.Current = &dashboard.VariableOption{
		Selected: ptr.To(true),
		Text:     dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
		Value:    dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
	}
	return v
}

// newSingleVariable returns a variable of label values, of which the user selects one.
func newSingleVariable(name, title, values string) dashboard.VariableModel {
	return dashboard.VariableModel{
		Type: dashboard.VariableTypeQuery, Name: name, Label: ptr.To(title), Datasource: ptr.To(newDataSource()),
		Query: &dashboard.StringOrMap{Map: map[string]any{"qryType": 1, "query": values, "refId": "variable-" +
			name}},
		Definition: ptr.To(values),
		Refresh:    ptr.To(dashboard.VariableRefreshOnTimeRangeChanged), Sort: ptr.To(dashboard.VariableSortNaturalAsc),
	}
}

// buildLabelValues returns Grafana's query for the values of a label.
func buildLabelValues(selector, label string) string {
	return fmt.Sprintf("label_values(%s, %s)", selector, label)
}

// Every page has variables with these names, so that links can pass their values to another page.

func newClusterVariable() dashboard.VariableModel {
	return newMultiVariable(series.Cluster, "Cluster", buildLabelValues(series.OperatorExpected, series.Cluster))
}

// newOperatorVariables returns the variables of a page about several operators.
func newOperatorVariables() []dashboard.VariableModel {
	matchers := matchVariable(series.Cluster)
	onClusters := series.OperatorExpected + "{" + matchers + "}"
	inNamespaces := series.OperatorExpected + "{" + matchers + "," + matchVariable(series.OperatorNamespace) + "}"
	return []dashboard.VariableModel{
		newMultiVariable(series.OperatorNamespace, "Operator namespace",
			buildLabelValues(onClusters, series.OperatorNamespace)),
		newMultiVariable(series.Operator, "Operator", buildLabelValues(inNamespaces, series.Operator)),
	}
}

// newSingleOperatorVariables returns the variables of a page about one operator. metric is the series with the
// operators that the user can select.
func newSingleOperatorVariables(metric string) []dashboard.VariableModel {
	return []dashboard.VariableModel{
		newSingleVariable(series.OperatorNamespace, "Operator namespace",
			buildLabelValues(metric, series.OperatorNamespace)),
		newSingleVariable(series.Operator, "Operator",
			buildLabelValues(metric+"{"+matchVariable(series.OperatorNamespace)+"}", series.Operator)),
	}
}

// operatorLabels are the labels that identify an operator, for the groupings of queries.
const operatorLabels = series.OperatorNamespace + ", " + series.Operator

// aggregateByOperator returns a query that aggregates by operator and further labels.
func aggregateByOperator(operation, expr string, furtherLabels ...string) string {
	labels := strings.Join(append([]string{operatorLabels}, furtherLabels...), ", ")
	return fmt.Sprintf("%s by (%s) (%s)", operation, labels, expr)
}

// legendOperator is the name of an operator in legends and annotations.
const legendOperator = "{{" + series.OperatorNamespace + "}}/{{" + series.Operator + "}}"

// namespaceColumn is the column next to the column Operator in tables of operators.
var namespaceColumn = column{from: series.OperatorNamespace, title: "Namespace"}

// operatorFromRow and operatorFromSeries set the variables of a link to the operator of a table's row, or of a series.
var (
	operatorFromRow = passColumn(series.OperatorNamespace, "Namespace") + "&" + passColumn(series.Operator,
		"Operator")
	operatorFromSeries = passLabel(series.OperatorNamespace) + "&" + passLabel(series.Operator)
)
