// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"fmt"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// isUnobserved reports whether a wave that had clusters ends although the release was observed on no cluster: all
// clusters left, or failed as maxFailures permits. If clusters are deferred and none failed, maxDeferred decides
// instead: isBlocked is true if deferred clusters block the next wave. A rollback installs the earlier release, which
// needs no observation.
func isUnobserved(ro *v1alpha1.OperatorRollout, w *judgedWave, isBlocked bool) bool {
	isEnding := w.reached && !w.prior.IsDone() && !w.isChanging() && !w.isFailing && !isBlocked
	return ro.Spec.Rollback == nil && ro.MayAdmit() && isEnding && w.Total > 0 && w.Succeeded == 0 &&
		(w.Failed > 0 || w.Deferred == 0)
}

// judgeUnobserved returns the gate of a wave in which the release was observed on no cluster. Only an override by a
// person lets this gate pass.
func judgeUnobserved(ro *v1alpha1.OperatorRollout, w *judgedWave, now time.Time) *v1alpha1.GateStatus {
	previous := findPriorGate(w.prior, v1alpha1.GateObservation)
	current := applyOverride(ro.Spec.Overrides, w.prior, v1alpha1.GateStatus{Name: v1alpha1.GateObservation,
		Verdict: v1alpha1.GateWaiting, Evidence: explainUnobserved(describeSubject(ro.Spec.Release), w.counts),
		WaitingSince: fillDefault(previous.WaitingSince, *roundDown(now))}, now)
	return &current
}

// explainUnobserved says why the version was observed on no cluster of the wave.
func explainUnobserved(version string, c counts) string {
	removedText := phrase.Count(c.Removed, "cluster") + " left the fleet or the selection before "
	if c.Failed == 0 && c.Deferred == 0 {
		return fmt.Sprintf("no cluster of the wave is left to show that %s works: %sthe wave was verified", version,
			removedText)
	}
	var parts []string
	if c.Removed > 0 {
		parts = append(parts, removedText+"that")
	}
	if n := c.Failed; n > 0 {
		parts = append(parts, phrase.Count(n, "cluster")+" failed, as maxFailures permits")
	}
	if n := c.Deferred; n > 0 {
		parts = append(parts, phrase.Count(n, "cluster")+" deferred")
	}
	return fmt.Sprintf("no cluster of the wave was observed to run %s: %s", version,
		strings.Join(parts, ", "))
}

// explainNotObserved says what a person can do about a wave in which the release was observed on no cluster.
func explainNotObserved(ro *v1alpha1.OperatorRollout, w *judgedWave) string {
	command := "bellwether rollout override " + ro.Name
	if ro.Namespace != "" {
		command += " -n " + ro.Namespace
	}
	return phrase.Truncate(fmt.Sprintf("wave %s is not verified: %s; the rollout continues once a cluster of the wave "+
		"runs it, or if you override gate %s with `%s --wave %s --gate %s --reason TEXT`", w.Name,
		w.unobserved.Evidence, v1alpha1.GateObservation, command, w.Name, v1alpha1.GateObservation), maxMessage)
}
