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

func operatorPage() page {
	sli := choice(series.SLI, "SLI", values(of(series.SLOObjective), series.SLI))
	return page{
		uid: UIDOperator, title: "Bellwether / Operator SLO", from: "now-24h",
		description: "The objectives of one operator: what is left of their budgets, how fast they burn, when and " +
			"where it was bad, and what happened then. Alerts link here.",
		variables:   append(oneOperator(series.OperatorExpected), clusters(), sli),
		annotations: []annotation{versionChanges(), waveStarts(), edits(), pages()},
		rows: []row{
			{"Now", operatorNow()},
			{"Error budget", operatorBudget()},
			{"Burn rate by tier", burns()},
			{"When and where it was bad", []panel{badSlices(), alertTable(12), absences()}},
			{"Behind the indicators", operatorSignals()},
		},
	}
}

// bySLI matches the variable of this page.
var bySLI = chosen(series.SLI)

func operatorNow() []panel {
	team := figure("Team",
		"The team of this operator's objectives, from its OperatorSLO. Set spec.team there if this shows nobody.",
		units.Short, "nobody", 4, noJudgement(),
		query{"max by (team) (" + orNobody(of(series.SLOTeam)) + ")", "{{team}}"})
	team.draw = name
	versions := figure("Versions",
		"The versions that run, and on how many clusters. More than one outside of a rollout means that clusters "+
			"were left behind.",
		units.Short, agentSilent, 8, noJudgement(),
		query{"count by (version) (group by (cluster, version) (" + of(series.OperatorInfo) + "))", "{{version}}"})
	return []panel{
		figure("Least budget left",
			"The part of the period's budget that the worst objective has left on its worst cluster; below it, "+
				"without the time that AlertSilences exclude. Below a quarter of all time, stop risky changes; below "+
				"0 the promise is broken.",
			units.PercentUnit, rulesSilent, 4, budgetLevels(),
			query{"min(" + of(series.SLOBudgetLeft, bySLI) + ")", "all time"},
			query{"min(" + leftExcluding() + ")", "without excluded time"}),
		figure("Bad now", "On how many clusters some indicator is bad in this minute. The map below says which one, "+
			"and since when.",
			units.Short, rulesSilent, 4, anyIsBad(),
			query{orNone("count(count by (cluster) ("+of(series.SLIBadSlice, bySLI)+"))", of(series.SLIBad, bySLI)),
				""}),
		figure("Pages", "Alerts of this operator with the severity page now; one about a single cluster is a ticket "+
			"unless the operator pages for it. Follow the runbook in the alert; the list below has them all.",
			units.Short, rulesSilent, 4, anyIsBad(),
			query{orNone("count("+firing(is(series.Severity, series.Page), bySLI)+")", of(series.SLOTeam)), ""}),
		team, versions,
	}
}

