// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/units"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// newOperatorPage returns the dashboard of the SLOs of one operator.
func newOperatorPage() page {
	sli := newMultiVariable(series.SLI, "SLI", buildLabelValues(selectSeries(series.SLOObjective), series.SLI))
	return page{
		uid: UIDOperator, title: "Bellwether / Operator SLO", from: "now-24h",
		description: "The objectives of one operator: what is left of their budgets, how fast they burn, when and " +
			"where it was bad, and what happened then. Alerts link here.",
		variables:   append(newSingleOperatorVariables(series.OperatorExpected), newClusterVariable(), sli),
		annotations: []annotation{markVersionChanges(), markWaveStarts(), markEdits(), markPages()},
		rows: []row{
			{"Now", newOperatorNowPanels()},
			{"Error budget", newOperatorBudgetPanels()},
			{"Burn rate by tier", newBurnPanels()},
			{"When and where it was bad", []panel{newBadSlicesPanel(), newAlertTable(12), newAbsencesPanel()}},
			{"Behind the indicators", newOperatorSignalPanels()},
		},
	}
}

// sliMatcher matches the SLI that is selected on this page.
var sliMatcher = matchVariable(series.SLI)

// newOperatorNowPanels returns the numbers for the current state of an operator.
func newOperatorNowPanels() []panel {
	team := newFigure("Team",
		"The team of this operator's objectives, from its OperatorSLO. Set spec.team there if this shows nobody.",
		units.Short, "nobody", 4, newNeutralLevels(),
		query{"max by (team) (" + setMissingTeam(selectSeries(series.SLOTeam)) + ")", "{{team}}"})
	team.draw = drawName
	versions := newFigure("Versions",
		"The versions that run, and on how many clusters. More than one outside of a rollout means that clusters "+
			"were left behind.",
		units.Short, agentSilent, 8, newNeutralLevels(),
		query{"count by (version) (group by (cluster, version) (" + selectSeries(series.OperatorInfo) + "))",
			"{{version}}"})
	return []panel{
		newFigure("Least budget left",
			"The part of the period's budget that the worst objective has left on its worst cluster; below it, "+
				"without the time that AlertSilences exclude. Below a quarter of all time, stop risky changes; below "+
				"0 the promise is broken.",
			units.PercentUnit, rulesSilent, 4, newBudgetLevels(),
			query{"min(" + selectSeries(series.SLOBudgetLeft, sliMatcher) + ")", "all time"},
			query{"min(" + selectBudgetExcluding() + ")", "without excluded time"}),
		newFigure("Bad now",
			"On how many clusters some indicator is bad in this minute. The map below says which one, "+
				"and since when.",
			units.Short, rulesSilent, 4, newAnyIsBadLevels(),
			query{defaultToZero("count(count by (cluster) ("+selectSeries(series.SLIBadSlice, sliMatcher)+"))",
				selectSeries(series.SLIBad, sliMatcher)), ""}),
		newFigure("Pages",
			"Alerts of this operator with the severity page now; one about a single cluster is a ticket "+
				"unless the operator pages for it. Follow the runbook in the alert; the list below has them all.",
			units.Short, rulesSilent, 4, newAnyIsBadLevels(),
			query{defaultToZero("count("+selectFiringAlerts(matchLabel(series.Severity, series.Page), sliMatcher)+")",
				selectSeries(series.SLOTeam)), ""}),
		team, versions,
	}
}

