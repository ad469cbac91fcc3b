// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// pace has some rollouts follow error budgets.
func (sim *simulation) pace() *v1alpha1.ErrorBudgetPace {
	if sim.rng.IntN(4) > 0 {
		return nil
	}
	return &v1alpha1.ErrorBudgetPace{FullAbovePercent: pick(sim.rng, nil, new(int32(80)))}
}

func budgetKey(ro *v1alpha1.OperatorRollout, at time.Time) string {
	return fmt.Sprintf("%s/%d", ro.UID, at.Unix())
}

// measureBudget answers a question about error budgets, and records the fastest pace that the answer permits.
func (sim *simulation) measureBudget(a asked) rollouts.Answer {
	answer := rollouts.Answer{Question: a.Question}
	objectives := vector(ofSLI("reconcile", 0.99))
	left := pick(sim.rng, -0.5, 0, 0.05, 0.2, 0.6, 1)
	n := sim.rng.IntN(100)
	if sim.isCalm {
		n, left = 50, 1
	}
	switch {
	case n < 8:
		answer.Failure, left = "Prometheus is down", 0
	case n < 16:
		left, answer.Results = 0, map[string]rollouts.Result{"objectives": objectives, "budget": vector()}
	default:
		answer.Results = map[string]rollouts.Result{"objectives": objectives,
			"budget": vector(ofSLI("reconcile", left))}
	}
	ro := a.rollout.now()
	key := budgetKey(ro, a.At)
	if other, both := sim.budgets[key]; both { // two hubs asked at the same time
		left = max(left, other)
	}
	if sim.budgets == nil {
		sim.budgets = map[string]float64{}
	}
	sim.budgets[key] = left
	sim.log("error budget of %s: %.2f", ro.Name, left)
	return answer
}

// checkBudget: a wave that gets new entries has no more clusters in progress than the
// error budget permits that was measured last.
func (sim *simulation) checkBudget(p *hubPass, wave v1alpha1.WaveStatus) {
	spec := p.read.Spec.Strategy.ErrorBudgetPace
	if spec == nil || p.read.Spec.Rollback != nil || !slices.ContainsFunc(p.in.Installs,
		func(i rollouts.Install) bool { return i.Rollout == p.read.Name && i.SucceededHash != "" }) {
		return
	}
	var at time.Time
	if pace := p.d.Status.Pace; pace != nil && pace.At != nil {
		at = pace.At.Time
	}
	for _, a := range p.in.Answers { // the last cluster of a wave was admitted, so the pace matters no more
		if a.Wave == "" && a.At.After(at) {
			at = a.At
		}
	}
	if p.in.Now.Sub(at) > 2*time.Minute {
		sim.violate("wave %s goes on and the error budget was not measured lately, but at %s", wave.Name, at)
		return
	}
	fullAbove := 0.5
	if f := spec.FullAbovePercent; f != nil {
		fullAbove = float64(*f) / 100
	}
	part := min(sim.budgets[budgetKey(p.read, at)]/fullAbove, 1)
	if part <= 0 {
		sim.violate("wave %s goes on, and no error budget is left", wave.Name)
		return
	}
	s, _ := strategyWave(p.read, wave.Name)
	limit := max(1, share(s.MaxConcurrency, int(wave.Total)))
	if paced := max(1, int(float64(limit)*part+1e-9)); int(wave.InProgress) > paced {
		sim.violate("wave %s has %d clusters in progress, the error budget permits %d", wave.Name, wave.InProgress,
			paced)
	}
}
