// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy decides what RolloutPolicies add to the strategy of a rollout. It is pure: callers pass the objects
// that they read. It does not depend on how a rollout uses the result.
package policy

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Operator is the operator whose rollout is bound.
type Operator struct {
	v1alpha1.OperatorReference
	// Labels are the labels of the ManagedOperator.
	Labels map[string]string
	// Applied are the policies that already bind the rollout, from its status. They bind the rollout until they are
	// changed, even if labels change.
	Applied []v1alpha1.AppliedPolicy
}

// Set has the parsed policies that select an operator, sorted by name.
type Set struct {
	operator Operator
	policies []policy
}

// policy is a parsed RolloutPolicy.
type policy struct {
	name       string
	generation int64
	spec       v1alpha1.RolloutPolicySpec
	clusters   labels.Selector
	// recorded are the waves that the policy bound before.
	recorded []string
	// failure is why the policy cannot be evaluated.
	failure error
}

// Read parses RolloutPolicies. A policy whose selectors cannot be parsed selects everything, and is not met.
func Read(list []v1alpha1.RolloutPolicy, operator Operator) *Set {
	s := &Set{operator: operator}
	for i := range list {
		if p := readPolicy(&list[i], operator); list[i].DeletionTimestamp == nil && p != nil {
			s.policies = append(s.policies, *p)
		}
	}
	slices.SortFunc(s.policies, func(a, b policy) int { return cmp.Compare(a.name, b.name) })
	return s
}

// readPolicy parses a policy. It returns nil if the policy does not select the operator. A policy that already binds
// the rollout in this generation is returned in any case.
func readPolicy(o *v1alpha1.RolloutPolicy, operator Operator) *policy {
	p := &policy{name: o.Name, generation: o.Generation, spec: o.Spec}
	for _, a := range operator.Applied {
		if a.Name == o.Name && a.Generation == o.Generation {
			p.recorded = a.Waves
		}
	}
	operators, err := parseSelector(o.Spec.OperatorSelector)
	if err != nil {
		p.failure = fmt.Errorf("operatorSelector: %w", err)
	}
	if p.clusters, err = parseSelector(o.Spec.ClusterSelector); err != nil {
		p.failure = fmt.Errorf("clusterSelector: %w", err)
	}
	inNamespace := len(o.Spec.Namespaces) == 0 || slices.Contains(o.Spec.Namespaces, operator.Namespace)
	isSelecting := inNamespace && operators.Matches(labels.Set(operator.Labels))
	if isSelecting || len(p.recorded) > 0 {
		return p
	}
	return nil
}

// parseSelector parses a selector. If s is nil or cannot be parsed, the result selects everything.
func parseSelector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Everything(), err
	}
	return parsed, nil
}

// Selects reports whether a policy selects an operator, on any cluster.
func Selects(o *v1alpha1.RolloutPolicy, operator Operator) bool {
	return readPolicy(o, operator) != nil
}

// Windows returns the ChangeWindows that policies require for a cluster with these labels, each with the name of
// the policy.
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

// Gates returns the gates of the policies without defaults, by policy.
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

// GateName returns the name of a policy's gate in a rollout.
func GateName(policy, gate string) string { return policy + separator + gate }

const separator = "/"
