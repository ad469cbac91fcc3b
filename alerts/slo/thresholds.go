// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// ErrThreshold is wrapped by errors about the thresholds of an objective.
var ErrThreshold = errors.New("invalid threshold")

// Thresholds are the values above which an SLI is bad. Each SLI uses some of them. 0 means the default of the SLI.
type Thresholds struct {
	// BadShare is the share of events, or of custom resources,
	// that may be bad, or of a limit or volume that may be used.
	BadShare PPM
	// Duration is how long a reconcile may take, or a work item may run.
	Duration time.Duration
	// Depth is how deep a queue may be.
	Depth int
}

// applyDefaults returns the thresholds, with the defaults in place of zero values.
func (t Thresholds) applyDefaults(defaults Thresholds) Thresholds {
	return Thresholds{BadShare: cmp.Or(t.BadShare, defaults.BadShare),
		Duration: cmp.Or(t.Duration, defaults.Duration), Depth: cmp.Or(t.Depth, defaults.Depth)}
}

func compareThresholds(a, b Thresholds) int {
	return cmp.Or(cmp.Compare(a.BadShare, b.BadShare), cmp.Compare(a.Duration, b.Duration),
		cmp.Compare(a.Depth, b.Depth))
}

// ReconcileBounds returns the bounds of controller-runtime's reconcile histogram,
// in seconds. The maximum duration of a reconcile must be one of them.
func ReconcileBounds() []float64 {
	return []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
		1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60}
}

// checkThresholds returns an error if the thresholds of an objective are invalid.
func (o Objective) checkThresholds() error {
	t := o.Thresholds
	if t == (Thresholds{}) {
		return nil
	}
	var supported Thresholds
	if i := slices.IndexFunc(SLIs(), func(s SLI) bool { return s.Name == o.SLI }); i >= 0 {
		supported = SLIs()[i].Thresholds
	}
	newError := func(format string, args ...any) error {
		return fmt.Errorf("%w of %s: %s", ErrThreshold, o.SLI, fmt.Sprintf(format, args...))
	}
	switch {
	case t.BadShare != 0 && supported.BadShare == 0:
		return newError("it has no badPercent%s", supported.listNames())
	case t.Duration != 0 && supported.Duration == 0:
		return newError("it has no duration%s", supported.listNames())
	case t.Depth != 0 && supported.Depth == 0:
		return newError("it has no depth%s", supported.listNames())
	case t.BadShare < 0 || t.BadShare >= One:
		return newError("badPercent must be above 0 and below 100")
	case t.Depth < 0:
		return newError("depth must be above 0")
	case t.Duration < 0 || t.Duration > day:
		return newError("duration must be above 0 and at most 24h")
	case o.SLI == latency && t.Duration != 0 && !slices.Contains(ReconcileBounds(), t.Duration.Seconds()):
		return newError("duration %s is not counted by controller-runtime: choose one of %s s", t.Duration,
			strings.Join(listNearBounds(t.Duration), ", "))
	}
	return nil
}

// listNames returns the end of an error message that names the thresholds that are set.
func (t Thresholds) listNames() string {
	var out []string
	for _, n := range []struct {
		has  bool
		name string
	}{{t.BadShare != 0, "badPercent"}, {t.Duration != 0, "duration"}, {t.Depth != 0, "depth"}} {
		if n.has {
			out = append(out, n.name)
		}
	}
	if len(out) == 0 {
		return ", nor any other threshold"
	}
	return ", but " + strings.Join(out, " and ")
}

// listNearBounds returns the bounds below and above a duration.
func listNearBounds(d time.Duration) []string {
	bounds := ReconcileBounds()
	i, _ := slices.BinarySearch(bounds, d.Seconds())
	var out []string
	for _, b := range bounds[max(0, i-1):min(i+1, len(bounds))] {
		out = append(out, formatNumber(b))
	}
	return out
}

// operators selects series of all operators except some, or of some operators only.
type operators struct{ only, except []types.NamespacedName }

// selectSeries selects the series of a metric that also meet further matchers.
func (o operators) selectSeries(metric string, matchers ...string) string {
	if len(o.only) > 0 {
		return selectOperators(metric, o.only, matchers...)
	}
	return selectOthers(metric, o.except, matchers...)
}

