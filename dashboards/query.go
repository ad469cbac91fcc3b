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
	for _, l := range []string{series.Operator, series.Cluster} {
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
			slices.Contains([]string{series.SLIBadSum, series.SLIBadVersionSum, series.SLIBadVersionClusters}, s.Name)
		if name == s.Name || window {
			return s.Labels
		}
	}
	if strings.HasPrefix(name, "probe_") {
		return []string{series.Cluster, series.Operator, series.Probe, series.Vantage}
	}
	return []string{series.Cluster}
}

// firing selects alerts. Those about a release have no cluster, and are shown
// whichever cluster is chosen.
func firing(matchers ...string) string {
	all := append([]string{`alertname=~"Bellwether.+"`, `alertstate="firing"`, `cluster=~"$cluster|"`,
		`operator=~"$operator|"`}, matchers...)
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
		Query:       &dashboard.StringOrMap{String: ptr.To("prometheus")},
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

// Every page has these two, under these names, so that links carry them along.

func clusters() dashboard.VariableModel {
	return choice(series.Cluster, "Cluster", values(series.OperatorExpected, series.Cluster))
}

func operators() dashboard.VariableModel {
	return choice(series.Operator, "Operator",
		values(series.OperatorExpected+"{"+chosen(series.Cluster)+"}", series.Operator))
}
