// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Receiver is who gets change events of a rollout now.
type Receiver struct {
	// ID is namespace, policy and name.
	ID string
	// Namespace of the policy, and of its Secrets.
	Namespace string
	PagerDuty v1alpha1.PagerDutyReceiver
	// Since is when its policy began to ask for change events.
	Since time.Time
}

// Receivers are those of the policy that routes the alerts about an operator. The paging
// controller says in the status of a policy whether it is in force, and since when it asks
// for change events.
func Receivers(policies []v1alpha1.PagingPolicy, op paging.Operator) []Receiver {
	p := policyOf(policies, op)
	if p == nil || p.Spec.ChangeEvents == nil {
		return nil
	}
	var out []Receiver
	for _, r := range p.Spec.Receivers {
		i := slices.IndexFunc(p.Status.ChangeEvents, func(c v1alpha1.ChangeEventReceiver) bool {
			return c.Receiver == r.Name
		})
		if i >= 0 && r.PagerDuty != nil && slices.Contains(p.Spec.ChangeEvents.Receivers, r.Name) {
			out = append(out, Receiver{ID: p.Namespace + "/" + p.Name + "/" + r.Name, Namespace: p.Namespace,
				PagerDuty: *r.PagerDuty, Since: p.Status.ChangeEvents[i].Since.Time})
		}
	}
	return out
}

// policyOf is the policy that routes an operator: one that is right comes before one that
// was right, and one that never was routes nothing.
func policyOf(policies []v1alpha1.PagingPolicy, op paging.Operator) *v1alpha1.PagingPolicy {
	var inForce []*v1alpha1.PagingPolicy
	for i := range policies {
		if p := &policies[i]; p.DeletionTimestamp == nil && p.Status.Configuration != nil {
			inForce = append(inForce, p)
		}
	}
	slices.SortFunc(inForce, func(a, b *v1alpha1.PagingPolicy) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	assigned := make([]paging.Policy, len(inForce))
	for i, p := range inForce {
		assigned[i] = paging.PolicyOf(p)
	}
	paging.Assign([]paging.Operator{op}, assigned)
	i := slices.IndexFunc(assigned, func(p paging.Policy) bool { return len(p.Operators) > 0 })
	if i < 0 {
		return nil
	}
	return inForce[i]
}

func rank(p *v1alpha1.PagingPolicy) int {
	if conditions.IsTrue(p.Status.Conditions, v1alpha1.ConditionReady) {
		return 0
	}
	return 1
}
