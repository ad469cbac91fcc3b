// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"
	"strings"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// markWaveStarts marks the time at which the first cluster of each wave was admitted.
func markWaveStarts() annotation {
	return annotation{
		name: "Wave starts", colour: "blue", valueIsTime: true, tags: "operator_namespace,operator,wave",
		expr: aggregateByOperator("max", selectSeries(series.RolloutWaveStart), series.Wave),
		text: "wave {{wave}} of " + legendOperator + " admits its first cluster",
	}
}

// markVerifiedWaves marks the time at which each wave was verified.
func markVerifiedWaves() annotation {
	return annotation{
		name: "Wave verified", colour: "green", valueIsTime: true, tags: "operator_namespace,operator,wave",
		expr: aggregateByOperator("max", selectSeries(series.RolloutWaveVerified), series.Wave),
		text: "wave {{wave}} of " + legendOperator + " is verified; the next one may start",
	}
}

// stoppedPhases are the phases of a rollout that stopped, but neither succeeded nor was superseded.
var stoppedPhases = []string{string(v1alpha1.RolloutPaused), string(v1alpha1.RolloutHalted),
	string(v1alpha1.RolloutAborted), string(v1alpha1.RolloutRolledBack)}

// markStops marks the times at which a rollout is stopped.
func markStops() annotation {
	return annotation{
		name: "Rollout stopped", colour: "orange", tags: "operator_namespace,operator,phase",
		expr: aggregateByOperator("max", selectSeries(series.RolloutPhase,
			fmt.Sprintf("phase=~%q", strings.Join(stoppedPhases, "|"))),
			series.Phase),
		text: "the rollout of " + legendOperator + " is {{phase}}",
	}
}

// markPages marks the times at which a page fires.
func markPages() annotation {
	return annotation{
		name: "Pages", colour: "red", tags: "operator_namespace,operator,sli,cluster,version",
		expr: aggregateByOperator("max", selectFiringAlerts(matchLabel(series.Severity, series.Page)), series.SLI,
			series.Cluster, series.Version),
		text: legendOperator + " {{sli}} {{cluster}}{{version}} pages",
	}
}

// markVersionChanges marks the first minutes of a version of an operator: no cluster ran it 5 minutes earlier.
func markVersionChanges() annotation {
	selectVersions := func(offset string) string {
		return aggregateByOperator("max", selectSeries(series.OperatorInfo)+offset, series.Version)
	}
	return annotation{
		name: "Version changes", colour: "purple", tags: "operator_namespace,operator,version",
		expr: selectVersions("") + " unless " + selectVersions(" offset 5m"),
		text: legendOperator + " {{version}} appears on a cluster",
	}
}

// markEdits marks the times at which an objective was edited. The series SLOEdited exists for a day after an edit, and
// only its first 10 minutes are marked.
func markEdits() annotation {
	return annotation{
		name: "Objective edited", colour: "yellow", tags: "operator_namespace,operator,sli",
		expr: aggregateByOperator("max", selectSeries(series.SLOEdited), series.SLI) + " unless " +
			aggregateByOperator("max", selectSeries(series.SLOEdited)+" offset 10m", series.SLI),
		text: "the objective {{sli}} of " + legendOperator + " was edited: its budget jumped without any failure",
	}
}
