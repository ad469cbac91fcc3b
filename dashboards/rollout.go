// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func rolloutPage() page {
	return page{
		uid: UIDRollout, title: "Bellwether / Rollout", from: "now-6h",
		description: "The newest rollout of one operator: how far its waves are, and whether the clusters that have " +
			"the new version are worse than those that do not.",
		variables:   append(oneOperator(series.RolloutInfo), clusters()),
		annotations: []annotation{waveStarts(), wavesVerified(), halts(), pages()},
		rows: []row{
			{"Where it stands", rolloutNow()},
			{"Waves", rolloutWaves()},
			{"Canary against baseline", canary()},
			{"Installations", installations()},
		},
	}
}

// states of clusters in a rollout, in the order in which they are stacked.
var states = []string{"succeeded", "in_progress", "pending", "deferred", "failed", "removed"}

var rolloutPhases = []phase{
	{string(v1alpha1.RolloutPending), neutral}, {string(v1alpha1.RolloutProgressing), neutral},
	{string(v1alpha1.RolloutPaused), warn},
	{string(v1alpha1.RolloutHalted), bad}, {string(v1alpha1.RolloutSucceeded), good},
	{string(v1alpha1.RolloutAborted), bad},
	{string(v1alpha1.RolloutSuperseded), unknown}, {string(v1alpha1.RolloutRolledBack), bad},
}

var wavePhases = []phase{
	{string(v1alpha1.WaveWaiting), unknown}, {string(v1alpha1.WaveGated), warn},
	{string(v1alpha1.WaveUpdating), "purple"}, {string(v1alpha1.WaveSoaking), neutral},
	{string(v1alpha1.WaveVerifying), neutral},
	{string(v1alpha1.WaveVerified), good}, {string(v1alpha1.WaveSkipped), unknown},
}

type phase struct{ name, colour string }

// coded is a series by phase as numbers from 1, so that a panel can give each
// phase its word and colour.
func coded(metric, by string, phases []phase) string {
	parts := make([]string, len(phases))
	for i, p := range phases {
		parts[i] = fmt.Sprintf("%d * max by (%s) (%s)", i+1, by, of(metric, is(series.Phase, p.name)))
	}
	return strings.Join(parts, "\nor ")
}

func decoded(phases []phase) map[string]word {
	out := map[string]word{}
	for i, p := range phases {
		out[strconv.Itoa(i+1)] = word{p.name, p.colour}
	}
	return out
}

func rolloutNow() []panel {
	share := func(state string) query {
		return query{"sum(" + of(series.RolloutClusters, is(series.State, state)) + ")", state}
	}
	started := "max(" + of(series.RolloutStart) + ")"
	phaseNow := figure("Phase",
		"The phase of the newest rollout. Halted: too many failures in a wave, correct them or abort; Paused: a "+
			""+"person stopped it and has to resume it.",
		units.Short, "no rollout", 4, noJudgement(),
		query{coded(series.RolloutPhase, operatorLabels, rolloutPhases), ""})
	phaseNow.words = decoded(rolloutPhases)
	target := figure("Version",
		"The version that the newest rollout brings. If it is not the one you expect, a newer target has superseded "+
			"it: see the rollout's history.",
		units.Short, "no rollout", 4, noJudgement(),
		query{"max by (version) (" + of(series.RolloutInfo) + ")", "{{version}}"})
	target.draw = name
	return []panel{
		phaseNow, target,
		figure("Clusters", "The rollout's clusters by state. Failed ones hold their wave: ask `bellwether why` about "+
			"each of them.",
			units.Short, "no rollout", 10, noJudgement(), share("succeeded"), share("in_progress"), share("pending"),
			share("deferred"), share("failed")),
		figure("Running for",
			"The time since the rollout started, until it ended. One that runs for much longer than its soak times "+
				"waits for a person: look at its waves.",
			units.DurationSeconds, "not started", 6, noJudgement(),
			query{"(max(" + of(series.RolloutEnd) + ") or vector(time())) - " + started, ""}),
	}
}

func rolloutWaves() []panel {
	var byState []query
	for _, s := range states {
		byState = append(byState, query{"sum(" + of(series.RolloutClusters, is(series.State, s)) + ")", s})
	}
	columns := []column{{from: series.Wave, title: "Wave"}, {from: "A", title: "Phase", words: decoded(wavePhases)}}
	table := []query{{coded(series.RolloutWavePhase, series.Wave, wavePhases), ""}}
	for i, s := range states {
		table = append(table, query{"sum by (wave) (" + of(series.RolloutWaveClusters, is(series.State, s)) + ")", ""})
		c := column{from: string(rune('B' + i)), title: strings.ToUpper(s[:1]) + strings.ReplaceAll(s[1:], "_", " ")}
		if s == "failed" {
			c.levels = anyIsBad()
		}
		columns = append(columns, c)
	}
	return []panel{
		{
			title: "Phases of waves", draw: timeline, width: 12, height: 8, unit: units.Short, none: "no rollout",
			description: "What each wave was doing. A wave that is Gated waits for an approval, and one that stays " +
				"in Updating has clusters that do not get there: the table says how many.",
			queries: []query{{coded(series.RolloutWavePhase, series.Wave, wavePhases), "{{wave}}"}},
			words:   decoded(wavePhases),
		},
		{
			title: "Clusters by state", draw: timeSeries, width: 12, height: 8, unit: units.Short, none: "no rollout",
			stacked: true,
			description: "All clusters of the rollout, by state. Green should grow; if failures grow " +
				"instead, pause the rollout before it admits more.",
			queries: byState,
		},
		{
			title: "Waves", draw: rows, width: 24, height: 7, unit: units.Short, none: "no rollout",
			description: "The waves and where their clusters are. Failures count against the wave's limit, which " +
				"halts the rollout; deferred clusters are offline or paused, and follow by themselves.",
			queries: table, columns: columns,
		},
	}
}

