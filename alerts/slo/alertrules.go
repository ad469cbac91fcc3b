// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"strings"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Names of the alerts. They never change; what an alert is about is in its labels:
// operator_namespace, operator, sli, slo, cluster or version, tier, severity,
// scope, team.
const (
	AlertOperator       = "BellwetherOperatorSLOBurn"
	AlertOperatorTicket = "BellwetherOperatorSLOBurnSlow"
	AlertRelease        = "BellwetherReleaseSLOBurn"
	AlertReleaseTicket  = "BellwetherReleaseSLOBurnSlow"
	AlertSLIAbsent      = "BellwetherSLIAbsent"
	scopeHold           = 30 * time.Minute
	absentWindow        = 15 * time.Minute
	absentLeast         = 5
	absentFor           = 5 * time.Minute
)

// alertGroup has two alerts for each scope. Of a failure that several tiers
// see, the page is the fastest one's, and there is a ticket only if there is no page.
func alertGroup(s Set) monitoringv1.RuleGroup {
	page, ticket := tiersOf(series.Page), tiersOf(series.Ticket)
	// A cluster whose release is at fault is part of that alert. It stays so for a
	// while after: else, when a release recovers, its slower clusters page one by one.
	covered := func(tiers []string) string {
		return fmt.Sprintf("unless %s (\n  %s\n  and %s max_over_time(%s{tier=~%q}[%s])\n)", on(installLabels),
			aggregate("max", series.Cluster+", "+versionLabels, series.OperatorInfo), on(versionLabels),
			series.SLOReleaseBurn, strings.Join(tiers, "|"), duration(scopeHold))
	}
	unlessPage := func(name, identity string) string {
		return fmt.Sprintf("unless on (%s) %s{tier=~%q}", identity, name, strings.Join(page, "|"))
	}
	all := append(append([]string{}, page...), ticket...)
	return group("alerts", Step,
		s.alert(AlertRelease, series.Page, series.ScopeRelease,
			fastest(series.SLOReleaseBurn, releaseLabels, page)),
		s.alert(AlertReleaseTicket, series.Ticket, series.ScopeRelease,
			fastest(series.SLOReleaseBurn, releaseLabels, ticket)+"\n"+unlessPage(series.SLOReleaseBurn,
				releaseLabels)),
		s.alert(AlertOperator, series.Page, series.ScopeCluster,
			fastest(series.SLOBurn, budgetLabels, page)+"\n"+covered(page)),
		s.alert(AlertOperatorTicket, series.Ticket, series.ScopeCluster,
			fastest(series.SLOBurn, budgetLabels, ticket)+"\n"+unlessPage(series.SLOBurn,
				budgetLabels)+"\n"+covered(all)))
}

func tiersOf(severity string) []string {
	var out []string
	for _, t := range Tiers() {
		if t.Severity == severity {
			out = append(out, t.Name)
		}
	}
	return out
}

// fastest is the burn of the fastest tier of several.
func fastest(name, identity string, tiers []string) string {
	expr := ""
	for i, t := range tiers {
		if i > 0 {
			expr += fmt.Sprintf("\nor on (%s) ", identity)
		}
		expr += fmt.Sprintf("%s{tier=%q}", name, t)
	}
	return "(" + expr + ")"
}

// alert is a rule with the identity of its objective in labels.
func (s Set) alert(name, severity, scope, burning string) monitoringv1.Rule {
	where, budget := "on cluster {{ $labels.cluster }}", budgetLeft("%s", series.Cluster)
	if scope == series.ScopeRelease {
		where, budget = "in version {{ $labels.version }}", budgetLeft("min(%s)")
	}
	return monitoringv1.Rule{
		Alert: name, Expr: intstr.FromString(owned(burning)),
		Labels: map[string]string{series.Severity: severity, series.Scope: scope},
		Annotations: s.annotate(scope, map[string]string{
			"summary": nameOfOperator +
				" burns its {{ $labels.sli }} budget {{ printf \"%.1f\" $value }} times too fast " +
				where,
			"description": "At this rate, seen over the last {{ $labels.tier }}, the error budget is gone before its " +
				"period is over.",
			"burn":        "{{ printf \"%.1f\" $value }}",
			"budget_left": budget,
		}),
	}
}