// newOperatorBudgetPanels returns the panels of the error budgets of an operator.
func newOperatorBudgetPanels() []panel {
	achieved := buildAchieved(selectSeries(series.SLOBudgetLeft, sliMatcher),
		selectSeries(series.SLOObjective, sliMatcher))
	return []panel{
		{
			title: "Budget left, by objective", draw: drawTimeSeries, width: 12, height: 9, unit: units.PercentUnit,
			noData: rulesSilent,
			description: "What each objective has left on its worst cluster, and where an AlertSilence excludes " +
				"time, also what would be left without that time. A jump without any bad slice is an objective that " +
				"was edited, which is marked.",
			queries: []query{{"min by (sli) (" + selectSeries(series.SLOBudgetLeft, sliMatcher) + ")", "{{sli}}"},
				{fmt.Sprintf("min by (sli) (\n  %s\n) and on (sli) %s", selectBudgetExcluding(),
					selectSeries(series.SLOBudgetExcluding, sliMatcher)), "{{sli}} without excluded time"}},
			levels: newBudgetLevels(),
		},
		{
			title: "Budget left, by cluster", draw: drawTimeSeries, width: 12, height: 9, unit: units.PercentUnit,
			noData: rulesSilent,
			description: "The 10 clusters with the least budget for the chosen objectives. One cluster alone is a " +
				"cluster's problem: click it.",
			queries: []query{{selectLowest(10, "min by (cluster) ("+selectSeries(series.SLOBudgetLeft, sliMatcher)+")"),
				"{{cluster}}"}}, levels: newBudgetLevels(),
			link: buildLink(UIDCluster, passLabel(series.Cluster)),
		},
		{
			title: "Objectives", draw: drawTable, width: 24, height: 9, unit: units.PercentUnit, noData: rulesSilent,
			description: "Each objective, and the part of the period's slices that was good. An objective that can " +
				"never be met, or is always met with most of its budget left, needs a better target: edit the " +
				"OperatorSLO.",
			queries: []query{
				{"max by (sli) (" + selectSeries(series.SLOObjective, sliMatcher) + ")", ""},
				{"max by (sli) (" + selectSeries(series.SLOPeriod, sliMatcher) + ")", ""},
				{"min by (sli) (" + achieved + ")", ""}, {"avg by (sli) (" + achieved + ")", ""},
				{"min by (sli) (" + selectSeries(series.SLOBudgetLeft, sliMatcher) + ")", ""},
				{"avg by (sli) (" + selectSeries(series.SLOBudgetLeft, sliMatcher) + ")", ""},
				{"count by (sli) (" + selectSeries(series.SLIBad, sliMatcher) + ")", ""},
				{"sum by (sli) (" + selectSeries(series.SLIBad, sliMatcher) + " > bool 0)", ""},
				{"min by (sli) (" + selectBudgetExcluding() + ")", ""},
			},
			columns: []column{
				{from: series.SLI, title: "SLI"}, newPercentColumn("A", "Target"),
				newPercentColumn("C", "Achieved, worst cluster"),
				newPercentColumn("D", "Achieved, average"),
				{from: "B", title: "Period", unit: units.DurationSeconds},
				{from: "E", title: "Budget left, worst cluster", unit: units.PercentUnit, levels: newBudgetLevels()},
				{from: "I", title: "Worst, without excluded time", unit: units.PercentUnit, levels: newBudgetLevels()},
				{from: "F", title: "Budget left, average", unit: units.PercentUnit, levels: newBudgetLevels()},
				{from: "G", title: "Clusters measured", unit: units.Short},
				{from: "H", title: "Bad now", unit: units.Short, levels: newAnyIsBadLevels()},
			},
		},
	}
}

// selectBudgetExcluding returns a query for the remaining budgets without excluded time. For a budget without
// excluded time, its result is the remaining budget.
func selectBudgetExcluding() string {
	return selectSeries(series.SLOBudgetExcluding, sliMatcher) + "\nor\n" + selectSeries(series.SLOBudgetLeft,
		sliMatcher)
}

// newPercentColumn returns a column of a ratio, with as many decimals as SLO targets have.
func newPercentColumn(from, title string) column {
	return column{from: from, title: title, unit: units.PercentUnit, decimals: ptr.To(3.)}
}

