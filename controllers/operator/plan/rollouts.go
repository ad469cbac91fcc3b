// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

// needsRollout tells whether the spec asks for another rollout than the newest
// one. A changed selector needs a new rollout, because a rollout's selector
// does not change; clusters that run the release count as done in it.
//
// A rollout that a person aborted is not started again without a new release or
// a restart.
func (p *pass) needsRollout(release v1alpha1.Release) bool {
	switch {
	case p.newest == nil, p.newest.Spec.Release.Hash() != release.Hash(), !p.hasSameSelector(), p.replacesNewest():
		return true
	case p.found() > p.newest.Spec.Resumed:
		return true // it admits no cluster
	case p.newest.Spec.Abort != nil:
		return p.newest.Spec.Abort.Superseded
	case p.newest.Spec.Rollback != nil:
		// It took only some clusters to the release, which the others are to run too.
		return p.newest.Status.Phase.Ended() && p.succeeded(release) < len(p.selected)
	case release.AsInstalled:
		return p.mayAdoptMore(release)
	default:
		return p.hasNewPath(release)
	}
}

// replacesNewest tells whether the newest rollout must be replaced regardless
// of its release: a person asks for a restart, or it can never be planned.
func (p *pass) replacesNewest() bool {
	newest, restart := p.newest.Spec, p.Operator.Spec.Restart
	if restart != "" && restart != newest.Restart {
		return true
	}
	return isRunning(p.newest) && rollouts.Validate(newest.ClusterSelector, newest.Strategy) != nil
}

// isStrategyOutdated tells whether the newest rollout uses another strategy
// than the spec.
func (p *pass) isStrategyOutdated() bool {
	return isRunning(p.newest) && p.newest.Spec.Rollback == nil && !equality.Semantic.DeepEqual(
		rollouts.Defaulted(p.newest.Spec.Strategy), p.strategyFor(p.newest.Spec.Release))
}

func (p *pass) hasSameSelector() bool {
	return equality.Semantic.DeepEqual(p.newest.Spec.ClusterSelector, p.Operator.Spec.ClusterSelector)
}

func isRunning(r *v1alpha1.OperatorRollout) bool {
	return r != nil && r.IsRunning()
}

// isUnobserved tells whether a rollout waits for a person, because nothing was observed of a wave.
func isUnobserved(r *v1alpha1.OperatorRollout) bool {
	stalled := conditions.Get(r.Status.Conditions, v1alpha1.ConditionStalled)
	return isRunning(r) && stalled.Status == metav1.ConditionTrue && stalled.Reason == v1alpha1.ReasonNotObserved
}

// startRollout starts the next rollout, unless it has to wait.
func (p *pass) startRollout(release v1alpha1.Release) conditions.Summary {
	if p.Operator.Spec.Paused {
		return waiting(v1alpha1.ReasonPaused, notWhilePaused(release))
	}
	if isRunning(p.newest) {
		blocked := p.newestBlock() != "" || isUnobserved(p.newest) // it does not end by itself
		finish := p.Operator.Spec.Strategy.NewTarget == v1alpha1.NewTargetFinish
		if finish && !blocked && !p.replacesNewest() {
			return waiting(v1alpha1.ReasonWaiting, fmt.Sprintf(
				"%s waits for rollout %s (%s) to end, because strategy.newTarget is Finish",
				changeTo(release), p.newest.Name, p.newest.Spec.Release.VersionText()))
		}
		p.decision.Supersede = &Supersede{
			Rollout: p.newest.Name,
			Reason:  fmt.Sprintf("superseded by revision %d (%s)", p.nextRevision(), release.VersionText()),
		}
	}
	p.decision.Create = p.nextRollout(release)
	p.decision.Status.Rollout = &v1alpha1.RolloutSummary{
		Name: p.decision.Create.Name, Revision: p.decision.Create.Spec.Revision, Phase: v1alpha1.RolloutPending,
	}
	p.decision.Status.Clusters.Updated = p.updated(release)
	return waiting(v1alpha1.ReasonProgressing,
		fmt.Sprintf("rollout %s %s starts", p.decision.Create.Name, release.Purpose()))
}

