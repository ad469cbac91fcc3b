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

// Names of the alerts about data that is missing, and about what would let an
// alert be missing.
const (
	// AlertSLIAbsent is about an SLI without slices.
	AlertSLIAbsent = "BellwetherSLIAbsent"
	// AlertFleetSilent takes the place of AlertCluster where most clusters are silent.
	AlertFleetSilent = "BellwetherFleetSilent"
	// AlertHubDown is about a hub without metrics.
	AlertHubDown = "BellwetherHubDown"
	// AlertRulesStale is about rules that are not evaluated.
	AlertRulesStale = "BellwetherRulesStale"
	// AlertRulesNotLoaded is about rules that Prometheus does not have, or not the last ones.
	AlertRulesNotLoaded = "BellwetherRulesNotLoaded"
	// AlertPolicyNotApplied is about a PagingPolicy that is not in force as it is now.
	AlertPolicyNotApplied = "BellwetherPagingPolicyNotApplied"
	// AlertSelfTestFailed is about a self-test of a PagingPolicy.
	AlertSelfTestFailed = "BellwetherPagingSelfTestFailed"
	// AlertRolloutHalted is about a rollout that stopped because of failures.
	AlertRolloutHalted = "BellwetherRolloutHalted"
	// AlertRolloutStuck is about a rollout in which nothing happens.
	AlertRolloutStuck = "BellwetherRolloutStuck"
	// AlertVetoOverdue is about a veto that is in force beyond its end.
	AlertVetoOverdue = "BellwetherVetoOverdue"
	// AlertSilenceHides is about a silence that hides a page. No AlertSilence hides it.
	AlertSilenceHides = "BellwetherSilenceHidesBurn"
	// AlertAgentDisconnected is about an agent that is scraped, and that the hub does not hear.
	AlertAgentDisconnected = "BellwetherAgentDisconnected"
	// AlertLate is about measurements of a cluster that arrive late.
	AlertLate = "BellwetherMeasurementsLate"
	// AlertSchema is about measurements in a form that the rules do not know.
	AlertSchema = "BellwetherSliceSchemaUnknown"
	// AlertCertificate is about a certificate of a probed endpoint.
	AlertCertificate = "BellwetherCertificateExpires"
	// AlertHeartbeat always fires, for a service that reports when it does not.
	AlertHeartbeat = "BellwetherHeartbeat"
)

const (
	absentWindow = 15 * time.Minute
	absentLeast  = 5
	absentFor    = 5 * time.Minute
	// vanishedHold is for how long what is known of an own SLI stays after its last slice. It is longer than it takes
	// to alert on its absence.
	vanishedHold = 30 * time.Minute
	// vanishedLately is how far back the last slice of an own SLI is looked for.
	vanishedLately = time.Hour
	// lostLeast is how many clusters have to be silent for them to be one alert, if
	// they are more than half of the fleet.
	lostLeast = 3
	// stuckAfter is how long a wave may change nothing.
	stuckAfter = 6 * time.Hour
)

// manyLost is a result without labels while most clusters are silent or late.
var manyLost = fmt.Sprintf("count(%[1]s or %[2]s) >= %[3]d and count(%[1]s or %[2]s) > 0.5 * count(%[4]s)",
	series.ClusterLost, series.ClusterLate, lostLeast, series.ClusterExpected)

// lost records the clusters that nothing is known of. A cluster that joined a
// while ago may still come, and one whose slices arrive late is not lost.
func lost() monitoringv1.Rule {
	return record(series.ClusterLost, fmt.Sprintf("%[1]s ^ 0\nand %[1]s offset %[2]s\nunless on (cluster) "+
		"last_over_time(%[3]s[%[4]s])\nunless on (cluster) %[5]s", series.ClusterExpected, duration(absentWindow),
		series.ClusterMeasured, duration(silence), series.ClusterLate))
}

// wait gives an alert a time for which it has to hold.
func wait(r monitoringv1.Rule, d time.Duration) monitoringv1.Rule {
	w := monitoringv1.Duration(duration(d))
	r.For = &w
	return r
}