// buildExpr returns PromQL for the slices of an SLI, for all operators. Operators with the
// same thresholds share one part of the PromQL.
func (s Set) buildExpr(sli SLI) string {
	if sli.judge == nil {
		return sli.expr
	}
	thresholds := sli.Thresholds
	for _, o := range s.Default {
		if o.SLI == sli.Name {
			thresholds = o.Thresholds.applyDefaults(thresholds)
		}
	}
	operatorsByThresholds := map[Thresholds][]types.NamespacedName{}
	var named []types.NamespacedName // the operators with other thresholds than the default
	for _, op := range s.Operators {
		for _, o := range op.Objectives {
			if own := o.Thresholds.applyDefaults(sli.Thresholds); o.SLI == sli.Name && own != thresholds {
				operatorsByThresholds[own] = append(operatorsByThresholds[own], op.ID())
				named = append(named, op.ID())
			}
		}
	}
	out := sli.judge(operators{except: named}, thresholds)
	for _, own := range sortThresholds(operatorsByThresholds) {
		out += "\nor " + sli.judge(operators{only: operatorsByThresholds[own]}, own)
	}
	return out
}

func sortThresholds[T any](byThresholds map[Thresholds]T) []Thresholds {
	var out []Thresholds
	for t := range byThresholds {
		out = append(out, t)
	}
	slices.SortFunc(out, compareThresholds)
	return out
}

// matchLE returns a matcher of the bucket with a bound. Prometheus 3 writes whole numbers with a point.
func matchLE(d time.Duration) string {
	bound := strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
	if strings.Contains(bound, ".") {
		return fmt.Sprintf("le=%q", bound)
	}
	return fmt.Sprintf("le=~%q", bound+"|"+bound+".0")
}

// latency is the name of the SLI of reconcile durations.
const latency = "latency"

// newThresholdSLI returns the SLI with its thresholds and the function that builds its expression from them.
func newThresholdSLI(s SLI, t Thresholds, judge func(operators, Thresholds) string) SLI {
	s.Thresholds, s.judge, s.expr = t, judge, judge(operators{}, t)
	return s
}

// judgeReconciles returns PromQL for the slices of reconcile: bad if more than BadShare
// of the reconciles, and more than one reconcile, returned an error.
func judgeReconciles(ops operators, t Thresholds) string {
	return aggregateByOperator(ops, func(from pods) string {
		return requireSeveral(from.buildRate(series.ReconcileErrorsTotal),
			t.BadShare.formatDecimal()+" * "+from.buildRate(series.ReconcileTotal))
	})
}

// judgeQueue returns PromQL for the slices of queue: bad if a work item runs for longer than
// Duration, or a queue was always deeper than Depth for 10 minutes.
func judgeQueue(ops operators, t Thresholds) string {
	return aggregateByOperator(ops, func(from pods) string {
		return negate(fmt.Sprintf("(%s <= bool %s)\n   * (%s <= bool %d)",
			aggregate("max", from.labels, from.selectSeries(series.QueueLongestRunning)),
			formatNumber(t.Duration.Seconds()), aggregate("max", from.labels,
				fmt.Sprintf("min_over_time(%s[10m])", from.selectSeries(series.QueueDepth))),
			t.Depth))
	})
}

// judgeWebhooks returns PromQL for the slices of webhook. It uses the measurements of both
// sides: an operator counts the requests that reached it, and an API server counts the
// requests that did not. The two sides have different labels, so that neither hides the other.
func judgeWebhooks(ops operators, t Thresholds) string {
	judgeAnswers := func(from pods) string { return buildAnsweredExpr(from, t.BadShare) }
	return aggregate("max", installLabels, fmt.Sprintf("\n%s\n  or\n%s\n", joinOperators(ops, judgeAnswers),
		joinWebhooks(ops, buildCalledExpr(t.BadShare))))
}

// judgeOperands returns PromQL for the slices of operands: bad if more than BadShare
// of the custom resources with a known readiness are not ready.
func judgeOperands(ops operators, t Thresholds) string {
	sumOperands := func(matcher string) string {
		return aggregate("sum", installLabels, ops.selectSeries(series.OperatorOperands, matcher))
	}
	total := sumOperands(`ready=~"true|false"`)
	return negate(fmt.Sprintf("(%s or 0 * %s)\n<= bool\n%s * %s", sumOperands(`ready="false"`), total,
		t.BadShare.formatDecimal(),
		total))
}
