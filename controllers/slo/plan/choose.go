// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// choice is an operator with the object that speaks for it.
type choice struct {
	operator *v1alpha1.ManagedOperator
	slo      *v1alpha1.OperatorSLO
}

// refusal is an object that speaks for nobody.
type refusal struct {
	slo             *v1alpha1.OperatorSLO
	reason, message string
}

type choices struct {
	inForce  []choice
	refused  []refusal
	create   []*v1alpha1.OperatorSLO
	withdraw []types.NamespacedName
}

// choose finds the one object that speaks for each operator: the oldest, but one
// that came by itself and was never edited gives way to a person's. Rules know
// operators by name only, so of several with one name in different namespaces
// the oldest counts.
func choose(in Input) choices {
	var out choices
	names := map[string]*v1alpha1.ManagedOperator{} // of operators, over all namespaces
	found := map[types.NamespacedName]bool{}
	for _, o := range operatorsByAge(in.Operators) {
		found[key(o)] = true
		candidates := out.giveWay(o, naming(in.SLOs, o))
		if len(candidates) == 0 && o.DeletionTimestamp == nil {
			out.create = append(out.create, made(o, in.SLOs))
		}
		for i, s := range candidates {
			switch other := names[o.Name]; {
			case i > 0:
				out.refuse(s, v1alpha1.ReasonDuplicate,
					"OperatorSLO %s is older and also names operator %s: delete one of them", candidates[0].Name,
					o.Name)
			case other != nil:
				out.refuse(s, v1alpha1.ReasonDuplicate,
					"ManagedOperator %s in namespace %s has the same name, is older, and rules know operators by "+
						"name: give this one another name", other.Name, other.Namespace)
			default:
				out.inForce = append(out.inForce, choice{o, s})
			}
		}
		if names[o.Name] == nil {
			names[o.Name] = o
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

// coming are the operators whose objects are still to be made: their rules do
// not wait for that.
func (c *choices) coming() []*subject {
	var out []*subject
	for _, s := range c.create {
		if !slices.ContainsFunc(c.inForce, func(o choice) bool { return o.operator.Name == s.Spec.Operator }) &&
			!slices.ContainsFunc(out, func(o *subject) bool { return o.rules.Name == s.Spec.Operator }) {
			out = append(out, newSubject(nil, s))
		}
	}
	return out
}

func (c *choices) refuse(s *v1alpha1.OperatorSLO, reason, format string, args ...any) {
	c.refused = append(c.refused, refusal{s, reason, fmt.Sprintf(format, args...)})
}

// giveWay withdraws what came by itself if a person has made another one.
func (c *choices) giveWay(o *v1alpha1.ManagedOperator, candidates []*v1alpha1.OperatorSLO) []*v1alpha1.OperatorSLO {
	if !slices.ContainsFunc(candidates, func(s *v1alpha1.OperatorSLO) bool { return !pristine(s, o) }) {
		return candidates
	}
	var left []*v1alpha1.OperatorSLO
	for _, s := range candidates {
		if pristine(s, o) {
			c.withdraw = append(c.withdraw, key(s))
			continue
		}
		left = append(left, s)
	}
	return left
}

// pristine is an object that came by itself and is as it came.
func pristine(s *v1alpha1.OperatorSLO, o *v1alpha1.ManagedOperator) bool {
	spec := v1alpha1.OperatorSLOSpec{Operator: o.Name, Profile: v1alpha1.ProfileDefault}
	return metav1.IsControlledBy(s, o) && equality.Semantic.DeepEqual(s.Spec, spec)
}

// naming are the objects that name an operator, the oldest first.
func naming(all []v1alpha1.OperatorSLO, o *v1alpha1.ManagedOperator) []*v1alpha1.OperatorSLO {
	var out []*v1alpha1.OperatorSLO
	for i := range all {
		s := &all[i]
		if s.Namespace == o.Namespace && s.Spec.Operator == o.Name && s.DeletionTimestamp == nil {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.OperatorSLO) int { return older(a, b) })
	return out
}

func operatorsByAge(all []v1alpha1.ManagedOperator) []*v1alpha1.ManagedOperator {
	var out []*v1alpha1.ManagedOperator
	for i := range all {
		out = append(out, &all[i])
	}
	slices.SortFunc(out, func(a, b *v1alpha1.ManagedOperator) int { return older(a, b) })
	return out
}

func older(a, b metav1.Object) int {
	return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
		cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

// made is the object that an operator gets by itself. It goes with the operator.
func made(o *v1alpha1.ManagedOperator, all []v1alpha1.OperatorSLO) *v1alpha1.OperatorSLO {
	name := o.Name
	if slices.ContainsFunc(all, func(s v1alpha1.OperatorSLO) bool {
		return s.Namespace == o.Namespace &&
			s.Name == name
	}) {
		name += "-slo" // the name is taken by the objectives of another operator
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
		Spec: v1alpha1.OperatorSLOSpec{Operator: o.Name, Profile: v1alpha1.ProfileDefault},
	}
}
