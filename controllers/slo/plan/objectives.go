// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// subject is an operator with its objectives.
type subject struct {
	operator *v1alpha1.ManagedOperator
	slo      *v1alpha1.OperatorSLO
	// err says why the spec cannot be used; rules are those in force before.
	err   error
	rules slo.Operator
}

func newSubject(o *v1alpha1.ManagedOperator, s *v1alpha1.OperatorSLO) *subject {
	rules, err := operatorOf(s)
	if err != nil {
		rules = lastGood(s)
	}
	return &subject{o, s, err, rules}
}

// operatorOf reads the objectives of a spec, or says all that is wrong with it.
func operatorOf(s *v1alpha1.OperatorSLO) (slo.Operator, error) {
	op := slo.Operator{Name: s.Spec.Operator, Team: s.Spec.Team}
	var errs []error
	for _, o := range s.Spec.Own {
		own, err := ownOf(o)
		errs = append(errs, err)
		op.Own = append(op.Own, own)
	}
	for _, o := range s.Spec.Objectives {
		objective, err := objectiveOf(o)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.SLI, err))
			continue
		}
		op.Objectives = append(op.Objectives, objective)
	}
	for _, sli := range s.Spec.Without {
		if probe := strings.TrimPrefix(sli, slo.Probe); probe != sli && probe != "" {
			errs = append(errs, fmt.Errorf("without %s: a probe goes when it is deleted or taken out of services; write %q to leave out all of them", sli, slo.Probe))
		}
		op.Without = append(op.Without, sli)
	}
	if s.Spec.Profile == v1alpha1.ProfileNone {
		op.Without = profile()
	}
	if err := errors.Join(errs...); err != nil {
		return op, err
	}
	return op, check(op)
}

// check builds rules of this operator alone.
func check(op slo.Operator) error {
	_, err := slo.Build(slo.Set{Operators: []slo.Operator{op}})
	return err
}

// profile names every SLI of the default profile.
func profile() []string {
	var out []string
	for _, o := range slo.DefaultProfile() {
		out = append(out, o.SLI)
	}
	return out
}

