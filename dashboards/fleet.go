// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

func fleetPage() page {
	return page{
		uid: UIDFleet, title: "Bellwether / Fleet", from: "now-24h",
		description: "The state of the fleet: budgets, alerts, rollouts and clusters that do not report. Start " +
			"here, and click " +
			"through to what is red.",
		variables:   append([]dashboard.VariableModel{clusters()}, operators()...),
		annotations: []annotation{waveStarts(), pages()},
		rows: []row{
			{"Now", fleetNow()},
			{"Error budgets", fleetBudgets()},
			{"Alerts", []panel{alertTable(24), alertTimeline(24)}},
			{"Rollouts and versions", fleetRollouts()},
			{"Clusters", []panel{clusterTable()}},
		},
	}
}

// figure is a small number.
func figure(title, description, unit, none string, width uint32, levels []level, queries ...query) panel {
	return panel{title: title, description: description, draw: number, width: width, height: 4, unit: unit, none: none,
		levels: levels, queries: queries}
}

func count(title, description, none string, levels []level, expr string) panel {
	return figure(title, description, units.Short, none, 4, levels, query{expr, ""})
}

const (
	hubSilent   = "hub not scraped"
	rulesSilent = "rules not evaluated"
	agentSilent = "agents not scraped"
)

func fleetNow() []panel {
	rulesWork := of(series.SLOTeam)
	return []panel{
		count("Silent clusters",
			"Clusters whose agent does not renew its Lease. Look at the list of clusters below: the agent, its "+
				"network or the cluster may be down; rollouts leave these clusters out meanwhile.",
			hubSilent, anyIsBad(), orNone("count("+of(series.ClusterOnline)+" == 0)", of(series.ClusterOnline))),
		count("Operators expected",
			"How many operators should run, counted once for each cluster. If this falls although nobody removed an "+
				"operator, look whether the hub and the agents are scraped.",
			agentSilent, noJudgement(), "count("+byOperator("max", of(series.OperatorExpected), series.Cluster)+")"),
		count("Pages", "Alerts with the severity page now; one about a single cluster is a ticket for an operator "+
			"that does not page for it. Open the operator in the list of alerts below, and follow the runbook of "+
			"the alert.",
			rulesSilent, anyIsBad(), orNone("count("+firing(is(series.Severity, series.Page))+")", rulesWork)),
		count("Tickets", "Alerts that can wait for working hours. Look at them before they become pages: the list is "+
			"below.",
			rulesSilent, moreIsBad(1, 20), orNone("count("+firing(is(series.Severity, series.Ticket))+")", rulesWork)),
		count("Overspent budgets",
			"Objectives whose error budget of the period is gone on a cluster. Hold risky changes of these operators "+
				"until the cause is known.",
			rulesSilent, moreIsBad(1, 5), orNone("count("+of(series.SLOBudgetLeft)+" < 0)", of(series.SLOBudgetLeft))),
		count("Rollouts under way",
			"Operators with a rollout that has not ended. Paused and halted ones wait for a person: see the list of "+
				"rollouts below.",
			hubSilent, noJudgement(), orNone("count("+of(series.RolloutPhase,
				`phase=~"Pending|Progressing|Paused|Halted"`)+")", of(series.OperatorReady))),
	}
}

func fleetBudgets() []panel {
	link := to(UIDOperator, lineOperator)
	worst := least(25, byOperator("min", of(series.SLOBudgetLeft), series.SLI, series.Cluster))
	return []panel{
		{
			title: "Least budget left, by operator", draw: timeSeries, width: 12, height: 9, unit: units.PercentUnit,
			none: rulesSilent,
			description: "The budget of each operator's worst objective on its worst cluster. A line that falls " +
				"steeply is an incident; one below 0 has broken its promise: click it to see which objective it is.",
			queries: []query{{byOperator("min", of(series.SLOBudgetLeft)), legendOperator}},
			levels:  budgetLevels(), link: link,
		},
		{
			title: "Clusters with problems, by operator", draw: timeSeries, width: 12, height: 9, unit: units.Short,
			none: "no bad slices",
			description: "On how many clusters an operator is bad by any of its indicators. Many clusters at once " +
				"point at a release, a catalog or something that all share; one cluster points at that cluster.",
			queries: []query{{byOperator("count", byOperator("count", of(series.SLIBadSlice), series.Cluster)),
				legendOperator}},
			stacked: true, link: link,
		},
		{
			title: "Least budget left", draw: rows, width: 24, height: 9, none: rulesSilent, unit: units.PercentUnit,
			description: "The 25 objectives with the least budget, and the part of the period's slices that was " +
				"good. Open the operator to see when the budget was spent, and stop changing what is below a quarter.",
			queries: []query{
				{worst, ""},
				{"0 * " + worst + fmt.Sprintf("\n+ on (%s, sli) group_left ()\n%s", operatorLabels,
					of(series.SLOObjective)), ""},
				{achieved(worst, of(series.SLOObjective)), ""},
			},
			columns: []column{
				{from: series.Operator, title: "Operator",
					link: to(UIDOperator, rowOperator, field(series.Cluster, "Cluster"), field(series.SLI, "SLI"))},
				namespaceColumn,
				{from: series.SLI, title: "SLI"},
				{from: series.Cluster, title: "Cluster", link: to(UIDCluster, field(series.Cluster, "Cluster"))},
				percent("B", "Target"), percent("C", "Achieved"),
				{from: "A", title: "Budget left", unit: units.PercentUnit, levels: budgetLevels()},
			},
			sort: "Budget left",
		},
	}
}