func operatorBudget() []panel {
	kept := achieved(of(series.SLOBudgetLeft, bySLI), of(series.SLOObjective, bySLI))
	return []panel{
		{
			title: "Budget left, by objective", draw: timeSeries, width: 12, height: 9, unit: units.PercentUnit,
			none: rulesSilent,
			description: "What each objective has left on its worst cluster, and where an AlertSilence excludes " +
				"time, also what would be left without that time. A jump without any bad slice is an objective that " +
				"was edited, which is marked.",
			queries: []query{{"min by (sli) (" + of(series.SLOBudgetLeft, bySLI) + ")", "{{sli}}"},
				{fmt.Sprintf("min by (sli) (\n  %s\n) and on (sli) %s", leftExcluding(),
					of(series.SLOBudgetExcluding, bySLI)), "{{sli}} without excluded time"}},
			levels: budgetLevels(),
		},
		{
			title: "Budget left, by cluster", draw: timeSeries, width: 12, height: 9, unit: units.PercentUnit,
			none: rulesSilent,
			description: "The 10 clusters with the least budget for the chosen objectives. One cluster alone is a " +
				"cluster's problem: click it.",
			queries: []query{{least(10, "min by (cluster) ("+of(series.SLOBudgetLeft, bySLI)+")"),
				"{{cluster}}"}}, levels: budgetLevels(),
			link: to(UIDCluster, label(series.Cluster)),
		},
		{
			title: "Objectives", draw: rows, width: 24, height: 9, unit: units.PercentUnit, none: rulesSilent,
			description: "Each objective, and the part of the period's slices that was good. An objective that can " +
				"never be met, or is always met with most of its budget left, needs a better target: edit the " +
				"OperatorSLO.",
			queries: []query{
				{"max by (sli) (" + of(series.SLOObjective, bySLI) + ")", ""},
				{"max by (sli) (" + of(series.SLOPeriod, bySLI) + ")", ""},
				{"min by (sli) (" + kept + ")", ""}, {"avg by (sli) (" + kept + ")", ""},
				{"min by (sli) (" + of(series.SLOBudgetLeft, bySLI) + ")", ""},
				{"avg by (sli) (" + of(series.SLOBudgetLeft, bySLI) + ")", ""},
				{"count by (sli) (" + of(series.SLIBad, bySLI) + ")", ""},
				{"sum by (sli) (" + of(series.SLIBad, bySLI) + " > bool 0)", ""},
				{"min by (sli) (" + leftExcluding() + ")", ""},
			},
			columns: []column{
				{from: series.SLI, title: "SLI"}, percent("A", "Target"), percent("C", "Achieved, worst cluster"),
				percent("D", "Achieved, average"),
				{from: "B", title: "Period", unit: units.DurationSeconds},
				{from: "E", title: "Budget left, worst cluster", unit: units.PercentUnit, levels: budgetLevels()},
				{from: "I", title: "Worst, without excluded time", unit: units.PercentUnit, levels: budgetLevels()},
				{from: "F", title: "Budget left, average", unit: units.PercentUnit, levels: budgetLevels()},
				{from: "G", title: "Clusters measured", unit: units.Short},
				{from: "H", title: "Bad now", unit: units.Short, levels: anyIsBad()},
			},
		},
	}
}

// leftExcluding is what would be left of budgets without excluded time: where none is, what
// is left.
func leftExcluding() string {
	return of(series.SLOBudgetExcluding, bySLI) + "\nor\n" + of(series.SLOBudgetLeft, bySLI)
}

// percent is a column of a ratio with as many digits as targets have.
func percent(from, title string) column {
	return column{from: from, title: title, unit: units.PercentUnit, decimals: ptr.To(3.)}
}

// burns has a panel for each tier: its long window's burn rate, whether it
// alerts or not.
func burns() []panel {
	var out []panel
	for _, t := range slo.Tiers() {
		slices := int(t.Long / slo.Step)
		sum := fmt.Sprintf("max by (sli) (\n  sum without (version) (%s)\n  / on (%s, sli) group_left ()\n  "+
			"(%d * (1 - %s))\n)", of(series.SLIBadVersionSum+t.Name, bySLI), operatorLabels, slices,
			of(series.SLOObjective, bySLI))
		factor := t.Factor(slo.DefaultPeriod)
		out = append(out, panel{
			title: fmt.Sprintf("Burn over %s: %ss at %g", t.Name, t.Severity, factor), draw: timeSeries, width: 12,
			height: 8, unit: "suffix:x", none: rulesSilent, minimum: zero(),
			description: fmt.Sprintf("How many times too fast the budget went in the last %s, on the worst cluster; "+
				"1 spends exactly all of it within the period. Above %g, with at least %d bad minutes, it is a %s "+
				"for a period of 30 days: %s",
				t.Name, factor, slo.Guard, t.Severity, urgency[t.Severity]),
			queries: []query{{sum + "\nor\n0 * max by (sli) (" + of(series.SLOBudgetLeft, bySLI) + ")", "{{sli}}"}},
			levels:  []level{{good, 0}, {bad, factor}},
		})
	}
	return out
}

var urgency = map[string]string{
	series.Page:   "a person has to act now.",
	series.Ticket: "find the cause within working hours.",
}