// changeTo is a change to a release, as the subject of a sentence.
func changeTo(release v1alpha1.Release) string {
	if release.AsInstalled {
		return "taking over what is installed"
	}
	return release.Version
}

func notWhilePaused(release v1alpha1.Release) string {
	if release.AsInstalled {
		return "nothing is taken over while spec.paused is true"
	}
	return release.Version + " is not rolled out while spec.paused is true"
}

// nextRevision returns a revision higher than any that the hub gave out, even if rollouts were deleted: agents ignore
// lower ones. What an agent says that it has acted on counts for one more, so that no agent decides it: an agent that
// has acted on more than that keeps an admission that the hub does not know of, and the hub recovers it.
func (p *pass) nextRevision() int64 {
	highest := p.resumed() // the clusters that have it may not be recovered yet
	if p.Operator.Status.Rollout != nil {
		highest = max(highest, p.Operator.Status.Rollout.Revision)
	}
	for _, r := range p.Rollouts {
		highest = max(highest, r.Spec.Revision)
	}
	for _, o := range p.Operator.Status.History {
		highest = max(highest, o.Revision)
	}
	var observed int64
	for _, i := range p.Installs {
		highest, observed = max(highest, i.Revision), max(observed, i.Observed)
	}
	return min(max(highest, min(observed, highest+1)), v1alpha1.MaxRevision-1) + 1
}

func (p *pass) nextRollout(release v1alpha1.Release) *v1alpha1.OperatorRollout {
	o, yes := p.Operator, true
	revision := p.nextRevision()
	return &v1alpha1.OperatorRollout{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: fmt.Sprintf("%s-%d", o.Name, revision),
			Labels: v1alpha1.OperatorReference{Namespace: o.Namespace, Name: o.Name}.Labels(),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ManagedOperator", Name: o.Name, UID: o.UID,
				Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Spec: v1alpha1.OperatorRolloutSpec{
			Operator: v1alpha1.LocalReference{Name: o.Name}, Revision: revision, Release: release,
			ClusterSelector: *o.Spec.ClusterSelector.DeepCopy(),
			Strategy:        p.strategyFor(release), Restart: o.Spec.Restart,
			Resumed: p.resumed(),
		},
	}
}

const defaultHistory = 5

// prune deletes the oldest ended rollouts beyond the limit, but never the
// newest or a running one.
func (p *pass) prune() {
	limit := defaultHistory
	if l := p.Operator.Spec.HistoryLimit; l != nil {
		limit = int(*l)
	}
	byAge := slices.Clone(p.Rollouts)
	slices.SortFunc(byAge, func(a, b v1alpha1.OperatorRollout) int {
		return cmp.Compare(b.Spec.Revision,
			a.Spec.Revision)
	})
	kept := 0
	for i := range byAge {
		if !byAge[i].Status.Phase.Ended() {
			continue
		}
		if kept++; kept > limit && i > 0 {
			p.decision.DeleteRollouts = append(p.decision.DeleteRollouts, byAge[i].Name)
		}
	}
}

// removeDeselected removes the operator from clusters that the selector no
// longer matches. It waits until the newest rollout has the same selector,
// because an older one would install it again. The fleet controller handles
// clusters that leave the fleet.
func (p *pass) removeDeselected() {
	if p.newest == nil || !p.hasSameSelector() {
		return
	}
	var leaving []Install
	for _, install := range p.Installs {
		cluster, known := p.known[install.Cluster]
		if _, wanted := p.selected[install.Cluster]; !wanted && known && !cluster.Deleting {
			leaving = append(leaving, install)
		}
	}
	p.unreachable = p.removeFrom(leaving)
}

func reachOf(c rollouts.Cluster, known bool) removal.Reach {
	switch {
	case !known:
		return removal.Gone
	case c.Online:
		return removal.Online
	default:
		return removal.Offline
	}
}
