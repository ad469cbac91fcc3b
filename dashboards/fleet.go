// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// newFleetPage returns the dashboard of the whole fleet.
func newFleetPage() page {
	return page{
		uid: UIDFleet, title: "Bellwether / Fleet", from: "now-24h",
		description: "The state of the fleet: budgets, alerts, rollouts and clusters that do not report. Start " +
			"here, and click " +
			"through to what is red.",
		variables:   append([]dashboard.VariableModel{newClusterVariable()}, newOperatorVariables()...),
		annotations: []annotation{markWaveStarts(), markPages()},
		rows: []row{
			{"Now", newFleetNowPanels()},
			{"Error budgets", newFleetBudgetPanels()},
			{"Alerts", []panel{newAlertTable(24), newAlertTimeline(24)}},
			{"Rollouts and versions", newFleetRolloutPanels()},
			{"Clusters", []panel{newClusterTable()}},
		},
	}
}

// newFigure returns a small panel with a number.
func newFigure(title, description, unit, noData string, width uint32, levels []level, queries ...query) panel {
	return panel{title: title, description: description, draw: drawNumber, width: width, height: 4, unit: unit,
		noData: noData, levels: levels, queries: queries}
}

// newCount returns a small panel with a number without a unit.
func newCount(title, description, noData string, levels []level, expr string) panel {
	return newFigure(title, description, units.Short, noData, 4, levels, query{expr, ""})
}

// Texts that panels show if there is no data.
const (
	hubSilent   = "hub not scraped"
	rulesSilent = "rules not evaluated"
	agentSilent = "agents not scraped"
)

// newFleetNowPanels returns the numbers for the current state of the fleet. A number is 0 only if the series that it
// is counted from are measured; see defaultToZero.
func newFleetNowPanels() []panel {
	evaluatedSLOs := selectSeries(series.SLOTeam)
	return []panel{
		newCount("Silent clusters",
			"Clusters whose agent does not renew its Lease. Look at the list of clusters below: the agent, its "+
				"network or the cluster may be down; rollouts leave these clusters out meanwhile.",
			hubSilent, newAnyIsBadLevels(), defaultToZero("count("+selectSeries(series.ClusterOnline)+" == 0)",
				selectSeries(series.ClusterOnline))),
		newCount("Operators expected",
			"How many operators should run, counted once for each cluster. If this falls although nobody removed an "+
				"operator, look whether the hub and the agents are scraped.",
			agentSilent, newNeutralLevels(), "count("+aggregateByOperator("max", selectSeries(series.OperatorExpected),
				series.Cluster)+")"),
		newCount("Pages", "Alerts with the severity page now; one about a single cluster is a ticket for an operator "+
			"that does not page for it. Open the operator in the list of alerts below, and follow the runbook of "+
			"the alert.",
			rulesSilent, newAnyIsBadLevels(), defaultToZero("count("+selectFiringAlerts(matchLabel(series.Severity,
				series.Page))+")", evaluatedSLOs)),
		newCount("Tickets",
			"Alerts that can wait for working hours. Look at them before they become pages: the list is "+
				"below.",
			rulesSilent, newHighIsBadLevels(1, 20),
			defaultToZero("count("+selectFiringAlerts(matchLabel(series.Severity, series.Ticket))+")", evaluatedSLOs)),
		newCount("Overspent budgets",
			"Objectives whose error budget of the period is gone on a cluster. Hold risky changes of these operators "+
				"until the cause is known.",
			rulesSilent, newHighIsBadLevels(1, 5),
			defaultToZero("count("+selectSeries(series.SLOBudgetLeft)+" < 0)", selectSeries(series.SLOBudgetLeft))),
		newCount("Rollouts under way",
			"Operators with a rollout that has not ended. Paused and halted ones wait for a person: see the list of "+
				"rollouts below.",
			hubSilent, newNeutralLevels(), defaultToZero("count("+selectSeries(series.RolloutPhase,
				`phase=~"Pending|Progressing|Paused|Halted"`)+")", selectSeries(series.OperatorReady))),
	}
}

