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
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

// apply executes a decision in a fixed order. Each step can be repeated. installErr has the
// errors of OperatorInstalls that could not be written; these errors do not stop the later
// steps. err stopped the later steps.
func (r *Reconciler) apply(ctx context.Context, in operators.Input, next operators.Decision) (installErr, err error) {
	if next.AddFinalizer {
		if err := kit.AddFinalizer(ctx, r.Client, in.Operator, v1alpha1.FinalizerHub); err != nil {
			return nil, fmt.Errorf("add finalizer: %w", err)
		}
	}
	if err := r.writeHolds(ctx, in.Operator, next); err != nil {
		return nil, fmt.Errorf("hold: %w", err)
	}
	installErr = r.recoverAdmissions(ctx, next)
	if err := r.writeRolloutBlock(ctx, in, next); err != nil {
		return installErr, err
	}
	installErr = errors.Join(installErr, r.writeInstallBlocks(ctx, in, next), r.writeDriftPolicy(ctx, in, next),
		r.writeBackupPolicy(ctx, in, next), r.writeStorageMigration(ctx, next))
	if err := r.changeRollouts(ctx, in, next); err != nil {
		return installErr, err
	}
	installErr = errors.Join(installErr, kit.RunRemovalSteps(ctx, r.Client, next.Removals))
	if next.RemoveFinalizer {
		return installErr, r.removeFinalizer(ctx, in.Operator)
	}
	return installErr, nil
}

// changeRollouts ends, creates and deletes rollouts, as the decision requires.
func (r *Reconciler) changeRollouts(ctx context.Context, in operators.Input, next operators.Decision) error {
	if next.Supersede != nil {
		if err := r.supersedeRollout(ctx, in.Rollouts, *next.Supersede); err != nil {
			return fmt.Errorf("supersede rollout %s: %w", next.Supersede.Rollout, err)
		}
	}
	if next.Create != nil {
		if err := r.createRollout(ctx, in, next.Create); err != nil {
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

// writeRolloutBlock records in the rollout whether its version is blocked. It does nothing if
// the decision has no block.
func (r *Reconciler) writeRolloutBlock(ctx context.Context, in operators.Input, next operators.Decision) error {
	if next.Block == nil {
		return nil
	}
	return r.blockRollout(ctx, in.Rollouts, *next.Block)
}

// writeInstallBlocks records in OperatorInstalls which versions are blocked and held.
// Agents read these fields.
func (r *Reconciler) writeInstallBlocks(ctx context.Context, in operators.Input, next operators.Decision) error {
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

// writeDriftPolicy records the drift policy in OperatorInstalls. Agents read it.
func (r *Reconciler) writeDriftPolicy(ctx context.Context, in operators.Input, next operators.Decision) error {
	if len(next.SetDrift) == 0 {
		return nil
	}
	spec := driftOnly{Drift: operators.DriftPolicy(in.Operator.Spec.Install.Drift)}
	log.FromContext(ctx).Info("Drift policy written", "installs", len(next.SetDrift),
		"policy", in.Operator.Spec.Install.Drift)
	return kit.ForEach(next.SetDrift, func(key types.NamespacedName) error {
		return kit.ApplyInstall(ctx, r.Client, kit.DriftManager, key, spec)
	})
}

// The parts of specs that this controller owns. blocksOnly and driftOnly are parts of an
// OperatorInstall's spec, and rolloutOnly is a part of an OperatorRollout's spec.
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

// blockRollout writes the reason of a block into the rollout that the block names. An empty
// reason removes the block.
func (r *Reconciler) blockRollout(ctx context.Context, rollouts []v1alpha1.OperatorRollout, b operators.Block) error {
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

// applyRollout writes the fields of a rollout that this controller owns, and updates the rollout
// in memory. It never writes an abort that a person requested.
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

// createRollout creates a rollout. It returns a conflict if the API server has a rollout of
// the operator that the cache does not have yet, because a second rollout for the same change
// would end the first rollout.
func (r *Reconciler) createRollout(ctx context.Context, in operators.Input, rollout *v1alpha1.OperatorRollout) error {
	var live v1alpha1.OperatorRolloutList
	if err := r.Live.List(ctx, &live, client.InNamespace(rollout.Namespace)); err != nil {
		return fmt.Errorf("list rollouts: %w", err)
	}
	for i := range live.Items {
		isCached := slices.ContainsFunc(in.Rollouts,
			func(r v1alpha1.OperatorRollout) bool { return r.UID == live.Items[i].UID })
		if live.Items[i].Spec.Operator.Name == in.Operator.Name && !isCached {
			return apierrors.NewConflict(schema.GroupResource{Group: v1alpha1.SchemeGroupVersion.Group,
				Resource: "operatorrollouts"},
				live.Items[i].Name, errors.New("the cache does not have it yet"))
		}
	}
	if rollout.Spec.Rollback == nil { // a rollback is not checked: clusters ran its release before
		rollout.Spec.Requirements = r.readRequirements(ctx, in, rollout.Spec.Release)
	}
	if err := r.Client.Create(ctx, rollout, kit.OperatorManager); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Rollout started", "rollout", rollout.Name, "version", rollout.Spec.Release.VersionText())
	return nil
}

// supersedeRollout aborts the rollout that s names, because a newer rollout replaces it.
func (r *Reconciler) supersedeRollout(ctx context.Context, rollouts []v1alpha1.OperatorRollout,
	s operators.Supersede) error {
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

// removeFinalizer removes the hub's finalizer from an operator without OperatorInstalls. It
// lists OperatorInstalls without the cache: an install that a rollout created just before its
// deletion would be left without an owner.
func (r *Reconciler) removeFinalizer(ctx context.Context, operator *v1alpha1.ManagedOperator) error {
	var remaining v1alpha1.OperatorInstallList
	err := r.Live.List(ctx, &remaining, client.Limit(1), client.MatchingLabels(newOperatorReference(operator).Labels()))
	if err != nil {
		return fmt.Errorf("list OperatorInstalls: %w", err)
	}
	if len(remaining.Items) > 0 {
		return nil // the watch of OperatorInstalls triggers another reconcile
	}
	if err := kit.RemoveFinalizer(ctx, r.Client, operator, v1alpha1.FinalizerHub); err != nil {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	return nil
}
