// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spec reads the objectives of OperatorSLOs from any source:
// the hub's objects, a file, or the profile in a bundle. It is pure.
package spec

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Operator reads the objectives of an OperatorSLO's spec. namespace is the
// namespace of the object. The error contains everything that is invalid.
func Operator(namespace string, s v1alpha1.OperatorSLOSpec) (slo.Operator, error) {
	op := slo.Operator{Namespace: namespace, Name: s.Operator, Team: s.Team, Criticality: string(s.Criticality),
		Labels: s.AlertLabels, Annotations: s.AlertAnnotations}
	var errs []error
	for _, o := range s.Own {
		own, err := readOwnSLI(op.ID(), o)
		errs = append(errs, err)
		op.Own = append(op.Own, own)
	}
	for _, o := range s.Objectives {
		objective, err := Objective(o)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.SLI, err))
			continue
		}
		op.Objectives = append(op.Objectives, objective)
	}
	for _, sli := range s.Without {
		if probe := strings.TrimPrefix(sli, slo.Probe); probe != sli && probe != "" {
			errs = append(errs, fmt.Errorf("without %s: a probe goes when it is deleted or taken out of services; "+
				"write %q to leave out all of them", sli, slo.Probe))
		}
		op.Without = append(op.Without, sli)
	}
	op.Limits = readLimits(s.CustomResources)
	if s.Profile == v1alpha1.ProfileNone {
		op.Without = ProfileSLIs()
	}
	if err := errors.Join(errs...); err != nil {
		return op, err
	}
	return op, Check(op)
}

func readLimits(in []v1alpha1.CustomResourceLimit) []slo.Limit {
	var out []slo.Limit
	for _, l := range in {
		out = append(out, slo.Limit{Kind: l.Kind, Max: l.Max, PerDay: l.MaxGrowthPerDay})
	}
	return out
}

// Check returns an error if rules cannot be made for the operator alone.
func Check(op slo.Operator) error {
	if op.Name == "" { // the profile of a bundle names no operator
		op.Namespace, op.Name = "namespace", "operator"
	}
	return slo.Set{Operators: []slo.Operator{op}}.Check()
}

// ProfileSLIs returns every SLI of the default profile.
func ProfileSLIs() []string {
	var out []string
	for _, o := range slo.DefaultProfile() {
		out = append(out, o.SLI)
	}
	return out
}

// Objective reads one objective. The default alerts and the default period become
// zero values, so that an explicit default equals a missing value.
func Objective(o v1alpha1.SLOObjective) (slo.Objective, error) {
	out := slo.Objective{SLI: o.SLI}
	var err error
	if out.Target, err = slo.ParseTarget(o.Target); err != nil {
		return out, err
	}
	out.Alerts = slo.Alerting(o.Alerts)
	if out.Alerts == slo.AlertsAll {
		out.Alerts = ""
	}
	if out.Thresholds, err = readThresholds(o.Thresholds); err != nil {
		return out, err
	}
	if o.Period == "" {
		return out, nil
	}
	if out.Period, err = slo.ParsePeriod(o.Period); err != nil {
		return out, err
	}
	if out.Period == slo.DefaultPeriod {
		out.Period = 0
	}
	return out, nil
}

// readThresholds reads the thresholds of an objective. Nil means the defaults.
func readThresholds(t *v1alpha1.SLOThresholds) (slo.Thresholds, error) {
	var out slo.Thresholds
	if t == nil {
		return out, nil
	}
	if t.Duration != nil {
		out.Duration = t.Duration.Duration
	}
	out.Depth = int(t.Depth)
	if t.BadPercent == "" {
		return out, nil
	}
	var err error
	// A share of bad events has the same notation and limits as a target.
	if out.BadShare, err = slo.ParseTarget(t.BadPercent); err != nil {
		return out, fmt.Errorf("badPercent: %w", err)
	}
	return out, nil
}

