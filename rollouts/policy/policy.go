// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy says what RolloutPolicies add to the strategy of a rollout. It is
// pure: planner, preview and everybody else ask it, with the objects that they
// read. It does not know what a rollout does with the result.
package policy

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Operator is whose rollout is bound.
type Operator struct {
	v1alpha1.OperatorReference
	// Labels of the ManagedOperator.
	Labels map[string]string
	// Applied are the policies that bind the rollout already, as its status has them.
	// They go on binding it, whatever becomes of labels, until they are changed.
	Applied []v1alpha1.AppliedPolicy
}

// Set is the policies that select an operator, read once, the one with the lowest
// name first.
type Set struct {
	operator Operator
	policies []policy
}

// policy is a RolloutPolicy, read.
type policy struct {
	name       string
	generation int64
	spec       v1alpha1.RolloutPolicySpec
	clusters   labels.Selector
	// recorded are the waves that it bound before.
	recorded []string
	// failure is why it cannot be evaluated.
	failure error
}

// Read reads RolloutPolicies. One whose selectors cannot be read selects everything,
// and is not met.
func Read(list []v1alpha1.RolloutPolicy, operator Operator) *Set {
	s := &Set{operator: operator}
	for i := range list {
		if p := read(&list[i], operator); list[i].DeletionTimestamp == nil && p != nil {
			s.policies = append(s.policies, *p)
		}
	}
	slices.SortFunc(s.policies, func(a, b policy) int { return cmp.Compare(a.name, b.name) })
	return s
}

// read returns nil for a policy that does not select the operator.
func read(o *v1alpha1.RolloutPolicy, operator Operator) *policy {
	p := &policy{name: o.Name, generation: o.Generation, spec: o.Spec}
	for _, a := range operator.Applied {
		if a.Name == o.Name && a.Generation == o.Generation {
			p.recorded = a.Waves
		}
	}
	operators, err := selector(o.Spec.OperatorSelector)
	if err != nil {
		p.failure = fmt.Errorf("operatorSelector: %w", err)
	}
	if p.clusters, err = selector(o.Spec.ClusterSelector); err != nil {
		p.failure = fmt.Errorf("clusterSelector: %w", err)
	}
	inNamespace := len(o.Spec.Namespaces) == 0 || slices.Contains(o.Spec.Namespaces, operator.Namespace)
	if inNamespace && operators.Matches(labels.Set(operator.Labels)) || len(p.recorded) > 0 {
		return p
	}
	return nil
}

// selector selects everything where it is nil or cannot be read.
func selector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Everything(), err
	}
	return parsed, nil
}

// Selects tells whether a policy selects an operator, on any cluster.
func Selects(o *v1alpha1.RolloutPolicy, operator Operator) bool { return read(o, operator) != nil }

// Windows are the ChangeWindows that policies ask for on a cluster, each with the
// name of the policy.
func (s *Set) Windows(cluster map[string]string) map[string]string {
	var windows map[string]string
	if s == nil {
		return nil
	}
	for _, p := range s.policies {
		if !p.clusters.Matches(labels.Set(cluster)) {
			continue
		}
		for _, name := range p.spec.Windows {
			if windows == nil {
				windows = map[string]string{}
			}
			if windows[name] == "" {
				windows[name] = p.name
			}
		}
	}
	return windows
}

// Gates are the gates of the policies as they are written, by policy.
func (s *Set) Gates() map[string][]v1alpha1.Gate {
	gates := map[string][]v1alpha1.Gate{}
	if s == nil {
		return gates
	}
	for _, p := range s.policies {
		if len(p.spec.Gates) > 0 {
			gates[p.name] = p.spec.Gates
		}
	}
	return gates
}

// GateName is the name that a policy's gate has in a rollout.
func GateName(policy, gate string) string { return policy + separator + gate }

const separator = "/"
