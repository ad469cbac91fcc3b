// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// RollbackWave is the name of the only wave of a rollback.
const RollbackWave = "rollback"

// PreviousOf returns what a cluster ran before, for the admission by a rollout to
// remember: the release that succeeded there last. Nil where nothing did.
func PreviousOf(ro *v1alpha1.OperatorRollout, install *v1alpha1.OperatorInstall) *v1alpha1.PreviousRelease {
	was := install.Spec.Admission
	switch {
	case was == nil:
		return nil
	case was.Release.AsInstalled && ro.Spec.Rollback == nil && was.RolloutUID != string(ro.UID) &&
		install.Status.SucceededHash == was.Hash:
		return takenOver(install)
	case ro.Spec.Rollback != nil, was.RolloutUID == string(ro.UID), install.Status.SucceededHash != was.Hash:
		return was.PreviousRelease()
	default:
		return was.Release.Previous()
	}
}

// takenOver returns what a cluster runs on which it was taken over as it was installed. Nil where nothing was.
func takenOver(install *v1alpha1.OperatorInstall) *v1alpha1.PreviousRelease {
	installed := install.Status.Installed
	if installed == nil {
		return nil
	}
	previous := install.Spec.Admission.Release.Previous()
	previous.Version, previous.Bundle = installed.Version, installed.Bundle
	return previous
}

// ReleaseFor returns the release that a rollout brings to a cluster: its own, or,
// where it is a rollback, what the cluster ran before.
func ReleaseFor(ro *v1alpha1.OperatorRollout, previous *v1alpha1.PreviousRelease) v1alpha1.Release {
	if ro.Spec.Rollback == nil || previous == nil {
		return ro.Spec.Release
	}
	return ro.Spec.Release.Before(*previous)
}

// AdmissionRollbackFor returns what an admission by the rollout permits; nil where
// the rollout is no rollback.
func AdmissionRollbackFor(ro *v1alpha1.OperatorRollout) *v1alpha1.AdmissionRollback {
	if ro.Spec.Rollback == nil {
		return nil
	}
	return &v1alpha1.AdmissionRollback{Force: ro.Spec.Rollback.Force}
}

// NewRollback returns the spec of the rollout that takes the clusters back that a
// rollout admitted; the installs are those of the operator. Its release is what
// most of the clusters ran before, and it has one wave. It returns false where no
// cluster ran anything before.
func NewRollback(of *v1alpha1.OperatorRollout, installs []Install) (v1alpha1.OperatorRolloutSpec, bool) {
	counts := map[string]int{}
	releases := map[string]v1alpha1.Release{}
	for _, i := range installs {
		if i.Stamp.RolloutUID == string(of.UID) && i.Previous != nil {
			release := of.Spec.Release.Before(*i.Previous)
			counts[release.Hash()]++
			releases[release.Hash()] = release
		}
	}
	if len(counts) == 0 {
		return v1alpha1.OperatorRolloutSpec{}, false
	}
	most := slices.MaxFunc(slices.Sorted(maps.Keys(counts)), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[a], counts[b]), cmp.Compare(b, a))
	})
	back := &v1alpha1.RolloutRollback{
		Of: of.Name, UID: string(of.UID), Version: of.Spec.Release.Version, Automatic: true,
		Reason: phrase.Truncate(cmp.Or(strings.TrimPrefix(of.Status.Message, rolledBackByPolicy+": "),
			"its failure policy says so"), maxReason),
	}
	if abort := of.Spec.Abort; abort != nil && abort.Rollback != nil {
		back.Reason, back.Automatic, back.Force = abort.Reason, false, abort.Rollback.Force
	}
	return v1alpha1.OperatorRolloutSpec{
		Operator: of.Spec.Operator, Release: releases[most], ClusterSelector: *of.Spec.ClusterSelector.DeepCopy(),
		Strategy: rollbackStrategy(of.Spec.Strategy), Restart: of.Spec.Restart, Rollback: back,
	}, true
}

// maxReason is the API's bound on the reason of a rollback.
const maxReason = 1024

