// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"slices"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// VersionsBefore counts, for each rollout by its UID, the versions that clusters ran before the rollout admitted
// them. After a rollback it counts the versions before the original rollout, so rollouts must contain both.
func VersionsBefore(rollouts []v1alpha1.OperatorRollout,
	installs []v1alpha1.OperatorInstall) map[string]map[string]int {
	rolledBack := map[string]string{}
	for i := range rollouts {
		if r := rollouts[i].Spec.Rollback; r != nil {
			rolledBack[string(rollouts[i].UID)] = r.UID
		}
	}
	counts := map[string]map[string]int{}
	for i := range installs {
		a := installs[i].Spec.Admission
		if a == nil || a.Previous == nil {
			continue
		}
		rollout := a.RolloutUID
		if original := rolledBack[rollout]; original != "" {
			rollout = original
		}
		if counts[rollout] == nil {
			counts[rollout] = map[string]int{}
		}
		counts[rollout][a.Previous.Version]++
	}
	return counts
}

// VersionBefore returns the version that a rollout changes clusters from. counts are its counts in VersionsBefore.
// It is the version of more than half of the clusters, or else series.SeveralVersions, or empty if it is unknown.
func VersionBefore(ro *v1alpha1.OperatorRollout, counts map[string]int) string {
	if ro.Spec.Rollback != nil {
		return ro.Spec.Rollback.Version
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	for version, n := range counts {
		if 2*n > total {
			return version
		}
	}
	if total > 0 {
		return series.SeveralVersions
	}
	return ""
}

// Kind returns the kind of change: one of the values of the label series.Kind.
func Kind(ro *v1alpha1.OperatorRollout) string {
	switch r := ro.Spec.Rollback; {
	case r == nil:
		return series.KindRollout
	case r.Automatic:
		return series.KindAutomaticRollback
	}
	return series.KindRollback
}

// ApprovedBy returns the user who approved a wave last, or an empty string. The API limits the length of user names.
func ApprovedBy(ro *v1alpha1.OperatorRollout) string {
	if len(ro.Spec.Approvals) == 0 {
		return ""
	}
	return slices.MaxFunc(ro.Spec.Approvals, func(a, b v1alpha1.Approval) int { return a.At.Compare(b.At.Time) }).By
}
