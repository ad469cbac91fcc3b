// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Names of the alerts about missing data, and about conditions in which an alert might be missing.
const (
	// AlertSLIAbsent is about an SLI without slices.
	AlertSLIAbsent = "BellwetherSLIAbsent"
	// AlertFleetSilent replaces AlertCluster if most clusters are silent.
	AlertFleetSilent = "BellwetherFleetSilent"
	// AlertHubDown is about a hub without metrics.
	AlertHubDown = "BellwetherHubDown"
	// AlertRulesStale is about rules that are not evaluated.
	AlertRulesStale = "BellwetherRulesStale"
	// AlertRulesNotLoaded is about rules that Prometheus has not loaded, or has not loaded in their newest form.
	AlertRulesNotLoaded = "BellwetherRulesNotLoaded"
	// AlertPolicyNotApplied is about a PagingPolicy whose newest form is not in force.
	AlertPolicyNotApplied = "BellwetherPagingPolicyNotApplied"
	// AlertSelfTestFailed is about a failed self-test of a PagingPolicy.
	AlertSelfTestFailed = "BellwetherPagingSelfTestFailed"
	// AlertRolloutHalted is about a rollout that stopped because of failures.
	AlertRolloutHalted = "BellwetherRolloutHalted"
	// AlertRolloutStuck is about a rollout in which nothing happens.
	AlertRolloutStuck = "BellwetherRolloutStuck"
	// AlertVetoOverdue is about a veto that is in force after its end.
	AlertVetoOverdue = "BellwetherVetoOverdue"
	// AlertSilenceHides is about a silence that hides a page. An AlertSilence cannot hide this alert.
	AlertSilenceHides = "BellwetherSilenceHidesBurn"
	// AlertAgentDisconnected is about an agent that is scraped but does not reach the hub.
	AlertAgentDisconnected = "BellwetherAgentDisconnected"
	// AlertLate is about measurements of a cluster that arrive late.
	AlertLate = "BellwetherMeasurementsLate"
	// AlertSchema is about measurements whose schema the rules do not support.
	AlertSchema = "BellwetherSliceSchemaUnknown"
	// AlertCertificate is about a certificate of a probed endpoint.
	AlertCertificate = "BellwetherCertificateExpires"
	// AlertHeartbeat always fires. An external service can report when it stops.
	AlertHeartbeat = "BellwetherHeartbeat"
)

const (
	absentWindow    = 15 * time.Minute
	absentMinSlices = 5
	absentFor       = 5 * time.Minute
	// vanishedHold is how long the last values of an own SLI are kept after its
	// last slice. It is longer than the time until the alert about the missing SLI.
	vanishedHold = 30 * time.Minute
	// vanishedLately is the window in which the last slice of an own SLI is searched.
	vanishedLately = time.Hour
	// lostMinClusters is how many clusters must be silent, and more than half
	// of the fleet, before one alert replaces the alerts about single clusters.
	lostMinClusters = 3
	// stuckAfter is how long a wave may change nothing.
	stuckAfter = 6 * time.Hour
)

// manyLost is PromQL with a result, which has no labels, while most clusters are silent or late.
var manyLost = fmt.Sprintf("count(%[1]s or %[2]s) >= %[3]d and count(%[1]s or %[2]s) > 0.5 * count(%[4]s)",
	series.ClusterLost, series.ClusterLate, lostMinClusters, series.ClusterExpected)

// buildLostRule returns the rule that records the clusters without data. A cluster that
// joined recently may still send data, and a cluster whose slices arrive late is not lost.
func buildLostRule() monitoringv1.Rule {
	return newRecord(series.ClusterLost, fmt.Sprintf("%[1]s ^ 0\nand %[1]s offset %[2]s\nunless on (cluster) "+
		"last_over_time(%[3]s[%[4]s])\nunless on (cluster) %[5]s", series.ClusterExpected, formatDuration(absentWindow),
		series.ClusterMeasured, formatDuration(lostAfter), series.ClusterLate))
}

