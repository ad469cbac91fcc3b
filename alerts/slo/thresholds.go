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

// ErrThreshold says what is wrong with the thresholds of an objective.
var ErrThreshold = errors.New("invalid threshold")

// Thresholds are what an SLI takes for bad. Each SLI has some of them; where one is
// 0, it is the SLI's own.
type Thresholds struct {
	// BadShare is the share of events, or of custom resources, that may be bad, or of a
	// limit or volume that may be used.
	BadShare PPM
	// Duration is how long a reconcile may take, or a work item may run.
	Duration time.Duration
	// Depth is how deep a queue may be.
	Depth int
}

// or returns the thresholds, and others where there are none.
func (t Thresholds) or(others Thresholds) Thresholds {
	return Thresholds{cmp.Or(t.BadShare, others.BadShare), cmp.Or(t.Duration, others.Duration),
		cmp.Or(t.Depth, others.Depth)}
}

func compareThresholds(a, b Thresholds) int {
	return cmp.Or(cmp.Compare(a.BadShare, b.BadShare), cmp.Compare(a.Duration, b.Duration),
		cmp.Compare(a.Depth, b.Depth))
}

// ReconcileBounds are the durations by which controller-runtime counts reconciles,
// in seconds. How long one may take has to be one of them.
func ReconcileBounds() []float64 {
	return []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
		1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60}
}

// checkThresholds says what is wrong with the thresholds of an objective.
func (o Objective) checkThresholds() error {
	t := o.Thresholds
	if t == (Thresholds{}) {
		return nil
	}
	var has Thresholds
	if i := slices.IndexFunc(SLIs(), func(s SLI) bool { return s.Name == o.SLI }); i >= 0 {
		has = SLIs()[i].Thresholds
	}
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w of %s: %s", ErrThreshold, o.SLI, fmt.Sprintf(format, args...))
	}
	switch {
	case t.BadShare != 0 && has.BadShare == 0:
		return wrong("it has no badPercent%s", has.names())
	case t.Duration != 0 && has.Duration == 0:
		return wrong("it has no duration%s", has.names())
	case t.Depth != 0 && has.Depth == 0:
		return wrong("it has no depth%s", has.names())
	case t.BadShare < 0 || t.BadShare >= One:
		return wrong("badPercent has to be above 0 and below 100")
	case t.Depth < 0:
		return wrong("depth has to be above 0")
	case t.Duration < 0 || t.Duration > day:
		return wrong("duration has to be above 0 and at most 24h")
	case o.SLI == latency && t.Duration != 0 && !slices.Contains(ReconcileBounds(), t.Duration.Seconds()):
		return wrong("duration %s is not counted by controller-runtime: choose one of %s s", t.Duration,
			strings.Join(boundsNear(t.Duration), ", "))
	}
	return nil
}

// names lists the thresholds that there are.
func (t Thresholds) names() string {
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

// boundsNear are the bounds below and above a duration.
func boundsNear(d time.Duration) []string {
	bounds := ReconcileBounds()
	i, _ := slices.BinarySearch(bounds, d.Seconds())
	var out []string
	for _, b := range bounds[max(0, i-1):min(i+1, len(bounds))] {
		out = append(out, number(b))
	}
	return out
}

// operators selects series of all operators but some, or of some only.
type operators struct{ only, except []types.NamespacedName }

// of selects the series of a metric that also meet further matchers.
func (o operators) of(metric string, matchers ...string) string {
	if len(o.only) > 0 {
		return selectOperators(metric, o.only, matchers...)
	}
	return selectOthers(metric, o.except, matchers...)
}

// exprOf is what records the slices of an SLI. Operators with the same thresholds
// share a part of it.
func (s Set) exprOf(sli SLI) string {
	if sli.judge == nil {
		return sli.expr
	}
	thresholds := sli.Thresholds
	for _, o := range s.Default {
		if o.SLI == sli.Name {
			thresholds = o.Thresholds.or(thresholds)
		}
	}
	others := map[Thresholds][]types.NamespacedName{}
	var named []types.NamespacedName
	for _, op := range s.Operators {
		for _, o := range op.Objectives {
			if own := o.Thresholds.or(sli.Thresholds); o.SLI == sli.Name && own != thresholds {
				others[own] = append(others[own], op.ID())
				named = append(named, op.ID())
			}
		}
	}
	out := sli.judge(operators{except: named}, thresholds)
	for _, own := range sortedThresholds(others) {
		out += "\nor " + sli.judge(operators{only: others[own]}, own)
	}
	return out
}

func sortedThresholds[T any](of map[Thresholds]T) []Thresholds {
	var out []Thresholds
	for t := range of {
		out = append(out, t)
	}
	slices.SortFunc(out, compareThresholds)
	return out
}

// le matches the bucket of a bound. Prometheus 3 writes whole numbers with a point.
func le(d time.Duration) string {
	bound := strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
	if strings.Contains(bound, ".") {
		return fmt.Sprintf("le=%q", bound)
	}
	return fmt.Sprintf("le=~%q", bound+"|"+bound+".0")
}

// Names of SLIs with thresholds.
const latency = "latency"

// judged makes an SLI of a judgement and the thresholds that it is made with.
func judged(s SLI, t Thresholds, judge func(operators, Thresholds) string) SLI {
	s.Thresholds, s.judge, s.expr = t, judge, judge(operators{}, t)
	return s
}

func judgeReconciles(of operators, t Thresholds) string {
	return ofOperator(of, func(from pods) string {
		return notOrFew(from.rate(series.ReconcileErrorsTotal),
			t.BadShare.decimal()+" * "+from.rate(series.ReconcileTotal))
	})
}

func judgeQueue(of operators, t Thresholds) string {
	return ofOperator(of, func(from pods) string {
		return not(fmt.Sprintf("(%s <= bool %s)\n   * (%s <= bool %d)",
			aggregate("max", from.labels, from.of(series.QueueLongestRunning)), number(t.Duration.Seconds()),
			aggregate("max", from.labels, fmt.Sprintf("min_over_time(%s[10m])", from.of(series.QueueDepth))), t.Depth))
	})
}

// judgeWebhooks takes what either side sees: an operator knows of the requests
// that reached it, an API server of those that did not. The two have different
// labels, so that neither hides the other.
func judgeWebhooks(of operators, t Thresholds) string {
	answered := func(from pods) string { return answeredExpr(from, t.BadShare) }
	return aggregate("max", installLabels, fmt.Sprintf("\n%s\n  or\n%s\n", ofPodsOf(of, answered),
		ofWebhook(of, calledExpr(t.BadShare))))
}

func judgeOperands(of operators, t Thresholds) string {
	sum := func(matcher string) string {
		return aggregate("sum", installLabels, of.of(series.OperatorOperands, matcher))
	}
	total := sum(`ready=~"true|false"`)
	return not(fmt.Sprintf("(%s or 0 * %s)\n<= bool\n%s * %s", sum(`ready="false"`), total, t.BadShare.decimal(),
		total))
}
