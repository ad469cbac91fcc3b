// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

func pagingPage() page {
	return page{
		uid: UIDPaging, title: "Bellwether / Paging health", from: "now-24h",
		description: "Whether a page would arrive: rules are evaluated on time, Prometheus reaches Alertmanager, " +
			"Alertmanager reaches its receivers, and nothing that should be measured is missing.",
		variables:   append([]dashboard.VariableModel{clusters()}, operators()...),
		annotations: []annotation{pages()},
		rows: []row{
			{"Would a page arrive?", pagingNow()},
			{"What fires", []panel{alertTable(16), pagesByTeam(), alertTimeline(16), absencesNarrow()}},
			{"Rules", rulePanels()},
			{"Delivery", append(deliveryPanels(), changeEvents())},
		},
	}
}

// ours matches the groups of the SLOs' rules in the label of Prometheus, which
// has the file in front.
const ours = `rule_group=~".*bellwether-.*"`

// named adds the name of a group without its file, which is no use to readers.
func named(expr string) string {
	return fmt.Sprintf(`label_replace(%s, "group", "$1", "rule_group", ".*;(.*)")`, expr)
}

const (
	alertmanagerSilent = "Alertmanager not scraped"
	prometheusSilent   = "Prometheus not scraped"
	nothingSent        = "nothing sent, or Alertmanager not scraped"
)

func pagingNow() []panel {
	return []panel{
		count("Rules evaluated ago",
			"The time since the least recent evaluation of one of our groups; they run every 1 to 4 minutes. More "+
				"than ten means that alerts cannot fire: look at Prometheus and its log.",
			prometheusSilent, moreIsBad(360, 600),
			"time() - min(prometheus_rule_group_last_evaluation_timestamp_seconds{"+ours+"})").in(units.Seconds),
		count("Failing rules",
			"Rules of ours whose evaluation failed within 15 minutes. Prometheus shows the error beside the rule; "+
				"`bellwether slo test` tests the whole file.",
			prometheusSilent, anyIsBad(), "sum(increase(prometheus_rule_evaluation_failures_total{"+ours+"}[15m]))"),
		count("Alertmanagers",
			"Alertmanagers that Prometheus sends alerts to. With none, pages do not arrive: check "+
				"alerting.alertmanagers "+
				"in the configuration of Prometheus.",
			prometheusSilent, []level{{bad, 0}, {good, 1}}, "min(prometheus_notifications_alertmanagers_discovered)"),
		count("Undelivered", "Notifications that Alertmanager could not hand over within 15 minutes. Its log names "+
			"the receiver: keys, addresses and rate limits are the usual causes.",
			alertmanagerSilent, anyIsBad(), "sum(increase(alertmanager_notifications_failed_total[15m]))"),
		count("Configuration loaded",
			"Whether every Alertmanager runs the configuration that it was given last. If not it continues with the "+
				"old one: its log has the error.",
			alertmanagerSilent, []level{{bad, 0}, {good, 1}},
			"min(alertmanager_config_last_reload_successful)").saying(yesNo),
		count("Missing indicators",
			"Indicators that are expected and have no samples. They cannot alert, so treat each of them as an "+
				"undetected outage; the list is below.",
			rulesSilent, anyIsBad(), orNone("count("+absences().queries[0].expr+")", of(series.SLOTeam))),
	}
}

// in is the panel with another unit.
func (p panel) in(unit string) panel { p.unit = unit; return p }

// saying is the panel with words instead of numbers.
func (p panel) saying(words map[string]word) panel { p.words = words; return p }

func absencesNarrow() panel {
	p := absences()
	p.width, p.height = 8, 9
	return p
}

func pagesByTeam() panel {
	return panel{
		title: "Alerts by team", draw: bars, width: 8, height: 8, unit: units.Short, none: "nothing fires",
		levels:      moreIsBad(1, 5),
		description: "Who has how many alerts now. A team with many at once needs help, or one cause that they share.",
		queries:     []query{{"count by (team, severity) (" + orNobody(firing()) + ")", "{{team}} {{severity}}"}},
	}
}