// setFor returns an alert whose condition must be true for a time before it fires.
func setFor(r monitoringv1.Rule, d time.Duration) monitoringv1.Rule {
	w := monitoringv1.Duration(formatDuration(d))
	r.For = &w
	return r
}

// buildAbsenceGroup returns the group with the alert about slices that are expected and
// missing: an operator that is not measured burns no budget. Slices that were not expected
// some time ago may still arrive. A cluster without any slices has another alert.
func buildAbsenceGroup(s Set) monitoringv1.RuleGroup {
	selectAbsent := func(expected, identity, slices string) string {
		return fmt.Sprintf("%s\nand (%s offset %s)\nunless on (%s) (count_over_time(%s[%s]) >= %d)",
			expected, expected, formatDuration(absentWindow), identity, slices, formatDuration(absentWindow),
			absentMinSlices)
	}
	missing := fmt.Sprintf("%s\nand on (cluster) %s", selectAbsent(series.SLIExpected, budgetLabels,
		series.SLIBad+fmt.Sprintf("{sli=~%q}", strings.Join(s.listExpectedSLIs(), "|"))), series.ClusterMeasured)
	for _, op := range s.Operators {
		if own := op.matchExpectedSLIs(); own != "" {
			missing += "\nor " + selectAbsent(series.SLOObjective+own, objectiveLabels, series.SLIBad+own) + "\nor " +
				selectVanished(own)
		}
	}
	return newGroup("absence", 4*time.Minute, setFor(newAlert(AlertSLIAbsent, series.Ticket, series.ScopeOperator,
		fmt.Sprintf("(\n%s\n)\nor (\n%s\n)", indent(addSLOAndTeam(missing)), indent(s.selectUnknownOperators())),
		s.addDashboard(map[string]string{
			"summary": pickText("No data for {{ with $labels.sli }}{{ . }} of {{ end }}"+operatorName+
				"{{ with $labels.cluster }} on cluster {{ . }}{{ end }}",
				"Operator "+operatorName+", which objectives or a probe name, is expected on no cluster",
				"There is no operator "+operatorName+", which objectives or a probe name"),
			"description": pickText("The SLI was measured fewer than 5 times in the last 15 minutes. The operator "+
				"may be down without any other alert. Check that the agent runs and that Prometheus scrapes it. If "+
				"this is an SLI of the operator's own, check that the metrics have the names that its definition uses.",
				"Nothing is measured, and nothing else alerts about it. Its ManagedOperator selects no cluster, or "+
					"none that it should run on now. Correct its selector, or delete the "+
					"objectives and the EndpointProbe.",
				"Nothing is measured, and nothing else alerts about it. The hub has no ManagedOperator of that name: "+
					"correct the name in the objectives or in the EndpointProbe, or create the ManagedOperator."),
		}, "{{ with $labels.cluster }}&var-cluster={{ . | urlquery }}{{ end }}")), absentFor))
}

// selectVanished returns PromQL for the own SLIs that are measured elsewhere but not on a cluster whose
// last slice used more than its share of the budget. Other own SLIs are not covered, because the
// clusters on which they must exist are unknown. The alert stays until there are slices again, or until
// the operator leaves the cluster. If the last of those slices is good, the alert does not fire again.
func selectVanished(own string) string {
	measured := fmt.Sprintf("(count_over_time(%s%s[%s]) >= %d)", series.SLIBad, own, formatDuration(absentWindow),
		absentMinSlices)
	failing := fmt.Sprintf("last_over_time(%s%s[%s]) > %s (1 - %s%s)", series.SLIBad, own,
		formatDuration(vanishedLately),
		onObjective, series.SLOObjective, own)
	alerted := aggregate("group", budgetLabels, fmt.Sprintf("last_over_time(ALERTS{alertname=%q,cluster!=\"\",%s[%s])",
		AlertSLIAbsent, strings.TrimPrefix(own, "{"), formatDuration(vanishedLately)))
	good := fmt.Sprintf("last_over_time(%s%s[%s]) <= %s (1 - %s%s)", series.SLIBad, own, formatDuration(vanishedLately),
		onObjective, series.SLOObjective, own)
	alerted = fmt.Sprintf("(%s unless %s %s)", alerted, matchOn(budgetLabels), good)
	return fmt.Sprintf("(%s or %s)\n  and %s %s\n  and on (cluster) %s\n  and %s %s\n  unless %s %s", failing, alerted,
		matchOn(installLabels), series.OperatorExpected, series.ClusterMeasured, matchOn(objectiveLabels), measured,
		matchOn(budgetLabels), measured)
}