// newBurnPanels returns a panel for each tier of the SLOs, also if the tier does not alert. It shows for each
// SLI the burn rate of the worst cluster in the tier's long window: the number of bad slices, divided by the number
// that the target permits in this window.
func newBurnPanels() []panel {
	var out []panel
	for _, t := range slo.Tiers() {
		slices := int(t.Long / slo.Step)
		burnRate := fmt.Sprintf("max by (sli) (\n  sum without (version) (%s)\n  / on (%s, sli) group_left ()\n  "+
			"(%d * (1 - %s))\n)", selectSeries(series.SLIBadVersionSum+t.Name, sliMatcher), operatorLabels, slices,
			selectSeries(series.SLOObjective, sliMatcher))
		factor := t.Factor(slo.DefaultPeriod)
		out = append(out, panel{
			title: fmt.Sprintf("Burn over %s: %ss at %g", t.Name, t.Severity, factor), draw: drawTimeSeries, width: 12,
			height: 8, unit: "suffix:x", noData: rulesSilent, minimum: newZero(),
			description: fmt.Sprintf("How many times too fast the budget went in the last %s, on the worst cluster; "+
				"1 spends exactly all of it within the period. Above %g, with at least %d bad minutes, it is a %s "+
				"for a period of 30 days: %s",
				t.Name, factor, slo.Guard, t.Severity, severityAdvice[t.Severity]),
			// An SLI without bad slices has no sum, so its burn rate is set to 0.
			queries: []query{{burnRate + "\nor\n0 * max by (sli) (" +
				selectSeries(series.SLOBudgetLeft, sliMatcher) + ")", "{{sli}}"}},
			levels: []level{{good, 0}, {bad, factor}},
		})
	}
	return out
}

// severityAdvice says how urgent an alert of each severity is.
var severityAdvice = map[string]string{
	series.Page:   "a person has to act now.",
	series.Ticket: "find the cause within working hours.",
}

// newBadSlicesPanel returns the heat map of bad slices by cluster and SLI. The query ranks the rows over the whole
// time range at its end (@ end()), so that all cells of a row are kept.
func newBadSlicesPanel() panel {
	return panel{
		title: "Bad slices", draw: drawHeatMap, width: 24, height: 12, unit: units.PercentUnit,
		noData: "nothing was bad in this time",
		description: "One row for each of the 30 clusters and indicators that were bad for longest in this time, one " +
			"cell for each interval; gaps were not measured. Rows that turn red together have one cause: compare " +
			"with the marked events.",
		queries: []query{{
			fmt.Sprintf("max by (cluster, sli) (max_over_time(%s[$__interval]))\nand on (cluster, sli)\n%s",
				selectSeries(series.SLIBad, sliMatcher), selectHighest(30, fmt.Sprintf("sum by (cluster, sli) "+
					"(sum_over_time(%s[$__range] @ end())) > 0", selectSeries(series.SLIBadSlice, sliMatcher)))),
			"{{cluster}} {{sli}}",
		}},
		levels: []level{{good, 0}, {warn, 0.001}, {bad, 0.5}},
	}
}

// newAbsencesPanel returns the table of the SLIs that should be measured and are not: the SLI was already expected 15
// minutes ago, and has fewer than five samples since then.
func newAbsencesPanel() panel {
	return panel{
		title: "Not measured", draw: drawTable, width: 12, height: 8, unit: units.Short,
		noData: "all that is expected is measured",
		description: "Indicators that are expected and had fewer than five samples in 15 minutes. A budget that " +
			"is not measured does not burn: check the agent and its scrape. What is new may still come.",
		queries: []query{{fmt.Sprintf("max by (%[1]s, sli, cluster) (\n  %[2]s\n  and %[2]s offset 15m\n  unless on "+
			"(cluster, %[1]s, sli) (count_over_time(%[3]s[15m]) >= 5)\n)", operatorLabels,
			selectSeries(series.SLIExpected), selectSeries(series.SLIBad)), ""}},
		columns: []column{
			namespaceColumn, {from: series.Operator, title: "Operator"}, {from: series.SLI, title: "SLI"},
			{from: series.Cluster, title: "Cluster",
				link: buildLink(UIDCluster, passColumn(series.Cluster, "Cluster"))},
		},
	}
}

// selectPodSeries returns a selector for a metric of the pods of the selected operators. It also selects series
// without the labels of an operator; keepOperatorNamespaces limits these series to the operators' namespaces.
func selectPodSeries(metric string, matchers ...string) string {
	return selectSeries(metric, append([]string{`operator_namespace=~"$operator_namespace|"`, `operator=~"$operator|"`},
		matchers...)...)
}