func badSlices() panel {
	return panel{
		title: "Bad slices", draw: heatMap, width: 24, height: 12, unit: units.PercentUnit,
		none: "nothing was bad in this time",
		description: "One row for each of the 30 clusters and indicators that were bad for longest in this time, one " +
			"cell for each interval; gaps were not measured. Rows that turn red together have one cause: compare " +
			"with the marked events.",
		queries: []query{{
			fmt.Sprintf("max by (cluster, sli) (max_over_time(%s[$__interval]))\nand on (cluster, sli)\n%s",
				of(series.SLIBad, bySLI), most(30, fmt.Sprintf("sum by (cluster, sli) "+
					"(sum_over_time(%s[$__range] @ end())) > 0", of(series.SLIBadSlice, bySLI)))),
			"{{cluster}} {{sli}}",
		}},
		levels: []level{{good, 0}, {warn, 0.001}, {bad, 0.5}},
	}
}

// absences lists what should be measured and is not.
func absences() panel {
	return panel{
		title: "Not measured", draw: rows, width: 12, height: 8, unit: units.Short,
		none: "all that is expected is measured",
		description: "Indicators that are expected and had fewer than five samples in 15 minutes. A budget that " +
			"is not measured does not burn: check the agent and its scrape. What is new may still come.",
		queries: []query{{fmt.Sprintf("max by (%[1]s, sli, cluster) (\n  %[2]s\n  and %[2]s offset 15m\n  unless on "+
			"(cluster, %[1]s, sli) (count_over_time(%[3]s[15m]) >= 5)\n)", operatorLabels,
			of(series.SLIExpected), of(series.SLIBad)), ""}},
		columns: []column{
			namespaceColumn, {from: series.Operator, title: "Operator"}, {from: series.SLI, title: "SLI"},
			{from: series.Cluster, title: "Cluster", link: to(UIDCluster, field(series.Cluster, "Cluster"))},
		},
	}
}

// ofPods selects what the pods of the chosen operators export. What names no operator is selected too: theirs keeps
// what is in their namespaces.
func ofPods(metric string, matchers ...string) string {
	return of(metric, append([]string{`operator_namespace=~"$operator_namespace|"`, `operator=~"$operator|"`},
		matchers...)...)
}

// theirs keeps what was scraped from the chosen operators' namespaces.
func theirs(expr string) string {
	return expr + "\nand on (cluster, namespace) " + of(series.OperatorInfo)
}

func operatorSignals() []panel {
	return slices.Concat(workloadSignals(), podSignals(), reconcileSignals(), probeSignals())
}

func workloadSignals() []panel {
	succeeded, upgrading := of(series.OperatorCSVSucceeded), of(series.OperatorUpgrading)
	clusters := func(condition string) string { return orNone("count("+condition+")", succeeded) }
	return []panel{
		{
			title: "Missing replicas", draw: timeSeries, width: 8, height: 8, unit: units.Short, none: agentSilent,
			minimum: zero(), levels: anyIsBad(),
			description: "Replicas that Deployments of the operator want and do not have: the 10 worst. Look at the " +
				"pods' events: images, quotas and nodes are the usual causes.",
			queries: []query{{most(10, fmt.Sprintf("sum by (cluster, deployment) (%s) - sum by (cluster, deployment) "+
				"(%s)",
				of(series.OperatorReplicasDesired), of(series.OperatorReplicasAvailable))),
				"{{cluster}} {{deployment}}"}},
		},
		{
			title: "ClusterServiceVersion, by state", draw: timeSeries, width: 8, height: 8, unit: units.Short,
			none: agentSilent, minimum: zero(),
			description: "On how many clusters OLM reports the installed version as Succeeded, and on how many not; " +
				"an upgrade is excused for a bounded time. `bellwether why` shows OLM's reason for each cluster.",
			queries: []query{
				{clusters("min by (cluster) (" + succeeded + ") == 1"), "succeeded"},
				{clusters("min by (cluster) (" + succeeded + ") != 1"), "not succeeded"},
				{clusters("max by (cluster) (" + upgrading + ") == 1"), "upgrading"},
			},
		},
		{
			title: "Resources that are not Ready", draw: timeSeries, width: 8, height: 8, unit: units.Short,
			none: "no custom resources", minimum: zero(),
			description: "Custom resources of the operator that are not Ready, young ones left out: the 10 highest " +
				"numbers by cluster and kind. If reconciles fail at the same time, the operator is at fault; " +
				"otherwise look at what the resources describe.",
			queries: []query{{most(10, "sum by (cluster, kind) ("+
				of(series.OperatorOperands, is(series.Ready, series.ReadyFalse))+")"), "{{cluster}} {{kind}}"}},
		},
	}
}