func rulePanels() []panel {
	return []panel{
		{
			title: "Time to evaluate", draw: timeSeries, width: 8, height: 8, unit: units.Seconds,
			none: prometheusSilent, minimum: zero(), levels: []level{{good, 0}, {warn, 10}, {bad, 30}},
			description: "How long each group takes. A group that takes longer than its interval skips evaluations, " +
				"and slices are lost: give Prometheus more CPU.",
			queries: []query{{"max by (group) (" + named("prometheus_rule_group_last_duration_seconds{"+ours+"}") + ")",
				"{{group}}"}},
		},
		{
			title: "Missed evaluations", draw: timeSeries, width: 8, height: 8, unit: units.Short,
			none: prometheusSilent, minimum: zero(), levels: anyIsBad(),
			description: "Evaluations that were skipped or failed within 15 minutes. Each is a minute that counts as " +
				"good although nothing was measured.",
			queries: []query{
				{"sum by (group) (" + named(increased("prometheus_rule_group_iterations_missed_total{"+ours+"}")) + ")",
					"missed {{group}}"},
				{"sum by (group) (" + named(increased("prometheus_rule_evaluation_failures_total{"+ours+"}")) + ")",
					"failed {{group}}"},
			},
		},
		{
			title: "Objectives as the hub sees them", draw: rows, width: 8, height: 8, unit: units.Short,
			none: hubSilent,
			description: "Whether Prometheus evaluates what the hub wrote last for each operator, and whether its " +
				"objectives can work at all. The conditions of the OperatorSLO say what is wrong; nothing about " +
				"loading means that the hub has no Prometheus to query.",
			queries: []query{
				{"min by (" + operatorLabels + ") (" + of(series.SLOFeasible) + ")", ""},
				{"min by (" + operatorLabels + ") (" + of(series.SLORulesLoaded) + ")", ""},
			},
			columns: []column{
				{from: series.Operator, title: "Operator", link: to(UIDOperator, rowOperator)}, namespaceColumn,
				{from: "B", title: "Loaded", words: yesNo}, {from: "A", title: "Can work", words: yesNo},
			},
		},
	}
}

func deliveryPanels() []panel {
	return []panel{
		{
			title: "Policies", draw: rows, width: 24, height: 8, unit: units.Short, none: hubSilent,
			description: "PagingPolicies: whether each is in force as it is now, and what became of its last " +
				"self-test. A policy with spec.selfTest is tested by the hub; `bellwether page test` tests any.",
			queries: []query{
				{"min by (namespace, policy) (" + series.PagingPolicyReady + ")", ""},
				{"min by (namespace, policy) (" + series.PagingSelfTestPassed + ")", ""},
				{"time() - max by (namespace, policy) (" + series.PagingSelfTestTime + ")", ""},
			},
			columns: []column{
				{from: series.Policy, title: "Policy"}, {from: series.Namespace, title: "Namespace"},
				{from: "A", title: "In force", words: yesNo}, {from: "B", title: "Last test passed", words: yesNo},
				{from: "C", title: "Tested ago", unit: units.Seconds},
			},
		},
		{
			title: "From Prometheus to Alertmanager", draw: timeSeries, width: 12, height: 8, unit: units.OpsPerSecond,
			none: prometheusSilent, minimum: zero(),
			description: "Alerts that Prometheus sent, and those that it could not send or dropped. Errors and drops " +
				"are pages that never leave: look at the network between the two.",
			queries: []query{
				{"sum(rate(prometheus_notifications_sent_total[$__rate_interval]))", "sent"},
				{"sum(rate(prometheus_notifications_errors_total[$__rate_interval]))", "errors"},
				{"sum(rate(prometheus_notifications_dropped_total[$__rate_interval]))", "dropped"},
			},
		},
		{
			title: "From Alertmanager to receivers", draw: timeSeries, width: 12, height: 8, unit: units.Short,
			none: nothingSent, minimum: zero(),
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
			title: "Time to deliver", draw: timeSeries, width: 12, height: 8, unit: units.Seconds,
			none: nothingSent, minimum: zero(),
			description: "How long the slowest tenth of the notifications of 15 minutes took to be accepted. Seconds " +
				"are a receiver that is slow or retried: its status page may know.",
			queries: []query{{"histogram_quantile(0.9, sum by (integration, le) " +
				"(rate(alertmanager_notification_latency_seconds_bucket[15m]))) > 0", "{{integration}}"}},
		},
		{
			title: "Held back", draw: timeSeries, width: 12, height: 8, unit: units.Short, none: alertmanagerSilent,
			minimum: zero(),
			description: "Active silences, and alerts that are silenced or inhibited. Every silence hides something: " +
				"ask its owner if it stays longer than a day.",
			queries: []query{
				{"max(alertmanager_silences{state=\"active\"})", "active silences"},
				{"max(alertmanager_alerts{state=\"suppressed\"})", "suppressed alerts"},
			},
		},
	}
}

func changeEvents() panel {
	return panel{
		title: "Change events", draw: timeSeries, width: 24, height: 8, unit: units.Short,
		none: "no policy asks for change events", minimum: zero(),
		description: "What became of the change events for PagerDuty of rollouts that are kept. Refused, GivenUp " +
			"and Unknown are not sent again: the OperatorRollout's status.changeEvents and its Events say why.",
		queries: []query{{"sum by (state) (" + of(series.RolloutChangeEvents) + ")", "{{state}}"}},
	}
}
