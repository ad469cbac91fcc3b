// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// AlertGateWaiting is about a rollout that waits for a gate: for an approval by a person, or for data.
const AlertGateWaiting = "BellwetherRolloutGateWaiting"

// gateWaitLimit is how long a gate may block a wave before there is an alert.
const gateWaitLimit = time.Hour

// buildGateAlerts returns the alert about a gate that has been the only reason which blocks
// a wave for gateWaitLimit. Only rollouts that are progressing have the alert.
func buildGateAlerts() []monitoringv1.Rule {
	waits := fmt.Sprintf("group by (%s, %s, %s) (time() - %s > %s)\nand %s %s{phase=\"Progressing\"}", operatorLabels,
		series.Wave, series.Gate, series.RolloutGateWaiting, formatNumber(gateWaitLimit.Seconds()),
		matchOn(operatorLabels), series.RolloutPhase)
	return []monitoringv1.Rule{newAlert(AlertGateWaiting, series.Ticket, series.ScopeRelease, addTeam(waits),
		map[string]string{
			"summary": "The rollout of " + operatorName + " waits for gate {{ $labels.gate }} of wave " +
				"{{ $labels.wave }}",
			"description": "Nothing else has held the wave back for " + formatDuration(gateWaitLimit) +
				". An approval has " +
				"to be " +
				"given by a person. Any other gate has no verdict, because data is missing; a person can override " +
				"it. " +
				showRollout,
		})}
}