// rollbackStrategy is one wave without soak and gates, whose clusters have as long
// as those of the slowest wave of the strategy.
func rollbackStrategy(of v1alpha1.RolloutStrategy) v1alpha1.RolloutStrategy {
	wave := v1alpha1.Wave{Name: RollbackWave, MaxConcurrency: new(intstr.FromString("100%"))}
	for _, w := range Defaulted(of).Waves {
		wave.Deadline = longest(wave.Deadline, w.Deadline)
		wave.UnreadyGrace = longest(wave.UnreadyGrace, w.UnreadyGrace)
	}
	if r := of.Rollback; r != nil && r.MaxConcurrency != nil {
		wave.MaxConcurrency = r.MaxConcurrency
	}
	return Defaulted(v1alpha1.RolloutStrategy{
		Waves: []v1alpha1.Wave{wave}, OnFailure: v1alpha1.FailurePause, NewTarget: of.NewTarget,
	})
}

func longest(a, b *metav1.Duration) *metav1.Duration {
	if a == nil || b != nil && b.Duration > a.Duration {
		return b
	}
	return a
}

// isBack tells whether the rollout is a rollback.
func (p *pass) isBack() bool { return p.in.Rollout.Spec.Rollback != nil }

// hashOf identifies the release that a cluster is to run.
func (p *pass) hashOf(install Install) string {
	if !p.isBack() || install.Previous == nil {
		return p.hash
	}
	return ReleaseFor(p.in.Rollout, install.Previous).Hash()
}

// isTouched tells whether a rollback takes a cluster back: one that the rollout
// admitted which is rolled back, or that is a member of the rollback already.
// Every cluster is a member of any other rollout.
func (p *pass) isTouched(cluster string) bool {
	if !p.isBack() {
		return true
	}
	install, exists := p.installs[cluster]
	ours := install.Rollout == p.in.Rollout.Name || p.isOurs(install) ||
		install.Stamp.RolloutUID == p.in.Rollout.Spec.Rollback.UID
	return exists && ours && install.Previous != nil
}

// canRollBack tells whether a cluster that the rollout admitted ran something
// before. What was taken over as it was installed has nothing to go back to.
func (p *pass) canRollBack() bool {
	return !p.isAsInstalled() && slices.ContainsFunc(p.in.Installs, func(i Install) bool {
		_, selected := p.clusters[i.Cluster]
		return selected && p.isOurs(i) && i.Previous != nil && !i.Deleting
	})
}

// rollsBack tells whether the rollout ends to be rolled back: a person asked for
// that, or the failure policy does, because more clusters failed than may or a gate
// did. Clusters that come late to a wave that is done are no reason to take the
// others back, unless the release works nowhere: the wave was skipped then.
func (p *pass) rollsBack(waves []v1alpha1.WaveStatus) bool {
	abort := p.in.Rollout.Spec.Abort
	switch {
	case p.prior.Phase == v1alpha1.RolloutRolledBack:
		return true
	case abort != nil && abort.Rollback != nil:
		return p.canRollBack()
	case p.prior.Phase.Ended() || abort != nil || p.in.Rollout.Spec.Blocked != "" ||
		p.strategy.OnFailure != v1alpha1.FailureRollback:
		return false
	}
	works := slices.ContainsFunc(p.states, func(s waveState) bool { return s.isProven() })
	return p.canRollBack() && slices.ContainsFunc(waves, func(w v1alpha1.WaveStatus) bool {
		return (!w.IsDone() || !works) && IsJudgedFailed(w)
	})
}

// isBusy tells whether clusters of the wave are still to be changed.
func (s *waveState) isBusy() bool { return s.counts.Pending > 0 || s.counts.InProgress > 0 }

// rolledBackByPolicy begins the message of a rollout that its failure policy ended. The rollback gives the rest as its
// reason.
const rolledBackByPolicy = "rolled back, as its failure policy says"

func (p *pass) explainRollback(status v1alpha1.OperatorRolloutStatus) string {
	abort := p.in.Rollout.Spec.Abort
	switch {
	case abort != nil && abort.Rollback != nil:
		return "rolled back" + colon(abort.Reason)
	case p.halted() != nil:
		return rolledBackByPolicy + ": " + p.explainFailures()
	}
	return cmp.Or(status.Message, rolledBackByPolicy)
}

// RollbackText says what a rollback takes back and why; empty for other rollouts.
func RollbackText(ro *v1alpha1.OperatorRollout) string {
	r := ro.Spec.Rollback
	if r == nil {
		return ""
	}
	by := "asked for by a person"
	if r.Automatic {
		by = "automatic"
	}
	return fmt.Sprintf("takes the clusters of %s (%s) back to what they ran before, %s: %s", r.Of, r.Version, by,
		r.Reason)
}
