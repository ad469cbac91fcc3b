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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/controllers/operator/plan"
)

// apply executes a decision in the order of its fields. Each part can be
// repeated. installErr is about OperatorInstalls that could not be written: they do not
// keep the rest from being done.
func (r *Reconciler) apply(ctx context.Context, in plan.Input, next plan.Decision) (installErr, err error) {
	if next.AddFinalizer {
		if err := kit.AddFinalizer(ctx, r.Client, in.Operator, v1alpha1.FinalizerHub); err != nil {
			return nil, fmt.Errorf("add finalizer: %w", err)
		}
	}
	if err := r.hold(ctx, in.Operator, next); err != nil {
		return nil, fmt.Errorf("hold: %w", err)
	}
	installErr = r.recover(ctx, next)
	if err := r.block(ctx, in, next); err != nil {
		return installErr, err
	}
	installErr = errors.Join(installErr, r.setBlocks(ctx, in, next), r.setDrift(ctx, in, next),
		r.setBackup(ctx, in, next), r.setStorageMigration(ctx, next))
	if err := r.changeRollouts(ctx, in, next); err != nil {
		return installErr, err
	}
	installErr = errors.Join(installErr, kit.Remove(ctx, r.Client, next.Removals))
	if next.RemoveFinalizer {
		return installErr, r.removeFinalizer(ctx, in.Operator)
	}
	return installErr, nil
}

// changeRollouts ends, creates and deletes rollouts.
func (r *Reconciler) changeRollouts(ctx context.Context, in plan.Input, next plan.Decision) error {
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
	return nil
}

// block tells the rollout whether its version is blocked.
func (r *Reconciler) block(ctx context.Context, in plan.Input, next plan.Decision) error {
	if next.Block == nil {
		return nil
	}
	return r.blockRollout(ctx, in.Rollouts, *next.Block)
}

// setBlocks tells the agents which versions are blocked.
func (r *Reconciler) setBlocks(ctx context.Context, in plan.Input, next plan.Decision) error {
	if len(next.SetBlocks) == 0 {
		return nil
	}
	spec := blocksOnly{Blocks: next.Blocks, Holds: in.Operator.Spec.Holds}
	err := kit.ForEach(next.SetBlocks, func(key types.NamespacedName) error {
		return kit.ApplyInstall(ctx, r.Client, kit.OperatorManager, key, spec)
	})
	log.FromContext(ctx).Info("Blocks written", "installs", len(next.SetBlocks), "blocks", len(next.Blocks))
	return err
}

func (r *Reconciler) setDrift(ctx context.Context, in plan.Input, next plan.Decision) error {
	if len(next.SetDrift) == 0 {
		return nil
	}
	spec := driftOnly{Drift: plan.DriftPolicy(in.Operator.Spec.Install.Drift)}
	log.FromContext(ctx).Info("Drift policy written", "installs", len(next.SetDrift),
		"policy", in.Operator.Spec.Install.Drift)
	return kit.ForEach(next.SetDrift, func(key types.NamespacedName) error {
		return kit.ApplyInstall(ctx, r.Client, kit.DriftManager, key, spec)
	})
}

// The parts of specs that this controller owns: blocksOnly and driftOnly of an OperatorInstall's, rolloutOnly of an
// OperatorRollout's.
type (
	blocksOnly struct {
		Blocks []v1alpha1.VersionBlock `json:"blocks,omitempty"`
		Holds  []v1alpha1.VersionHold  `json:"holds,omitempty"`
	}
	driftOnly struct {
		Drift v1alpha1.DriftPolicy `json:"drift,omitempty"`
	}
	rolloutOnly struct {
		Blocked string                 `json:"blocked,omitempty"`
		Abort   *v1alpha1.RolloutAbort `json:"abort,omitempty"`
	}
)

func (r *Reconciler) blockRollout(ctx context.Context, rollouts []v1alpha1.OperatorRollout, b plan.Block) error {
	for i := range rollouts {
		if rollouts[i].Name != b.Rollout {
			continue
		}
		if err := r.applyRollout(ctx, &rollouts[i], b.Reason, rollouts[i].Spec.Abort); err != nil {
			return fmt.Errorf("block rollout %s: %w", b.Rollout, err)
		}
		log.FromContext(ctx).Info("Rollout's version", "rollout", b.Rollout, "blocked", b.Reason)
	}
	return nil
}

// applyRollout writes the fields of a rollout that this controller owns, and
// updates the rollout in memory. It never writes an abort by a person.
func (r *Reconciler) applyRollout(ctx context.Context, rollout *v1alpha1.OperatorRollout, blocked string,
	abort *v1alpha1.RolloutAbort) error {
	spec := rolloutOnly{Blocked: blocked}
	if abort != nil && abort.Superseded {
		spec.Abort = &v1alpha1.RolloutAbort{Reason: abort.Reason, Superseded: true}
	}
	part := kit.Part{Object: rollout, Spec: spec}
	version, err := part.Apply(ctx, r.Client, kit.OperatorManager, client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	// Later steps use the updated rollout.
	rollout.Spec.Blocked, rollout.Spec.Abort, rollout.ResourceVersion = blocked, abort, version
	return nil
}

// create creates a rollout, unless the cache has not seen the newest one: a
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
	if rollout.Spec.Rollback == nil {
		rollout.Spec.Requirements = r.readRequirements(ctx, in, rollout.Spec.Release)
	}
	if err := r.Client.Create(ctx, rollout, kit.OperatorManager); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Rollout started", "rollout", rollout.Name, "version", rollout.Spec.Release.VersionText())
	return nil
}

func (r *Reconciler) supersede(ctx context.Context, rollouts []v1alpha1.OperatorRollout, s plan.Supersede) error {
	for i := range rollouts {
		if rollouts[i].Name != s.Rollout {
			continue
		}
		abort := &v1alpha1.RolloutAbort{Reason: s.Reason, Superseded: true}
		if err := r.applyRollout(ctx, &rollouts[i], rollouts[i].Spec.Blocked, abort); err != nil {
			return err
		}
		log.FromContext(ctx).Info("Rollout superseded", "rollout", s.Rollout, "reason", s.Reason)
	}
	return nil
}

// removeFinalizer first reads past the cache: an OperatorInstall that a rollout
// created just before its deletion would be left without an owner.
func (r *Reconciler) removeFinalizer(ctx context.Context, operator *v1alpha1.ManagedOperator) error {
	var left v1alpha1.OperatorInstallList
	err := r.Live.List(ctx, &left, client.Limit(1), client.MatchingLabels(reference(operator).Labels()))
	if err != nil {
		return fmt.Errorf("list OperatorInstalls: %w", err)
	}
	if len(left.Items) > 0 {
		return nil // its watch triggers another reconcile
	}
	if err := kit.RemoveFinalizer(ctx, r.Client, operator, v1alpha1.FinalizerHub); err != nil {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	return nil
}