// absenceGroup alerts on slices that are expected and missing: whoever is not
// measured burns no budget. What was not expected a while ago may still come. Of a
// cluster without any slices there is another alert.
func absenceGroup(s Set) monitoringv1.RuleGroup {
	absent := func(expected, identity, slices string) string {
		return fmt.Sprintf("%s\nand (%s offset %s)\nunless on (%s) (count_over_time(%s[%s]) >= %d)",
			expected, expected, duration(absentWindow), identity, slices, duration(absentWindow), absentLeast)
	}
	missing := fmt.Sprintf("%s\nand on (cluster) %s", absent(series.SLIExpected, budgetLabels,
		series.SLIBad+fmt.Sprintf("{sli=~%q}", strings.Join(s.expectedSLIs(), "|"))), series.ClusterMeasured)
	for _, op := range s.Operators {
		if own := op.ownMatcher(); own != "" {
			missing += "\nor " + absent(series.SLOObjective+own, objectiveLabels, series.SLIBad+own) + "\nor " +
				vanished(own)
		}
	}
	return group("absence", 4*time.Minute, wait(rule(AlertSLIAbsent, series.Ticket, series.ScopeOperator,
		fmt.Sprintf("(\n%s\n)\nor (\n%s\n)", indent(owned(missing)), indent(s.unknownOperators())),
		s.annotate(map[string]string{
			"summary": ofKnown("No data for {{ with $labels.sli }}{{ . }} of {{ end }}"+nameOfOperator+
				"{{ with $labels.cluster }} on cluster {{ . }}{{ end }}",
				"Operator "+nameOfOperator+", which objectives or a probe name, is expected on no cluster",
				"There is no operator "+nameOfOperator+", which objectives or a probe name"),
			"description": ofKnown("The SLI was measured fewer than 5 times in the last 15 minutes. The operator "+
				"may be down without any other alert. Check that the agent runs and that Prometheus scrapes it. If "+
				"this is an SLI of the operator's own, check that the metrics have the names that its definition uses.",
				"Nothing is measured, and nothing else alerts about it. Its ManagedOperator selects no cluster, or "+
					"none that it should run on now. Correct its selector, or delete the "+
					"objectives and the EndpointProbe.",
				"Nothing is measured, and nothing else alerts about it. The hub has no ManagedOperator of that name: "+
					"correct the name in the objectives or in the EndpointProbe, or create the ManagedOperator."),
		}, "{{ with $labels.cluster }}&var-cluster={{ . | urlquery }}{{ end }}")), absentFor))
}

// vanished are the own SLIs that are measured, but not on a cluster on which the last slice used up more than its share
// of the budget. Of others it is not known on which clusters they have to be. The alert stays until there are slices
// again, or the operator leaves the cluster. If the last of those slices is good, it does not fire again.
func vanished(own string) string {
	measured := fmt.Sprintf("(count_over_time(%s%s[%s]) >= %d)", series.SLIBad, own, duration(absentWindow),
		absentLeast)
	failing := fmt.Sprintf("last_over_time(%s%s[%s]) > %s (1 - %s%s)", series.SLIBad, own, duration(vanishedLately),
		ofSLO, series.SLOObjective, own)
	alerted := aggregate("group", budgetLabels, fmt.Sprintf("last_over_time(ALERTS{alertname=%q,cluster!=\"\",%s[%s])",
		AlertSLIAbsent, strings.TrimPrefix(own, "{"), duration(vanishedLately)))
	good := fmt.Sprintf("last_over_time(%s%s[%s]) <= %s (1 - %s%s)", series.SLIBad, own, duration(vanishedLately),
		ofSLO, series.SLOObjective, own)
	alerted = fmt.Sprintf("(%s unless %s %s)", alerted, on(budgetLabels), good)
	return fmt.Sprintf("(%s or %s)\n  and %s %s\n  and on (cluster) %s\n  and %s %s\n  unless %s %s", failing, alerted,
		on(installLabels), series.OperatorExpected, series.ClusterMeasured, on(objectiveLabels), measured,
		on(budgetLabels), measured)
}

// unknownOperators are those that objectives or probes name and that are expected nowhere. Alerts about
// them would be joined with what is recorded of operators, and lost.
func (s Set) unknownOperators() string {
	probes := aggregate("group", objectiveLabels, withProbeSLI(series.ProbeSuccess))
	unknown := []string{fmt.Sprintf("%s unless %s %s", probes, on(operatorLabels), known)}
	for _, id := range s.Named {
		unknown = append(unknown, fmt.Sprintf("absent_over_time(%s{%s}[%s])", known, matchOperator(id),
			duration(absentWindow)))
	}
	return fmt.Sprintf("(%s)\nand on () %s", strings.Join(unknown, "\nor "), aggregate("group", "",
		series.FleetClusters+" offset "+duration(absentWindow)))
}

