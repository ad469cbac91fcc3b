// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package ruleset

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// choice is a ManagedOperator with the OperatorSLO that is in force for it.
type choice struct {
	operator *v1alpha1.ManagedOperator
	slo      *v1alpha1.OperatorSLO
}

// refusal is an OperatorSLO that has no effect.
type refusal struct {
	slo             *v1alpha1.OperatorSLO
	reason, message string
}

// choices are the results of all OperatorSLOs: the OperatorSLOs in force, without
// effect, to create, and to delete because a person has created another OperatorSLO.
type choices struct {
	inForce  []choice
	refused  []refusal
	create   []*v1alpha1.OperatorSLO
	withdraw []types.NamespacedName
}

// chooseSLOs chooses one OperatorSLO for each ManagedOperator: the oldest OperatorSLO that names the operator.
// Other OperatorSLOs, and OperatorSLOs without a ManagedOperator, are refused. A ManagedOperator without an
// OperatorSLO gets a new one. An OperatorSLO that was created automatically and never edited is withdrawn when
// a person creates another OperatorSLO.
func chooseSLOs(in Input) choices {
	var out choices
	found := map[types.NamespacedName]bool{}
	for i := range in.Operators {
		o := &in.Operators[i]
		found[toKey(o)] = true
		candidates := out.withdrawAutomatic(o, listCandidates(in.SLOs, o))
		if len(candidates) == 0 {
			if o.DeletionTimestamp == nil {
				out.create = append(out.create, newAutomatic(o, in.SLOs))
			}
			continue
		}
		out.inForce = append(out.inForce, choice{o, candidates[0]})
		for _, s := range candidates[1:] {
			out.refuse(s, v1alpha1.ReasonDuplicate,
				"OperatorSLO %s is older and also names operator %s: delete one of them", candidates[0].Name, o.Name)
		}
	}
	for i := range in.SLOs {
		s := &in.SLOs[i]
		if !found[types.NamespacedName{Namespace: s.Namespace, Name: s.Spec.Operator}] {
			out.refuse(s, v1alpha1.ReasonOperatorNotFound,
				"there is no ManagedOperator %q in namespace %s: create it, or delete this object", s.Spec.Operator,
				s.Namespace)
		}
	}
	return out
}

// listCreated returns the operators whose OperatorSLOs will be created. Their rules do not wait for the creation.
func (c *choices) listCreated() []*subject {
	var out []*subject
	for _, s := range c.create {
		out = append(out, newSubject(nil, s))
	}
	return out
}

// listMissing returns the operators that OperatorSLOs name and that do not exist, sorted and without duplicates.
func (c *choices) listMissing() []types.NamespacedName {
	var out []types.NamespacedName
	for _, r := range c.refused {
		if r.reason == v1alpha1.ReasonOperatorNotFound {
			out = append(out, types.NamespacedName{Namespace: r.slo.Namespace, Name: r.slo.Spec.Operator})
		}
	}
	slices.SortFunc(out, func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}

// refuse records that an OperatorSLO has no effect.
func (c *choices) refuse(s *v1alpha1.OperatorSLO, reason, format string, args ...any) {
	c.refused = append(c.refused, refusal{slo: s, reason: reason, message: fmt.Sprintf(format, args...)})
}

// withdrawAutomatic withdraws the OperatorSLO that was created automatically
// if a person has created another one. It returns the remaining OperatorSLOs.
func (c *choices) withdrawAutomatic(o *v1alpha1.ManagedOperator,
	candidates []*v1alpha1.OperatorSLO) []*v1alpha1.OperatorSLO {
	if !slices.ContainsFunc(candidates, func(s *v1alpha1.OperatorSLO) bool { return !isAutomatic(s, o) }) {
		return candidates
	}
	var remaining []*v1alpha1.OperatorSLO
	for _, s := range candidates {
		if isAutomatic(s, o) {
			c.withdraw = append(c.withdraw, toKey(s))
			continue
		}
		remaining = append(remaining, s)
	}
	return remaining
}

// isAutomatic reports whether an OperatorSLO was created automatically and not edited since.
func isAutomatic(s *v1alpha1.OperatorSLO, o *v1alpha1.ManagedOperator) bool {
	return metav1.IsControlledBy(s, o) && equality.Semantic.DeepEqual(s.Spec, newAutomaticSpec(o))
}

// newAutomaticSpec returns a spec with every default that the
// API server fills in, so that it is equal to the stored spec.
func newAutomaticSpec(o *v1alpha1.ManagedOperator) v1alpha1.OperatorSLOSpec {
	return v1alpha1.OperatorSLOSpec{Operator: o.Name, Profile: v1alpha1.ProfileDefault,
		Criticality: v1alpha1.CriticalityStandard}
}

// listCandidates returns the OperatorSLOs that name an operator, the oldest first.
func listCandidates(all []v1alpha1.OperatorSLO, o *v1alpha1.ManagedOperator) []*v1alpha1.OperatorSLO {
	var out []*v1alpha1.OperatorSLO
	for i := range all {
		s := &all[i]
		if s.Namespace == o.Namespace && s.Spec.Operator == o.Name && s.DeletionTimestamp == nil {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.OperatorSLO) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// newAutomatic returns the OperatorSLO that is created for an operator. It is deleted with the operator.
func newAutomatic(o *v1alpha1.ManagedOperator, all []v1alpha1.OperatorSLO) *v1alpha1.OperatorSLO {
	name := o.Name
	if slices.ContainsFunc(all, func(s v1alpha1.OperatorSLO) bool {
		return s.Namespace == o.Namespace && s.Name == name
	}) {
		name += "-slo" // the OperatorSLO of another operator has the name
	}
	yes := true
	return &v1alpha1.OperatorSLO{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: name,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ManagedOperator",
				Name: o.Name, UID: o.UID, Controller: &yes,
			}},
		},
		Spec: newAutomaticSpec(o),
	}
}
