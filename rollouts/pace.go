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
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

const (
	// DefaultFullAbovePercent is the remaining part of an error budget above which the pace is full.
	DefaultFullAbovePercent int32 = 50
	// MaxSoakFactor is the maximum factor by which a slower pace extends a soak.
	MaxSoakFactor = 10

	fullPace    = 100
	queryBudget = "budget"
)

// readPaceSpec returns the strategy's settings of the pace. It returns nil if the pace is always full. A rollback
// always has the full pace.
func readPaceSpec(spec v1alpha1.OperatorRolloutSpec, strategy v1alpha1.RolloutStrategy) *v1alpha1.ErrorBudgetPace {
	if spec.Rollback != nil {
		return nil
	}
	return strategy.ErrorBudgetPace
}

// judgePace returns the pace that follows from the newest measurement. If the hub has no measurement, the
// measurement in the status is used until it is older than maxMeasurementAge. If the budgets are not known, no
// cluster is admitted.
func judgePace(spec *v1alpha1.ErrorBudgetPace, in Input) *v1alpha1.PaceStatus {
	a, ok := findNewestPaceAnswer(in.Answers)
	previous := in.Rollout.Status.Pace
	isRecent := previous != nil && previous.At != nil && in.Now.Sub(previous.At.Time) <= maxMeasurementAge
	switch {
	case !hasOperator(in.Rollout.Name, in.Installs):
		return &v1alpha1.PaceStatus{Percent: fullPace,
			Evidence: "no cluster of the rollout has the operator yet, so there is no error budget to protect"}
	case isRecent && (!ok || a.At.Before(previous.At.Time)): // the status has the newest measurement
		return previous
	case ok && in.Now.Sub(a.At) <= maxMeasurementAge:
		return judgePaceAnswer(spec, a)
	}
	return &v1alpha1.PaceStatus{Reason: v1alpha1.ReasonErrorBudgetUnknown,
		Evidence: "the error budgets of the operator were not measured within the last 2 minutes"}
}

// stretchSoaks extends the soaks of waves that are not done, as the pace requires.
func stretchSoaks(waves []wave, status v1alpha1.OperatorRolloutStatus, percent int32) {
	for i := range waves {
		if w := &waves[i]; !findPriorWave(status, w.Name).IsDone() {
			w.Soak = &metav1.Duration{Duration: stretchSoak(w.Soak.Duration, percent)}
		}
	}
}

// hasOperator reports whether any cluster of the rollout has installed the operator before.
func hasOperator(rollout string, installs []Install) bool {
	return slices.ContainsFunc(installs, func(i Install) bool {
		return i.Rollout == rollout && i.SucceededHash != ""
	})
}

// judgePaceAnswer returns the pace that follows from an answer about the error budgets: the lowest remaining budget
// decides. If the budgets are not known, the pace is 0.
func judgePaceAnswer(spec *v1alpha1.ErrorBudgetPace, a Answer) *v1alpha1.PaceStatus {
	pace := &v1alpha1.PaceStatus{At: &metav1.Time{Time: a.At.UTC()},
		Query: phrase.Truncate(a.Queries[queryBudget], maxQuery)}
	sli, remaining, err := evidence{a}.findLowestBudget(spec.Objectives)
	if err != nil {
		pace.Reason = v1alpha1.ReasonErrorBudgetUnknown
		pace.Evidence = phrase.Truncate("the error budgets of the operator are not known: "+err.Error(), maxPaceText)
		return pace
	}
	pace.Value = strconv.FormatFloat(remaining, 'f', 4, 64)
	pace.Percent = computePacePercent(remaining, *spec.FullAbovePercent)
	text := "%s of the error budget of %s is left"
	if remaining < 0 {
		text = "the error budget is overspent by %s for %s"
	}
	pace.Evidence = phrase.Truncate(fmt.Sprintf(text+", and the pace is full from %d %% on",
		phrase.Percent(math.Abs(remaining)), sli,
		*spec.FullAbovePercent), maxPaceText)
	if pace.Percent == 0 {
		pace.Reason = v1alpha1.ReasonErrorBudgetSpent
	}
	return pace
}

// maxPaceText is the API's limit for the length of the evidence.
const maxPaceText = 1024

// computePacePercent returns the pace in percent for the remaining part of a budget: 0 if nothing remains, 100 from
// fullAbove percent of the budget, and in proportion to the remaining budget between them, at least 1.
func computePacePercent(remaining float64, fullAbove int32) int32 {
	switch percent := remaining * 100; {
	case percent <= 0:
		return 0
	case percent >= float64(fullAbove):
		return fullPace
	default:
		return max(int32(percent*fullPace/float64(fullAbove)), 1)
	}
}

