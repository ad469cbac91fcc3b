// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package ruleset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// buildRefusedStatus returns the status of an OperatorSLO that has no effect.
func buildRefusedStatus(r refusal) v1alpha1.OperatorSLOStatus {
	var status v1alpha1.OperatorSLOStatus
	status.ObservedGeneration = r.slo.Generation
	status.Conditions = copyConditions(r.slo, v1alpha1.ConditionReady, v1alpha1.ConditionStalled)
	conditions.Summarize(&status.Conditions, r.slo.Generation,
		conditions.Summary{State: conditions.Stalled, Reason: r.reason, Message: r.message})
	return status
}

// copyConditions copies the conditions of the given types, with their times of transition.
func copyConditions(s *v1alpha1.OperatorSLO, types ...string) []metav1.Condition {
	var out []metav1.Condition
	for _, c := range s.Status.Conditions {
		if slices.Contains(types, c.Type) {
			out = append(out, c)
		}
	}
	return out
}

// report returns the status of an OperatorSLO in force, and a description of the edits since the last status.
func (s *subject) report(in Input, all []File) (status v1alpha1.OperatorSLOStatus, edited string) {
	status = *s.slo.Status.DeepCopy()
	generation := s.slo.Generation
	status.ObservedGeneration = generation
	before, after := s.slo.Status.Objectives, writeObjectives(s.listInForce())
	status.Objectives = after
	if len(before) > 0 && !equality.Semantic.DeepEqual(before, after) {
		edited = describeEdits(before, after)
		status.Edited = &v1alpha1.SLOEdit{At: metav1.NewTime(in.Now), Message: edited}
	}
	ownFiles := s.selectFiles(all)
	status.Rules = nil
	for _, f := range ownFiles {
		status.Rules = append(status.Rules, fmt.Sprintf("%s/%s/%s", in.Kind, in.Namespace, f.nameObject(in.Kind)))
	}
	status.Rules = slices.Compact(status.Rules)
	conditions.Summarize(&status.Conditions, generation, s.summarize(status))
	s.setFeasible(in, &status)
	v := checkLoaded(in, ownFiles...)
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionRulesLoaded, Status: v.status, Reason: v.reason, Message: v.message,
		ObservedGeneration: generation,
	})
	return status, edited
}

// selectFiles returns the rules of all operators, and the rules of the operator's own SLIs.
func (s *subject) selectFiles(all []File) []File {
	var out []File
	for _, f := range all {
		if f.isForAll() || f.Operator == s.rules.ID() {
			out = append(out, f)
		}
	}
	return out
}

// summarize returns whether the spec is used, with the reason if it is not.
func (s *subject) summarize(status v1alpha1.OperatorSLOStatus) conditions.Summary {
	if s.err != nil {
		force := "the default profile is in force"
		if len(s.slo.Status.Objectives) > 0 {
			force = "the objectives before are in force, without SLIs of its own"
		}
		return conditions.Summary{State: conditions.Stalled, Reason: v1alpha1.ReasonInvalidSpec,
			Message: fmt.Sprintf("%s. Until that is put right, %s", strings.ReplaceAll(s.err.Error(), "\n", "; "),
				force)}
	}
	return conditions.Summary{State: conditions.Current, Reason: v1alpha1.ReasonSucceeded,
		Message: fmt.Sprintf("%d objectives are in the rules of %s", len(status.Objectives),
			strings.Join(status.Rules, " and "))}
}

// setFeasible sets the condition Feasible. It is False if the profile of the bundle is invalid, an objective
// cannot work, or Prometheus deletes samples too early. If it is True, the message has notes about
// behaviour that users might not expect, for objectives in the spec itself.
func (s *subject) setFeasible(in Input, status *v1alpha1.OperatorSLOStatus) {
	var impossible, notes []string
	for _, o := range s.listInForce() {
		if slo.CheckSLI(o.SLI) != nil {
			continue // own SLIs are shares, and not judged by slices
		}
		isNamed := slices.ContainsFunc(s.slo.Spec.Objectives,
			func(x v1alpha1.SLOObjective) bool { return x.SLI == o.SLI })
		for _, f := range slo.Feasible(o) {
			switch {
			case f.Impossible:
				impossible = append(impossible, f.Message)
			case isNamed:
				notes = append(notes, f.Message)
			}
		}
	}
	generation, retention := s.slo.Generation, s.checkRetention(in)
	switch {
	case s.ignored != nil:
		conditions.Set(&status.Conditions, generation, v1alpha1.ConditionFeasible, false, v1alpha1.ReasonProfileInvalid,
			fmt.Sprintf("what the bundle says of its SLOs is left out, as it cannot be used: %s",
				strings.ReplaceAll(s.ignored.Error(), "\n", "; ")))
	case len(impossible) > 0:
		conditions.Set(&status.Conditions, generation, v1alpha1.ConditionFeasible, false, v1alpha1.ReasonInfeasible,
			strings.Join(phrase.Limit(impossible, maxFindings), "; "))
	case retention != "":
		conditions.Set(&status.Conditions, generation, v1alpha1.ConditionFeasible, false,
			v1alpha1.ReasonRetentionTooShort, retention)
	case len(notes) > 0:
		conditions.Set(&status.Conditions, generation, v1alpha1.ConditionFeasible, true, v1alpha1.ReasonSucceeded,
			"every objective can work; note that "+strings.Join(phrase.Limit(notes, maxFindings), "; "))
	default:
		conditions.Set(&status.Conditions, generation, v1alpha1.ConditionFeasible, true, v1alpha1.ReasonSucceeded,
			"every objective can work")
	}
}

// checkRetention describes the problem if Prometheus deletes samples too early, or
// returns an empty string. While the retention is unknown, it returns the message of the status about it.
func (s *subject) checkRetention(in Input) string {
	if in.Prometheus.Retention == nil {
		last := conditions.Get(s.slo.Status.Conditions, v1alpha1.ConditionFeasible)
		if last.Reason == v1alpha1.ReasonRetentionTooShort {
			return last.Message
		}
		return ""
	}
	longest := time.Duration(0)
	for _, o := range s.listInForce() {
		longest = max(longest, cmp.Or(o.Period, slo.DefaultPeriod))
	}
	return slo.RetentionFinding(*in.Prometheus.Retention, longest)
}

// listInstallChanges compares the specs of OperatorInstalls with the
// objectives. Installs of an OperatorSLO with an invalid spec are not changed.
func listInstallChanges(in Input, subjects []*subject) []InstallChange {
	want := map[v1alpha1.OperatorReference]*v1alpha1.OperatorSLOSpec{}
	for _, s := range subjects {
		if s.err == nil {
			want[v1alpha1.OperatorReference{Namespace: s.operator.Namespace, Name: s.operator.Name}] = &s.spec
		}
	}
	var out []InstallChange
	for i := range in.Installs {
		install := &in.Installs[i]
		spec := want[install.Spec.Operator]
		if spec == nil || install.DeletionTimestamp != nil {
			continue
		}
		if !equality.Semantic.DeepEqual(install.Spec.Services, spec.Services) ||
			!equality.Semantic.DeepEqual(install.Spec.Monitor, spec.Monitor) {
			out = append(out, InstallChange{Install: toKey(install), Services: spec.Services, Monitor: spec.Monitor})
		}
	}
	return out
}
