// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

func clusterPage() page {
	cluster := one(series.Cluster, "Cluster", values(series.ClusterInfo, series.Cluster))
	return page{
		uid: UIDCluster, title: "Bellwether / Cluster", from: "now-24h",
		description: "One cluster: whether its agent is alive, what its operators are doing, and how much budget " +
			"they have left there. Come here when several operators of a cluster have trouble at once.",
		variables:   append([]dashboard.VariableModel{cluster}, operators()...),
		annotations: []annotation{versionChanges(), pages()},
		rows: []row{
			{"Now", clusterNow()},
			{"Operators", clusterOperators()},
			{"Trouble", []panel{clusterBad(), alertTable(12), absences()}},
			{"Agent", agentPanels()},
		},
	}
}

func clusterNow() []panel {
	online := figure("Online",
		"Whether the agent renews its Lease on the hub. If not, operators stay as they are and no rollout reaches "+
			"them: look at the agent's pod and at the way to the hub.",
		units.Short, hubSilent, 4, nil, query{"max(" + of(series.ClusterOnline) + ")", ""})
	online.words = yesNo
	versions := figure("Versions",
		"The versions of the agent, Kubernetes and OLM, as the agent reports them. Compare them with other "+
			"clusters if only this one has "+
			"trouble.",
		units.Short, hubSilent, 12, noJudgement(),
		query{"max by (agent, kubernetes, olm) (" + of(series.ClusterInfo) + ")",
			"agent {{agent}}, Kubernetes {{kubernetes}}, OLM {{olm}}"})
	versions.draw = name
	return []panel{
		online,
		figure("Heartbeat", "How long ago the agent renewed its Lease, by its own clock. More than a minute is a "+
			"dead agent or a broken network; less than nothing is a clock that is ahead.",
			units.Seconds, "never joined", 4, moreIsBad(60, 300), query{heartbeatAge(), ""}),
		figure("Operators not ready",
			"Operators that the hub does not see ready on this cluster. `bellwether why` explains each of them.",
			units.Short, hubSilent, 4, anyIsBad(),
			query{"max(" + of(series.ClusterInstalls, is(series.State, "not_ready")) + ")", ""}),
		versions,
	}
}

func clusterOperators() []panel {
	each := func(fn, metric string) query {
		return query{fn + " by (" + operatorLabels + ") (" + of(metric) + ")", ""}
	}
	return []panel{
		{
			title: "Operators", draw: rows, width: 24, height: 9, unit: units.Short, none: agentSilent,
			description: "What runs on this cluster and its state. What is not succeeded or has no ready catalog " +
				"cannot be upgraded: `bellwether why` says what to do.",
			queries: []query{
				{byOperator("max", of(series.OperatorInfo), series.Namespace, series.Version, series.CSV), ""},
				each("min", series.OperatorCSVSucceeded), each("max", series.OperatorUpgrading),
				each("min", series.OperatorCatalogReady), each("min", series.SLOBudgetLeft),
			},
			columns: []column{
				{from: series.Operator, title: "Operator",
					link: to(UIDOperator, rowOperator, chosenCluster)},
				namespaceColumn,
				{from: series.Version, title: "Version"},
				{from: "B", title: "Succeeded", words: yesNo},
				{from: "C", title: "Upgrading", words: map[string]word{"0": {"no", unknown}, "1": {"yes", neutral}}},
				{from: "D", title: "Catalog ready", words: yesNo},
				{from: "E", title: "Least budget left", unit: units.PercentUnit, levels: budgetLevels()},
				{from: series.Namespace, title: "Runs in"}, {from: series.CSV, title: "ClusterServiceVersion"},
			},
		},
		{
			title: "Budget left on this cluster", draw: timeSeries, width: 12, height: 9, unit: units.PercentUnit,
			none: rulesSilent, levels: budgetLevels(),
			description: "The worst objective of each operator here. If all operators fall together the cluster is " +
				"at fault, not they.",
			queries: []query{{byOperator("min", of(series.SLOBudgetLeft)), legendOperator}},
			link:    to(UIDOperator, lineOperator, chosenCluster),
		},
		{
			title: "Missing replicas", draw: timeSeries, width: 12, height: 9, unit: units.Short, none: agentSilent,
			minimum: zero(), levels: anyIsBad(),
			description: "Replicas that Deployments of operators want and do not have. Several operators at once " +
				"point at nodes, quotas or image pulls.",
			queries: []query{{fmt.Sprintf("sum by (%[1]s, deployment) (%[2]s) - sum by (%[1]s, deployment) (%[3]s)",
				operatorLabels, of(series.OperatorReplicasDesired), of(series.OperatorReplicasAvailable)),
				legendOperator + " {{deployment}}"}},
		},
		{
			title: "Slices that never arrived", draw: timeSeries, width: 24, height: 6, unit: units.PercentUnit,
			none: "none are missing", minimum: zero(), levels: anyIsBad(),
			description: "The part of each hour's slices that the Prometheus of the hub never got; it is known two " +
				"hours after the hour. They count as good, so the budgets may have less left than is shown. Look " +
				"whether the cluster could send: its network, its Prometheus, its token.",
			queries: []query{{"max by (cluster) (" + of(series.SlicesMissing) + ")", "{{cluster}}"}},
		},
	}
}

