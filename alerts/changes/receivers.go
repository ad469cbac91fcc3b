// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Receiver is a current receiver of change events of a rollout.
type Receiver struct {
	// ID has the form namespace/policy/name.
	ID string
	// Namespace is the namespace of the policy and of its Secrets.
	Namespace string
	PagerDuty v1alpha1.PagerDutyReceiver
	// Since is when its policy began to request change events.
	Since time.Time
}

// Receivers returns the receivers of the policy that routes the alerts about an operator. The paging controller
// writes into the status of a policy whether it is in force, and since when it requests change events.
func Receivers(policies []v1alpha1.PagingPolicy, op paging.Operator) []Receiver {
	p := findPolicy(policies, op)
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

// findPolicy returns the policy that routes an operator. Valid policies precede policies
// whose older state is in force. Policies that were never in force route nothing.
func findPolicy(policies []v1alpha1.PagingPolicy, op paging.Operator) *v1alpha1.PagingPolicy {
	var inForce []*v1alpha1.PagingPolicy
	for i := range policies {
		if p := &policies[i]; p.DeletionTimestamp == nil && p.Status.Configuration != nil {
			inForce = append(inForce, p)
		}
	}
	slices.SortFunc(inForce, func(a, b *v1alpha1.PagingPolicy) int {
		return cmp.Or(cmp.Compare(rankPolicy(a), rankPolicy(b)), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name))
	})
	assigned := make([]paging.Policy, len(inForce))
	for i, p := range inForce {
		assigned[i] = paging.ToPolicy(p)
	}
	paging.Assign([]paging.Operator{op}, assigned)
	i := slices.IndexFunc(assigned, func(p paging.Policy) bool { return len(p.Operators) > 0 })
	if i < 0 {
		return nil
	}
	return inForce[i]
}

// rankPolicy returns 0 for a policy that is Ready, and otherwise 1.
func rankPolicy(p *v1alpha1.PagingPolicy) int {
	if conditions.IsTrue(p.Status.Conditions, v1alpha1.ConditionReady) {
		return 0
	}
	return 1
}
