// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

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

// needsRollout reports whether the spec needs another rollout than the newest rollout. A changed selector needs a
// new rollout, because a rollout's selector does not change; clusters that run the release are already done in the
// new rollout.
//
// A rollout that a person aborted is started again only for a new release or a restart.
func (p *pass) needsRollout(release v1alpha1.Release) bool {
	switch {
	case p.newest == nil, p.newest.Spec.Release.Hash() != release.Hash(), !p.hasSameSelector(), p.needsReplacement():
		return true
	case p.findRecoveredRevision() > p.newest.Spec.Resumed:
		return true // the newest rollout admits no cluster
	case p.newest.Spec.Abort != nil:
		return p.newest.Spec.Abort.Superseded
	case p.newest.Spec.Rollback != nil:
		// The rollback brought only some clusters to the release. The other clusters need it too.
		return p.newest.Status.Phase.Ended() && p.countSucceeded(release) < len(p.selected)
	case release.AsInstalled:
		return p.canAdoptMore(release)
	default:
		return p.hasNewPath(release)
	}
}

// needsReplacement reports whether the newest rollout must be replaced even if its release is unchanged: a person
// requests a restart, or the rollout can never be planned.
func (p *pass) needsReplacement() bool {
	newest, restart := p.newest.Spec, p.Operator.Spec.Restart
	if restart != "" && restart != newest.Restart {
		return true
	}
	return isRunning(p.newest) && rollouts.Validate(newest.ClusterSelector, newest.Strategy) != nil
}

// isStrategyOutdated reports whether the strategy of the newest rollout differs from the spec's strategy.
func (p *pass) isStrategyOutdated() bool {
	return isRunning(p.newest) && p.newest.Spec.Rollback == nil && !equality.Semantic.DeepEqual(
		rollouts.Defaulted(p.newest.Spec.Strategy), p.buildStrategy(p.newest.Spec.Release))
}

// hasSameSelector reports whether the newest rollout has the spec's cluster selector.
func (p *pass) hasSameSelector() bool {
	return equality.Semantic.DeepEqual(p.newest.Spec.ClusterSelector, p.Operator.Spec.ClusterSelector)
}

// isRunning reports whether there is a rollout and it is running.
func isRunning(r *v1alpha1.OperatorRollout) bool {
	return r != nil && r.IsRunning()
}

// isUnobserved reports whether a rollout waits for a person because the release was observed on no cluster of a wave.
func isUnobserved(r *v1alpha1.OperatorRollout) bool {
	stalled := conditions.Get(r.Status.Conditions, v1alpha1.ConditionStalled)
	return isRunning(r) && stalled.Status == metav1.ConditionTrue && stalled.Reason == v1alpha1.ReasonNotObserved
}

// startRollout starts the next rollout and supersedes a running rollout. If the operator is paused, or a running
// rollout must finish first, it starts nothing. It returns a summary of the state.
func (p *pass) startRollout(release v1alpha1.Release) conditions.Summary {
	if p.Operator.Spec.Paused {
		return newWaiting(v1alpha1.ReasonPaused, explainPaused(release))
	}
	if isRunning(p.newest) {
		blocked := p.explainNewestBlock() != "" || isUnobserved(p.newest) // such a rollout does not end by itself
		mustFinish := p.Operator.Spec.Strategy.NewTarget == v1alpha1.NewTargetFinish
		if mustFinish && !blocked && !p.needsReplacement() {
			return newWaiting(v1alpha1.ReasonWaiting, fmt.Sprintf(
				"%s waits for rollout %s (%s) to end, because strategy.newTarget is Finish",
				describeChange(release), p.newest.Name, p.newest.Spec.Release.VersionText()))
		}
		p.decision.Supersede = &Supersede{
			Rollout: p.newest.Name,
			Reason:  fmt.Sprintf("superseded by revision %d (%s)", p.computeNextRevision(), release.VersionText()),
		}
	}
	p.decision.Create = p.buildRollout(release)
	p.decision.Status.Rollout = &v1alpha1.RolloutSummary{
		Name: p.decision.Create.Name, Revision: p.decision.Create.Spec.Revision, Phase: v1alpha1.RolloutPending,
	}
	p.decision.Status.Clusters.Updated = p.countUpdated(release)
	return newWaiting(v1alpha1.ReasonProgressing,
		fmt.Sprintf("rollout %s %s starts", p.decision.Create.Name, release.Purpose()))
}

