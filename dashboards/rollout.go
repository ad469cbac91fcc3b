// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// newRolloutPage returns the dashboard of the newest rollout of one operator.
func newRolloutPage() page {
	return page{
		uid: UIDRollout, title: "Bellwether / Rollout", from: "now-6h",
		description: "The newest rollout of one operator: how far its waves are, and whether the clusters that have " +
			"the new version are worse than those that do not.",
		variables:   append(newSingleOperatorVariables(series.RolloutInfo), newClusterVariable()),
		annotations: []annotation{markWaveStarts(), markVerifiedWaves(), markStops(), markPages()},
		rows: []row{
			{"Where it stands", newRolloutNowPanels()},
			{"Waves", newWavePanels()},
			{"Canary against baseline", newCanaryPanels()},
			{"Installations", newInstallationPanels()},
		},
	}
}

// clusterStates are the states of clusters in a rollout, in the order in which they are stacked.
var clusterStates = []string{"succeeded", "in_progress", "pending", "deferred", "failed", "removed"}

var rolloutPhases = newPhases(chooseRolloutColour, v1alpha1.RolloutPending, v1alpha1.RolloutProgressing,
	v1alpha1.RolloutPaused, v1alpha1.RolloutHalted, v1alpha1.RolloutSucceeded, v1alpha1.RolloutAborted,
	v1alpha1.RolloutSuperseded, v1alpha1.RolloutRolledBack)

var wavePhases = newPhases(chooseWaveColour, v1alpha1.WaveWaiting, v1alpha1.WaveGated, v1alpha1.WaveUpdating,
	v1alpha1.WaveSoaking, v1alpha1.WaveVerifying, v1alpha1.WaveVerified, v1alpha1.WaveSkipped)

// phase is a phase of a rollout or a wave, with its colour.
type phase struct{ name, colour string }

// severityColours has the colour of each severity.
var severityColours = map[conditions.Severity]string{conditions.Good: good, conditions.Warning: warn,
	conditions.Bad: bad, conditions.Neutral: neutral, conditions.Inactive: unknown}

func chooseRolloutColour(p v1alpha1.RolloutPhase) string {
	return severityColours[conditions.RolloutSeverity(p)]
}

// chooseWaveColour returns the colour of a wave's severity. The phase Updating has a separate colour, so that a
// timeline distinguishes it from the soak.
func chooseWaveColour(p v1alpha1.WavePhase) string {
	if p == v1alpha1.WaveUpdating {
		return "purple"
	}
	return severityColours[conditions.WaveSeverity(p)]
}

// newPhases returns the phases with the colours that chooseColour returns for them.
func newPhases[P ~string](chooseColour func(P) string, all ...P) []phase {
	result := make([]phase, len(all))
	for i, p := range all {
		result[i] = phase{string(p), chooseColour(p)}
	}
	return result
}

// encodePhases returns a query that replaces the phase of a series by its number from 1, so that a panel can show a
// word and a colour for each phase. A metric of phases has a series with the value 1 for the current phase only. by
// are the labels of the result.
func encodePhases(metric, by string, phases []phase) string {
	parts := make([]string, len(phases))
	for i, p := range phases {
		parts[i] = fmt.Sprintf("%d * max by (%s) (%s)", i+1, by, selectSeries(metric, matchLabel(series.Phase, p.name)))
	}
	return strings.Join(parts, "\nor ")
}

// decodePhases returns the words for the numbers of encodePhases.
func decodePhases(phases []phase) map[string]word {
	out := map[string]word{}
	for i, p := range phases {
		out[strconv.Itoa(i+1)] = word{p.name, p.colour}
	}
	return out
}

// newRolloutNowPanels returns the figures for the current state of a rollout: phase, version, clusters and duration.
func newRolloutNowPanels() []panel {
	countClusters := func(state string) query {
		return query{"sum(" + selectSeries(series.RolloutClusters, matchLabel(series.State, state)) + ")", state}
	}
	started := "max(" + selectSeries(series.RolloutStart) + ")"
	phaseNow := newFigure("Phase",
		"The phase of the newest rollout. Halted: too many failures in a wave, correct them or abort; Paused: a "+
			"person stopped it and has to resume it.",
		units.Short, "no rollout", 4, newNeutralLevels(),
		query{encodePhases(series.RolloutPhase, operatorLabels, rolloutPhases), ""})
	phaseNow.words = decodePhases(rolloutPhases)
	target := newFigure("Version",
		"The version that the newest rollout brings. If it is not the one you expect, a newer target has superseded "+
			"it: see the rollout's history.",
		units.Short, "no rollout", 4, newNeutralLevels(),
		query{"max by (version) (" + selectSeries(series.RolloutInfo) + ")", "{{version}}"})
	target.draw = drawName
	return []panel{
		phaseNow, target,
		newFigure("Clusters",
			"The rollout's clusters by state. Failed ones hold their wave: ask `bellwether why` about "+
				"each of them.",
			units.Short, "no rollout", 10, newNeutralLevels(), countClusters("succeeded"), countClusters("in_progress"),
			countClusters("pending"), countClusters("deferred"), countClusters("failed")),
		newFigure("Running for",
			"The time since the rollout started, until it ended. One that runs for much longer than its soak times "+
				"waits for a person: look at its waves.",
			units.DurationSeconds, "not started", 6, newNeutralLevels(),
			// A rollout that has not ended has no series of its end.
			query{"(max(" + selectSeries(series.RolloutEnd) + ") or vector(time())) - " + started, ""}),
	}
}