// findLowestBudget returns the SLI of the objective with the lowest remaining budget, and the remaining part: at most
// 1, negative if the budget is overspent. requested limits the SLIs; empty means all. It is an error if there is no
// objective, or if an objective has no budget or a budget that is not a number.
func (e evidence) findLowestBudget(requested []string) (sli string, remaining float64, err error) {
	objectives, err := e.readNumbers(queryObjectives)
	if err != nil {
		return "", 0, err
	}
	budgets, err := e.readNumbers(queryBudget)
	if err != nil {
		return "", 0, err
	}
	names := requested
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
		if sli == "" || budget < remaining {
			sli, remaining = name, budget
		}
	}
	return sli, remaining, nil
}

// reduceConcurrency returns the concurrency at a pace: 0 if the pace is 0, else at least 1. A nil pace is the
// full pace.
func reduceConcurrency(concurrency int, pace *v1alpha1.PaceStatus) int {
	switch {
	case pace == nil:
		return concurrency
	case pace.Percent == 0:
		return 0
	default:
		return max(concurrency*int(pace.Percent)/fullPace, 1)
	}
}

// stretchSoak returns the length of a soak at a pace in percent: the slower the pace, the longer the soak, at most
// MaxSoakFactor times as long.
func stretchSoak(soak time.Duration, percent int32) time.Duration {
	if percent == fullPace {
		return soak
	}
	longer := soak * fullPace / time.Duration(max(percent, fullPace/MaxSoakFactor))
	return longer.Round(time.Second)
}

// findNewestPaceAnswer returns the newest answer about error budgets. Questions about error budgets have no wave and
// no gate. It returns false if there is no answer.
func findNewestPaceAnswer(answers []Answer) (Answer, bool) {
	var newest Answer
	found := false
	for _, a := range answers {
		if a.Wave == "" && (!found || a.At.After(newest.At)) {
			newest, found = a, true
		}
	}
	return newest, found
}

// needsPace reports whether the rollout uses the pace now: a wave soaks, or a cluster can be admitted. A nil pace is
// always full.
func needsPace(pace *v1alpha1.PaceStatus, rollout string, installs []Install, waves []judgedWave,
	statuses []v1alpha1.WaveStatus) bool {
	if pace == nil || !hasOperator(rollout, installs) {
		return false
	}
	for i := range waves {
		if statuses[i].Phase == v1alpha1.WaveSoaking || canAdmit(&waves[i]) {
			return true
		}
	}
	return false
}

// listPaceQuestions returns the question about the error budgets, or nil if the newest answer is not older than
// MeasureInterval. objectives are the SLIs; empty means all. Its queries return the objective and the remaining part of
// the budget, from -1 to 1, by SLI.
func listPaceQuestions(in Input, objectives []string) []Question {
	if a, ok := findNewestPaceAnswer(in.Answers); ok && in.Now.Sub(a.At) < MeasureInterval {
		return nil
	}
	q := query{ro: in.Rollout}
	sliMatchers := matchSLIs(objectives)
	at := roundDown(in.Now).Time
	return []Question{{Since: at, At: at, Queries: map[string]string{
		queryObjectives: fmt.Sprintf("max by (%s) (%s)", series.SLI, q.selectSeries(series.SLOObjective,
			sliMatchers...)),
		queryBudget: fmt.Sprintf("avg by (%s) (clamp(%s, -1, 1))", series.SLI,
			q.selectSeries(series.SLOBudgetLeft, sliMatchers...)),
	}}}
}

// explainSlowPace says that the pace is slower than full. It returns "" if the pace is full.
func explainSlowPace(pace *v1alpha1.PaceStatus) string {
	if pace == nil || pace.Percent == fullPace {
		return ""
	}
	return fmt.Sprintf("; slowed down to %d %% of the full pace: %s", pace.Percent, pace.Evidence)
}

// listPaceEvents returns an event if the pace becomes 0, is 0 for another reason, or is more than 0 again. A pace that
// was not measured causes no event.
func listPaceEvents(previous, current *v1alpha1.PaceStatus) []Event {
	if current == nil || current.At == nil {
		return nil
	}
	wasStopped := previous != nil && previous.Percent == 0 && previous.At != nil
	isStopped := current.Percent == 0
	switch {
	case isStopped && (!wasStopped || previous.Reason != current.Reason):
		return []Event{{Reason: current.Reason, Message: "no cluster is admitted: " + current.Evidence}}
	case wasStopped && !isStopped:
		return []Event{{Reason: "ErrorBudgetLeft", Message: fmt.Sprintf("clusters are admitted again, at %d %% of the "+
			"full pace: %s", current.Percent, current.Evidence)}}
	}
	return nil
}