// describeChange returns the change to a release as the subject of a sentence.
func describeChange(release v1alpha1.Release) string {
	if release.AsInstalled {
		return "taking over what is installed"
	}
	return release.Version
}

// explainPaused says what does not happen while spec.paused is true.
func explainPaused(release v1alpha1.Release) string {
	if release.AsInstalled {
		return "nothing is taken over while spec.paused is true"
	}
	return release.Version + " is not rolled out while spec.paused is true"
}

// computeNextRevision returns a revision that is higher than every revision of this hub, even if rollouts were deleted,
// because agents ignore lower revisions. A revision that only an agent reports raises the result by at most one, so no
// agent determines it. If an agent has acted on a still higher revision, it keeps an admission that is not recorded on
// the hub, and the hub recovers that admission.
func (p *pass) computeNextRevision() int64 {
	highest := p.readResumedRevision() // clusters with this revision might not be recovered yet
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
	highest = max(highest, min(observed, highest+1))
	return min(highest, v1alpha1.MaxRevision-1) + 1
}

// buildRollout returns the next rollout with a release. Its selector and its strategy are from the operator's spec.
func (p *pass) buildRollout(release v1alpha1.Release) *v1alpha1.OperatorRollout {
	o, isTrue := p.Operator, true
	revision := p.computeNextRevision()
	return &v1alpha1.OperatorRollout{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: fmt.Sprintf("%s-%d", o.Name, revision),
			Labels: v1alpha1.OperatorReference{Namespace: o.Namespace, Name: o.Name}.Labels(),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ManagedOperator", Name: o.Name, UID: o.UID,
				Controller: &isTrue, BlockOwnerDeletion: &isTrue,
			}},
		},
		Spec: v1alpha1.OperatorRolloutSpec{
			Operator: v1alpha1.LocalReference{Name: o.Name}, Revision: revision, Release: release,
			ClusterSelector: *o.Spec.ClusterSelector.DeepCopy(),
			Strategy:        p.buildStrategy(release), Restart: o.Spec.Restart,
			Resumed: p.readResumedRevision(),
		},
	}
}

// defaultHistory is how many ended rollouts are kept if spec.historyLimit is not set.
const defaultHistory = 5

// pruneRollouts deletes the oldest ended rollouts beyond the limit, but never the newest rollout or a running rollout.
func (p *pass) pruneRollouts() {
	limit := defaultHistory
	if l := p.Operator.Spec.HistoryLimit; l != nil {
		limit = int(*l)
	}
	byAge := slices.Clone(p.Rollouts)
	slices.SortFunc(byAge, func(a, b v1alpha1.OperatorRollout) int {
		return cmp.Compare(b.Spec.Revision,
			a.Spec.Revision)
	})
	ended := 0
	for i := range byAge {
		if !byAge[i].Status.Phase.Ended() {
			continue
		}
		if ended++; ended > limit && i > 0 {
			p.decision.DeleteRollouts = append(p.decision.DeleteRollouts, byAge[i].Name)
		}
	}
}

// removeDeselected removes the operator from clusters that the selector does not match. It waits until the newest
// rollout has the same selector, because an older rollout would install the operator again. The fleet controller
// handles clusters that leave the fleet.
func (p *pass) removeDeselected() {
	if p.newest == nil || !p.hasSameSelector() {
		return
	}
	var leaving []Install
	for _, install := range p.Installs {
		cluster, known := p.fleet[install.Cluster]
		if _, isSelected := p.selected[install.Cluster]; !isSelected && known && !cluster.Deleting {
			leaving = append(leaving, install)
		}
	}
	p.unreachable = p.removeFrom(leaving)
}

// readReach returns whether the agent of a cluster can remove the operator, is offline, or is gone. known is false if
// the cluster was deleted.
func readReach(c rollouts.Cluster, known bool) removal.Reach {
	switch {
	case !known:
		return removal.Gone
	case c.Online:
		return removal.Online
	default:
		return removal.Offline
	}
}
