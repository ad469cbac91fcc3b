// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/policy"
)

// +kubebuilder:rbac:groups=bellwether.dev,resources=rolloutpolicies,verbs=get;list;watch

// mapPolicyToRollouts returns requests for the rollouts that may still admit clusters and that
// the policy selects, or that the policy has already bound.
func (r *Reconciler) mapPolicyToRollouts(ctx context.Context, obj client.Object) []reconcile.Request {
	changed := obj.(*v1alpha1.RolloutPolicy)
	return r.listRolloutRequests(ctx, func(ro *v1alpha1.OperatorRollout) bool {
		if !ro.MayAdmit() {
			return false
		}
		for _, a := range ro.Status.Policies {
			if a.Name == changed.Name {
				return true
			}
		}
		var operator v1alpha1.ManagedOperator
		key := client.ObjectKey{Namespace: ro.Namespace, Name: ro.Spec.Operator.Name}
		if err := r.Client.Get(ctx, key, &operator); err != nil {
			return true // the reconcile reads the operator again
		}
		return policy.Selects(changed, rollouts.PolicyOperator(ro, operator.Labels))
	})
}
