// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import "github.com/bellwether-dev/bellwether/alerts/series"

// waveStarts marks when the first cluster of each wave was admitted.
func waveStarts() annotation {
	return annotation{
		name: "Wave starts", colour: "blue", valueIsTheTime: true, tags: "operator,wave",
		expr: "max by (operator, wave) (" + of(series.RolloutWaveStart) + ")",
		text: "wave {{wave}} of {{operator}} admits its first cluster",
	}
}

func wavesVerified() annotation {
	return annotation{
		name: "Wave verified", colour: "green", valueIsTheTime: true, tags: "operator,wave",
		expr: "max by (operator, wave) (" + of(series.RolloutWaveVerified) + ")",
		text: "wave {{wave}} of {{operator}} is verified; the next one may start",
	}
}

func halts() annotation {
	return annotation{
		name: "Rollout stopped", colour: "orange", tags: "operator,phase",
		expr: "max by (operator, phase) (" + of(series.RolloutPhase, `phase=~"Paused|Halted|Aborted"`) + ")",
		text: "the rollout of {{operator}} is {{phase}}",
	}
}

func pages() annotation {
	return annotation{
		name: "Pages", colour: "red", tags: "operator,sli,cluster,version",
		expr: "max by (operator, sli, cluster, version) (" + firing(is(series.Severity, series.Page)) + ")",
		text: "{{operator}} {{sli}} {{cluster}}{{version}} pages",
	}
}

// versionChanges marks the first minutes of a version on any cluster.
func versionChanges() annotation {
	info := "max by (operator, version) (" + of(series.OperatorInfo)
	return annotation{
		name: "Version changes", colour: "purple", tags: "operator,version",
		expr: info + ") unless " + info + " offset 5m)",
		text: "{{operator}} {{version}} appears on a cluster",
	}
}

func edits() annotation {
	return annotation{
		name: "Objective edited", colour: "yellow", tags: "operator,sli",
		expr: "max by (operator, sli) (" + of(series.SLOEdited) + ") unless max by (operator, sli) (" +
			of(series.SLOEdited) + " offset 10m)",
		text: "the objective {{sli}} of {{operator}} was edited: its budget jumped without any failure",
	}
}