// newFleetBudgetPanels returns the panels of the error budgets in the fleet, with links to the operators.
func newFleetBudgetPanels() []panel {
	link := buildLink(UIDOperator, operatorFromSeries)
	worst := selectLowest(25, aggregateByOperator("min", selectSeries(series.SLOBudgetLeft), series.SLI,
		series.Cluster))
	return []panel{
		{
			title: "Least budget left, by operator", draw: drawTimeSeries, width: 12, height: 9,
			unit: units.PercentUnit, noData: rulesSilent,
			description: "The budget of each operator's worst objective on its worst cluster. A line that falls " +
				"steeply is an incident; one below 0 has broken its promise: click it to see which objective it is.",
			queries: []query{{aggregateByOperator("min", selectSeries(series.SLOBudgetLeft)), legendOperator}},
			levels:  newBudgetLevels(), link: link,
		},
		{
			title: "Clusters with problems, by operator", draw: drawTimeSeries, width: 12, height: 9, unit: units.Short,
			noData: "no bad slices",
			description: "On how many clusters an operator is bad by any of its indicators. Many clusters at once " +
				"point at a release, a catalog or something that all share; one cluster points at that cluster.",
			queries: []query{{aggregateByOperator("count",
				aggregateByOperator("count", selectSeries(series.SLIBadSlice), series.Cluster)),
				legendOperator}},
			stacked: true, link: link,
		},
		{
			title: "Least budget left", draw: drawTable, width: 24, height: 9, noData: rulesSilent,
			unit: units.PercentUnit,
			description: "The 25 objectives with the least budget, and the part of the period's slices that was " +
				"good. Open the operator to see when the budget was spent, and stop changing what is below a quarter.",
			queries: []query{
				{worst, ""},
				// The other columns are limited to the same objectives.
				{"0 * " + worst + fmt.Sprintf("\n+ on (%s, sli) group_left ()\n%s", operatorLabels,
					selectSeries(series.SLOObjective)), ""},
				{buildAchieved(worst, selectSeries(series.SLOObjective)), ""},
			},
			columns: []column{
				{from: series.Operator, title: "Operator",
					link: buildLink(UIDOperator, operatorFromRow, passColumn(series.Cluster, "Cluster"),
						passColumn(series.SLI, "SLI"))},
				namespaceColumn,
				{from: series.SLI, title: "SLI"},
				{from: series.Cluster, title: "Cluster",
					link: buildLink(UIDCluster, passColumn(series.Cluster, "Cluster"))},
				newPercentColumn("B", "Target"), newPercentColumn("C", "Achieved"),
				{from: "A", title: "Budget left", unit: units.PercentUnit, levels: newBudgetLevels()},
			},
			sort: "Budget left",
		},
	}
}

// newAlertTable returns the table of the firing alerts.
func newAlertTable(width uint32) panel {
	return panel{
		title: "Firing alerts", draw: drawTable, width: width, height: 8, unit: units.Short, noData: "nothing fires",
		description: "Every alert that fires now. A release alert stands for all clusters that run the version: " +
			"pause its rollout first; a cluster's alert leads to that cluster.",
		queries: []query{{aggregateByOperator("max", selectFiringAlerts(), series.SLI, series.Cluster, series.Version,
			"alertname", series.Severity, series.Team), ""}},
		columns: []column{
			{from: series.Severity, title: "Severity"},
			{from: "alertname", title: "Alert"},
			{from: series.Operator, title: "Operator", link: buildLink(UIDOperator, operatorFromRow)}, namespaceColumn,
			{from: series.SLI, title: "SLI"},
			{from: series.Cluster, title: "Cluster",
				link: buildLink(UIDCluster, passColumn(series.Cluster, "Cluster"))},
			{from: series.Version, title: "Version"},
			{from: series.Team, title: "Team"},
		},
	}
}

// newAlertTimeline returns the timeline of the alerts that fired for longest. Its values are 1 for a ticket and 2 for
// a page.
func newAlertTimeline(width uint32) panel {
	return panel{
		title: "When alerts fired", draw: drawTimeline, width: width, height: 9, unit: units.Short,
		noData: "nothing fired",
		description: "One bar for each alert while it fired: the 20 with the severity page (one about a single " +
			"cluster is a ticket for an operator that does not page for it) and the 20 tickets that fired for " +
			"longest. Bars that begin together have one cause: look at what changed just before, which the " +
			"dashboard marks.",
		queries: []query{
			{"2 * " + selectLongestAlerts(series.Page), legendOperator + " {{sli}} {{cluster}}{{version}}"},
			{selectLongestAlerts(series.Ticket), legendOperator + " {{sli}} {{cluster}}{{version}}"},
		},
		words:  map[string]word{"1": {series.Ticket, warn}, "2": {series.Page, bad}},
		levels: []level{{good, 0}, {warn, 1}, {bad, 2}},
	}
}

