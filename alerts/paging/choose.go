// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Operators are what routes depend on of a hub's operators, sorted by namespace and
// name. An operator with several OperatorSLOs is critical if one of them says so.
func Operators(operators []v1alpha1.ManagedOperator, slos []v1alpha1.OperatorSLO) []Operator {
	of := map[types.NamespacedName]Operator{}
	for i := range slos {
		s := &slos[i]
		key := types.NamespacedName{Namespace: s.Namespace, Name: s.Spec.Operator}
		of[key] = Operator{Team: max(of[key].Team, s.Spec.Team),
			Critical: of[key].Critical || s.Spec.Criticality == v1alpha1.CriticalityCritical}
	}
	out := make([]Operator, 0, len(operators))
	for i := range operators {
		key := types.NamespacedName{Namespace: operators[i].Namespace, Name: operators[i].Name}
		op := of[key]
		op.Namespace, op.Name = key.Namespace, key.Name
		out = append(out, op)
	}
	slices.SortFunc(out, func(a, b Operator) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// Assign gives each operator to the first policy that selects it, or to the fleet's. Of
// policies to which operators were assigned before, one that had the operator keeps it.
// It changes the policies.
func Assign(operators []Operator, policies []Policy) {
	before := make([][]Operator, len(policies))
	for i := range policies {
		before[i], policies[i].Operators = policies[i].Operators, []Operator{}
	}
	for _, op := range operators {
		i := slices.IndexFunc(policies, func(p Policy) bool { return p.Selects(op) })
		if i >= 0 && before[i] != nil {
			i = keeper(op, policies, before, i)
		}
		if i < 0 {
			i = slices.IndexFunc(policies, Policy.IsFleet)
		}
		if i >= 0 {
			policies[i].Operators = append(policies[i].Operators, op)
		}
	}
}

// keeper is the policy that selects an operator and had it before, or else the first one
// that selects it.
func keeper(op Operator, policies []Policy, before [][]Operator, first int) int {
	for i := first; i < len(policies); i++ {
		if policies[i].Selects(op) && slices.ContainsFunc(before[i], func(o Operator) bool {
			return o.Namespace == op.Namespace && o.Name == op.Name
		}) {
			return i
		}
	}
	return first
}

// PolicyOf is a PagingPolicy as it is now, without operators.
func PolicyOf(p *v1alpha1.PagingPolicy) Policy {
	return Policy{Namespace: p.Namespace, Name: p.Name, Generation: p.Generation, Spec: p.Spec}
}