// podSignals are about the pods of the operator. What kubelets measure is of all pods
// of its namespace.
func podSignals() []panel {
	return slices.Concat(ownPodSignals(), kubeletSignals())
}

func ownPodSignals() []panel {
	return []panel{
		{
			title: "Container restarts", draw: timeSeries, width: 8, height: 8, unit: units.Short, none: agentSilent,
			minimum: zero(), levels: anyIsBad(), decimals: zero(),
			description: "How often containers of the operator restarted within 15 minutes, by reason, on the 10 " +
				"worst clusters. For `oom_killed` raise the memory limit; for `error` look at the log of the " +
				"container before the restart.",
			queries: []query{{most(10, "round(sum by (cluster, reason) ("+increased(of(series.OperatorRestarts))+"))"),
				"{{cluster}} {{reason}}"}},
		},
		{
			title: "Pending pods", draw: timeSeries, width: 8, height: 8, unit: units.Short, none: agentSilent,
			minimum: zero(), levels: anyIsBad(),
			description: "Pods of the operator that have been Pending for at least five minutes, on the 10 worst " +
				"clusters. The pod's events say what the scheduler or the image pull waits for.",
			queries: []query{{most(10, "sum by (cluster) ("+of(series.OperatorPodsPending)+")"), "{{cluster}}"}},
		},
		{
			title: "Custom resources", draw: timeSeries, width: 8, height: 8, unit: units.Short,
			none: "no custom resources", minimum: zero(),
			description: "Custom resources of the operator, young ones included: the 10 highest numbers by cluster " +
				"and kind. Growth without an end is a client that creates and never deletes: find it by the " +
				"resources' labels and owners.",
			queries: []query{{most(10, "sum by (cluster, kind) ("+of(series.OperatorCustomResources)+")"),
				"{{cluster}} {{kind}}"}},
		},
	}
}

func kubeletSignals() []panel {
	const container, volume = "cluster, namespace, pod, container", "cluster, namespace, " + series.VolumeClaim
	by := func(labels, expr string) string { return fmt.Sprintf("max by (%s) (%s)", labels, expr) }
	ofContainers := func(metric string) string { return of(metric, `container!=""`, `container!="POD"`) }
	part := func(of, all string) string { return by(container, of) + "\n/ (" + by(container, all) + " > 0)" }
	memory := part(ofContainers(series.ContainerMemory), ofContainers(series.ContainerMemoryLimit))
	throttled := part(rated(ofContainers(series.ContainerThrottled)), rated(ofContainers(series.ContainerPeriods)))
	return []panel{
		{
			title: "Memory of its limit", draw: timeSeries, width: 8, height: 8, unit: units.PercentUnit,
			none: "kubelets not scraped", minimum: zero(), levels: []level{{good, 0}, {bad, 0.9}},
			description: "The part of its memory limit that a container uses: the 10 highest in the operator's " +
				"namespace. Above 90 % an OOM kill is near: raise the limit, or find the leak.",
			queries: []query{{most(10, theirs(memory)), "{{cluster}} {{pod}} {{container}}"}},
		},
		{
			title: "CPU periods that were throttled", draw: timeSeries, width: 8, height: 8, unit: units.PercentUnit,
			none: "kubelets not scraped", minimum: zero(), levels: []level{{good, 0}, {bad, 0.25}},
			description: "The share of CPU periods in which a container had to wait: the 10 highest in the " +
				"operator's namespace. Above 25 % the operator is slow: raise or remove its CPU limit.",
			queries: []query{{most(10, theirs(throttled)), "{{cluster}} {{pod}} {{container}}"}},
		},
		{
			title: "Volumes, used", draw: timeSeries, width: 8, height: 8, unit: units.PercentUnit,
			none: "no volumes", minimum: zero(), levels: []level{{good, 0}, {bad, 0.9}},
			description: "The used part of the 10 fullest volumes of the operator's Deployments. Above 90 %, delete " +
				"data or enlarge the claim.",
			queries: []query{{most(10, fmt.Sprintf("1 - min by (%[1]s) (%[2]s)\n/ (max by (%[1]s) (%[3]s) > 0)\n"+
				"and on (%[1]s) %[4]s", volume, of(series.VolumeAvailable), of(series.VolumeCapacity),
				of(series.OperatorVolumeClaim))), "{{cluster}} {{persistentvolumeclaim}}"}},
		},
	}
}