// keepOperatorNamespaces returns a query with only the series from the namespaces of the selected operators.
func keepOperatorNamespaces(expr string) string {
	return expr + "\nand on (cluster, namespace) " + selectSeries(series.OperatorInfo)
}

func newOperatorSignalPanels() []panel {
	return slices.Concat(newWorkloadPanels(), newPodPanels(), newReconcilePanels(), newProbePanels())
}

// newWorkloadPanels returns the panels of the operator's Deployments, its ClusterServiceVersion and its custom
// resources, as the agents report them.
func newWorkloadPanels() []panel {
	succeeded, upgrading := selectSeries(series.OperatorCSVSucceeded), selectSeries(series.OperatorUpgrading)
	countClusters := func(condition string) string { return defaultToZero("count("+condition+")", succeeded) }
	return []panel{
		{
			title: "Missing replicas", draw: drawTimeSeries, width: 8, height: 8, unit: units.Short,
			noData:  agentSilent,
			minimum: newZero(), levels: newAnyIsBadLevels(),
			description: "Replicas that Deployments of the operator want and do not have: the 10 worst. Look at the " +
				"pods' events: images, quotas and nodes are the usual causes.",
			queries: []query{{selectHighest(10,
				fmt.Sprintf("sum by (cluster, deployment) (%s) - sum by (cluster, deployment) "+
					"(%s)",
					selectSeries(series.OperatorReplicasDesired), selectSeries(series.OperatorReplicasAvailable))),
				"{{cluster}} {{deployment}}"}},
		},
		{
			title: "ClusterServiceVersion, by state", draw: drawTimeSeries, width: 8, height: 8, unit: units.Short,
			noData: agentSilent, minimum: newZero(),
			description: "On how many clusters OLM reports the installed version as Succeeded, and on how many not; " +
				"an upgrade is excused for a bounded time. `bellwether why` shows OLM's reason for each cluster.",
			queries: []query{
				{countClusters("min by (cluster) (" + succeeded + ") == 1"), "succeeded"},
				{countClusters("min by (cluster) (" + succeeded + ") != 1"), "not succeeded"},
				{countClusters("max by (cluster) (" + upgrading + ") == 1"), "upgrading"},
			},
		},
		{
			title: "Resources that are not Ready", draw: drawTimeSeries, width: 8, height: 8, unit: units.Short,
			noData: "no custom resources", minimum: newZero(),
			description: "Custom resources of the operator that are not Ready, young ones left out: the 10 highest " +
				"numbers by cluster and kind. If reconciles fail at the same time, the operator is at fault; " +
				"otherwise look at what the resources describe.",
			queries: []query{{selectHighest(10, "sum by (cluster, kind) ("+
				selectSeries(series.OperatorOperands, matchLabel(series.Ready, series.ReadyFalse))+")"),
				"{{cluster}} {{kind}}"}},
		},
	}
}

// newPodPanels returns the panels of the operator's pods. The metrics of kubelets include all
// pods of the operator's namespace.
func newPodPanels() []panel {
	return slices.Concat(newOwnPodPanels(), newKubeletPanels())
}

// newOwnPodPanels returns the panels of the metrics about pods and custom resources that the agents export, which
// cover only the pods of the operator.
func newOwnPodPanels() []panel {
	return []panel{
		{
			title: "Container restarts", draw: drawTimeSeries, width: 8, height: 8, unit: units.Short,
			noData:  agentSilent,
			minimum: newZero(), levels: newAnyIsBadLevels(), decimals: newZero(),
			description: "How often containers of the operator restarted within 15 minutes, by reason, on the 10 " +
				"worst clusters. For `oom_killed` raise the memory limit; for `error` look at the log of the " +
				"container before the restart.",
			queries: []query{{selectHighest(10,
				"round(sum by (cluster, reason) ("+buildIncrease(selectSeries(series.OperatorRestarts))+"))"),
				"{{cluster}} {{reason}}"}},
		},
		{
			title: "Pending pods", draw: drawTimeSeries, width: 8, height: 8, unit: units.Short, noData: agentSilent,
			minimum: newZero(), levels: newAnyIsBadLevels(),
			description: "Pods of the operator that have been Pending for at least five minutes, on the 10 worst " +
				"clusters. The pod's events say what the scheduler or the image pull waits for.",
			queries: []query{{selectHighest(10, "sum by (cluster) ("+selectSeries(series.OperatorPodsPending)+")"),
				"{{cluster}}"}},
		},
		{
			title: "Custom resources", draw: drawTimeSeries, width: 8, height: 8, unit: units.Short,
			noData: "no custom resources", minimum: newZero(),
			description: "Custom resources of the operator, young ones included: the 10 highest numbers by cluster " +
				"and kind. Growth without an end is a client that creates and never deletes: find it by the " +
				"resources' labels and owners.",
			queries: []query{{selectHighest(10,
				"sum by (cluster, kind) ("+selectSeries(series.OperatorCustomResources)+")"),
				"{{cluster}} {{kind}}"}},
		},
	}
}

