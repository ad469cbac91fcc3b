// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout executes rollouts. It gathers the input of package rollouts, which decides,
// and writes the decision: the status of the OperatorRollout, and the labels and the admission
// of OperatorInstalls. This package must not decide anything, and must never admit a cluster
// that status.batch, as it was read, does not name.
package rollout

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorrollouts,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorrollouts/status,verbs=get;patch;update
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorinstalls,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=bellwether.dev,resources=fleetclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler reconciles OperatorRollouts.
type Reconciler struct {
	Client client.Client
	// Live reads from the API server, without the cache.
	Live   client.Reader
	Events events.EventRecorder
	// Now is the hub's clock.
	Now func() time.Time
	// MaxChanges is how many operators of a cluster may change at the same
	// time; 0 means any number.
	MaxChanges int
	// Admitted is called after each admission that was written.
	Admitted func()
	// Measurer answers the questions of gates.
	Measurer *Measurer

	writeFailures writeFailures
	// installCache is the progress of the client's cache of OperatorInstalls.
	installCache cacheProgress
	// liveFleetReader shares the live reads of the fleet's state between rollouts.
	liveFleetReader sharedReader[fleetState]
	// limiter limits the writes of all rollouts together.
	limiter writeLimiter
}

// Reconcile observes one rollout, decides its next step and executes the step. If the decision
// requires live data, it observes and decides again without the cache.
func (r *Reconciler) Reconcile(ctx context.Context, ro *v1alpha1.OperatorRollout) (ctrl.Result, error) {
	if ro.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	in, cached, err := r.observe(ctx, ro)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe rollout: %w", err)
	}
	next := rollouts.Next(in)
	if next.WantsLive {
		if err := r.observeLive(ctx, &in, cached); err != nil {
			return ctrl.Result{}, fmt.Errorf("observe rollout live: %w", err)
		}
		next = rollouts.Next(in)
	}
	r.Measurer.startMeasurements(ro, next.Questions)
	applyErr := r.apply(ctx, in, next.Actions)
	r.updateStatus(ctx, ro, next, applyErr)
	return kit.NewResult(next.RecheckAfter, applyErr)
}

// updateStatus puts the decision into the status, with the error of apply if there is one, and
// emits the Events. kit.WrapReconciler writes the status with the resource version as a precondition.
func (r *Reconciler) updateStatus(ctx context.Context, ro *v1alpha1.OperatorRollout, next rollouts.Decision,
	applyErr error) {
	logger := log.FromContext(ctx)
	if oldPhase := ro.Status.Phase; oldPhase != next.Status.Phase {
		logger.Info("Rollout changed phase", "from", oldPhase, "to", next.Status.Phase, "message", next.Status.Message)
	}
	ro.Status = next.Status
	if applyErr != nil && !isConflict(applyErr) {
		ro.Status.Message = phrase.Truncate(fmt.Sprintf("%s; the hub will try again: %v", ro.Status.Message, applyErr),
			maxMessageLength)
	}
	planned := ro.Status.PlanHash != ""
	planReason := v1alpha1.ReasonSucceeded
	if !planned {
		planReason = next.Reason
	}
	conditions.Set(&ro.Status.Conditions, ro.Generation, v1alpha1.ConditionPlanned, planned, planReason,
		describePlan(ro))
	conditions.Summarize(&ro.Status.Conditions, ro.Generation, conditions.Summary{
		State: conditionStates[next.Standing], Reason: next.Reason, Message: ro.Status.Message,
	})
	for _, e := range next.Events {
		logger.Info("Rollout: "+e.Reason, "message", e.Message)
		kit.Emit(r.Events, ro, e.Reason, "Rollout", "%s", e.Message)
	}
}

var conditionStates = map[rollouts.Standing]conditions.State{
	rollouts.Underway: conditions.InProgress, rollouts.Done: conditions.Current, rollouts.Stuck: conditions.Stalled,
}

// describePlan returns the message of the condition Planned.
func describePlan(ro *v1alpha1.OperatorRollout) string {
	if ro.Status.PlanHash == "" {
		return ro.Status.Message
	}
	return phrase.Count(ro.Status.Clusters.Total, "cluster") + " in " + phrase.Count(len(ro.Status.Waves), "wave")
}

// maxMessageLength keeps a message within the API's limit, because the error of an API
// server can have any length.
const maxMessageLength = 1024
