// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
	if err := r.block(ctx, in, next); err != nil {
		return err
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
		rollout := &v1alpha1.OperatorRollout{ObjectMeta: metav1.ObjectMeta{Namespace: in.Operator.Namespace,
			Name: name}}
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

// tellers is how many OperatorInstalls are told of blocks at a time.
const tellers = 16

// block tells the rollout and the agents what is blocked. One that cannot be told
// does not keep the others from knowing.
func (r *Reconciler) block(ctx context.Context, in plan.Input, next plan.Decision) error {
	var errs []error
	if next.Block != nil {
		errs = append(errs, r.blockRollout(ctx, in.Rollouts, *next.Block))
	}
	if len(next.Tell) == 0 {
		return errors.Join(errs...)
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"blocks": next.Blocks}})
	if err != nil {
		return fmt.Errorf("marshal blocks: %w", err)
	}
	told := make([]error, len(next.Tell))
	var group errgroup.Group
	group.SetLimit(tellers)
	for i, at := range next.Tell {
		group.Go(func() error {
			install := &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}}
			if err := r.Client.Patch(ctx, install,
				client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
				told[i] = fmt.Errorf("tell OperatorInstall %s/%s of blocks: %w", at.Namespace, at.Name, err)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions keep their errors
	log.FromContext(ctx).Info("Agents told of blocks", "installs", len(next.Tell), "blocks", len(next.Blocks))
	return errors.Join(append(errs, told...)...)
}

func (r *Reconciler) blockRollout(ctx context.Context, rollouts []v1alpha1.OperatorRollout, b plan.Block) error {
	for i := range rollouts {
		if rollouts[i].Name != b.Rollout {
			continue
		}
		after := rollouts[i].DeepCopy()
		after.Spec.Blocked = b.Reason
		if err := r.Client.Patch(ctx, after, client.MergeFrom(&rollouts[i])); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("block rollout %s: %w", b.Rollout, err)
		}
		// What comes after rests on the rollout as it is now.
		rollouts[i] = *after
		log.FromContext(ctx).Info("Rollout's version", "rollout", b.Rollout, "blocked", b.Reason)
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
		seen := slices.ContainsFunc(in.Rollouts,
			func(r v1alpha1.OperatorRollout) bool { return r.UID == live.Items[i].UID })
		if live.Items[i].Spec.Operator.Name == in.Operator.Name && !seen {
			return apierrors.NewConflict(schema.GroupResource{Group: v1alpha1.SchemeGroupVersion.Group,
				Resource: "operatorrollouts"},
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
	err := r.Live.List(ctx, &left, client.Limit(1), client.MatchingLabels(reference(operator).Labels()))
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
