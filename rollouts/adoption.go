// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// AdoptionStrategy returns a strategy as a rollout uses it that takes over what is installed. Nothing is rolled back,
// because no version changes, and nothing is compared with clusters that are not taken over yet, because these are not
// measured.
func AdoptionStrategy(of v1alpha1.RolloutStrategy) v1alpha1.RolloutStrategy {
	s := *of.DeepCopy()
	if s.OnFailure == v1alpha1.FailureRollback {
		s.OnFailure = v1alpha1.FailurePause
	}
	for i := range s.Waves {
		s.Waves[i].Gates = slices.DeleteFunc(s.Waves[i].Gates,
			func(g v1alpha1.Gate) bool { return g.Baseline != nil })
	}
	return s
}

// isAsInstalled tells whether the rollout takes over what is installed, and changes no version.
func (p *pass) isAsInstalled() bool { return p.in.Rollout.Spec.Release.AsInstalled }

// FinishedText is the participle for clusters that run a release, where it is not known which of them had nothing to
// take over.
func FinishedText(r v1alpha1.Release) string {
	if r.AsInstalled {
		return "finished"
	}
	return "updated"
}

// changed is the participle for clusters that the release has changed.
func (p *pass) changed() string {
	if p.isAsInstalled() {
		return "taken over"
	}
	return "updated"
}

// countEmpty counts the clusters that had nothing to take over.
func (p *pass) countEmpty() int32 {
	var n int32
	for i := range p.states {
		n += p.states[i].empty
	}
	return n
}

// subject is what clusters of the rollout run when they are done.
func (p *pass) subject() string {
	if p.isAsInstalled() {
		return "what is installed"
	}
	return p.in.Rollout.Spec.Release.Version
}

// maxTrouble keeps what one cluster reports short in a message about the rollout.
const maxTrouble = 200

// whyNotTakenOver says why a cluster could not be taken over.
func (p *pass) whyNotTakenOver(m member) string {
	install := p.installs[m.Cluster]
	if install.StalledReason == v1alpha1.ReasonUnknownVersion {
		// Only agents that know of no release without a version report that, and they change nothing.
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

// explainAdoptionHalt says what a person does about clusters that could not be taken over.
func (p *pass) explainAdoptionHalt() string {
	return phrase.Truncate(fmt.Sprintf("%s; nothing more is taken over until that changes: do what the message says, "+
		"accept the finding in spec.adopt.accept, or take the cluster out of the selection; `bellwether fleet scan "+
		"--package %s` shows all of them", p.explainFailures(), p.in.Rollout.Spec.Release.Package), maxMessage)
}
