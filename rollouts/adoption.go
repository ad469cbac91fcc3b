// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// AdoptionStrategy returns the strategy for a rollout that takes over installed operators. It never rolls back,
// because no version changes, and it has no baseline gates, because clusters that are not taken over yet are
// not measured.
func AdoptionStrategy(strategy v1alpha1.RolloutStrategy) v1alpha1.RolloutStrategy {
	s := *strategy.DeepCopy()
	if s.OnFailure == v1alpha1.FailureRollback {
		s.OnFailure = v1alpha1.FailurePause
	}
	for i := range s.Waves {
		s.Waves[i].Gates = slices.DeleteFunc(s.Waves[i].Gates,
			func(g v1alpha1.Gate) bool { return g.Baseline != nil })
	}
	return s
}

// FinishedText returns the participle for clusters that run a release: "finished" for a take-over, in which some
// clusters might have had nothing to take over, else "updated".
func FinishedText(r v1alpha1.Release) string {
	if r.AsInstalled {
		return "finished"
	}
	return "updated"
}

// describeChange returns the participle for clusters that the release has changed.
func describeChange(asInstalled bool) string {
	if asInstalled {
		return "taken over"
	}
	return "updated"
}

// countEmpty counts the clusters that had no installed operator to take over.
func countEmpty(waves []judgedWave) int32 {
	var n int32
	for i := range waves {
		n += waves[i].empty
	}
	return n
}

// describeSubject returns the text for the release that the rollout's clusters run at the end: its version, or "what is
// installed" for a take-over.
func describeSubject(r v1alpha1.Release) string {
	if r.AsInstalled {
		return "what is installed"
	}
	return r.Version
}

// maxTrouble is the maximum length of the error of one cluster in a message about the rollout.
const maxTrouble = 200

// explainNotTakenOver says why the operator on a cluster could not be taken over.
func explainNotTakenOver(m *member, install *Install) string {
	if install.StalledReason == v1alpha1.ReasonUnknownVersion {
		// Only agents that do not support a release without a version report this, and these agents change nothing.
		return fmt.Sprintf("%s (%s: its agent cannot take operators over, and has changed nothing; upgrade it with "+
			"`bellwether fleet join %s`, or with the tool that installs its chart)", m.Cluster,
			v1alpha1.ReasonAgentTooOld, m.Cluster)
	}
	why := cmp.Or(install.StalledReason, m.Reason)
	if install.StalledMessage != "" {
		why += ": " + phrase.Truncate(phrase.OneLine(install.StalledMessage), maxTrouble)
	}
	return fmt.Sprintf("%s (%s)", m.Cluster, why)
}

// explainAdoptionHalt says what a person can do about clusters whose operator could not be taken over. failures lists
// these clusters and their errors.
func explainAdoptionHalt(failures, packageName string) string {
	return phrase.Truncate(fmt.Sprintf("%s; nothing more is taken over until that changes: do what the message says, "+
		"accept the finding in spec.adopt.accept, or take the cluster out of the selection; `bellwether fleet scan "+
		"--package %s` shows all of them", failures, packageName), maxMessage)
}
