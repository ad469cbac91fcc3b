// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// newClusterPage returns the dashboard of one cluster.
func newClusterPage() page {
	cluster := newSingleVariable(series.Cluster, "Cluster", buildLabelValues(series.ClusterInfo, series.Cluster))
	return page{
		uid: UIDCluster, title: "Bellwether / Cluster", from: "now-24h",
		description: "One cluster: whether its agent is alive, what its operators are doing, and how much budget " +
			"they have left there. Come here when several operators of a cluster have trouble at once.",
		variables:   append([]dashboard.VariableModel{cluster}, newOperatorVariables()...),
		annotations: []annotation{markVersionChanges(), markPages()},
		rows: []row{
			{"Now", newClusterNowPanels()},
			{"Operators", newClusterOperatorPanels()},
			{"Trouble", []panel{newClusterBadSlicesPanel(), newAlertTable(12), newAbsencesPanel()}},
			{"Agent", newAgentPanels()},
		},
	}
}

// newClusterNowPanels returns the figures for the current state of a cluster.
func newClusterNowPanels() []panel {
	online := newFigure("Online",
		"Whether the agent renews its Lease on the hub. If not, operators stay as they are and no rollout reaches "+
			"them: look at the agent's pod and at the way to the hub.",
		units.Short, hubSilent, 4, nil, query{"max(" + selectSeries(series.ClusterOnline) + ")", ""})
	online.words = yesNoWords
	versions := newFigure("Versions",
		"The versions of the agent, Kubernetes and OLM, as the agent reports them. Compare them with other "+
			"clusters if only this one has "+
			"trouble.",
		units.Short, hubSilent, 12, newNeutralLevels(),
		query{"max by (agent, kubernetes, olm) (" + selectSeries(series.ClusterInfo) + ")",
			"agent {{agent}}, Kubernetes {{kubernetes}}, OLM {{olm}}"})
	versions.draw = drawName
	return []panel{
		online,
		newFigure("Heartbeat", "How long ago the agent renewed its Lease, by its own clock. More than a minute is a "+
			"dead agent or a broken network; less than nothing is a clock that is ahead.",
			units.Seconds, "never joined", 4, newHighIsBadLevels(60, 300), query{buildHeartbeatAge(), ""}),
		newFigure("Operators not ready",
			"Operators that the hub does not see ready on this cluster. `bellwether why` explains each of them.",
			units.Short, hubSilent, 4, newAnyIsBadLevels(),
			query{"max(" + selectSeries(series.ClusterInstalls, matchLabel(series.State, "not_ready")) + ")", ""}),
		versions,
	}
}

// newClusterOperatorPanels returns the panels of all operators on a cluster.
func newClusterOperatorPanels() []panel {
	aggregateMetric := func(fn, metric string) query {
		return query{fn + " by (" + operatorLabels + ") (" + selectSeries(metric) + ")", ""}
	}
	return []panel{
		{
			title: "Operators", draw: drawTable, width: 24, height: 9, unit: units.Short, noData: agentSilent,
			description: "What runs on this cluster and its state. What is not succeeded or has no ready catalog " +
				"cannot be upgraded: `bellwether why` says what to do.",
			queries: []query{
				{aggregateByOperator("max", selectSeries(series.OperatorInfo), series.Namespace, series.Version,
					series.CSV), ""},
				aggregateMetric("min", series.OperatorCSVSucceeded), aggregateMetric("max", series.OperatorUpgrading),
				aggregateMetric("min", series.OperatorCatalogReady), aggregateMetric("min", series.SLOBudgetLeft),
			},
			columns: []column{
				{from: series.Operator, title: "Operator",
					link: buildLink(UIDOperator, operatorFromRow, clusterParameter)},
				namespaceColumn,
				{from: series.Version, title: "Version"},
				{from: "B", title: "Succeeded", words: yesNoWords},
				{from: "C", title: "Upgrading", words: map[string]word{"0": {"no", unknown}, "1": {"yes", neutral}}},
				{from: "D", title: "Catalog ready", words: yesNoWords},
				{from: "E", title: "Least budget left", unit: units.PercentUnit, levels: newBudgetLevels()},
				{from: series.Namespace, title: "Runs in"}, {from: series.CSV, title: "ClusterServiceVersion"},
			},
		},
		{
			title: "Budget left on this cluster", draw: drawTimeSeries, width: 12, height: 9, unit: units.PercentUnit,
			noData: rulesSilent, levels: newBudgetLevels(),
			description: "The worst objective of each operator here. If all operators fall together the cluster is " +
				"at fault, not they.",
			queries: []query{{aggregateByOperator("min", selectSeries(series.SLOBudgetLeft)), legendOperator}},
			link:    buildLink(UIDOperator, operatorFromSeries, clusterParameter),
		},
		{
			title: "Missing replicas", draw: drawTimeSeries, width: 12, height: 9, unit: units.Short,
			noData:  agentSilent,
			minimum: newZero(), levels: newAnyIsBadLevels(),
			description: "Replicas that Deployments of operators want and do not have. Several operators at once " +
				"point at nodes, quotas or image pulls.",
			queries: []query{{fmt.Sprintf("sum by (%[1]s, deployment) (%[2]s) - sum by (%[1]s, deployment) (%[3]s)",
				operatorLabels, selectSeries(series.OperatorReplicasDesired),
				selectSeries(series.OperatorReplicasAvailable)), legendOperator + " {{deployment}}"}},
		},
		{
			title: "Slices that never arrived", draw: drawTimeSeries, width: 24, height: 6, unit: units.PercentUnit,
			noData: "none are missing", minimum: newZero(), levels: newAnyIsBadLevels(),
			description: "The part of each hour's slices that the Prometheus of the hub never got; it is known two " +
				"hours after the hour. They count as good, so the budgets may have less left than is shown. Look " +
				"whether the cluster could send: its network, its Prometheus, its token.",
			queries: []query{{"max by (cluster) (" + selectSeries(series.SlicesMissing) + ")", "{{cluster}}"}},
		},
	}
}

