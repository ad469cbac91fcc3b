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
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// RollbackWave is the name of the only wave of a rollback.
const RollbackWave = "rollback"

// PreviousOf returns the release that succeeded last on a cluster, which the admission by a rollout records. It returns
// nil if no release succeeded.
func PreviousOf(ro *v1alpha1.OperatorRollout, install *v1alpha1.OperatorInstall) *v1alpha1.PreviousRelease {
	previous := install.Spec.Admission
	switch {
	case previous == nil:
		return nil
	case previous.Release.AsInstalled && ro.Spec.Rollback == nil && previous.RolloutUID != string(ro.UID) &&
		install.Status.SucceededHash == previous.Hash:
		// A take-over has no version, so the version comes from the agent's report.
		return readTakenOverRelease(install)
	case ro.Spec.Rollback != nil, previous.RolloutUID == string(ro.UID), install.Status.SucceededHash != previous.Hash:
		// The release of the last admission is not the previous release: it is rolled back, is admitted again, or did
		// not succeed.
		return previous.PreviousRelease()
	default:
		return previous.Release.ToPrevious()
	}
}

// readTakenOverRelease returns the release that was installed on a cluster when it was taken over. It returns nil if
// no release was installed.
func readTakenOverRelease(install *v1alpha1.OperatorInstall) *v1alpha1.PreviousRelease {
	installed := install.Status.Installed
	if installed == nil {
		return nil
	}
	previous := install.Spec.Admission.Release.ToPrevious()
	previous.Version, previous.Bundle = installed.Version, installed.Bundle
	return previous
}

// ReleaseFor returns the release that a rollout installs on a cluster: the rollout's release or, in a rollback, the
// previous release of the cluster.
func ReleaseFor(ro *v1alpha1.OperatorRollout, previous *v1alpha1.PreviousRelease) v1alpha1.Release {
	if ro.Spec.Rollback == nil || previous == nil {
		return ro.Spec.Release
	}
	return ro.Spec.Release.WithPrevious(*previous)
}

// AdmissionRollbackFor returns what an admission by a rollback permits. It returns nil for other rollouts.
func AdmissionRollbackFor(ro *v1alpha1.OperatorRollout) *v1alpha1.AdmissionRollback {
	if ro.Spec.Rollback == nil {
		return nil
	}
	return &v1alpha1.AdmissionRollback{Force: ro.Spec.Rollback.Force}
}

// NewRollback returns the spec of the rollout that restores the previous release on the clusters that a rollout
// admitted. installs are the installs of the operator. The rollback has one wave, and its own release is the most
// frequent previous release. It is automatic unless a person requested it. NewRollback returns false if no cluster has
// a previous release.
func NewRollback(rollout *v1alpha1.OperatorRollout, installs []Install) (v1alpha1.OperatorRolloutSpec, bool) {
	counts := map[string]int{}
	releases := map[string]v1alpha1.Release{}
	for _, i := range installs {
		if i.Stamp.RolloutUID == string(rollout.UID) && i.Previous != nil {
			release := rollout.Spec.Release.WithPrevious(*i.Previous)
			counts[release.Hash()]++
			releases[release.Hash()] = release
		}
	}
	if len(counts) == 0 {
		return v1alpha1.OperatorRolloutSpec{}, false
	}
	mostCommon := slices.MaxFunc(slices.Sorted(maps.Keys(counts)), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[a], counts[b]), cmp.Compare(b, a))
	})
	rollback := &v1alpha1.RolloutRollback{
		Of: rollout.Name, UID: string(rollout.UID), Version: rollout.Spec.Release.Version, Automatic: true,
		Reason: phrase.Truncate(cmp.Or(strings.TrimPrefix(rollout.Status.Message, rolledBackByPolicy+": "),
			"its failure policy says so"), maxReason),
	}
	if abort := rollout.Spec.Abort; abort != nil && abort.Rollback != nil {
		rollback.Reason, rollback.Automatic, rollback.Force = abort.Reason, false, abort.Rollback.Force
	}
	return v1alpha1.OperatorRolloutSpec{
		Operator: rollout.Spec.Operator, Release: releases[mostCommon],
		ClusterSelector: *rollout.Spec.ClusterSelector.DeepCopy(),
		Strategy:        buildRollbackStrategy(rollout.Spec.Strategy), Restart: rollout.Spec.Restart,
		Rollback: rollback,
	}, true
}

// maxReason is the API's limit for the length of a rollback's reason.
const maxReason = 1024