// onTarget selects the clusters that run the release that the rollout brings. The
// version does not tell: a release may change the configuration only.
func onTarget() string {
	return fmt.Sprintf("%s\n  and on (%s, release)\n  %s",
		byOperator("max", of(series.OperatorInfo), series.Release, series.Cluster), operatorLabels,
		byOperator("max", of(series.RolloutInfo), series.Release))
}

func canary() []panel {
	onCanary := "\nand on (cluster, operator_namespace, operator) (\n  " + onTarget() + "\n)"
	onBaseline := strings.Replace(onCanary, "\nand", "\nunless", 1)
	anyBad := "max by (cluster, operator_namespace, operator) (" + of(series.SLIBad) + ")"
	smooth := func(expr string) string { return "avg_over_time((\n" + expr + "\n)[30m:1m])" }
	bySLI := func(which string) string {
		return "avg by (sli) (avg_over_time(" + of(series.SLIBad) + "[1h])" + which + ")"
	}
	errors := func(which string) string {
		info := fmt.Sprintf("\n%s on (cluster, namespace) (\n  max by (cluster, namespace, %[2]s, release) (%[3]s)\n  "+
			"and on (%[2]s, release) max by (%[2]s, release) (%[4]s)\n)", which, operatorLabels,
			of(series.OperatorInfo), of(series.RolloutInfo))
		part := func(metric string) string {
			return "sum(sum by (cluster, namespace) (" + rated(of(metric)) + ")\nand on (cluster, namespace) " +
				of(series.OperatorInfo) + info + ")"
		}
		return part(series.ReconcileErrorsTotal) + "\n/\n" + part(series.ReconcileTotal)
	}
	return []panel{
		{
			title: "Bad slices, canary against baseline", draw: timeSeries, width: 12, height: 9,
			unit: units.PercentUnit, none: "nothing to compare", minimum: zero(),
			description: "The share of clusters that are bad by any indicator, averaged over 30 minutes: those with " +
				"the new release against all others. If the canary stays above the baseline, pause the rollout.",
			queries: []query{{smooth("avg(" + anyBad + onCanary + ")"), "canary"},
				{smooth("avg(" + anyBad + onBaseline + ")"), "baseline"}},
		},
		{
			title: "Failed reconciles, canary against baseline", draw: timeSeries, width: 12, height: 9,
			unit: units.PercentUnit, none: "nothing to compare", minimum: zero(),
			description: "The share of reconciles that returned an error, with the new release and without. More " +
				"errors with the new release are a reason to pause, even while budgets hold.",
			queries: []query{{errors("and"), "canary"}, {errors("unless"), "baseline"}},
		},
		{
			title: "Bad slices of the last hour, by indicator", draw: rows, width: 12, height: 8,
			unit: units.PercentUnit, none: "nothing to compare",
			description: "Each indicator with the new release and without. The one where the canary is worse says " +
				"where to look: open the operator's dashboard with it.",
			queries: []query{{bySLI(onCanary), ""}, {bySLI(onBaseline), ""}},
			columns: []column{
				{from: series.SLI, title: "SLI"},
				{from: "A", title: "Canary", unit: units.PercentUnit, levels: moreIsBad(0.01, 0.1)},
				{from: "B", title: "Baseline", unit: units.PercentUnit, levels: moreIsBad(0.01, 0.1)},
			},
		},
		{
			title: "Burn of the release", draw: timeSeries, width: 12, height: 8, unit: "suffix:x",
			none: "no release burns its budget",
			description: "How fast the worst cluster of a version spends its budget, while so many clusters of the " +
				"version do that it is to blame. This is what alerts about a release: pause the rollout, and roll " +
				"back if the cause is the version.",
			queries: []query{{"max by (version, sli, severity) (" + of(series.SLOReleaseBurn) + ")",
				"{{version}} {{sli}}, {{severity}}"}},
			minimum: zero(),
		},
	}
}

func zero() *float64 { return new(float64) }

func installations() []panel {
	seconds := func(quantile string) string {
		return fmt.Sprintf("histogram_quantile(%s, sum by (le) (%s))", quantile,
			"increase("+of(series.OperatorInstallDuration+"_bucket")+"[1h])")
	}
	return []panel{
		{
			title: "Finished installations and upgrades", draw: timeSeries, width: 12, height: 8, unit: units.Short,
			none: "none in this time", minimum: zero(),
			description: "How many ended in the last hour, by outcome. A failure is followed by the agent's reason " +
				"in the OperatorInstall: `bellwether why` shows it.",
			queries: []query{{"sum by (outcome) (increase(" + of(series.OperatorInstallTotal) + "[1h]))",
				"{{outcome}}"}},
		},
		{
			title: "Time to install or upgrade", draw: timeSeries, width: 12, height: 8, unit: units.Seconds,
			none: "none in this time", minimum: zero(),
			description: "How long it took from admission to success, at the median and for the slowest tenth. If it " +
				"grows, look at image pulls and at OLM on the slow clusters.",
			queries: []query{{seconds("0.5"), "median"}, {seconds("0.9"), "slowest tenth"}},
		},
	}
}