// newWavePanels returns the panels of the waves of a rollout: their phases, and their clusters by state.
func newWavePanels() []panel {
	var byState []query
	for _, s := range clusterStates {
		byState = append(byState, query{"sum(" + selectSeries(series.RolloutClusters,
			matchLabel(series.State, s)) + ")", s})
	}
	columns := []column{{from: series.Wave, title: "Wave"},
		{from: "A", title: "Phase", words: decodePhases(wavePhases)}}
	table := []query{{encodePhases(series.RolloutWavePhase, series.Wave, wavePhases), ""}}
	for i, s := range clusterStates {
		table = append(table, query{"sum by (wave) (" + selectSeries(series.RolloutWaveClusters,
			matchLabel(series.State, s)) + ")", ""})
		// Query A is the phase, so the queries of the states have the letters from B.
		c := column{from: string(rune('B' + i)), title: strings.ToUpper(s[:1]) + strings.ReplaceAll(s[1:], "_", " ")}
		if s == "failed" {
			c.levels = newAnyIsBadLevels()
		}
		columns = append(columns, c)
	}
	return []panel{
		{
			title: "Phases of waves", draw: drawTimeline, width: 12, height: 8, unit: units.Short, noData: "no rollout",
			description: "What each wave was doing. A wave that is Gated waits for an approval, and one that stays " +
				"in Updating has clusters that do not get there: the table says how many.",
			queries: []query{{encodePhases(series.RolloutWavePhase, series.Wave, wavePhases), "{{wave}}"}},
			words:   decodePhases(wavePhases),
		},
		{
			title: "Clusters by state", draw: drawTimeSeries, width: 12, height: 8, unit: units.Short,
			noData:  "no rollout",
			stacked: true,
			description: "All clusters of the rollout, by state. Green should grow; if failures grow " +
				"instead, pause the rollout before it admits more.",
			queries: byState,
		},
		{
			title: "Waves", draw: drawTable, width: 24, height: 7, unit: units.Short, noData: "no rollout",
			description: "The waves and where their clusters are. Failures count against the wave's limit, which " +
				"halts the rollout; deferred clusters are offline or paused, and follow by themselves.",
			queries: table, columns: columns,
		},
	}
}

// selectTargetClusters returns a query for the clusters that run the release of the rollout. It compares releases and
// not versions, because a release may change only the configuration.
func selectTargetClusters() string {
	return fmt.Sprintf("%s\n  and on (%s, release)\n  %s",
		aggregateByOperator("max", selectSeries(series.OperatorInfo), series.Release, series.Cluster), operatorLabels,
		aggregateByOperator("max", selectSeries(series.RolloutInfo), series.Release))
}