// selectUnknownOperators returns PromQL for the operators that objectives or
// probes name and that are expected on no cluster. It is separate because alerts
// about such operators have no recorded series to join with, and would be lost.
func (s Set) selectUnknownOperators() string {
	probes := aggregate("group", objectiveLabels, addProbeSLI(series.ProbeSuccess))
	unknown := []string{fmt.Sprintf("%s unless %s %s", probes, matchOn(operatorLabels), knownMetric)}
	for _, id := range s.Named {
		unknown = append(unknown, fmt.Sprintf("absent_over_time(%s{%s}[%s])", knownMetric, matchOperator(id),
			formatDuration(absentWindow)))
	}
	return fmt.Sprintf("(%s)\nand on () %s", strings.Join(unknown, "\nor "), aggregate("group", "",
		series.FleetClusters+" offset "+formatDuration(absentWindow)))
}

// pickText returns a template that chooses a text by the state of an
// alert's operator: it is expected on a cluster, the hub has it, or neither.
func pickText(expected, unexpected, missing string) string {
	querySeries := func(metric string) string {
		return formatQuery(metric+"{"+matchAlertLabels(series.OperatorNamespace, series.Operator)+"}",
			series.OperatorNamespace,
			series.Operator)
	}
	return fmt.Sprintf("{{ if or $labels.cluster (%s) }}%s{{ else if %s }}%s{{ else }}%s{{ end }}",
		querySeries(knownMetric), expected, querySeries(series.OperatorReady), unexpected, missing)
}