// selectLongestAlerts returns a query for the 20 alerts of a severity that fired longest in the time range. The query
// ranks the alerts at the end of the range (@ end()), so that their lines are complete.
func selectLongestAlerts(severity string) string {
	selector := selectFiringAlerts(matchLabel(series.Severity, severity))
	labels := []string{series.SLI, series.Cluster, series.Version}
	return fmt.Sprintf("%s\nand on (%s, sli, cluster, version)\n%s", aggregateByOperator("max", selector, labels...),
		operatorLabels, selectHighest(20, aggregateByOperator("sum", "count_over_time("+selector+"[$__range] @ end())",
			labels...)))
}

// newFleetRolloutPanels returns the panels of the newest rollouts, and of the versions that clusters run.
func newFleetRolloutPanels() []panel {
	countClusters := func(state string) string {
		return aggregateByOperator("max", selectSeries(series.RolloutClusters, matchLabel(series.State, state)))
	}
	rolloutLink := buildLink(UIDRollout, operatorFromRow)
	return []panel{
		{
			title: "Newest rollout of each operator", draw: drawTable, width: 14, height: 9, noData: "no rollouts",
			unit: units.Short,
			description: "How far each operator's newest rollout is. Halted means that a wave has too many failures, " +
				"Paused that a person stopped it: open it to see which wave.",
			queries: []query{
				{fmt.Sprintf("%s * on (%s) group_left (phase) %s",
					aggregateByOperator("max", selectSeries(series.RolloutInfo), series.Version), operatorLabels,
					aggregateByOperator("max", selectSeries(series.RolloutPhase), series.Phase)), ""},
				{countClusters("succeeded"), ""}, {countClusters("in_progress"), ""},
				{countClusters("pending"), ""}, {countClusters("failed"), ""},
			},
			columns: []column{
				{from: series.Operator, title: "Operator", link: rolloutLink}, namespaceColumn,
				{from: series.Version, title: "Version"}, {from: series.Phase, title: "Phase"},
				{from: "B", title: "Succeeded"}, {from: "C", title: "In progress"}, {from: "D", title: "Pending"},
				{from: "E", title: "Failed", levels: newAnyIsBadLevels()},
			},
		},
		{
			title: "Clusters by version", draw: drawTimeSeries, width: 10, height: 9, unit: units.Short,
			noData:  hubSilent,
			stacked: true,
			description: "How many clusters run which version. Old versions that stay after a rollout are clusters " +
				"that were deferred, failed or removed: the rollout's dashboard counts them.",
			queries: []query{{aggregateByOperator("sum", selectSeries(series.OperatorVersionClusters), series.Version),
				legendOperator + " {{version}}"}},
			link: buildLink(UIDRollout, operatorFromSeries),
		},
	}
}

// buildHeartbeatAge returns a query for the age of each agent's last heartbeat, by the agent's clock.
func buildHeartbeatAge() string {
	return "time() - max by (cluster) (" + selectSeries(series.ClusterHeartbeat) + ")"
}

// newClusterTable returns the table of all clusters with their agents, versions and operators.
func newClusterTable() panel {
	countInstalls := func(state string) string {
		return "max by (cluster) (" + selectSeries(series.ClusterInstalls, matchLabel(series.State, state)) + ")"
	}
	return panel{
		title: "Clusters", draw: drawTable, width: 24, height: 10, noData: hubSilent, unit: units.Short,
		description: "Every cluster with its agent's last heartbeat. A heartbeat older than a minute is a dead " +
			"agent or a broken network, unless the clocks differ; agents of several versions are an update that has " +
			"not finished.",
		queries: []query{
			{fmt.Sprintf("max by (cluster, agent, kubernetes, olm) (%s)", selectSeries(series.ClusterInfo)), ""},
			{"max by (cluster) (" + selectSeries(series.ClusterOnline) + ")", ""},
			{buildHeartbeatAge(), ""}, {countInstalls("ready"), ""}, {countInstalls("not_ready"), ""},
			{"min by (cluster) (" + selectSeries(series.SLOBudgetLeft) + ")", ""},
		},
		columns: []column{
			{from: series.Cluster, title: "Cluster",
				link: buildLink(UIDCluster, passColumn(series.Cluster, "Cluster"))},
			{from: "B", title: "Online", words: yesNoWords},
			{from: "C", title: "Heartbeat", unit: units.Seconds, levels: newHighIsBadLevels(60, 300)},
			{from: "D", title: "Ready operators"}, {from: "E", title: "Not ready", levels: newAnyIsBadLevels()},
			{from: "F", title: "Least budget", unit: units.PercentUnit, levels: newBudgetLevels()},
			{from: series.Agent, title: "Agent"}, {from: series.Kubernetes, title: "Kubernetes"},
			{from: series.OLM, title: "OLM"},
		},
	}
}
