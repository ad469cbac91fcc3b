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

// of selects a series by the variables for those of its labels that a page
// always has one for, and by further matchers.
func of(name string, matchers ...string) string {
	labels := labelsOf(name)
	for _, l := range []string{series.Operator, series.OperatorNamespace, series.Cluster} {
		if slices.Contains(labels, l) {
			matchers = append([]string{chosen(l)}, matchers...)
		}
	}
	if len(matchers) == 0 {
		return name
	}
	return name + "{" + strings.Join(matchers, ",") + "}"
}

// chosen matches the variable of a label.
func chosen(label string) string { return fmt.Sprintf(`%s=~"$%s"`, label, label) }

// is matches a label's value.
func is(label, value string) string { return fmt.Sprintf("%s=%q", label, value) }

// labelsOf are the labels of a series, as package series has them. What is
// scraped from operators has the cluster only.
func labelsOf(name string) []string {
	for _, s := range series.Exported() {
		if strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count") == s.Name {
			return append([]string{series.Cluster}, s.Labels...)
		}
	}
	for _, s := range slices.Concat(series.Hub(), series.Recorded()) {
		window := strings.HasPrefix(name, s.Name) &&
			slices.Contains([]string{series.SLIBadVersionSum, series.SLIBadClusterSum}, s.Name)
		if name == s.Name || window {
			return s.Labels
		}
	}
	if strings.HasPrefix(name, "probe_") {
		return append([]string{series.Cluster}, series.OfOperator(series.Probe, series.Vantage)...)
	}
	return []string{series.Cluster}
}

// firing selects alerts. Those about a release have no cluster, and are shown
// whichever cluster is chosen.
func firing(matchers ...string) string {
	all := append([]string{`alertname=~"Bellwether.+"`, `alertstate="firing"`, `severity=~"page|ticket"`,
		`cluster=~"$cluster|"`, `operator_namespace=~"$operator_namespace|"`, `operator=~"$operator|"`}, matchers...)
	return "ALERTS{" + strings.Join(all, ",") + "}"
}

// orNobody names the team of what no team owns: a legend would be empty.
func orNobody(selector string) string {
	return fmt.Sprintf(`label_replace(%s, %q, "nobody", %q, "")`, selector, series.Team, series.Team)
}

// orNone is a count that is 0 where there is nothing to count and the base is
// there. Without the base there is no data: nobody looked.
func orNone(count, base string) string { return fmt.Sprintf("%s\nor\n0 * count(%s)", count, base) }

// rated is the rate of a counter.
func rated(selector string) string { return "rate(" + selector + "[$__rate_interval])" }

// most keeps the n highest series of each moment, and least the n lowest. Panels
// say in their description how many they show.
func most(n int, expr string) string  { return fmt.Sprintf("topk(%d, %s)", n, expr) }
func least(n int, expr string) string { return fmt.Sprintf("bottomk(%d, %s)", n, expr) }

// increased is how often something happened within 15 minutes.
func increased(selector string) string { return "increase(" + selector + "[15m])" }

// achieved is the part of the slices of the period that was good, for what is left
// of budgets by objective and further labels.
func achieved(left, objective string) string {
	return fmt.Sprintf("1 - (1 - %s)\n* on (%s, sli) group_left ()\n(1 - %s)", left, operatorLabels, objective)
}

// to is a link to another dashboard that keeps the data source and the time.
func to(uid string, variables ...string) string {
	return "/d/" + uid + "?${datasource:queryparam}&${__url_time_range}&" + strings.Join(variables, "&")
}

// field passes a column of a table's row on to a variable.
func field(variable, column string) string {
	return fmt.Sprintf("var-%s=${__data.fields.%s}", variable, column)
}

// label passes a label of a series on to the variable of that name.
func label(name string) string { return fmt.Sprintf("var-%s=${__field.labels.%s}", name, name) }

func datasourceVariable() dashboard.VariableModel {
	return dashboard.VariableModel{
		Type: dashboard.VariableTypeDatasource, Name: "datasource", Label: ptr.To("Data source"),
		Query:       &dashboard.StringOrMap{String: ptr.To(prometheusSource)},
		Description: ptr.To("The Prometheus that evaluates the SLOs' rules and scrapes hub and agents."),
		Refresh:     ptr.To(dashboard.VariableRefreshOnDashboardLoad),
	}
}

// choice is a variable of label values, of which several can be chosen.
func choice(name, title, values string) dashboard.VariableModel {
	v := one(name, title, values)
	v.Multi, v.IncludeAll, v.AllValue = ptr.To(true), ptr.To(true), ptr.To(".*")
	v.Current = &dashboard.VariableOption{
		Selected: ptr.To(true),
		Text:     dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
		Value:    dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
	}
	return v
}

// one is a variable of label values, of which one is chosen.
func one(name, title, values string) dashboard.VariableModel {
	return dashboard.VariableModel{
		Type: dashboard.VariableTypeQuery, Name: name, Label: ptr.To(title), Datasource: ptr.To(source()),
		Query: &dashboard.StringOrMap{Map: map[string]any{"qryType": 1, "query": values, "refId": "variable-" +
			name}},
		Definition: ptr.To(values),
		Refresh:    ptr.To(dashboard.VariableRefreshOnTimeRangeChanged), Sort: ptr.To(dashboard.VariableSortNaturalAsc),
	}
}

func values(selector, label string) string {
	return fmt.Sprintf("label_values(%s, %s)", selector, label)
}

// Every page has variables of these names, so that links carry their values along.

func clusters() dashboard.VariableModel {
	return choice(series.Cluster, "Cluster", values(series.OperatorExpected, series.Cluster))
}

// operators are the variables of a page about several operators.
func operators() []dashboard.VariableModel {
	matchers := chosen(series.Cluster)
	onClusters := series.OperatorExpected + "{" + matchers + "}"
	inNamespaces := series.OperatorExpected + "{" + matchers + "," + chosen(series.OperatorNamespace) + "}"
	return []dashboard.VariableModel{
		choice(series.OperatorNamespace, "Operator namespace", values(onClusters, series.OperatorNamespace)),
		choice(series.Operator, "Operator", values(inNamespaces, series.Operator)),
	}
}

// oneOperator are the variables of a page about one operator, which are offered by
// the labels of a series.
func oneOperator(from string) []dashboard.VariableModel {
	return []dashboard.VariableModel{
		one(series.OperatorNamespace, "Operator namespace", values(from, series.OperatorNamespace)),
		one(series.Operator, "Operator", values(from+"{"+chosen(series.OperatorNamespace)+"}", series.Operator)),
	}
}

// operatorLabels identify an operator in the groupings of queries.
const operatorLabels = series.OperatorNamespace + ", " + series.Operator

// byOperator aggregates by operator and further labels.
func byOperator(operation, expr string, further ...string) string {
	labels := strings.Join(append([]string{operatorLabels}, further...), ", ")
	return fmt.Sprintf("%s by (%s) (%s)", operation, labels, expr)
}

// legendOperator names an operator in legends and annotations.
const legendOperator = "{{" + series.OperatorNamespace + "}}/{{" + series.Operator + "}}"

// namespaceColumn is beside the column Operator in every table of operators.
var namespaceColumn = column{from: series.OperatorNamespace, title: "Namespace"}

// rowOperator and lineOperator pass the operator of a table's row, or of a series,
// on to the variables of another dashboard.
var (
	rowOperator  = field(series.OperatorNamespace, "Namespace") + "&" + field(series.Operator, "Operator")
	lineOperator = label(series.OperatorNamespace) + "&" + label(series.Operator)
)