// newKubeletPanels returns the panels of the resources that the operator's containers and volumes use, as part of
// their limits. Containers and volumes without a limit are left out.
func newKubeletPanels() []panel {
	const container, volume = "cluster, namespace, pod, container", "cluster, namespace, " + series.VolumeClaim
	maxBy := func(labels, expr string) string { return fmt.Sprintf("max by (%s) (%s)", labels, expr) }
	// Series with an empty container or the container POD are about the whole pod.
	selectContainers := func(metric string) string { return selectSeries(metric, `container!=""`, `container!="POD"`) }
	divideByLimit := func(used, limit string) string {
		return maxBy(container, used) + "\n/ (" + maxBy(container, limit) + " > 0)"
	}
	memory := divideByLimit(selectContainers(series.ContainerMemory), selectContainers(series.ContainerMemoryLimit))
	throttled := divideByLimit(buildRate(selectContainers(series.ContainerThrottled)),
		buildRate(selectContainers(series.ContainerPeriods)))
	return []panel{
		{
			title: "Memory of its limit", draw: drawTimeSeries, width: 8, height: 8, unit: units.PercentUnit,
			noData: "kubelets not scraped", minimum: newZero(), levels: []level{{good, 0}, {bad, 0.9}},
			description: "The part of its memory limit that a container uses: the 10 highest in the operator's " +
				"namespace. Above 90 % an OOM kill is near: raise the limit, or find the leak.",
			queries: []query{{selectHighest(10, keepOperatorNamespaces(memory)), "{{cluster}} {{pod}} {{container}}"}},
		},
		{
			title: "CPU periods that were throttled", draw: drawTimeSeries, width: 8, height: 8,
			unit:   units.PercentUnit,
			noData: "kubelets not scraped", minimum: newZero(), levels: []level{{good, 0}, {bad, 0.25}},
			description: "The share of CPU periods in which a container had to wait: the 10 highest in the " +
				"operator's namespace. Above 25 % the operator is slow: raise or remove its CPU limit.",
			queries: []query{{selectHighest(10, keepOperatorNamespaces(throttled)),
				"{{cluster}} {{pod}} {{container}}"}},
		},
		{
			title: "Volumes, used", draw: drawTimeSeries, width: 8, height: 8, unit: units.PercentUnit,
			noData: "no volumes", minimum: newZero(), levels: []level{{good, 0}, {bad, 0.9}},
			description: "The used part of the 10 fullest volumes of the operator's Deployments. Above 90 %, delete " +
				"data or enlarge the claim.",
			queries: []query{{selectHighest(10,
				fmt.Sprintf("1 - min by (%[1]s) (%[2]s)\n/ (max by (%[1]s) (%[3]s) > 0)\n"+
					"and on (%[1]s) %[4]s", volume, selectSeries(series.VolumeAvailable),
					selectSeries(series.VolumeCapacity),
					selectSeries(series.OperatorVolumeClaim))), "{{cluster}} {{persistentvolumeclaim}}"}},
		},
	}
}