// chosenCluster passes the cluster of the page on.
const chosenCluster = "${cluster:queryparam}"

func clusterBad() panel {
	p := badSlices()
	p.description = "One row for each operator and indicator that was bad here at least once in this time; gaps were " +
		"not measured. Rows that turn red together point at the cluster itself: its nodes, its network, its API server."
	p.queries = []query{{
		fmt.Sprintf("max by (%[1]s, sli) (max_over_time(%[2]s[$__interval]))\nand on (%[1]s, sli)\nsum by "+
			"(%[1]s, sli) (sum_over_time(%[3]s[$__range] @ end())) > 0", operatorLabels,
			of(series.SLIBad), of(series.SLIBadSlice)),
		legendOperator + " {{sli}}",
	}}
	return p
}

// agents keeps what agents export about their own processes: they are the ones
// that tell of operators.
func agents(expr string) string {
	return expr + "\nand on (job, instance) " + of(series.OperatorCatalogReady)
}

func agentPanels() []panel {
	return []panel{
		{
			title: "Agent's memory", draw: timeSeries, width: 12, height: 8, unit: units.BytesIEC, none: agentSilent,
			minimum: zero(),
			description: "Resident memory of the agent. If it nears the limit of its pod, raise agent.resources in " +
				"the chart's values.",
			queries: []query{{agents(of("process_resident_memory_bytes")), "{{instance}}"}},
		},
		{
			title: "Agent's CPU", draw: timeSeries, width: 12, height: 8, unit: units.Short, none: agentSilent,
			minimum: zero(),
			description: "CPU that the agent uses, in cores. A rise without more operators or probes is a loop: look " +
				"at the agent's log and at the controllers' internals.",
			queries: []query{{agents(rated(of("process_cpu_seconds_total"))), "{{instance}}"}},
			link:    to(UIDInternals, chosenCluster),
		},
		{
			title: "Probes from this cluster", draw: timeline, width: 12, height: 8, unit: units.Short,
			none: "no probes",
			description: "Whether each probe succeeded here. The EndpointProbe's conditions have the last failure's " +
				"reason.",
			queries: []query{{byOperator("min", of(series.ProbeSuccess), series.Probe, series.Vantage),
				legendOperator + " {{probe}} from {{vantage}}"}}, words: yesNo, levels: []level{{bad, 0}, {good, 1}},
		},
		{
			title: "Installations and upgrades", draw: timeSeries, width: 12, height: 8, unit: units.Short,
			none: "none in this time", minimum: zero(),
			description: "How many ended in the last hour, by operator and outcome. Failures name their reason in " +
				"the OperatorInstall: `bellwether why` shows it.",
			queries: []query{{byOperator("sum", "increase("+of(series.OperatorInstallTotal)+"[1h])", series.Outcome),
				legendOperator + " {{outcome}}"}},
		},
	}
}
