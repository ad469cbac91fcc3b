// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// AlertGateWaiting is about a rollout that waits for a gate: for a person, or for data.
const AlertGateWaiting = "BellwetherRolloutGateWaiting"

// gateWaits is how long a gate may hold a wave back before there is an alert.
const gateWaits = time.Hour

// gateAlerts are about gates that hold waves back.
func gateAlerts() []monitoringv1.Rule {
	waits := fmt.Sprintf("group by (%s, %s, %s) (time() - %s > %s)\nand %s %s{phase=\"Progressing\"}", operatorLabels,
		series.Wave, series.Gate, series.RolloutGateWaiting, number(gateWaits.Seconds()), on(operatorLabels),
		series.RolloutPhase)
	return []monitoringv1.Rule{rule(AlertGateWaiting, series.Ticket, series.ScopeRelease, ofTeam(waits),
		map[string]string{
			"summary": "The rollout of " + nameOfOperator + " waits for gate {{ $labels.gate }} of wave " +
				"{{ $labels.wave }}",
			"description": "Nothing else has held the wave back for " + duration(gateWaits) + ". An approval has " +
				"to be " +
				"given by a person. Any other gate has no verdict, because data is missing; a person can override " +
				"it. " +
				showRollout,
		})}
}