// newReconcilePanels returns the panels of the controllers in the operator, from its own metrics.
func newReconcilePanels() []panel {
	sumByNamespace := func(rate string) string { return "sum by (cluster, namespace) (" + rate + ")" }
	return []panel{
		{
			title: "Failed reconciles", draw: drawTimeSeries, width: 8, height: 8, unit: units.PercentUnit,
			noData: "operator not scraped", minimum: newZero(), levels: []level{{good, 0}, {bad, 0.1}},
			description: "The share of reconciles that returned an error, on the 10 worst clusters; above 10 % the " +
				"slice is bad. The operator's log has the errors.",
			queries: []query{{selectHighest(10,
				keepOperatorNamespaces(sumByNamespace(buildRate(selectPodSeries(series.ReconcileErrorsTotal)))+
					"\n/ "+sumByNamespace(buildRate(selectPodSeries(series.ReconcileTotal))))), "{{cluster}}"}},
		},
		{
			title: "Queue depth", draw: drawTimeSeries, width: 8, height: 8, unit: units.Short,
			noData: "operator not scraped", minimum: newZero(), levels: []level{{good, 0}, {bad, 10}},
			description: "Work that waits in the operator's queues: the 10 longest queues. More than 10 items for " +
				"ten minutes is bad: slow or failing calls to the API server are the usual cause.",
			queries: []query{{selectHighest(10,
				keepOperatorNamespaces("max by (cluster, namespace, name) ("+selectPodSeries(series.QueueDepth)+")")),
				"{{cluster}} {{name}}"}},
		},
		{
			title: "Panics", draw: drawTimeSeries, width: 8, height: 8, unit: units.Short,
			noData:  "operator not scraped",
			minimum: newZero(), levels: newAnyIsBadLevels(), decimals: newZero(),
			description: "How many reconciles panicked within 15 minutes, on the 10 worst clusters. One is a bug in " +
				"the operator: send its log to whoever makes it.",
			queries: []query{{selectHighest(10, keepOperatorNamespaces("round("+
				sumByNamespace(buildIncrease(selectPodSeries(series.ReconcilePanicsTotal)))+")")), "{{cluster}}"}},
		},
	}
}

// newProbePanels returns the panels of the operator's EndpointProbes.
func newProbePanels() []panel {
	aggregateByProbe := func(fn, metric string) string {
		return fn + " by (cluster, probe) (" + selectSeries(metric) + ")"
	}
	return []panel{
		{
			title: "Probes that succeed", draw: drawTimeSeries, width: 8, height: 8, unit: units.Short,
			noData: "no probes", minimum: newZero(), levels: []level{{bad, 0}, {good, 0.5}},
			description: "1 where a probe succeeds and 0 where it fails: the 10 worst probes, inside (`cluster`) and " +
				"outside (`hub`) of their clusters. A probe with a selector fails while one of its targets does. The " +
				"EndpointProbe's conditions have the last failure's reason.",
			queries: []query{{selectLowest(10,
				"min by (cluster, probe, vantage) (max by (cluster, probe, vantage, target) ("+
					selectSeries(series.ProbeSuccess)+"))"), "{{cluster}} {{probe}} from {{vantage}}"}},
		},
		{
			title: "Duration of probes", draw: drawTimeSeries, width: 8, height: 8, unit: units.Seconds,
			noData:  "no probes",
			minimum: newZero(),
			description: "How long the 10 slowest probes take, from their slowest vantage point. If it nears the " +
				"probe's timeout, failures follow: look at the endpoint's load.",
			queries: []query{{selectHighest(10, aggregateByProbe("max", series.ProbeDuration)),
				"{{cluster}} {{probe}}"}},
		},
		{
			title: "Certificates expire in", draw: drawBars, width: 8, height: 8, unit: units.DurationSeconds,
			noData: "no probes with TLS", levels: newLowIsBadLevels(7*86400, 21*86400),
			description: "The time until the first certificate of the chain that a probe verified expires (with " +
				"`insecureSkipVerify`, of those that it was sent): the 10 next ones. Renew what has less than three " +
				"weeks, and find out why it did not renew by itself.",
			queries: []query{{selectLowest(10,
				"min by (cluster, probe) ("+selectSeries(series.ProbeSSLChainExpiry)+" > 0 or "+
					selectSeries(series.ProbeSSLEarliestExpiry)+") - time()"), "{{cluster}} {{probe}}"}},
		},
	}
}
