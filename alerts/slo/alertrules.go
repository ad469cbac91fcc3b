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

// Names of the alerts. They never change; what an alert is about is in its
// labels: operator, sli, slo, cluster or version, tier, severity, scope, team.
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
	identityOfCluster   = "cluster, operator, sli"
	identityOfRelease   = "operator, sli, version"
	identityOfSLO       = "operator, sli"
)

// alertGroup has two alerts for each scope. Of a failure that several tiers
// see, the page is the fastest one's, and there is a ticket only if there is no page.
func alertGroup(s Set) monitoringv1.RuleGroup {
	page, ticket := tiersOf(series.Page), tiersOf(series.Ticket)
	// A cluster whose release is at fault is part of that alert. It stays so for a
	// while after: else, when a release recovers, its slower clusters page one by one.
	covered := func(tiers []string) string {
		return fmt.Sprintf("unless on (cluster, operator) (\n  max by (cluster, operator, version) (%s)\n  and on "+
			"(operator, version) max_over_time(%s{tier=~%q}[%s])\n)",
			series.OperatorInfo, series.SLOReleaseBurn, strings.Join(tiers, "|"), duration(scopeHold))
	}
	unlessPage := func(name, identity string) string {
		return fmt.Sprintf("unless on (%s) %s{tier=~%q}", identity, name, strings.Join(page, "|"))
	}
	all := append(append([]string{}, page...), ticket...)
	return group("alerts", Step,
		s.alert(AlertRelease, series.Page, series.ScopeRelease,
			fastest(series.SLOReleaseBurn, identityOfRelease, page)),
		s.alert(AlertReleaseTicket, series.Ticket, series.ScopeRelease,
			fastest(series.SLOReleaseBurn, identityOfRelease, ticket)+"\n"+unlessPage(series.SLOReleaseBurn,
				identityOfRelease)),
		s.alert(AlertOperator, series.Page, series.ScopeCluster,
			fastest(series.SLOBurn, identityOfCluster, page)+"\n"+covered(page)),
		s.alert(AlertOperatorTicket, series.Ticket, series.ScopeCluster,
			fastest(series.SLOBurn, identityOfCluster, ticket)+"\n"+unlessPage(series.SLOBurn,
				identityOfCluster)+"\n"+covered(all)))
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
	where, budget := "on cluster {{ $labels.cluster }}", fmt.Sprintf(
		`{{ with printf "%s{cluster=%%q,operator=%%q,sli=%%q}" $labels.cluster $labels.operator $labels.sli | query }}{{ . | first | value | humanizePercentage }}{{ else }}unknown{{ end }}`, series.SLOBudgetLeft)
	if scope == series.ScopeRelease {
		where = "in version {{ $labels.version }}"
		budget = fmt.Sprintf(
			`{{ with printf "min(%s{operator=%%q,sli=%%q})" $labels.operator $labels.sli | query }}{{ . | first | value | humanizePercentage }}{{ else }}unknown{{ end }}`, series.SLOBudgetLeft)
	}
	return monitoringv1.Rule{
		Alert: name,
		Expr: intstr.FromString(fmt.Sprintf("label_join(\n%s,\n\"slo\", \"/\", \"operator\", \"sli\"\n)\n* on "+
			"(operator) group_left (team) %s",
			indent(burning), series.SLOTeam)),
		Labels: map[string]string{series.Severity: severity, series.Scope: scope},
		Annotations: s.annotate(scope, map[string]string{
			"summary": fmt.Sprintf("{{ $labels.operator }} burns its %s budget {{ printf \"%%.1f\" $value }} "+
				"times too fast %s", "{{ $labels.sli }}", where),
			"description": "At this rate, seen over the last {{ $labels.tier }}, the error budget is gone before its " +
				"period is over.",
			"burn":        "{{ printf \"%.1f\" $value }}",
			"budget_left": budget,
		}),
	}
}

// annotate adds the links of an alert.
func (s Set) annotate(scope string, to map[string]string) map[string]string {
	if s.RunbookURL != "" {
		to["runbook_url"] = s.RunbookURL + `#{{ reReplaceAll ":.*" "" $labels.sli }}`
	}
	if s.DashboardURL != "" {
		to["dashboard_url"] = s.DashboardURL +
			"?var-operator={{ $labels.operator | urlquery }}&var-sli={{ $labels.sli | urlquery }}"
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
	missing := absent(series.SLIExpected, identityOfCluster, series.SLIBad)
	for _, op := range s.Operators {
		if own := op.ownMatcher(); own != "" {
			missing += "\nor " + absent(series.SLOObjective+own, identityOfSLO, series.SLIBad+own)
		}
	}
	expr := fmt.Sprintf("label_join(\n%s,\n  \"slo\", \"/\", \"operator\", \"sli\"\n)\n* on (operator) group_left "+
		"(team) %s", indent(missing), series.SLOTeam)
	wait := monitoringv1.Duration(duration(absentFor))
	return group("absence", 4*time.Minute, monitoringv1.Rule{
		Alert: AlertSLIAbsent, Expr: intstr.FromString(expr), For: &wait,
		Labels: map[string]string{series.Severity: series.Ticket, series.Scope: series.ScopeCluster},
		Annotations: s.annotate(series.ScopeCluster, map[string]string{
			"summary": "Nothing is known of {{ $labels.sli }} of {{ $labels.operator }}{{ with $labels.cluster " +
				"}} on cluster {{ . }}{{ end }}",
			"description": "Slices are expected, but for 15 minutes there were fewer than 5. It may be down without " +
				"any other alert: look whether the agent and the scrapes work, and, if the SLI is the operator's " +
				"own, whether its metrics are called as its definition says.",
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
	return fmt.Sprintf("{operator=%q,sli=~%q}", op.Name, strings.Join(names, "|"))
}