func objectiveOf(o v1alpha1.SLOObjective) (slo.Objective, error) {
	out := slo.Objective{SLI: o.SLI}
	var err error
	if out.Target, err = slo.ParseTarget(o.Target); err != nil {
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

func ownOf(o v1alpha1.OwnSLI) (slo.OwnSLI, error) {
	var out slo.OwnSLI
	var err error
	switch {
	case o.RequestRatio != nil:
		all, allErr := matchers(o.RequestRatio.All)
		bad, badErr := matchers(o.RequestRatio.Bad)
		out, err = slo.RequestRatio(o.Name, o.RequestRatio.Counter, all, bad), errors.Join(allErr, badErr)
	case o.Latency != nil:
		all, allErr := matchers(o.Latency.All)
		out, err = slo.LatencyThreshold(o.Name, o.Latency.Histogram, o.Latency.LE, all), allErr
	default:
		err = errors.New("give it requestRatio or latency")
	}
	if err != nil {
		return out, fmt.Errorf("own SLI %s: %w", o.Name, err)
	}
	out.MinRequests = int(o.MinRequests)
	return out, nil
}

// matchers checks regular expressions as Prometheus reads them: with one that it
// refuses, it would refuse the whole file.
func matchers(in []v1alpha1.LabelMatcher) ([]slo.Matcher, error) {
	var out []slo.Matcher
	for _, m := range in {
		op := string(m.Op)
		if op == "" {
			op = "="
		}
		if op == "=~" || op == "!~" {
			if _, err := regexp.Compile("^(?s:" + m.Value + ")$"); err != nil {
				return nil, fmt.Errorf("label %s: %q is no regular expression: %w", m.Label, m.Value, err)
			}
		}
		out = append(out, slo.Matcher{Label: m.Label, Op: op, Value: m.Value})
	}
	return out, nil
}

// lastGood are the objectives that the status holds, so that a mistake does not
// make budgets jump. Own SLIs are left out: their queries are not in the status.
// Without a status it is the default profile.
func lastGood(s *v1alpha1.OperatorSLO) slo.Operator {
	op := slo.Operator{Name: s.Spec.Operator, Team: s.Spec.Team}
	if len(s.Status.Objectives) == 0 {
		return op
	}
	op.Without = profile()
	for _, o := range s.Status.Objectives {
		objective, err := objectiveOf(o)
		if err != nil || slo.CheckSLI(o.SLI) != nil {
			continue
		}
		if asDefault(objective) {
			op.Without = slices.DeleteFunc(op.Without, func(sli string) bool { return sli == family(o.SLI) })
			continue
		}
		op.Objectives = append(op.Objectives, objective)
	}
	if check(op) != nil {
		return slo.Operator{Name: s.Spec.Operator}
	}
	return op
}

// family is the SLI in the profile: one for all probes.
func family(sli string) string {
	if strings.HasPrefix(sli, slo.Probe) {
		return slo.Probe
	}
	return sli
}

func asDefault(o slo.Objective) bool {
	return slices.ContainsFunc(slo.DefaultProfile(), func(d slo.Objective) bool {
		return d.SLI == family(o.SLI) && d.Target == o.Target && d.Period == o.Period
	})
}

// inForce are all objectives of the operator: the profile's, and its own. Those
// of probes are known for the services that it names.
func (s *subject) inForce() []slo.Objective {
	has := func(sli string) bool {
		return slices.ContainsFunc(s.rules.Objectives, func(o slo.Objective) bool { return o.SLI == sli })
	}
	var out []slo.Objective
	for _, o := range slo.DefaultProfile() {
		if slices.Contains(s.rules.Without, o.SLI) || has(o.SLI) {
			continue
		}
		if o.SLI != slo.Probe {
			out = append(out, o)
			continue
		}
		for _, service := range s.slo.Spec.Services {
			if probe := slo.Probe + service.Name; !has(probe) {
				out = append(out, slo.Objective{SLI: probe, Target: o.Target, Period: o.Period})
			}
		}
	}
	return append(out, s.rules.Objectives...)
}

func written(objectives []slo.Objective) []v1alpha1.SLOObjective {
	var out []v1alpha1.SLOObjective
	for _, o := range objectives {
		period := o.Period
		if period == 0 {
			period = slo.DefaultPeriod
		}
		out = append(out, v1alpha1.SLOObjective{SLI: o.SLI, Target: o.Target.String(), Period: days(period)})
	}
	return out
}

// days writes a period as people do.
func days(d time.Duration) string {
	const day = 24 * time.Hour
	if d%day == 0 {
		return strconv.Itoa(int(d/day)) + "d"
	}
	return strconv.Itoa(int(d/time.Hour)) + "h"
}

// edits says what changed between two lists of objectives, or nothing.
func edits(before, after []v1alpha1.SLOObjective) string {
	find := func(in []v1alpha1.SLOObjective, sli string) *v1alpha1.SLOObjective {
		if i := slices.IndexFunc(in, func(o v1alpha1.SLOObjective) bool { return o.SLI == sli }); i >= 0 {
			return &in[i]
		}
		return nil
	}
	var out []string
	for _, o := range after {
		switch was := find(before, o.SLI); {
		case was == nil:
			out = append(out, fmt.Sprintf("%s is new: %s %% over %s", o.SLI, o.Target, o.Period))
		case *was != o:
			out = append(out, fmt.Sprintf("%s was %s %% over %s and is %s %% over %s", o.SLI, was.Target, was.Period, o.Target, o.Period))
		}
	}
	for _, o := range before {
		if find(after, o.SLI) == nil {
			out = append(out, o.SLI+" is left out")
		}
	}
	return shorten(out, maxEdits)
}

// maxEdits and maxFindings bound lists in messages.
const (
	maxEdits    = 10
	maxFindings = 6
)

func shorten(lines []string, most int) string {
	if len(lines) > most {
		lines = append(lines[:most:most], fmt.Sprintf("and %d more", len(lines)-most))
	}
	return strings.Join(lines, "; ")
}
