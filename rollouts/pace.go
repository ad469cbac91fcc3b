// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

const (
	// DefaultFullAbovePercent is the part of an error budget from which the pace is full.
	DefaultFullAbovePercent int32 = 50
	// MaxSoakFactor bounds how much longer a wave soaks at a slower pace.
	MaxSoakFactor = 10

	fullPace    = 100
	queryBudget = "budget"
)

// asksForPace is what the strategy says of the pace; nil where that is always full. A
// rollback is never slowed down.
func (p *pass) asksForPace() *v1alpha1.ErrorBudgetPace {
	if p.isBack() {
		return nil
	}
	return p.strategy.ErrorBudgetPace
}

// judgePace decides the pace by the newest measurement, and makes the soaks of waves
// that are not verified as long as it says. The status has the last measurement too,
// which counts for a while where the hub has none. Where the budgets are not known,
// nothing is admitted.
func (p *pass) judgePace() {
	spec := p.asksForPace()
	if spec == nil || p.ending() {
		return
	}
	a, ok := p.paceAnswer()
	was := p.prior.Pace
	known := was != nil && was.At != nil && p.in.Now.Sub(was.At.Time) <= maxAge
	switch {
	case !p.runsAnywhere():
		p.pace = &v1alpha1.PaceStatus{Percent: fullPace,
			Evidence: "no cluster of the rollout has the operator yet, so there is no error budget to protect"}
	case known && (!ok || a.At.Before(was.At.Time)):
		p.pace = was
	case ok && p.in.Now.Sub(a.At) <= maxAge:
		p.pace = paceBy(spec, a)
	default:
		p.pace = &v1alpha1.PaceStatus{Reason: v1alpha1.ReasonErrorBudgetUnknown,
			Evidence: "the error budgets of the operator were not measured within the last 2 minutes"}
	}
	for i := range p.waves {
		if w := &p.waves[i]; !p.priorWave(w.Name).IsDone() {
			w.Soak = &metav1.Duration{Duration: stretched(w.Soak.Duration, p.pace.Percent)}
		}
	}
}

// runsAnywhere tells whether a cluster of the rollout ever installed the operator.
func (p *pass) runsAnywhere() bool {
	return slices.ContainsFunc(p.in.Installs, func(i Install) bool {
		return i.Rollout == p.in.Rollout.Name && i.SucceededHash != ""
	})
}

// paceBy says which pace follows from an answer.
func paceBy(spec *v1alpha1.ErrorBudgetPace, a Answer) *v1alpha1.PaceStatus {
	pace := &v1alpha1.PaceStatus{At: &metav1.Time{Time: a.At.UTC()},
		Query: phrase.Truncate(a.Queries[queryBudget], maxQuery)}
	sli, left, err := evidence{a}.lowestBudget(spec.Objectives)
	if err != nil {
		pace.Reason = v1alpha1.ReasonErrorBudgetUnknown
		pace.Evidence = phrase.Truncate("the error budgets of the operator are not known: "+err.Error(), maxPaceText)
		return pace
	}
	pace.Value = strconv.FormatFloat(left, 'f', 4, 64)
	pace.Percent = pacePercent(left, *spec.FullAbovePercent)
	text := "%s of the error budget of %s is left"
	if left < 0 {
		text = "the error budget is overspent by %s for %s"
	}
	pace.Evidence = phrase.Truncate(fmt.Sprintf(text+", and the pace is full from %d %% on",
		phrase.Percent(math.Abs(left)), sli,
		*spec.FullAbovePercent), maxPaceText)
	if pace.Percent == 0 {
		pace.Reason = v1alpha1.ReasonErrorBudgetSpent
	}
	return pace
}

// maxPaceText is the API's limit.
const maxPaceText = 1024

// pacePercent is the pace at which a part of a budget is left: at least 1 while
// anything is left.
func pacePercent(left float64, fullAbove int32) int32 {
	switch percent := left * 100; {
	case percent <= 0:
		return 0
	case percent >= float64(fullAbove):
		return fullPace
	default:
		return max(int32(percent*fullPace/float64(fullAbove)), 1)
	}
}

// lowestBudget is the objective with the least budget left. It is an error if one of
// the objectives has no budget that is a number.
func (e evidence) lowestBudget(wanted []string) (sli string, left float64, err error) {
	objectives, err := e.numbers(queryObjectives)
	if err != nil {
		return "", 0, err
	}
	budgets, err := e.numbers(queryBudget)
	if err != nil {
		return "", 0, err
	}
	names := wanted
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(objectives))
	}
	if len(names) == 0 {
		return "", 0, fmt.Errorf("series %s has no objective of the operator", series.SLOObjective)
	}
	for _, name := range names {
		budget, ok := budgets[name]
		if !ok {
			return "", 0, fmt.Errorf("series %s has nothing of objective %s", series.SLOBudgetLeft, name)
		}
		if sli == "" || budget < left {
			sli, left = name, budget
		}
	}
	return sli, left, nil
}

