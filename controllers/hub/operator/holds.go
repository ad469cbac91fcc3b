// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

// writeHolds writes spec.holds of the operator. People change this field too, so the patch
// fails if the operator was changed since it was read. The holds are written before the
// rollback is created, and a rollback is created only once, so a hold that a person
// releases is not written again.
func (r *Reconciler) writeHolds(ctx context.Context, operator *v1alpha1.ManagedOperator,
	next operators.Decision) error {
	if next.Holds == nil {
		return nil
	}
	after := operator.DeepCopy()
	after.Spec.Holds = *next.Holds
	patch := client.MergeFromWithOptions(operator.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, after, patch, kit.OperatorManager); err != nil {
		return fmt.Errorf("patch holds: %w", err)
	}
	operator.Spec, operator.ResourceVersion, operator.Generation = after.Spec, after.ResourceVersion, after.Generation
	log.FromContext(ctx).Info("Holds written", "holds", len(after.Spec.Holds))
	return nil
}