// ofKnown is a template that chooses by what is known of an alert's operator: it is expected on a cluster, the
// hub has it, or neither.
func ofKnown(expected, unexpected, missing string) string {
	found := func(metric string) string {
		return results(metric+"{"+matching(series.OperatorNamespace, series.Operator)+"}", series.OperatorNamespace,
			series.Operator)
	}
	return fmt.Sprintf("{{ if or $labels.cluster (%s) }}%s{{ else if %s }}%s{{ else }}%s{{ end }}", found(known),
		expected, found(series.OperatorReady), unexpected, missing)
}

// ownMatcher selects the own SLIs of an operator with alerts, and the probes that it names, if it has
// any. They are expected somewhere: on which clusters their metrics are is not known.
func (op Operator) ownMatcher() string {
	var names []string
	for _, own := range op.Own {
		isSilent := func(o Objective) bool { return o.SLI == own.Name && o.Alerts == AlertsNone }
		if !slices.ContainsFunc(op.Objectives, isSilent) {
			names = append(names, own.Name)
		}
	}
	for _, o := range op.Objectives {
		if o.isOfProbe() && o.SLI != Probe && o.Alerts != AlertsNone {
			names = append(names, regexp.QuoteMeta(o.SLI))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("{%s,sli=~%q}", matchOperator(op.ID()), strings.Join(names, "|"))
}

// healthGroup alerts on what would let other alerts be missing, and on what waits
// for a person.
func healthGroup() monitoringv1.RuleGroup {
	return group("health", Step, slices.Concat(pathAlerts(), partAlerts(), rolloutAlerts(), gateAlerts(),
		certificateAlerts(), silenceAlerts())...)
}

// pathAlerts are about the way from the clusters to the alerts.
func pathAlerts() []monitoringv1.Rule {
	fleet := func(name, severity, expr, summary, description string) monitoringv1.Rule {
		return rule(name, severity, series.ScopeFleet, expr, map[string]string{"summary": summary,
			"description": description})
	}
	// A Prometheus that never scraped the hub does not miss it.
	hubDown := fmt.Sprintf("absent(%[1]s)\nand on () (present_over_time(%[1]s[1d]) or ALERTS{alertname=%[2]q})",
		series.FleetClusters, AlertHubDown)
	disconnected := fmt.Sprintf("%s == 0\nand on (cluster) %s", aggregate("max", series.Cluster, series.ClusterOnline),
		series.ClusterMeasured)
	return []monitoringv1.Rule{
		fleet(AlertHeartbeat, series.Heartbeat, fmt.Sprintf("group(%s) and group(%s) and group(%s)",
			series.FleetClusters, series.RulesEvaluated, series.ClusterMeasured),
			"The alerting rules of operators are evaluated",
			"This alert fires as long as the hub is scraped and the SLIs of at least one cluster are measured. Route "+
				"it to a service that notifies you when it stops."),
		fleet(AlertFleetSilent, series.Page, manyLost, "There are no current measurements from {{ $value }} clusters",
			"No SLI of any operator was measured for "+duration(silence)+" on more than half of the clusters. Check "+
				"that their metrics reach Prometheus. There is no page for each of them."),
		wait(fleet(AlertHubDown, series.Page, hubDown, "There are no metrics of the hub",
			"The hub is down, or Prometheus does not scrape it. While the hub is down, rollouts do not continue. "+
				"There are no alerts about silent clusters meanwhile. Alerts that fire already stay."), 5*time.Minute),
		wait(fleet(AlertRulesStale, series.Page, fmt.Sprintf("absent_over_time(%s[10m])", series.RulesEvaluated),
			"The rules that measure SLIs are not evaluated",
			"Prometheus has not evaluated the group bellwether-sli for 10 minutes, so there are no pages. Check "+
				"its log, and prometheus_rule_group_iterations_missed_total."), 5*time.Minute),
		wait(fleet(AlertRulesNotLoaded, series.Ticket, fmt.Sprintf("count(%s == 0)", series.SLORulesLoaded),
			"Operators whose newest rules Prometheus does not evaluate: {{ $value }}",
			"The condition RulesLoaded of their OperatorSLOs says what is wrong. The previous rules stay in force."),
			absentWindow),
		wait(fleet(
			AlertPolicyNotApplied,
			series.Ticket,
			fmt.Sprintf("count(%s == 0)", aggregate("min",
				series.Namespace+", "+series.Policy, series.PagingPolicyReady)),
			"PagingPolicies whose last change is not in force: {{ $value }}",
			"Their condition Ready says what is wrong. Who is notified stays as it was before; a policy that was "+
				"never applied notifies nobody, and its alerts go where the policy with the scope Fleet says.",
		), absentWindow),
		fleet(
			AlertSelfTestFailed,
			series.Ticket,
			fmt.Sprintf("count(%s == 0)", aggregate("min",
				series.Namespace+", "+series.Policy, series.PagingSelfTestPassed)),
			"PagingPolicies whose last self-test failed, so that pages may not arrive: {{ $value }}",
			"A test alert was sent to the receivers of their pages, and not every notification was accepted. The "+
				"status of the policies says which.",
		),
		wait(rule(AlertAgentDisconnected, series.Ticket, series.ScopeCluster, disconnected, map[string]string{
			"summary": "The agent of cluster {{ $labels.cluster }} runs, but does not reach the hub",
			"description": "Its metrics are scraped, and its Lease on the hub is not renewed. Check the network, and " +
				"whether its credentials are still valid.",
		}), absentWindow),
		wait(rule(AlertVetoOverdue, series.Ticket, series.ScopeCluster, fmt.Sprintf("%s < time()",
			aggregate("max", series.Cluster, series.ClusterVetoEnd)), map[string]string{
			"summary": "The owner of cluster {{ $labels.cluster }} still refuses changes after the end of the veto",
			"description": "Rollouts defer the cluster, so it does not get fixes. Ask its owner to delete the " +
				"ConfigMap bellwether-veto beside the agent, or to give it another end.",
		}), absentWindow),
	}
}

// rolloutAlerts are about rollouts that do not go on. One that had to wait for
// ChangeWindows has the whole time anew.
func rolloutAlerts() []monitoringv1.Rule {
	wave := operatorLabels + ", " + series.Wave
	inPhase := func(offset string) string {
		return aggregate("group", wave+", "+series.Phase,
			series.RolloutWavePhase+`{phase=~"Updating|Verifying"}`+offset)
	}
	stuck := fmt.Sprintf("%s\nand %s\nand %s %s{phase=\"Progressing\"}\nunless %s max by (%s) (changes(%s[%s])) > 0\n"+
		"unless %s max_over_time(%s{reason=\"WindowClosed\"}[%s])",
		inPhase(""), inPhase(" offset "+duration(stuckAfter)), on(operatorLabels), series.RolloutPhase, on(wave), wave,
		series.RolloutWaveClusters, duration(stuckAfter), on(operatorLabels), series.RolloutHeld, duration(stuckAfter))
	about := func(name, expr, summary, description string) monitoringv1.Rule {
		return rule(name, series.Ticket, series.ScopeRelease, ofTeam(expr), map[string]string{"summary": summary,
			"description": description})
	}
	return []monitoringv1.Rule{
		wait(about(AlertRolloutHalted, fmt.Sprintf("group by (%s) (%s{phase=\"Halted\"})", operatorLabels,
			series.RolloutPhase), "The rollout of "+nameOfOperator+" is halted",
			"More clusters failed than the wave allows, or the version is blocked. "+showRollout), absentFor),
		about(AlertRolloutStuck, stuck, "Nothing happens in wave {{ $labels.wave }} of the rollout of "+nameOfOperator,
			"The wave is in phase {{ $labels.phase }}, and no cluster of it has changed for "+duration(stuckAfter)+
				". "+showRollout),
	}
}

// showRollout says which command shows the rollout of an alert.
const showRollout = "Run `bellwether rollout get {{ $labels.operator_namespace }}/{{ $labels.operator }}`."

// silenceAlerts are about silences that hide pages. Alertmanager itself says which alerts
// a silence hides; the hub exports it.
func silenceAlerts() []monitoringv1.Rule {
	about := func(scope, labels, selector, subject string) monitoringv1.Rule {
		labels += ", " + series.Namespace + ", " + series.Silence + ", " + series.Owner
		return wait(rule(AlertSilenceHides, series.Ticket, scope,
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
		about(series.ScopeRelease, operatorLabels, `{operator!=""}`, nameOfOperator),
		about(series.ScopeCluster, series.Cluster, `{operator="",cluster!=""}`, "cluster {{ $labels.cluster }}"),
	}
}

// ofTeam gives alerts about an operator its team.
func ofTeam(alerts string) string {
	return fmt.Sprintf("(\n%s\n)\n* %s %s", indent(alerts), on(operatorLabels), joinTeam)
}