// buildRollbackStrategy returns a strategy of one wave without soak and gates. The deadline and the grace are the
// longest ones of the strategy's waves.
func buildRollbackStrategy(strategy v1alpha1.RolloutStrategy) v1alpha1.RolloutStrategy {
	wave := v1alpha1.Wave{Name: RollbackWave, MaxConcurrency: new(intstr.FromString("100%"))}
	for _, w := range Defaulted(strategy).Waves {
		wave.Deadline = maxDuration(wave.Deadline, w.Deadline)
		wave.UnreadyGrace = maxDuration(wave.UnreadyGrace, w.UnreadyGrace)
	}
	if r := strategy.Rollback; r != nil && r.MaxConcurrency != nil {
		wave.MaxConcurrency = r.MaxConcurrency
	}
	return Defaulted(v1alpha1.RolloutStrategy{
		Waves: []v1alpha1.Wave{wave}, OnFailure: v1alpha1.FailurePause, NewTarget: strategy.NewTarget,
	})
}

// maxDuration returns the longer duration. nil is shorter than any duration.
func maxDuration(a, b *metav1.Duration) *metav1.Duration {
	if a == nil || b != nil && b.Duration > a.Duration {
		return b
	}
	return a
}

// selectReleaseHash returns the hash of the release that the rollout brings to a cluster. releaseHash is the hash of
// the rollout's own release.
func selectReleaseHash(ro *v1alpha1.OperatorRollout, releaseHash string, install *Install) string {
	if ro.Spec.Rollback == nil || install.Previous == nil {
		return releaseHash
	}
	return ReleaseFor(ro, install.Previous).Hash()
}

// canBeMember reports whether a cluster can be a member of the rollout. A rollback takes the clusters that the rolled
// back rollout admitted, and clusters that are already members. Other rollouts take every cluster. A nil install means
// that there is none.
func canBeMember(ro *v1alpha1.OperatorRollout, install *Install) bool {
	if ro.Spec.Rollback == nil {
		return true
	}
	if install == nil {
		return false
	}
	isOurs := install.Rollout == ro.Name || isAdmittedBy(ro, install) ||
		install.Stamp.RolloutUID == ro.Spec.Rollback.UID
	return isOurs && install.Previous != nil
}

// canRollBack reports whether a cluster that the rollout admitted has a previous release. A rollout that took over
// installed operators cannot be rolled back, because it changed no version.
func canRollBack(ro *v1alpha1.OperatorRollout, installs []Install, clusters map[string]*Cluster) bool {
	return !ro.Spec.Release.AsInstalled && slices.ContainsFunc(installs, func(i Install) bool {
		_, isSelected := clusters[i.Cluster]
		return isSelected && isAdmittedBy(ro, &i) && i.Previous != nil && !i.Deleting
	})
}

// needsRollback reports whether the rollout ends in order to be rolled back: a person requested the rollback, or the
// failure policy requires it because too many clusters or a gate failed. Clusters that join a wave after it was done
// do not cause a rollback, unless the release works on no cluster: then the wave was skipped.
func needsRollback(ro *v1alpha1.OperatorRollout, onFailure v1alpha1.FailurePolicy, installs []Install,
	clusters map[string]*Cluster, waves []judgedWave, statuses []v1alpha1.WaveStatus) bool {
	abort := ro.Spec.Abort
	switch {
	case ro.Status.Phase == v1alpha1.RolloutRolledBack:
		return true
	case abort != nil && abort.Rollback != nil:
		return canRollBack(ro, installs, clusters)
	case ro.Status.Phase.Ended() || abort != nil || ro.Spec.Blocked != "" ||
		onFailure != v1alpha1.FailureRollback:
		return false
	}
	isReleaseProven := slices.ContainsFunc(waves, func(w judgedWave) bool { return isProven(w.members) })
	hasFailed := slices.ContainsFunc(statuses, func(w v1alpha1.WaveStatus) bool {
		return (!w.IsDone() || !isReleaseProven) && IsJudgedFailed(w)
	})
	return hasFailed && canRollBack(ro, installs, clusters)
}

// rolledBackByPolicy is the start of the message of a rollout that its failure policy ended. The rollback's reason is
// the rest of the message.
const rolledBackByPolicy = "rolled back, as its failure policy says"

// explainRollback says why a rollout is rolled back. failures describes the failed wave. If it is empty and no person
// requested the rollback, the earlier message stays.
func explainRollback(abort *v1alpha1.RolloutAbort, failures, previousMessage string) string {
	switch {
	case abort != nil && abort.Rollback != nil:
		return "rolled back" + prefixColon(abort.Reason)
	case failures != "":
		return rolledBackByPolicy + ": " + failures
	}
	return cmp.Or(previousMessage, rolledBackByPolicy)
}

// RollbackText describes a rollback and its reason. It returns "" for other rollouts.
func RollbackText(ro *v1alpha1.OperatorRollout) string {
	r := ro.Spec.Rollback
	if r == nil {
		return ""
	}
	origin := "requested by a person"
	if r.Automatic {
		origin = "automatic"
	}
	return fmt.Sprintf("takes the clusters of %s (%s) back to what they ran before, %s: %s", r.Of, r.Version, origin,
		r.Reason)
}