// nameOfOperator is how annotations name an alert's operator.
const nameOfOperator = "{{ $labels.operator_namespace }}/{{ $labels.operator }}"

// owned gives alerts the label slo, and the team of their operator.
func owned(alerts string) string {
	return fmt.Sprintf("label_join(\n%s,\n  \"slo\", \"/\", \"operator_namespace\", \"operator\", \"sli\"\n)\n* %s "+
		"group_left (team) %s", indent(alerts), on(operatorLabels), series.SLOTeam)
}

// budgetLeft is an annotation's template of what is left of an alert's budget. The
// format takes the selector of its series, by the labels of the objective and
// further ones.
func budgetLeft(format string, further ...string) string {
	var matchers, values []string
	for _, label := range append(further, series.OperatorNamespace, series.Operator, series.SLI) {
		matchers, values = append(matchers, label+"=%q"), append(values, "$labels."+label)
	}
	query := fmt.Sprintf(format, series.SLOBudgetLeft+"{"+strings.Join(matchers, ",")+"}")
	return fmt.Sprintf("{{ with printf %q %s | query }}{{ . | first | value | humanizePercentage }}{{ else }}unknown"+
		"{{ end }}", query, strings.Join(values, " "))
}

// annotate adds the links of an alert.
func (s Set) annotate(scope string, to map[string]string) map[string]string {
	if s.RunbookURL != "" {
		to["runbook_url"] = s.RunbookURL + `#{{ reReplaceAll ":.*" "" $labels.sli }}`
	}
	if s.DashboardURL != "" {
		to["dashboard_url"] = s.DashboardURL + "?var-operator_namespace={{ $labels.operator_namespace | urlquery }}" +
			"&var-operator={{ $labels.operator | urlquery }}&var-sli={{ $labels.sli | urlquery }}"
		if scope == series.ScopeCluster {
			to["dashboard_url"] += "{{ with $labels.cluster }}&var-cluster={{ . | urlquery }}{{ end }}"
		}
	}
	return to
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// absenceGroup alerts on slices that are expected and missing: whoever is not
// measured burns no budget. What was not expected a while ago may still come.
func absenceGroup(s Set) monitoringv1.RuleGroup {
	absent := func(expected, identity, slices string) string {
		return fmt.Sprintf("%s\nand (%s offset %s)\nunless on (%s) (count_over_time(%s[%s]) >= %d)",
			expected, expected, duration(absentWindow), identity, slices, duration(absentWindow), absentLeast)
	}
	missing := absent(series.SLIExpected, budgetLabels, series.SLIBad)
	for _, op := range s.Operators {
		if own := op.ownMatcher(); own != "" {
			missing += "\nor " + absent(series.SLOObjective+own, objectiveLabels, series.SLIBad+own)
		}
	}
	wait := monitoringv1.Duration(duration(absentFor))
	return group("absence", 4*time.Minute, monitoringv1.Rule{
		Alert: AlertSLIAbsent, Expr: intstr.FromString(owned(missing)), For: &wait,
		Labels: map[string]string{series.Severity: series.Ticket, series.Scope: series.ScopeCluster},
		Annotations: s.annotate(series.ScopeCluster, map[string]string{
			"summary": "No data for {{ $labels.sli }} of " + nameOfOperator +
				"{{ with $labels.cluster }} on cluster {{ . }}{{ end }}",
			"description": "Fewer than 5 slices were recorded in the last 15 minutes. The operator may be down " +
				"without " +
				"any other alert. Check that the agent runs and that Prometheus scrapes it. If this is an SLI of the " +
				"operator's own, check that the metrics have the names that its definition uses.",
		}),
	})
}

// ownMatcher selects the own SLIs of an operator, if it has any. They are
// expected somewhere: on which clusters their metrics are is not known.
func (op Operator) ownMatcher() string {
	if len(op.Own) == 0 {
		return ""
	}
	names := make([]string, len(op.Own))
	for i, own := range op.Own {
		names[i] = own.Name
	}
	return fmt.Sprintf("{%s,sli=~%q}", matchOperator(op.ID()), strings.Join(names, "|"))
}
