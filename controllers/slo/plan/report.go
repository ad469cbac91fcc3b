// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

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
	"github.com/bellwether-dev/bellwether/phrase"
)

// refused is the status of an OperatorSLO that has no effect.
func refused(r refusal) v1alpha1.OperatorSLOStatus {
	var status v1alpha1.OperatorSLOStatus
	status.ObservedGeneration = r.slo.Generation
	status.Conditions = kept(r.slo, v1alpha1.ConditionReady, v1alpha1.ConditionStalled)
	conditions.Summarize(&status.Conditions, r.slo.Generation,
		conditions.Summary{State: conditions.Stalled, Reason: r.reason, Message: r.message})
	return status
}

// kept copies some conditions, with their times of transition.
func kept(s *v1alpha1.OperatorSLO, some ...string) []metav1.Condition {
	var out []metav1.Condition
	for _, c := range s.Status.Conditions {
		if slices.Contains(some, c.Type) {
			out = append(out, c)
		}
	}
	return out
}

// report returns the status of an OperatorSLO that counts, and what was edited
// since the last one.
func (s *subject) report(in Input, all []File) (status v1alpha1.OperatorSLOStatus, edited string) {
	status = *s.slo.Status.DeepCopy()
	generation := s.slo.Generation
	status.ObservedGeneration = generation
	before, after := s.slo.Status.Objectives, written(s.inForce())
	status.Objectives = after
	if len(before) > 0 && !equality.Semantic.DeepEqual(before, after) {
		edited = edits(before, after)
		status.Edited = &v1alpha1.SLOEdit{At: metav1.NewTime(in.Now), Message: edited}
	}
	mine := s.files(all)
	status.Rules = nil
	for _, f := range mine {
		status.Rules = append(status.Rules, fmt.Sprintf("%s/%s/%s", in.Kind, in.Namespace, f.object(in.Kind)))
	}
	status.Rules = slices.Compact(status.Rules)
	conditions.Summarize(&status.Conditions, generation, s.summary(status))
	s.feasible(in, &status)
	v := loaded(in, mine...)
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionRulesLoaded, Status: v.status, Reason: v.reason, Message: v.message,
		ObservedGeneration: generation,
	})
	return status, edited
}

// files are the rules of all operators, and those of the operator's own SLIs.
func (s *subject) files(all []File) []File {
	var out []File
	for _, f := range all {
		if f.isForAll() || f.Operator == s.rules.ID() {
			out = append(out, f)
		}
	}
	return out
}

func (s *subject) summary(status v1alpha1.OperatorSLOStatus) conditions.Summary {
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

// feasible says what cannot work: of what the spec asks for itself, also what
// works later than one may think.
func (s *subject) feasible(in Input, status *v1alpha1.OperatorSLOStatus) {
	var impossible, notes []string
	for _, o := range s.inForce() {
		if slo.CheckSLI(o.SLI) != nil {
			continue // own SLIs are shares, and not judged by the slice
		}
		named := slices.ContainsFunc(s.slo.Spec.Objectives,
			func(x v1alpha1.SLOObjective) bool { return x.SLI == o.SLI })
		for _, f := range slo.Feasible(o) {
			switch {
			case f.Impossible:
				impossible = append(impossible, f.Message)
			case named:
				notes = append(notes, f.Message)
			}
		}
	}
	generation, retention := s.slo.Generation, s.retention(in)
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

// retention says what does not work because Prometheus deletes samples too early.
// While that is not known, what was known of it last is.
func (s *subject) retention(in Input) string {
	if in.Prometheus.Retention == nil {
		last := conditions.Get(s.slo.Status.Conditions, v1alpha1.ConditionFeasible)
		if last.Reason == v1alpha1.ReasonRetentionTooShort {
			return last.Message
		}
		return ""
	}
	longest := time.Duration(0)
	for _, o := range s.inForce() {
		longest = max(longest, cmp.Or(o.Period, slo.DefaultPeriod))
	}
	return slo.RetentionFinding(*in.Prometheus.Retention, longest)
}

// installChanges compares the specs of OperatorInstalls with the objectives. They
// stay as they are for an OperatorSLO whose spec cannot be used.
func installChanges(in Input, subjects []*subject) []InstallChange {
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
			out = append(out, InstallChange{Install: key(install), Services: spec.Services, Monitor: spec.Monitor})
		}
	}
	return out
}
