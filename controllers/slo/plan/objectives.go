// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/alerts/slo/spec"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// subject is an operator with its objectives.
type subject struct {
	operator *v1alpha1.ManagedOperator
	slo      *v1alpha1.OperatorSLO
	// spec is the object's over what the bundle says.
	spec v1alpha1.OperatorSLOSpec
	// err says why the object's spec cannot be used; rules are those in force
	// before. ignored says why the bundle's profile is left out.
	err, ignored error
	rules        slo.Operator
}

// newSubject takes nil for the operator of an object that is still to be made.
func newSubject(o *v1alpha1.ManagedOperator, s *v1alpha1.OperatorSLO) *subject {
	out := &subject{operator: o, slo: s}
	out.spec, out.ignored = effective(o, s)
	if out.rules, out.err = spec.Operator(s.Namespace, out.spec); out.err != nil {
		out.rules = lastGood(s)
	}
	return out
}

// effective lays the object's spec over the profile of the target version's
// bundle. One that cannot be used is left out.
func effective(o *v1alpha1.ManagedOperator, s *v1alpha1.OperatorSLO) (v1alpha1.OperatorSLOSpec, error) {
	if o == nil || o.Status.Target == nil || o.Status.Target.SLO == nil {
		return s.Spec, nil
	}
	profile, err := spec.Profile(o.Status.Target.SLO.Raw)
	if err != nil {
		return s.Spec, fmt.Errorf("bundle %s: %w", o.Status.Target.Bundle, err)
	}
	return spec.Effective(s.Spec, profile), nil
}

// lastGood are the objectives that the status holds, so that a mistake does not
// make budgets jump. Own SLIs are left out: their queries are not in the status.
// Without a status it is the default profile.
func lastGood(s *v1alpha1.OperatorSLO) slo.Operator {
	op := slo.Operator{Namespace: s.Namespace, Name: s.Spec.Operator, Team: s.Spec.Team,
		Criticality: string(s.Spec.Criticality), Labels: s.Spec.AlertLabels, Annotations: s.Spec.AlertAnnotations}
	if len(s.Status.Objectives) == 0 {
		return op
	}
	op.Without = spec.ProfileSLIs()
	if s.Spec.Profile != v1alpha1.ProfileNone && !slices.Contains(s.Spec.Without, slo.Probe) {
		// The status names probes one by one, and not that there may be others.
		op.Without = slices.DeleteFunc(op.Without, func(sli string) bool { return sli == slo.Probe })
	}
	for _, o := range s.Status.Objectives {
		objective, err := spec.Objective(o)
		if err != nil || slo.CheckSLI(o.SLI) != nil {
			continue
		}
		if asDefault(objective) {
			op.Without = slices.DeleteFunc(op.Without, func(sli string) bool { return sli == family(o.SLI) })
			continue
		}
		op.Objectives = append(op.Objectives, objective)
	}
	if spec.Check(op) != nil {
		return slo.Operator{Namespace: s.Namespace, Name: s.Spec.Operator}
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
	o.SLI = family(o.SLI)
	return slices.Contains(slo.DefaultProfile(), o)
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
		for _, service := range s.spec.Services {
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
		out = append(out, spec.Written(o))
	}
	return out
}

// describe says what is asked of an SLI.
func describe(o v1alpha1.SLOObjective) string {
	out := fmt.Sprintf("%s %% over %s", o.Target, o.Period)
	if o.Alerts != "" {
		out += fmt.Sprintf(" with alerts %s", o.Alerts)
	}
	if t := o.Thresholds; t != nil {
		var parts []string
		if t.BadPercent != "" {
			parts = append(parts, "badPercent "+t.BadPercent)
		}
		if t.Duration != nil {
			parts = append(parts, "duration "+t.Duration.Duration.String())
		}
		if t.Depth != 0 {
			parts = append(parts, fmt.Sprintf("depth %d", t.Depth))
		}
		out += " with " + strings.Join(parts, " and ")
	}
	return out
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
			out = append(out, fmt.Sprintf("%s is new: %s", o.SLI, describe(o)))
		case describe(*was) != describe(o):
			out = append(out, fmt.Sprintf("%s was %s and is %s", o.SLI, describe(*was), describe(o)))
		}
	}
	for _, o := range before {
		if find(after, o.SLI) == nil {
			out = append(out, o.SLI+" is left out")
		}
	}
	return strings.Join(phrase.Limit(out, maxEdits), "; ")
}

// maxEdits and maxFindings bound lists in messages.
const (
	maxEdits    = 10
	maxFindings = 6
)
