// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// newPagingPage returns the dashboard of the paging health.
func newPagingPage() page {
	return page{
		uid: UIDPaging, title: "Bellwether / Paging health", from: "now-24h",
		description: "Whether a page would arrive: rules are evaluated on time, Prometheus reaches Alertmanager, " +
			"Alertmanager reaches its receivers, and nothing that should be measured is missing.",
		variables:   append([]dashboard.VariableModel{newClusterVariable()}, newOperatorVariables()...),
		annotations: []annotation{markPages()},
		rows: []row{
			{"Would a page arrive?", newPagingNowPanels()},
			{"What fires", []panel{newAlertTable(16), newTeamPanel(), newAlertTimeline(16), newNarrowAbsencesPanel()}},
			{"Rules", newRulePanels()},
			{"Delivery", append(newDeliveryPanels(), newChangeEventsPanel())},
		},
	}
}

// ruleGroupMatcher matches the rule groups of the SLOs. In the label of Prometheus, the name of the file
// precedes the name of the group.
const ruleGroupMatcher = `rule_group=~".*bellwether-.*"`

// addGroupLabel returns a query with the additional label group, which is the name of
// the rule group without the file.
func addGroupLabel(expr string) string {
	return fmt.Sprintf(`label_replace(%s, "group", "$1", "rule_group", ".*;(.*)")`, expr)
}

// Texts that panels show if there is no data.
const (
	alertmanagerSilent = "Alertmanager not scraped"
	prometheusSilent   = "Prometheus not scraped"
	nothingSent        = "nothing sent, or Alertmanager not scraped"
)

// newPagingNowPanels returns the numbers that show whether a page would arrive now. Alertmanager and Prometheus export
// the metrics that are not from package series.
func newPagingNowPanels() []panel {
	return []panel{
		newCount("Rules evaluated ago",
			"The time since the least recent evaluation of one of our groups; they run every 1 to 4 minutes. More "+
				"than ten means that alerts cannot fire: look at Prometheus and its log.",
			prometheusSilent, newHighIsBadLevels(360, 600),
			"time() - min(prometheus_rule_group_last_evaluation_timestamp_seconds{"+ruleGroupMatcher+"})").
			withUnit(units.Seconds),
		newCount("Failing rules",
			"Rules of ours whose evaluation failed within 15 minutes. Prometheus shows the error beside the rule; "+
				"`bellwether slo test` tests the whole file.",
			prometheusSilent, newAnyIsBadLevels(),
			"sum(increase(prometheus_rule_evaluation_failures_total{"+ruleGroupMatcher+"}[15m]))"),
		newCount("Alertmanagers",
			"Alertmanagers that Prometheus sends alerts to. With none, pages do not arrive: check "+
				"alerting.alertmanagers "+
				"in the configuration of Prometheus.",
			prometheusSilent, []level{{bad, 0}, {good, 1}}, "min(prometheus_notifications_alertmanagers_discovered)"),
		newCount("Undelivered", "Notifications that Alertmanager could not hand over within 15 minutes. Its log names "+
			"the receiver: keys, addresses and rate limits are the usual causes.",
			alertmanagerSilent, newAnyIsBadLevels(), "sum(increase(alertmanager_notifications_failed_total[15m]))"),
		newCount("Configuration loaded",
			"Whether every Alertmanager runs the configuration that it was given last. If not it continues with the "+
				"old one: its log has the error.",
			alertmanagerSilent, []level{{bad, 0}, {good, 1}},
			"min(alertmanager_config_last_reload_successful)").withWords(yesNoWords),
		newCount("Missing indicators",
			"Indicators that are expected and have no samples. They cannot alert, so treat each of them as an "+
				"undetected outage; the list is below.",
			rulesSilent, newAnyIsBadLevels(), defaultToZero("count("+newAbsencesPanel().queries[0].expr+")",
				selectSeries(series.SLOTeam))),
	}
}

// withUnit returns a copy of the panel with another unit.
func (p panel) withUnit(unit string) panel { p.unit = unit; return p }

// withWords returns a copy of the panel that shows words instead of numbers.
func (p panel) withWords(words map[string]word) panel { p.words = words; return p }

// newNarrowAbsencesPanel returns the table of the SLIs that are not measured, in the width of this page.
func newNarrowAbsencesPanel() panel {
	p := newAbsencesPanel()
	p.width, p.height = 8, 9
	return p
}

func newTeamPanel() panel {
	return panel{
		title: "Alerts by team", draw: drawBars, width: 8, height: 8, unit: units.Short, noData: "nothing fires",
		levels:      newHighIsBadLevels(1, 5),
		description: "Who has how many alerts now. A team with many at once needs help, or one cause that they share.",
		queries: []query{{"count by (team, severity) (" + setMissingTeam(selectFiringAlerts()) + ")",
			"{{team}} {{severity}}"}},
	}
}

