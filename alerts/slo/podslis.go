// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// SLIs of the pods of an operator.
const (
	// OOM is the SLI of containers that needed more memory than their limit.
	OOM = "oom"
	// Restarts is the SLI of containers that restarted for any other reason.
	Restarts = "restarts"
	// Pending is the SLI of pods that do not start.
	Pending = "pending"
)

// restartWindow is the window in which restarts are counted: one restart
// makes at most ten slices bad, also if several containers restart together.
const restartWindow = "10m"

// listPodSLIs returns the SLIs that the agent measures on an operator's pods. They make only
// tickets: if the operator does not work, another SLI is bad and pages. The targets permit ordinary
// events. One OOM kill in three days makes no ticket, but the second one does. Nine other restarts
// in three days make a ticket, because upgrades of a cluster restart nodes and API servers.
func listPodSLIs() []SLI {
	return []SLI{
		{Name: OOM, Target: 997_000, Ticket: true, expr: buildRestartedExpr("="),
			Bad: "a container of the operator was killed within 10 minutes because it reached its memory limit; only " +
				"a ticket"},
		{Name: Restarts, Target: 980_000, Ticket: true, expr: buildRestartedExpr("!="),
			Bad: "a container of the operator restarted within 10 minutes for another reason; only a ticket"},
		{Name: Pending, Target: 990_000, Ticket: true,
			expr: negate(compareBool(aggregate("max", installLabels, series.OperatorPodsPending), "<=", "0")),
			Bad:  "a pod of the operator has been Pending for at least five minutes; only a ticket"},
	}
}

// buildRestartedExpr returns PromQL for slices with restarts whose reason is, or is not, an OOM
// kill; op is = or !=. The limit of half a restart allows for the extrapolation of increase.
func buildRestartedExpr(op string) string {
	return negate(compareBool(aggregate("sum", installLabels,
		fmt.Sprintf("increase(%s{%s%s%q}[%s])", series.OperatorRestarts,
			series.RestartReason, op, series.RestartOOM, restartWindow)), "<", "0.5"))
}