// alertTable lists what fires.
func alertTable(width uint32) panel {
	return panel{
		title: "Firing alerts", draw: rows, width: width, height: 8, unit: units.Short, none: "nothing fires",
		description: "Every alert that fires now. A release alert stands for all clusters that run the version: " +
			"pause its rollout first; a cluster's alert leads to that cluster.",
		queries: []query{{byOperator("max", firing(), series.SLI, series.Cluster, series.Version, "alertname",
			series.Severity, series.Team), ""}},
		columns: []column{
			{from: series.Severity, title: "Severity"},
			{from: "alertname", title: "Alert"},
			{from: series.Operator, title: "Operator", link: to(UIDOperator, rowOperator)}, namespaceColumn,
			{from: series.SLI, title: "SLI"},
			{from: series.Cluster, title: "Cluster", link: to(UIDCluster, field(series.Cluster, "Cluster"))},
			{from: series.Version, title: "Version"},
			{from: series.Team, title: "Team"},
		},
	}
}

func alertTimeline(width uint32) panel {
	return panel{
		title: "When alerts fired", draw: timeline, width: width, height: 9, unit: units.Short, none: "nothing fired",
		description: "One bar for each alert while it fired: the 20 with the severity page (one about a single " +
			"cluster is a ticket for an operator that does not page for it) and the 20 tickets that fired for " +
			"longest. Bars that begin together have one cause: look at what changed just before, which the " +
			"dashboard marks.",
		queries: []query{
			{"2 * " + longest(series.Page), legendOperator + " {{sli}} {{cluster}}{{version}}"},
			{longest(series.Ticket), legendOperator + " {{sli}} {{cluster}}{{version}}"},
		},
		words:  map[string]word{"1": {series.Ticket, warn}, "2": {series.Page, bad}},
		levels: []level{{good, 0}, {warn, 1}, {bad, 2}},
	}
}

// longest are the alerts of a severity that fired for longest in the time range.
func longest(severity string) string {
	selector := firing(is(series.Severity, severity))
	labels := []string{series.SLI, series.Cluster, series.Version}
	return fmt.Sprintf("%s\nand on (%s, sli, cluster, version)\n%s", byOperator("max", selector, labels...),
		operatorLabels, most(20, byOperator("sum", "count_over_time("+selector+"[$__range] @ end())", labels...)))
}

func fleetRollouts() []panel {
	newest := func(state string) string {
		return byOperator("max", of(series.RolloutClusters, is(series.State, state)))
	}
	open := to(UIDRollout, rowOperator)
	return []panel{
		{
			title: "Newest rollout of each operator", draw: rows, width: 14, height: 9, none: "no rollouts",
			unit: units.Short,
			description: "How far each operator's newest rollout is. Halted means that a wave has too many failures, " +
				"Paused that a person stopped it: open it to see which wave.",
			queries: []query{
				{fmt.Sprintf("%s * on (%s) group_left (phase) %s",
					byOperator("max", of(series.RolloutInfo), series.Version), operatorLabels,
					byOperator("max", of(series.RolloutPhase), series.Phase)), ""},
				{newest("succeeded"), ""}, {newest("in_progress"), ""}, {newest("pending"), ""}, {newest("failed"), ""},
			},
			columns: []column{
				{from: series.Operator, title: "Operator", link: open}, namespaceColumn,
				{from: series.Version, title: "Version"}, {from: series.Phase, title: "Phase"},
				{from: "B", title: "Succeeded"}, {from: "C", title: "In progress"}, {from: "D", title: "Pending"},
				{from: "E", title: "Failed", levels: anyIsBad()},
			},
		},
		{
			title: "Clusters by version", draw: timeSeries, width: 10, height: 9, unit: units.Short, none: hubSilent,
			stacked: true,
			description: "How many clusters run which version. Old versions that stay after a rollout are clusters " +
				"that were deferred, failed or removed: the rollout's dashboard counts them.",
			queries: []query{{byOperator("sum", of(series.OperatorVersionClusters), series.Version),
				legendOperator + " {{version}}"}},
			link: to(UIDRollout, lineOperator),
		},
	}
}

// heartbeatAge is how long ago an agent's clock says that it was alive.
func heartbeatAge() string {
	return "time() - max by (cluster) (" + of(series.ClusterHeartbeat) + ")"
}

func clusterTable() panel {
	installs := func(state string) string {
		return "max by (cluster) (" + of(series.ClusterInstalls, is(series.State, state)) + ")"
	}
	return panel{
		title: "Clusters", draw: rows, width: 24, height: 10, none: hubSilent, unit: units.Short,
		description: "Every cluster with its agent's last heartbeat. A heartbeat older than a minute is a dead " +
			"agent or a broken network, unless the clocks differ; agents of several versions are an update that has " +
			"not finished.",
		queries: []query{
			{fmt.Sprintf("max by (cluster, agent, kubernetes, olm) (%s)", of(series.ClusterInfo)), ""},
			{"max by (cluster) (" + of(series.ClusterOnline) + ")", ""},
			{heartbeatAge(), ""}, {installs("ready"), ""}, {installs("not_ready"), ""},
			{"min by (cluster) (" + of(series.SLOBudgetLeft) + ")", ""},
		},
		columns: []column{
			{from: series.Cluster, title: "Cluster", link: to(UIDCluster, field(series.Cluster, "Cluster"))},
			{from: "B", title: "Online", words: yesNo},
			{from: "C", title: "Heartbeat", unit: units.Seconds, levels: moreIsBad(60, 300)},
			{from: "D", title: "Ready operators"}, {from: "E", title: "Not ready", levels: anyIsBad()},
			{from: "F", title: "Least budget", unit: units.PercentUnit, levels: budgetLevels()},
			{from: series.Agent, title: "Agent"}, {from: series.Kubernetes, title: "Kubernetes"},
			{from: series.OLM, title: "OLM"},
		},
	}
}