// newRulePanels returns the panels of the evaluation of the rules: its duration, its failures, and whether Prometheus
// has loaded the rules of the hub.
func newRulePanels() []panel {
	return []panel{
		{
			title: "Time to evaluate", draw: drawTimeSeries, width: 8, height: 8, unit: units.Seconds,
			noData: prometheusSilent, minimum: newZero(), levels: []level{{good, 0}, {warn, 10}, {bad, 30}},
			description: "How long each group takes. A group that takes longer than its interval skips evaluations, " +
				"and slices are lost: give Prometheus more CPU.",
			queries: []query{{"max by (group) (" +
				addGroupLabel("prometheus_rule_group_last_duration_seconds{"+ruleGroupMatcher+"}") + ")",
				"{{group}}"}},
		},
		{
			title: "Missed evaluations", draw: drawTimeSeries, width: 8, height: 8, unit: units.Short,
			noData: prometheusSilent, minimum: newZero(), levels: newAnyIsBadLevels(),
			description: "Evaluations that were skipped or failed within 15 minutes. Each is a minute that counts as " +
				"good although nothing was measured.",
			queries: []query{
				{"sum by (group) (" + addGroupLabel(
					buildIncrease("prometheus_rule_group_iterations_missed_total{"+ruleGroupMatcher+"}")) + ")",
					"missed {{group}}"},
				{"sum by (group) (" + addGroupLabel(
					buildIncrease("prometheus_rule_evaluation_failures_total{"+ruleGroupMatcher+"}")) + ")",
					"failed {{group}}"},
			},
		},
		{
			title: "Objectives as the hub sees them", draw: drawTable, width: 8, height: 8, unit: units.Short,
			noData: hubSilent,
			description: "Whether Prometheus evaluates what the hub wrote last for each operator, and whether its " +
				"objectives can work at all. The conditions of the OperatorSLO say what is wrong; nothing about " +
				"loading means that the hub has no Prometheus to query.",
			queries: []query{
				{"min by (" + operatorLabels + ") (" + selectSeries(series.SLOFeasible) + ")", ""},
				{"min by (" + operatorLabels + ") (" + selectSeries(series.SLORulesLoaded) + ")", ""},
			},
			columns: []column{
				{from: series.Operator, title: "Operator", link: buildLink(UIDOperator, operatorFromRow)},
				namespaceColumn,
				{from: "B", title: "Loaded", words: yesNoWords}, {from: "A", title: "Can work", words: yesNoWords},
			},
		},
	}
}

// newDeliveryPanels returns the panels of the policies, and of the way of an alert from Prometheus over Alertmanager
// to the receivers.
func newDeliveryPanels() []panel {
	return []panel{
		{
			title: "Policies", draw: drawTable, width: 24, height: 8, unit: units.Short, noData: hubSilent,
			description: "PagingPolicies: whether each is in force as it is now, and what became of its last " +
				"self-test. A policy with spec.selfTest is tested by the hub; `bellwether page test` tests any.",
			queries: []query{
				{"min by (namespace, policy) (" + series.PagingPolicyReady + ")", ""},
				{"min by (namespace, policy) (" + series.PagingSelfTestPassed + ")", ""},
				{"time() - max by (namespace, policy) (" + series.PagingSelfTestTime + ")", ""},
			},
			columns: []column{
				{from: series.Policy, title: "Policy"}, {from: series.Namespace, title: "Namespace"},
				{from: "A", title: "In force", words: yesNoWords},
				{from: "B", title: "Last test passed", words: yesNoWords},
				{from: "C", title: "Tested ago", unit: units.Seconds},
			},
		},
		{
			title: "From Prometheus to Alertmanager", draw: drawTimeSeries, width: 12, height: 8,
			unit: units.OpsPerSecond, noData: prometheusSilent, minimum: newZero(),
			description: "Alerts that Prometheus sent, and those that it could not send or dropped. Errors and drops " +
				"are pages that never leave: look at the network between the two.",
			queries: []query{
				{"sum(rate(prometheus_notifications_sent_total[$__rate_interval]))", "sent"},
				{"sum(rate(prometheus_notifications_errors_total[$__rate_interval]))", "errors"},
				{"sum(rate(prometheus_notifications_dropped_total[$__rate_interval]))", "dropped"},
			},
		},
		{
			title: "From Alertmanager to receivers", draw: drawTimeSeries, width: 12, height: 8, unit: units.Short,
			noData: nothingSent, minimum: newZero(),
			description: "Notifications within 15 minutes by integration, and those that failed, by reason. A " +
				"receiver that only fails has lost its key or its address. Integrations that sent nothing are left " +
				"out.",
			queries: []query{
				{"sum by (integration) (increase(alertmanager_notifications_total[15m])) > 0", "{{integration}}"},
				{"sum by (integration, reason) (increase(alertmanager_notifications_failed_total[15m])) > 0",
					"{{integration}} failed: {{reason}}"},
			},
		},
		{
			title: "Time to deliver", draw: drawTimeSeries, width: 12, height: 8, unit: units.Seconds,
			noData: nothingSent, minimum: newZero(),
			description: "How long the slowest tenth of the notifications of 15 minutes took to be accepted. Seconds " +
				"are a receiver that is slow or retried: its status page may know.",
			queries: []query{{"histogram_quantile(0.9, sum by (integration, le) " +
				"(rate(alertmanager_notification_latency_seconds_bucket[15m]))) > 0", "{{integration}}"}},
		},
		{
			title: "Held back", draw: drawTimeSeries, width: 12, height: 8, unit: units.Short,
			noData:  alertmanagerSilent,
			minimum: newZero(),
			description: "Active silences, and alerts that are silenced or inhibited. Every silence hides something: " +
				"ask its owner if it stays longer than a day.",
			queries: []query{
				{"max(alertmanager_silences{state=\"active\"})", "active silences"},
				{"max(alertmanager_alerts{state=\"suppressed\"})", "suppressed alerts"},
			},
		},
	}
}

// newChangeEventsPanel returns the panel of the change events by state.
func newChangeEventsPanel() panel {
	return panel{
		title: "Change events", draw: drawTimeSeries, width: 24, height: 8, unit: units.Short,
		noData: "no policy asks for change events", minimum: newZero(),
		description: "Change events of existing rollouts for PagerDuty, by state. Events in the states Refused, " +
			"GivenUp and Unknown are not sent again: the OperatorRollout's status.changeEvents and its Events say why.",
		queries: []query{{"sum by (state) (" + selectSeries(series.RolloutChangeEvents) + ")", "{{state}}"}},
	}
}
