// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout carries rollouts out. It gathers what package plan decides
// on, and writes what it decided: the status of the OperatorRollout, and the
// labels and the admission of OperatorInstalls. It must decide nothing itself,
// and never admit a cluster that status.batch, as it was read, does not name.
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
	"github.com/bellwether-dev/bellwether/phrase"
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
	// Live reads past the cache.
	Live   client.Reader
	Events events.EventRecorder
	// Now is the hub's clock.
	Now func() time.Time
	// MaxChanges is how many operators of a cluster may change at a time; 0 means any
	// number.
	MaxChanges int
	// Admitted is told of each admission that was written.
	Admitted func()
	// Measurer answers what gates ask.
	Measurer *Measurer

	refusals refusals
	// seen is how far the client's cache of OperatorInstalls has come.
	seen progress
	// around are the reads past the cache of what all rollouts look at.
	around shared[surroundings]
	// writing is what the writers of all rollouts share.
	writing room
}

// Reconcile takes one rollout a step further.
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
	r.Measurer.ask(ro, next.Questions)
	applyErr := r.apply(ctx, in, next.Actions)
	r.report(ctx, ro, next, applyErr)
	return kit.Result(next.RecheckAfter, applyErr)
}

// report puts the decision into the status, which the shell writes with the
// resource version that was read as its precondition.
func (r *Reconciler) report(ctx context.Context, ro *v1alpha1.OperatorRollout, next rollouts.Decision, applyErr error) {
	logger := log.FromContext(ctx)
	if was := ro.Status.Phase; was != next.Status.Phase {
		logger.Info("Rollout changed phase", "from", was, "to", next.Status.Phase, "message", next.Status.Message)
	}
	ro.Status = next.Status
	if applyErr != nil && !outdated(applyErr) {
		ro.Status.Message = phrase.Truncate(fmt.Sprintf("%s; the hub will try again: %v", ro.Status.Message, applyErr),
			maxMessage)
	}
	planned := ro.Status.PlanHash != ""
	planReason := v1alpha1.ReasonSucceeded
	if !planned {
		planReason = next.Reason
	}
	conditions.Set(&ro.Status.Conditions, ro.Generation, v1alpha1.ConditionPlanned, planned, planReason,
		plannedMessage(ro))
	conditions.Summarize(&ro.Status.Conditions, ro.Generation, conditions.Summary{
		State: states[next.Standing], Reason: next.Reason, Message: ro.Status.Message,
	})
	for _, e := range next.Events {
		logger.Info("Rollout: "+e.Reason, "message", e.Message)
		kit.Emit(r.Events, ro, e.Reason, "Rollout", "%s", e.Message)
	}
}

var states = map[rollouts.Standing]conditions.State{
	rollouts.Underway: conditions.InProgress, rollouts.Done: conditions.Current, rollouts.Stuck: conditions.Stalled,
}

func plannedMessage(ro *v1alpha1.OperatorRollout) string {
	if ro.Status.PlanHash == "" {
		return ro.Status.Message
	}
	return phrase.Count(ro.Status.Clusters.Total, "cluster") + " in " + phrase.Count(len(ro.Status.Waves), "wave")
}

// maxMessage keeps the message within the API's limit, whatever an API server
// says in an error.
const maxMessage = 1024
