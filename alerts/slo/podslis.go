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

// restartWindow is how far back restarts are looked for: one restart makes ten
// slices bad at most, however many containers restart with it.
const restartWindow = "10m"

// podSLIs are made of what the agent sees of an operator's pods. They are tickets
// only: if the operator does not work for it, that is another SLI, which pages.
// The targets permit what is ordinary. One OOM kill in three days is no ticket, but
// the second one is. It takes nine other restarts in three days, because upgrades of
// a cluster restart nodes and API servers.
func podSLIs() []SLI {
	return []SLI{
		{Name: OOM, Target: 997_000, Ticket: true, expr: restartedExpr("="),
			Bad: "a container of the operator was killed within 10 minutes because it reached its memory limit; only " +
				"a ticket"},
		{Name: Restarts, Target: 980_000, Ticket: true, expr: restartedExpr("!="),
			Bad: "a container of the operator restarted within 10 minutes for another reason; only a ticket"},
		{Name: Pending, Target: 990_000, Ticket: true,
			expr: not(at(aggregate("max", installLabels, series.OperatorPodsPending), "<=", "0")),
			Bad:  "a pod of the operator has been Pending for at least five minutes; only a ticket"},
	}
}

// restartedExpr looks for restarts whose reason is that of OOM kills, or is not.
// Half a restart is less than one, however increase extrapolates.
func restartedExpr(op string) string {
	return not(at(aggregate("sum", installLabels, fmt.Sprintf("increase(%s{%s%s%q}[%s])", series.OperatorRestarts,
		series.RestartReason, op, series.RestartOOM, restartWindow)), "<", "0.5"))
}