func reconcileSignals() []panel {
	byNamespace := func(rate string) string { return "sum by (cluster, namespace) (" + rate + ")" }
	return []panel{
		{
			title: "Failed reconciles", draw: timeSeries, width: 8, height: 8, unit: units.PercentUnit,
			none: "operator not scraped", minimum: zero(), levels: []level{{good, 0}, {bad, 0.1}},
			description: "The share of reconciles that returned an error, on the 10 worst clusters; above 10 % the " +
				"slice is bad. The operator's log has the errors.",
			queries: []query{{most(10, theirs(byNamespace(rated(ofPods(series.ReconcileErrorsTotal)))+
				"\n/ "+byNamespace(rated(ofPods(series.ReconcileTotal))))), "{{cluster}}"}},
		},
		{
			title: "Queue depth", draw: timeSeries, width: 8, height: 8, unit: units.Short,
			none: "operator not scraped", minimum: zero(), levels: []level{{good, 0}, {bad, 10}},
			description: "Work that waits in the operator's queues: the 10 longest queues. More than 10 items for " +
				"ten minutes is bad: slow or failing calls to the API server are the usual cause.",
			queries: []query{{most(10, theirs("max by (cluster, namespace, name) ("+ofPods(series.QueueDepth)+")")),
				"{{cluster}} {{name}}"}},
		},
		{
			title: "Panics", draw: timeSeries, width: 8, height: 8, unit: units.Short, none: "operator not scraped",
			minimum: zero(), levels: anyIsBad(), decimals: zero(),
			description: "How many reconciles panicked within 15 minutes, on the 10 worst clusters. One is a bug in " +
				"the operator: send its log to whoever makes it.",
			queries: []query{{most(10, theirs("round("+
				byNamespace(increased(ofPods(series.ReconcilePanicsTotal)))+")")), "{{cluster}}"}},
		},
	}
}

func probeSignals() []panel {
	byProbe := func(fn, metric string) string { return fn + " by (cluster, probe) (" + of(metric) + ")" }
	return []panel{
		{
			title: "Probes that succeed", draw: timeSeries, width: 8, height: 8, unit: units.Short,
			none: "no probes", minimum: zero(), levels: []level{{bad, 0}, {good, 0.5}},
			description: "1 where a probe succeeds and 0 where it fails: the 10 worst probes, inside (`cluster`) and " +
				"outside (`hub`) of their clusters. A probe with a selector fails while one of its targets does. The " +
				"EndpointProbe's conditions have the last failure's reason.",
			queries: []query{{least(10, "min by (cluster, probe, vantage) (max by (cluster, probe, vantage, target) ("+
				of(series.ProbeSuccess)+"))"), "{{cluster}} {{probe}} from {{vantage}}"}},
		},
		{
			title: "Duration of probes", draw: timeSeries, width: 8, height: 8, unit: units.Seconds, none: "no probes",
			minimum: zero(),
			description: "How long the 10 slowest probes take, from their slowest vantage point. If it nears the " +
				"probe's timeout, failures follow: look at the endpoint's load.",
			queries: []query{{most(10, byProbe("max", series.ProbeDuration)), "{{cluster}} {{probe}}"}},
		},
		{
			title: "Certificates expire in", draw: bars, width: 8, height: 8, unit: units.DurationSeconds,
			none: "no probes with TLS", levels: lessIsBad(7*86400, 21*86400),
			description: "The time until the first certificate of the chain that a probe verified expires (with " +
				"`insecureSkipVerify`, of those that it was sent): the 10 next ones. Renew what has less than three " +
				"weeks, and find out why it did not renew by itself.",
			queries: []query{{least(10, "min by (cluster, probe) ("+of(series.ProbeSSLChainExpiry)+" > 0 or "+
				of(series.ProbeSSLEarliestExpiry)+") - time()"), "{{cluster}} {{probe}}"}},
		},
	}
}