// slowed is a concurrency at a pace: at least 1 where the pace is more than 0.
func slowed(concurrency int, pace *v1alpha1.PaceStatus) int {
	switch {
	case pace == nil:
		return concurrency
	case pace.Percent == 0:
		return 0
	default:
		return max(concurrency*int(pace.Percent)/fullPace, 1)
	}
}

// stretched is a soak at a pace in percent.
func stretched(soak time.Duration, percent int32) time.Duration {
	if percent == fullPace {
		return soak
	}
	longer := soak * fullPace / time.Duration(max(percent, fullPace/MaxSoakFactor))
	return longer.Round(time.Second)
}

// isFrozen tells whether the pace admits nothing.
func (p *pass) isFrozen() bool { return p.pace != nil && p.pace.Percent == 0 }

// paceAnswer is the newest one about error budgets. Its question is of no wave and of
// no gate.
func (p *pass) paceAnswer() (Answer, bool) {
	var newest Answer
	found := false
	for _, a := range p.in.Answers {
		if a.Wave == "" && (!found || a.At.After(newest.At)) {
			newest, found = a, true
		}
	}
	return newest, found
}

// needsPace tells whether the pace matters now: a wave soaks, or has clusters that
// nothing else holds back.
func (p *pass) needsPace(waves []v1alpha1.WaveStatus) bool {
	if p.pace == nil || p.stopped() || !p.runsAnywhere() {
		return false
	}
	for i, w := range waves {
		s := &p.states[i]
		if w.Phase == v1alpha1.WaveSoaking || s.admits() &&
			slices.ContainsFunc(s.members, func(m member) bool { return m.admissible }) {
			return true
		}
	}
	return false
}

// paceQuestions ask for the error budgets where they are due.
func (p *pass) paceQuestions(waves []v1alpha1.WaveStatus) []Question {
	if !p.needsPace(waves) {
		return nil
	}
	if a, ok := p.paceAnswer(); ok && p.in.Now.Sub(a.At) < MeasureInterval {
		return nil
	}
	q := query{ro: p.in.Rollout}
	only := matchSLIs(p.asksForPace().Objectives)
	at := stampTime(p.in.Now).Time
	return []Question{{Since: at, At: at, Queries: map[string]string{
		queryObjectives: fmt.Sprintf("max by (%s) (%s)", series.SLI, q.of(series.SLOObjective, only...)),
		queryBudget:     fmt.Sprintf("avg by (%s) (clamp(%s, -1, 1))", series.SLI, q.of(series.SLOBudgetLeft, only...)),
	}}}
}

// paceTimes is when the error budgets are measured again.
func (p *pass) paceTimes(waves []v1alpha1.WaveStatus) []time.Time {
	if !p.needsPace(waves) {
		return nil
	}
	return []time.Time{p.in.Now.Add(MeasureInterval)}
}

// reportedPace is what the status says of the pace: the last one that mattered.
func (p *pass) reportedPace(waves []v1alpha1.WaveStatus) *v1alpha1.PaceStatus {
	if p.needsPace(waves) {
		return p.pace
	}
	return p.prior.Pace
}

// explainSlow says that the pace is slower than full; empty where it is not.
func (p *pass) explainSlow() string {
	if p.pace == nil || p.pace.Percent == fullPace {
		return ""
	}
	return fmt.Sprintf("; slowed down to %d %% of the full pace: %s", p.pace.Percent, p.pace.Evidence)
}

// paceEvents tell when a measurement stops the rollout, and when it goes on.
func (p *pass) paceEvents(waves []v1alpha1.WaveStatus) []Event {
	was := p.prior.Pace
	if !p.needsPace(waves) || p.pace.At == nil {
		return nil
	}
	wasStopped := was != nil && was.Percent == 0 && was.At != nil
	switch {
	case p.isFrozen() && (!wasStopped || was.Reason != p.pace.Reason):
		return []Event{{Reason: p.pace.Reason, Message: "no cluster is admitted: " + p.pace.Evidence}}
	case wasStopped && !p.isFrozen():
		return []Event{{Reason: "ErrorBudgetLeft", Message: fmt.Sprintf("clusters are admitted again, at %d %% of the "+
			"full pace: %s", p.pace.Percent, p.pace.Evidence)}}
	}
	return nil
}
