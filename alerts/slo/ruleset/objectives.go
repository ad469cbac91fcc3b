// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package ruleset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/alerts/slo/spec"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// subject is an operator with its objectives.
type subject struct {
	operator *v1alpha1.ManagedOperator
	slo      *v1alpha1.OperatorSLO
	// spec is the spec of the object, with missing values from the profile of the bundle.
	spec v1alpha1.OperatorSLOSpec
	// err is the error in the object's spec; rules are then the last valid objectives.
	// ignored is the error in the bundle's profile, which is then ignored.
	err, ignored error
	rules        slo.Operator
}

// newSubject returns the subject of an OperatorSLO. The operator is nil for an object that will be created.
func newSubject(o *v1alpha1.ManagedOperator, s *v1alpha1.OperatorSLO) *subject {
	out := &subject{operator: o, slo: s}
	out.spec, out.ignored = mergeProfile(o, s)
	if out.rules, out.err = spec.Operator(s.Namespace, out.spec); out.err != nil {
		out.rules = readLastGood(s)
	}
	return out
}

// mergeProfile returns the object's spec with missing values from the profile of the target
// version's bundle. If the profile is invalid, it returns the spec alone and an error.
func mergeProfile(o *v1alpha1.ManagedOperator, s *v1alpha1.OperatorSLO) (v1alpha1.OperatorSLOSpec, error) {
	if o == nil || o.Status.Target == nil || o.Status.Target.SLO == nil {
		return s.Spec, nil
	}
	profile, err := spec.Profile(o.Status.Target.SLO.Raw)
	if err != nil {
		return s.Spec, fmt.Errorf("bundle %s: %w", o.Status.Target.Bundle, err)
	}
	return spec.Effective(s.Spec, profile), nil
}

// readLastGood returns the objectives in the status, so that an invalid spec does
// not change budgets. Own SLIs are left out, because the status does not contain
// their queries. If the status has no objectives, it returns the default profile.
func readLastGood(s *v1alpha1.OperatorSLO) slo.Operator {
	op := slo.Operator{Namespace: s.Namespace, Name: s.Spec.Operator, Team: s.Spec.Team,
		Criticality: string(s.Spec.Criticality), Labels: s.Spec.AlertLabels, Annotations: s.Spec.AlertAnnotations}
	if len(s.Status.Objectives) == 0 {
		return op
	}
	op.Without = spec.ProfileSLIs()
	if s.Spec.Profile != v1alpha1.ProfileNone && !slices.Contains(s.Spec.Without, slo.Probe) {
		// The status lists single probes, and does not show whether other probes are allowed.
		op.Without = slices.DeleteFunc(op.Without, func(sli string) bool { return sli == slo.Probe })
	}
	for _, o := range s.Status.Objectives {
		objective, err := spec.Objective(o)
		if err != nil || slo.CheckSLI(o.SLI) != nil { // an own SLI, or an objective that is not supported
			continue
		}
		if isDefault(objective) {
			op.Without = slices.DeleteFunc(op.Without, func(sli string) bool { return sli == toProfileSLI(o.SLI) })
			continue
		}
		op.Objectives = append(op.Objectives, objective)
	}
	if spec.Check(op) != nil {
		return slo.Operator{Namespace: s.Namespace, Name: s.Spec.Operator}
	}
	return op
}

// toProfileSLI returns the SLI's name in the profile, which has one SLI for all probes.
func toProfileSLI(sli string) string {
	if strings.HasPrefix(sli, slo.Probe) {
		return slo.Probe
	}
	return sli
}

// isDefault reports whether the objective equals the objective of the default profile.
func isDefault(o slo.Objective) bool {
	o.SLI = toProfileSLI(o.SLI)
	return slices.Contains(slo.DefaultProfile(), o)
}

// listInForce returns all objectives of the operator: the objectives of the profile,
// and its own. Objectives of probes are included for the services that the spec names.
func (s *subject) listInForce() []slo.Objective {
	hasObjective := func(sli string) bool {
		return slices.ContainsFunc(s.rules.Objectives, func(o slo.Objective) bool { return o.SLI == sli })
	}
	var out []slo.Objective
	for _, o := range slo.DefaultProfile() {
		if slices.Contains(s.rules.Without, o.SLI) || hasObjective(o.SLI) {
			continue
		}
		if o.SLI != slo.Probe {
			out = append(out, o)
			continue
		}
		for _, service := range s.spec.Services {
			if probe := slo.Probe + service.Name; !hasObjective(probe) {
				out = append(out, slo.Objective{SLI: probe, Target: o.Target, Period: o.Period})
			}
		}
	}
	return append(out, s.rules.Objectives...)
}

// writeObjectives converts objectives to the form of an OperatorSLO.
func writeObjectives(objectives []slo.Objective) []v1alpha1.SLOObjective {
	var out []v1alpha1.SLOObjective
	for _, o := range objectives {
		out = append(out, spec.ToAPI(o))
	}
	return out
}

// describe returns an objective as text.
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

// describeEdits describes the differences between two lists of objectives. It is empty if there are none.
func describeEdits(before, after []v1alpha1.SLOObjective) string {
	findObjective := func(in []v1alpha1.SLOObjective, sli string) *v1alpha1.SLOObjective {
		if i := slices.IndexFunc(in, func(o v1alpha1.SLOObjective) bool { return o.SLI == sli }); i >= 0 {
			return &in[i]
		}
		return nil
	}
	var out []string
	for _, o := range after {
		switch old := findObjective(before, o.SLI); {
		case old == nil:
			out = append(out, fmt.Sprintf("%s is new: %s", o.SLI, describe(o)))
		case describe(*old) != describe(o):
			out = append(out, fmt.Sprintf("%s was %s and is %s", o.SLI, describe(*old), describe(o)))
		}
	}
	for _, o := range before {
		if findObjective(after, o.SLI) == nil {
			out = append(out, o.SLI+" is left out")
		}
	}
	return strings.Join(phrase.Limit(out, maxEdits), "; ")
}

// maxEdits and maxFindings limit the lists in messages.
const (
	maxEdits    = 10
	maxFindings = 6
)
