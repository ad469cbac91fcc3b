// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/controllers/operator/plan"
)

// apply carries a decision out in the order of its fields. Each part may be done
// again.
func (r *Reconciler) apply(ctx context.Context, in plan.Input, next plan.Decision) error {
	if next.AddFinalizer {
		if err := kit.AddFinalizer(ctx, r.Client, in.Operator, v1alpha1.FinalizerHub); err != nil {
			return fmt.Errorf("add finalizer: %w", err)
		}
	}
	if next.Supersede != nil {
		if err := r.supersede(ctx, in.Rollouts, *next.Supersede); err != nil {
			return fmt.Errorf("supersede rollout %s: %w", next.Supersede.Rollout, err)
		}
	}
	if next.Create != nil {
		if err := r.create(ctx, in, next.Create); err != nil {
			return fmt.Errorf("create rollout %s: %w", next.Create.Name, err)
		}
	}
	for _, name := range next.DeleteRollouts {
		rollout := &v1alpha1.OperatorRollout{ObjectMeta: metav1.ObjectMeta{Namespace: in.Operator.Namespace, Name: name}}
		if err := r.Client.Delete(ctx, rollout); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete rollout %s: %w", name, err)
		}
	}
	if err := kit.Remove(ctx, r.Client, next.Removals); err != nil {
		return err
	}
	if next.RemoveFinalizer {
		return r.letGo(ctx, in.Operator)
	}
	return nil
}

// create starts a rollout, unless the cache had not seen the newest one: a
// second rollout for the same change would end the first.
func (r *Reconciler) create(ctx context.Context, in plan.Input, rollout *v1alpha1.OperatorRollout) error {
	var live v1alpha1.OperatorRolloutList
	if err := r.Live.List(ctx, &live, client.InNamespace(rollout.Namespace)); err != nil {
		return fmt.Errorf("list rollouts: %w", err)
	}
	for i := range live.Items {
		seen := slices.ContainsFunc(in.Rollouts, func(r v1alpha1.OperatorRollout) bool { return r.UID == live.Items[i].UID })
		if live.Items[i].Spec.Operator.Name == in.Operator.Name && !seen {
			return apierrors.NewConflict(schema.GroupResource{Group: v1alpha1.SchemeGroupVersion.Group, Resource: "operatorrollouts"},
				live.Items[i].Name, errors.New("the cache has not seen it yet"))
		}
	}
	if err := r.Client.Create(ctx, rollout); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Rollout started", "rollout", rollout.Name, "version", rollout.Spec.Release.Version)
	return nil
}

func (r *Reconciler) supersede(ctx context.Context, rollouts []v1alpha1.OperatorRollout, s plan.Supersede) error {
	for i := range rollouts {
		if rollouts[i].Name != s.Rollout {
			continue
		}
		after := rollouts[i].DeepCopy()
		after.Spec.Abort = &v1alpha1.RolloutAbort{Reason: s.Reason, Superseded: true}
		patch := client.MergeFromWithOptions(&rollouts[i], client.MergeFromWithOptimisticLock{})
		if err := r.Client.Patch(ctx, after, patch); err != nil {
			return fmt.Errorf("patch: %w", err)
		}
		log.FromContext(ctx).Info("Rollout superseded", "rollout", s.Rollout, "reason", s.Reason)
	}
	return nil
}

// letGo looks past the cache before the finalizer goes: an OperatorInstall made
// a moment ago by a rollout that is now gone would be left without an owner.
func (r *Reconciler) letGo(ctx context.Context, operator *v1alpha1.ManagedOperator) error {
	var left v1alpha1.OperatorInstallList
	err := r.Live.List(ctx, &left, client.Limit(1), client.MatchingLabels{
		v1alpha1.LabelOperator: operator.Name, v1alpha1.LabelOperatorNamespace: operator.Namespace,
	})
	if err != nil {
		return fmt.Errorf("list OperatorInstalls: %w", err)
	}
	if len(left.Items) > 0 {
		return nil // the watch brings the operator back here
	}
	if err := kit.RemoveFinalizer(ctx, r.Client, operator, v1alpha1.FinalizerHub); err != nil {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	return nil
}