// ToAPI returns an objective in the form of an OperatorSLO, with everything that Objective reads.
func ToAPI(o slo.Objective) v1alpha1.SLOObjective {
	out := v1alpha1.SLOObjective{SLI: o.SLI, Target: o.Target.String(),
		Period: formatPeriod(cmp.Or(o.Period, slo.DefaultPeriod)), Alerts: v1alpha1.ObjectiveAlerts(o.Alerts)}
	t := o.Thresholds
	if t == (slo.Thresholds{}) {
		return out
	}
	out.Thresholds = &v1alpha1.SLOThresholds{Depth: int32(t.Depth)}
	if t.Duration != 0 {
		out.Thresholds.Duration = &metav1.Duration{Duration: t.Duration}
	}
	if t.BadShare != 0 {
		out.Thresholds.BadPercent = t.BadShare.String()
	}
	return out
}

// formatPeriod returns a period in days, or in hours if it is not a whole number of days.
func formatPeriod(d time.Duration) string {
	const day = 24 * time.Hour
	if d%day == 0 {
		return strconv.Itoa(int(d/day)) + "d"
	}
	return strconv.Itoa(int(d/time.Hour)) + "h"
}

// readOwnSLI reads an own SLI of an operator. It must have exactly one kind of indicator.
func readOwnSLI(operator types.NamespacedName, o v1alpha1.OwnSLI) (slo.OwnSLI, error) {
	var out slo.OwnSLI
	var err error
	switch {
	case countSet(o.RequestRatio != nil, o.Latency != nil, o.Gauge != nil) != 1:
		err = errKind
	case o.RequestRatio != nil:
		all, allErr := readMatchers(o.RequestRatio.All)
		bad, badErr := readMatchers(o.RequestRatio.Bad)
		out = slo.RequestRatio(o.Name, o.RequestRatio.Counter, slo.OfOperator(operator, all), bad)
		err = errors.Join(checkMetricName(o.RequestRatio.Counter), allErr, badErr)
	case o.Latency != nil:
		all, allErr := readMatchers(o.Latency.All)
		out = slo.LatencyThreshold(o.Name, o.Latency.Histogram, o.Latency.LE, slo.OfOperator(operator, all))
		err = errors.Join(checkMetricName(o.Latency.Histogram), allErr)
	case o.Gauge != nil:
		all, allErr := readMatchers(o.Gauge.All)
		out = slo.BoolGauge(o.Name, o.Gauge.Metric, slo.OfOperator(operator, all))
		err = errors.Join(checkMetricName(o.Gauge.Metric), allErr)
	}
	out.Method, out.MinRequests = slo.Method(o.BudgetingMethod), int(o.MinRequests)
	if o.TimeSliceTarget != "" {
		var targetErr error
		out.SliceTarget, targetErr = slo.ParseSliceTarget(o.TimeSliceTarget)
		err = errors.Join(err, targetErr)
	}
	if err != nil {
		return out, fmt.Errorf("own SLI %s: %w", o.Name, err)
	}
	return out, nil
}

var errKind = errors.New("give it one of requestRatio, latency and gauge")

// countSet returns the number of values that are true.
func countSet(values ...bool) int {
	n := 0
	for _, set := range values {
		if set {
			n++
		}
	}
	return n
}

// metricPattern matches valid metric names. Values that the API server refuses in an
// object are refused here too, because a file or a bundle is not checked by an API server.
var metricPattern = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)

// checkMetricName returns an error if a metric name is invalid.
func checkMetricName(name string) error {
	if !metricPattern.MatchString(name) {
		return fmt.Errorf("%q is no name of a metric: matchers go into all and bad", name)
	}
	return nil
}

// readMatchers reads label matchers. It compiles regular expressions as
// Prometheus does, because Prometheus refuses a whole file with an invalid one.
func readMatchers(in []v1alpha1.LabelMatcher) ([]slo.Matcher, error) {
	var out []slo.Matcher
	for _, m := range in {
		if !slo.IsLabelName(m.Label) {
			return nil, fmt.Errorf("%q is no name of a label", m.Label)
		}
		op := string(m.Op)
		if op == "" {
			op = "="
		}
		switch op {
		case "=", "!=": // any value is valid
		case "=~", "!~":
			if _, err := regexp.Compile("^(?s:" + m.Value + ")$"); err != nil {
				return nil, fmt.Errorf("label %s: %q is no regular expression: %w", m.Label, m.Value, err)
			}
		default:
			return nil, fmt.Errorf("label %s: op %q is none of =, !=, =~ and !~", m.Label, op)
		}
		out = append(out, slo.Matcher{Label: m.Label, Op: op, Value: m.Value})
	}
	return out, nil
}
