// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Operators returns the properties of a hub's operators that routes depend on, sorted by namespace
// and name. An operator with several OperatorSLOs is critical if any of them is critical.
func Operators(operators []v1alpha1.ManagedOperator, slos []v1alpha1.OperatorSLO) []Operator {
	settings := map[types.NamespacedName]Operator{}
	for i := range slos {
		s := &slos[i]
		key := types.NamespacedName{Namespace: s.Namespace, Name: s.Spec.Operator}
		settings[key] = Operator{Team: max(settings[key].Team, s.Spec.Team),
			Critical: settings[key].Critical || s.Spec.Criticality == v1alpha1.CriticalityCritical}
	}
	out := make([]Operator, 0, len(operators))
	for i := range operators {
		key := types.NamespacedName{Namespace: operators[i].Namespace, Name: operators[i].Name}
		op := settings[key]
		op.Namespace, op.Name = key.Namespace, key.Name
		out = append(out, op)
	}
	slices.SortFunc(out, func(a, b Operator) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// Assign sets the operators of each policy: an operator belongs to the first policy that selects it, or
// else to the policy of the fleet. Exception: if the first policy already had operators, as a policy in an
// older state has, the operator stays with the policy that had it.
func Assign(operators []Operator, policies []Policy) {
	previous := make([][]Operator, len(policies))
	for i := range policies {
		previous[i], policies[i].Operators = policies[i].Operators, []Operator{}
	}
	for _, op := range operators {
		i := slices.IndexFunc(policies, func(p Policy) bool { return p.Selects(op) })
		if i >= 0 && previous[i] != nil {
			i = findKeeper(op, policies, previous, i)
		}
		if i < 0 {
			i = slices.IndexFunc(policies, Policy.IsFleet)
		}
		if i >= 0 {
			policies[i].Operators = append(policies[i].Operators, op)
		}
	}
}

// findKeeper returns the index of the policy that selects an operator and previously had it,
// or else firstIndex, which is the index of the first policy that selects it.
func findKeeper(op Operator, policies []Policy, previous [][]Operator, firstIndex int) int {
	for i := firstIndex; i < len(policies); i++ {
		if policies[i].Selects(op) && slices.ContainsFunc(previous[i], func(o Operator) bool {
			return o.Namespace == op.Namespace && o.Name == op.Name
		}) {
			return i
		}
	}
	return firstIndex
}

// ToPolicy returns the current state of a PagingPolicy, without operators.
func ToPolicy(p *v1alpha1.PagingPolicy) Policy {
	return Policy{Namespace: p.Namespace, Name: p.Name, Generation: p.Generation, Spec: p.Spec}
}
