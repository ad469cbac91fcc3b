// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"
	"strings"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// waveStarts marks when the first cluster of each wave was admitted.
func waveStarts() annotation {
	return annotation{
		name: "Wave starts", colour: "blue", valueIsTheTime: true, tags: "operator_namespace,operator,wave",
		expr: byOperator("max", of(series.RolloutWaveStart), series.Wave),
		text: "wave {{wave}} of " + legendOperator + " admits its first cluster",
	}
}

func wavesVerified() annotation {
	return annotation{
		name: "Wave verified", colour: "green", valueIsTheTime: true, tags: "operator_namespace,operator,wave",
		expr: byOperator("max", of(series.RolloutWaveVerified), series.Wave),
		text: "wave {{wave}} of " + legendOperator + " is verified; the next one may start",
	}
}

// stopped are the phases of a rollout that does not go on, other than by success or because another one took over.
var stopped = []string{string(v1alpha1.RolloutPaused), string(v1alpha1.RolloutHalted), string(v1alpha1.RolloutAborted),
	string(v1alpha1.RolloutRolledBack)}

func halts() annotation {
	return annotation{
		name: "Rollout stopped", colour: "orange", tags: "operator_namespace,operator,phase",
		expr: byOperator("max", of(series.RolloutPhase, fmt.Sprintf("phase=~%q", strings.Join(stopped, "|"))),
			series.Phase),
		text: "the rollout of " + legendOperator + " is {{phase}}",
	}
}

func pages() annotation {
	return annotation{
		name: "Pages", colour: "red", tags: "operator_namespace,operator,sli,cluster,version",
		expr: byOperator("max", firing(is(series.Severity, series.Page)), series.SLI, series.Cluster, series.Version),
		text: legendOperator + " {{sli}} {{cluster}}{{version}} pages",
	}
}

// versionChanges marks the first minutes of a version on any cluster.
func versionChanges() annotation {
	info := func(offset string) string {
		return byOperator("max", of(series.OperatorInfo)+offset, series.Version)
	}
	return annotation{
		name: "Version changes", colour: "purple", tags: "operator_namespace,operator,version",
		expr: info("") + " unless " + info(" offset 5m"),
		text: legendOperator + " {{version}} appears on a cluster",
	}
}

func edits() annotation {
	return annotation{
		name: "Objective edited", colour: "yellow", tags: "operator_namespace,operator,sli",
		expr: byOperator("max", of(series.SLOEdited), series.SLI) + " unless " +
			byOperator("max", of(series.SLOEdited)+" offset 10m", series.SLI),
		text: "the objective {{sli}} of " + legendOperator + " was edited: its budget jumped without any failure",
	}
}