// clusterParameter passes the selected cluster to another dashboard.
const clusterParameter = "${cluster:queryparam}"

// newClusterBadSlicesPanel returns the heat map of bad slices by operator and SLI.
func newClusterBadSlicesPanel() panel {
	p := newBadSlicesPanel()
	p.description = "One row for each operator and indicator that was bad here at least once in this time; gaps were " +
		"not measured. Rows that turn red together point at the cluster itself: its nodes, its network, its API server."
	p.queries = []query{{
		fmt.Sprintf("max by (%[1]s, sli) (max_over_time(%[2]s[$__interval]))\nand on (%[1]s, sli)\nsum by "+
			"(%[1]s, sli) (sum_over_time(%[3]s[$__range] @ end())) > 0", operatorLabels,
			selectSeries(series.SLIBad), selectSeries(series.SLIBadSlice)),
		legendOperator + " {{sli}}",
	}}
	return p
}

// keepAgents returns a query with only the processes of agents. Only agents export the series with which it joins.
func keepAgents(expr string) string {
	return expr + "\nand on (job, instance) " + selectSeries(series.OperatorCatalogReady)
}

// newAgentPanels returns the panels of the agent's process, and of the work of the agent: probes and installations.
func newAgentPanels() []panel {
	return []panel{
		{
			title: "Agent's memory", draw: drawTimeSeries, width: 12, height: 8, unit: units.BytesIEC,
			noData:  agentSilent,
			minimum: newZero(),
			description: "Resident memory of the agent. If it nears the limit of its pod, raise agent.resources in " +
				"the chart's values.",
			queries: []query{{keepAgents(selectSeries("process_resident_memory_bytes")), "{{instance}}"}},
		},
		{
			title: "Agent's CPU", draw: drawTimeSeries, width: 12, height: 8, unit: units.Short, noData: agentSilent,
			minimum: newZero(),
			description: "CPU that the agent uses, in cores. A rise without more operators or probes is a loop: look " +
				"at the agent's log and at the controllers' internals.",
			queries: []query{{keepAgents(buildRate(selectSeries("process_cpu_seconds_total"))), "{{instance}}"}},
			link:    buildLink(UIDInternals, clusterParameter),
		},
		{
			title: "Probes from this cluster", draw: drawTimeline, width: 12, height: 8, unit: units.Short,
			noData: "no probes",
			description: "Whether each probe succeeded here. The EndpointProbe's conditions have the last failure's " +
				"reason.",
			queries: []query{{aggregateByOperator("min", selectSeries(series.ProbeSuccess), series.Probe,
				series.Vantage), legendOperator + " {{probe}} from {{vantage}}"}}, words: yesNoWords,
			levels: []level{{bad, 0}, {good, 1}},
		},
		{
			title: "Installations and upgrades", draw: drawTimeSeries, width: 12, height: 8, unit: units.Short,
			noData: "none in this time", minimum: newZero(),
			description: "How many ended in the last hour, by operator and outcome. Failures name their reason in " +
				"the OperatorInstall: `bellwether why` shows it.",
			queries: []query{{aggregateByOperator("sum", "increase("+selectSeries(series.OperatorInstallTotal)+"[1h])",
				series.Outcome), legendOperator + " {{outcome}}"}},
		},
	}
}