// newCanaryPanels returns the panels that compare the clusters with the release of the rollout (canary) with the
// clusters without it (baseline). A filter limits a query to one of these groups.
func newCanaryPanels() []panel {
	canaryFilter := "\nand on (cluster, operator_namespace, operator) (\n  " + selectTargetClusters() + "\n)"
	baselineFilter := strings.Replace(canaryFilter, "\nand", "\nunless", 1)
	badClusters := "max by (cluster, operator_namespace, operator) (" + selectSeries(series.SLIBad) + ")"
	averageOver30m := func(expr string) string { return "avg_over_time((\n" + expr + "\n)[30m:1m])" }
	averageBySLI := func(clusterFilter string) string {
		return "avg by (sli) (avg_over_time(" + selectSeries(series.SLIBad) + "[1h])" + clusterFilter + ")"
	}
	// errorRatio is the share of failed reconciles; the operation is "and" for the canary, "unless" for the baseline.
	errorRatio := func(operation string) string {
		releaseFilter := fmt.Sprintf("\n%s on (cluster, namespace) (\n  "+
			"max by (cluster, namespace, %[2]s, release) (%[3]s)\n  "+
			"and on (%[2]s, release) max by (%[2]s, release) (%[4]s)\n)", operation, operatorLabels,
			selectSeries(series.OperatorInfo), selectSeries(series.RolloutInfo))
		sumRate := func(metric string) string {
			return "sum(sum by (cluster, namespace) (" + buildRate(selectPodSeries(metric)) +
				")\nand on (cluster, namespace) " + selectSeries(series.OperatorInfo) + releaseFilter + ")"
		}
		return sumRate(series.ReconcileErrorsTotal) + "\n/\n" + sumRate(series.ReconcileTotal)
	}
	return []panel{
		{
			title: "Bad slices, canary against baseline", draw: drawTimeSeries, width: 12, height: 9,
			unit: units.PercentUnit, noData: "nothing to compare", minimum: newZero(),
			description: "The share of clusters that are bad by any indicator, averaged over 30 minutes: those with " +
				"the new release against all others. If the canary stays above the baseline, pause the rollout.",
			queries: []query{{averageOver30m("avg(" + badClusters + canaryFilter + ")"), "canary"},
				{averageOver30m("avg(" + badClusters + baselineFilter + ")"), "baseline"}},
		},
		{
			title: "Failed reconciles, canary against baseline", draw: drawTimeSeries, width: 12, height: 9,
			unit: units.PercentUnit, noData: "nothing to compare", minimum: newZero(),
			description: "The share of reconciles that returned an error, with the new release and without. More " +
				"errors with the new release are a reason to pause, even while budgets hold.",
			queries: []query{{errorRatio("and"), "canary"}, {errorRatio("unless"), "baseline"}},
		},
		{
			title: "Bad slices of the last hour, by indicator", draw: drawTable, width: 12, height: 8,
			unit: units.PercentUnit, noData: "nothing to compare",
			description: "Each indicator with the new release and without. The one where the canary is worse says " +
				"where to look: open the operator's dashboard with it.",
			queries: []query{{averageBySLI(canaryFilter), ""}, {averageBySLI(baselineFilter), ""}},
			columns: []column{
				{from: series.SLI, title: "SLI"},
				{from: "A", title: "Canary", unit: units.PercentUnit, levels: newHighIsBadLevels(0.01, 0.1)},
				{from: "B", title: "Baseline", unit: units.PercentUnit, levels: newHighIsBadLevels(0.01, 0.1)},
			},
		},
		{
			title: "Burn of the release", draw: drawTimeSeries, width: 12, height: 8, unit: "suffix:x",
			noData: "no release burns its budget",
			description: "How fast the worst cluster of a version spends its budget, while so many clusters of the " +
				"version do that it is to blame. This is what alerts about a release: pause the rollout, and roll " +
				"back if the cause is the version.",
			queries: []query{{"max by (version, sli, severity) (" + selectSeries(series.SLOReleaseBurn) + ")",
				"{{version}} {{sli}}, {{severity}}"}},
			minimum: newZero(),
		},
	}
}

// newZero returns a pointer to 0, for the minimum or the decimals of a panel.
func newZero() *float64 { return new(float64) }

// newInstallationPanels returns the panels of finished installations and upgrades. A quantile is of the last hour.
func newInstallationPanels() []panel {
	durationQuantile := func(quantile string) string {
		return fmt.Sprintf("histogram_quantile(%s, sum by (le) (%s))", quantile,
			"increase("+selectSeries(series.OperatorInstallDuration+"_bucket")+"[1h])")
	}
	return []panel{
		{
			title: "Finished installations and upgrades", draw: drawTimeSeries, width: 12, height: 8, unit: units.Short,
			noData: "none in this time", minimum: newZero(),
			description: "How many ended in the last hour, by outcome. A failure is followed by the agent's reason " +
				"in the OperatorInstall: `bellwether why` shows it.",
			queries: []query{{"sum by (outcome) (increase(" + selectSeries(series.OperatorInstallTotal) + "[1h]))",
				"{{outcome}}"}},
		},
		{
			title: "Time to install or upgrade", draw: drawTimeSeries, width: 12, height: 8, unit: units.Seconds,
			noData: "none in this time", minimum: newZero(),
			description: "How long it took from admission to success, at the median and for the slowest tenth. If it " +
				"grows, look at image pulls and at OLM on the slow clusters.",
			queries: []query{{durationQuantile("0.5"), "median"}, {durationQuantile("0.9"), "slowest tenth"}},
		},
	}
}