// matchExpectedSLIs returns the matchers of an operator's own SLIs with alerts, and
// of the probes that its objectives name. It is empty if there are none. These SLIs
// are expected to exist, but the clusters on which their metrics exist are unknown.
func (op Operator) matchExpectedSLIs() string {
	var names []string
	for _, own := range op.Own {
		isSilent := func(o Objective) bool { return o.SLI == own.Name && o.Alerts == AlertsNone }
		if !slices.ContainsFunc(op.Objectives, isSilent) {
			names = append(names, own.Name)
		}
	}
	for _, o := range op.Objectives {
		// An objective for Probe itself is for all probes and names none.
		if o.isForProbe() && o.SLI != Probe && o.Alerts != AlertsNone {
			names = append(names, regexp.QuoteMeta(o.SLI))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("{%s,sli=~%q}", matchOperator(op.ID()), strings.Join(names, "|"))
}

// buildHealthGroup returns the group with the alerts about conditions in which
// other alerts might be missing, and about operations that wait for a person.
func buildHealthGroup() monitoringv1.RuleGroup {
	return newGroup("health", Step, slices.Concat(buildPathAlerts(), buildPartAlerts(), buildRolloutAlerts(),
		buildGateAlerts(),
		buildCertificateAlerts(), buildSilenceAlerts())...)
}

// buildPathAlerts returns the alerts about the path from the clusters to the alerts.
func buildPathAlerts() []monitoringv1.Rule {
	newRule := func(name, severity, expr, summary, description string) monitoringv1.Rule {
		return newAlert(name, severity, series.ScopeFleet, expr, map[string]string{"summary": summary,
			"description": description})
	}
	// A Prometheus that never scraped the hub does not report it as missing.
	hubDown := fmt.Sprintf("absent(%[1]s)\nand on () (present_over_time(%[1]s[1d]) or ALERTS{alertname=%[2]q})",
		series.FleetClusters, AlertHubDown)
	disconnected := fmt.Sprintf("%s == 0\nand on (cluster) %s", aggregate("max", series.Cluster, series.ClusterOnline),
		series.ClusterMeasured)
	return []monitoringv1.Rule{
		newRule(AlertHeartbeat, series.Heartbeat, fmt.Sprintf("group(%s) and group(%s) and group(%s)",
			series.FleetClusters, series.RulesEvaluated, series.ClusterMeasured),
			"The alerting rules of operators are evaluated",
			"This alert fires as long as the hub is scraped and the SLIs of at least one cluster are measured. Route "+
				"it to a service that notifies you when it stops."),
		newRule(AlertFleetSilent, series.Page, manyLost, "There are no current measurements from {{ $value }} clusters",
			"No SLI of any operator was measured for "+formatDuration(lostAfter)+
				" on more than half of the clusters. Check "+
				"that their metrics reach Prometheus. There is no page for each of them."),
		setFor(newRule(AlertHubDown, series.Page, hubDown, "There are no metrics of the hub",
			"The hub is down, or Prometheus does not scrape it. While the hub is down, rollouts do not continue. "+
				"There are no alerts about silent clusters meanwhile. Alerts that fire already stay."), 5*time.Minute),
		setFor(newRule(AlertRulesStale, series.Page, fmt.Sprintf("absent_over_time(%s[10m])", series.RulesEvaluated),
			"The rules that measure SLIs are not evaluated",
			"Prometheus has not evaluated the group bellwether-sli for 10 minutes, so there are no pages. Check "+
				"its log, and prometheus_rule_group_iterations_missed_total."), 5*time.Minute),
		setFor(newRule(AlertRulesNotLoaded, series.Ticket, fmt.Sprintf("count(%s == 0)", series.SLORulesLoaded),
			"Operators whose newest rules Prometheus does not evaluate: {{ $value }}",
			"The condition RulesLoaded of their OperatorSLOs says what is wrong. The previous rules stay in force."),
			absentWindow),
		setFor(newRule(
			AlertPolicyNotApplied,
			series.Ticket,
			fmt.Sprintf("count(%s == 0)", aggregate("min",
				series.Namespace+", "+series.Policy, series.PagingPolicyReady)),
			"PagingPolicies whose last change is not in force: {{ $value }}",
			"Their condition Ready says what is wrong. Who is notified stays as it was before; a policy that was "+
				"never applied notifies nobody, and its alerts go where the policy with the scope Fleet says.",
		), absentWindow),
		newRule(
			AlertSelfTestFailed,
			series.Ticket,
			fmt.Sprintf("count(%s == 0)", aggregate("min",
				series.Namespace+", "+series.Policy, series.PagingSelfTestPassed)),
			"PagingPolicies whose last self-test failed, so that pages may not arrive: {{ $value }}",
			"A test alert was sent to the receivers of their pages, and not every notification was accepted. The "+
				"status of the policies says which.",
		),
		setFor(newAlert(AlertAgentDisconnected, series.Ticket, series.ScopeCluster, disconnected, map[string]string{
			"summary": "The agent of cluster {{ $labels.cluster }} runs, but does not reach the hub",
			"description": "Its metrics are scraped, and its Lease on the hub is not renewed. Check the network, and " +
				"whether its credentials are still valid.",
		}), absentWindow),
		setFor(newAlert(AlertVetoOverdue, series.Ticket, series.ScopeCluster, fmt.Sprintf("%s < time()",
			aggregate("max", series.Cluster, series.ClusterVetoEnd)), map[string]string{
			"summary": "The owner of cluster {{ $labels.cluster }} still refuses changes after the end of the veto",
			"description": "Rollouts defer the cluster, so it does not get fixes. Ask its owner to delete the " +
				"ConfigMap bellwether-veto beside the agent, or to give it another end.",
		}), absentWindow),
	}
}

// buildRolloutAlerts returns the alerts about rollouts that make no progress.
// After a rollout waited for ChangeWindows, the full time counts again.
func buildRolloutAlerts() []monitoringv1.Rule {
	wave := operatorLabels + ", " + series.Wave
	selectInPhase := func(offset string) string {
		return aggregate("group", wave+", "+series.Phase,
			series.RolloutWavePhase+`{phase=~"Updating|Verifying"}`+offset)
	}
	stuck := fmt.Sprintf("%s\nand %s\nand %s %s{phase=\"Progressing\"}\nunless %s max by (%s) (changes(%s[%s])) > 0\n"+
		"unless %s max_over_time(%s{reason=\"WindowClosed\"}[%s])",
		selectInPhase(""), selectInPhase(" offset "+formatDuration(stuckAfter)), matchOn(operatorLabels),
		series.RolloutPhase, matchOn(wave), wave, series.RolloutWaveClusters, formatDuration(stuckAfter),
		matchOn(operatorLabels), series.RolloutHeld, formatDuration(stuckAfter))
	newRolloutAlert := func(name, expr, summary, description string) monitoringv1.Rule {
		return newAlert(name, series.Ticket, series.ScopeRelease, addTeam(expr), map[string]string{"summary": summary,
			"description": description})
	}
	return []monitoringv1.Rule{
		setFor(newRolloutAlert(AlertRolloutHalted, fmt.Sprintf("group by (%s) (%s{phase=\"Halted\"})", operatorLabels,
			series.RolloutPhase), "The rollout of "+operatorName+" is halted",
			"More clusters failed than the wave allows, or the version is blocked. "+showRollout), absentFor),
		newRolloutAlert(AlertRolloutStuck, stuck,
			"Nothing happens in wave {{ $labels.wave }} of the rollout of "+operatorName,
			"The wave is in phase {{ $labels.phase }}, and no cluster of it has changed for "+
				formatDuration(stuckAfter)+
				". "+showRollout),
	}
}

// showRollout names the command that shows the rollout of an alert.
const showRollout = "Run `bellwether rollout get {{ $labels.operator_namespace }}/{{ $labels.operator }}`."

// buildSilenceAlerts returns the alerts about silences that hide pages.
// Alertmanager reports which alerts a silence hides, and the hub exports it.
func buildSilenceAlerts() []monitoringv1.Rule {
	newSilenceAlert := func(scope, labels, selector, subject string) monitoringv1.Rule {
		labels += ", " + series.Namespace + ", " + series.Silence + ", " + series.Owner
		return setFor(newAlert(AlertSilenceHides, series.Ticket, scope,
			aggregate("sum", labels, series.SilenceHiddenPages+selector)+" > 0", map[string]string{
				"summary": "The silence {{ $labels.namespace }}/{{ $labels.silence }} of {{ $labels.owner }} hides " +
					"pages about " + subject,
				"description": "Alerts that page and fire, and that nobody is notified of: {{ $value }}. Ask the " +
					"owner whether this is what the silence is for. `kubectl get alertsilence -n " +
					"{{ $labels.namespace }} {{ $labels.silence }}` shows why it is there and until when. To end " +
					"it: `bellwether silence end -n {{ $labels.namespace }} {{ $labels.silence }}`.",
			}), absentFor)
	}
	return []monitoringv1.Rule{
		newSilenceAlert(series.ScopeRelease, operatorLabels, `{operator!=""}`, operatorName),
		newSilenceAlert(series.ScopeCluster, series.Cluster, `{operator="",cluster!=""}`,
			"cluster {{ $labels.cluster }}"),
	}
}

// addTeam adds to alerts about an operator the team of the operator.
func addTeam(alerts string) string {
	return fmt.Sprintf("(\n%s\n)\n* %s %s", indent(alerts), matchOn(operatorLabels), joinTeam)
}
