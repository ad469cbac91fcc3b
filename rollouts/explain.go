// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// explainRollout returns the rollout's standing, and the reason and the message for it. status is the next status
// without the message. halted is the wave that stops the rollout; nil if there is none.
func explainRollout(o observation, halted *judgedWave, waves []judgedWave,
	status v1alpha1.OperatorRolloutStatus) (standing Standing, reason, message string) {
	spec := o.in.Rollout.Spec
	var failures string
	if halted != nil {
		failures = explainFailures(halted, o.installs)
	}
	switch status.Phase {
	case v1alpha1.RolloutSucceeded:
		return Done, v1alpha1.ReasonSucceeded, explainSuccess(spec, status.Clusters, countEmpty(waves), o.unmet)
	case v1alpha1.RolloutSuperseded:
		return Stuck, v1alpha1.ReasonSuperseded, cmp.Or(readAbortReason(spec), status.Message)
	case v1alpha1.RolloutAborted:
		return Stuck, v1alpha1.ReasonAborted, explainAbort(spec, failures, status.Message)
	case v1alpha1.RolloutRolledBack:
		return Stuck, v1alpha1.ReasonRolledBack, explainRollback(spec.Abort, failures, status.Message)
	case v1alpha1.RolloutPaused:
		return Underway, v1alpha1.ReasonPaused, "paused" + prefixColon(spec.PausedReason) +
			"; clusters that were already admitted finish their update"
	case v1alpha1.RolloutHalted:
		reason, message = explainHalt(spec, halted, failures, o.unmet, status.Clusters)
		return Stuck, reason, message
	}
	place := slices.IndexFunc(status.Waves, func(w v1alpha1.WaveStatus) bool { return w.Name == status.CurrentWave })
	if place < 0 {
		return Underway, v1alpha1.ReasonProgressing, "no wave is left"
	}
	w, phase := &waves[place], status.Waves[place].Phase
	isBeforeVerification := phase == v1alpha1.WaveUpdating || phase == v1alpha1.WaveWaiting
	switch {
	case phase == v1alpha1.WaveVerifying && w.failedGate == nil && w.unobserved != nil:
		return Stuck, v1alpha1.ReasonNotObserved, explainNotObserved(o.in.Rollout, w)
	case isBeforeVerification && !w.isChanging() &&
		isBlockedByDeferred(o.in.Rollout, o.strategy, waves, place, o.in.Now):
		return Stuck, v1alpha1.ReasonTooManyDeferred, explainDeferred(w)
	}
	reason, message = explainWave(w, phase, o.pace)
	return Underway, reason, message
}

// explainSuccess counts the clusters of a rollout that succeeded, and says why no more clusters are admitted.
func explainSuccess(spec v1alpha1.OperatorRolloutSpec, c v1alpha1.WaveCounts, empty int32, unmet string) string {
	text := formatProgress(c, empty, describeChange(spec.Release.AsInstalled))
	for _, group := range []struct {
		n     int32
		state string
	}{
		{c.Failed, "failed"}, {c.Deferred, "deferred"},
		{c.InProgress, "in progress"}, {c.Pending, "joined late and wait for their turn"},
	} {
		if group.n > 0 {
			text += fmt.Sprintf(", %d %s", group.n, group.state)
		}
	}
	if spec.Blocked != "" {
		text += fmt.Sprintf("; %s is blocked since, and no other cluster is admitted: %s", spec.Release.Version,
			spec.Blocked)
	}
	if unmet != "" {
		text += "; no other cluster is admitted: " + unmet
	}
	switch {
	case spec.Abort != nil:
		text += "; aborted since, and no other cluster is admitted" + prefixColon(readAbortReason(spec))
	case spec.Paused:
		text += "; paused, and no other cluster is admitted" + prefixColon(spec.PausedReason)
	}
	return phrase.Truncate(text, maxMessage)
}

// explainAbort says why a rollout is aborted. failures describes the failed wave. If it is empty and no person aborted
// the rollout, the earlier message stays.
func explainAbort(spec v1alpha1.OperatorRolloutSpec, failures, previousMessage string) string {
	switch {
	case spec.Abort != nil:
		return "aborted" + prefixColon(readAbortReason(spec))
	case failures != "":
		return "aborted, as its failure policy says: " + failures
	}
	return cmp.Or(previousMessage, "aborted, as its failure policy says")
}

// explainHalt says why a rollout is halted and what a person can do. failures describes the failed wave; it is empty
// if no wave failed.
func explainHalt(spec v1alpha1.OperatorRolloutSpec, halted *judgedWave, failures, unmet string,
	c v1alpha1.WaveCounts) (reason, message string) {
	switch {
	case spec.Blocked != "":
		return v1alpha1.ReasonVersionBlocked, fmt.Sprintf("%s is blocked: %s; no other cluster is admitted, %s "+
			"updated before; lift the block, or let the ManagedOperator ask for another version", spec.Release.Version,
			spec.Blocked, phrase.Part(c.Succeeded, c.Total-c.Removed, "cluster"))
	case halted == nil:
		return v1alpha1.ReasonPolicyNotMet, explainUnmet(unmet)
	case !halted.hasTooManyFailed:
		return v1alpha1.ReasonGateFailed, explainGate(halted)
	case spec.Release.AsInstalled:
		return v1alpha1.ReasonHalted, explainAdoptionHalt(failures, spec.Release.Package)
	}
	return v1alpha1.ReasonHalted, fmt.Sprintf("%s; nothing more is admitted until %s: repair, pause or retry %s, or "+
		"set another version", failures, phrase.Word(halted.Failed, "it recovers", "they recover"),
		phrase.Word(halted.Failed, "it", "them"))
}

// maxNamed is the maximum number of clusters that a message lists.
const maxNamed = 5

// explainFailures describes the failed gate of a wave, or lists the clusters that failed.
func explainFailures(w *judgedWave, installs map[string]*Install) string {
	if !w.hasTooManyFailed {
		return fmt.Sprintf("gate %s of wave %s failed: %s", w.failedGate.Name, w.Name, w.failedGate.Evidence)
	}
	var names []string
	for i := range w.members {
		m := &w.members[i]
		switch {
		case m.Class != ClassFailed: // not listed
		case w.asInstalled:
			names = append(names, explainNotTakenOver(m, installs[m.Cluster]))
		default:
			names = append(names, fmt.Sprintf("%s (%s)", m.Cluster, m.Reason))
		}
	}
	return fmt.Sprintf("wave %s: %s failed, %d allowed: %s", w.Name, phrase.Count(len(names), "cluster"), w.maxFailures,
		phrase.First(names, maxNamed))
}

// explainWave says what a wave in this phase waits for, if the rollout is not stuck. A pace of 0 comes before holds,
// and holds come before the progress of the wave.
func explainWave(w *judgedWave, phase v1alpha1.WavePhase, pace *v1alpha1.PaceStatus) (reason, message string) {
	if phase == v1alpha1.WaveUpdating && w.Pending > 0 && pace != nil && pace.Percent == 0 {
		return pace.Reason, explainProgress(w) + "; no cluster is admitted: " + pace.Evidence
	}
	if reason, message := explainHeld(w); reason != "" && phase == v1alpha1.WaveUpdating {
		return reason, message
	}
	switch {
	case phase == v1alpha1.WaveGated:
		return v1alpha1.ReasonGated, fmt.Sprintf("wave %s waits for gate %s: %s %s to be approved", w.Name,
			findMissingApproval(w.Gates, w.gates), phrase.Count(w.present, "cluster"),
			phrase.Word(w.present, "has", "have"))
	case phase == v1alpha1.WaveSoaking && w.unready > 0:
		return v1alpha1.ReasonSoaking, explainUnready(w)
	case phase == v1alpha1.WaveSoaking:
		return v1alpha1.ReasonSoaking, fmt.Sprintf("wave %s soaks until %s: %s", w.Name,
			phrase.Time(computeSoakEnd(w)), formatWaveProgress(w)) + explainSlowPace(pace)
	case phase == v1alpha1.WaveVerifying:
		return v1alpha1.ReasonVerifying, explainVerifying(w)
	}
	return v1alpha1.ReasonProgressing, explainProgress(w) + explainSlowPace(pace)
}

// explainDeferred lists the deferred clusters that block the next wave, and says what a person can do.
func explainDeferred(w *judgedWave) string {
	var names []string
	for i := range w.members {
		if w.members[i].Class == ClassDeferred {
			names = append(names, w.members[i].Cluster)
		}
	}
	return fmt.Sprintf("wave %s: %s deferred because offline, paused or held back (%s); bring them back, take them "+
		"out of the selection, or raise maxDeferred", w.Name, phrase.Count(w.Deferred, "cluster"),
		phrase.First(names, maxNamed))
}

// explainProgress says how many clusters of a wave are done and how many are in progress.
func explainProgress(w *judgedWave) string {
	return fmt.Sprintf("wave %s: %s, %d in progress", w.Name, formatWaveProgress(w), w.InProgress)
}

// formatWaveProgress says how many clusters of a wave are done: "0 of 1 cluster updated".
func formatWaveProgress(w *judgedWave) string {
	return formatProgress(v1alpha1.WaveCounts(w.counts), w.empty, describeChange(w.asInstalled))
}

// formatProgress says how many clusters are done. empty is the number of clusters that had no installed operator to
// take over. changed is the verb for the other clusters, such as "updated".
func formatProgress(c v1alpha1.WaveCounts, empty int32, changed string) string {
	empty = min(empty, c.Succeeded)
	text := phrase.Part(c.Succeeded-empty, c.Total-c.Removed, "cluster") + " " + changed
	if empty > 0 {
		text += fmt.Sprintf(", %d had nothing to take over", empty)
	}
	return text
}

// explainUnready lists the clusters that are in their grace, and says when the first of these clusters counts
// as failed.
func explainUnready(w *judgedWave) string {
	var names []string
	var earliest time.Time
	for i := range w.members {
		m := &w.members[i]
		if !m.isUnready() {
			continue
		}
		names = append(names, m.Cluster)
		if !m.Until.IsZero() && (earliest.IsZero() || m.Until.Before(earliest)) {
			earliest = m.Until
		}
	}
	consequence := fmt.Sprintf("%s as failed at %s unless it recovers",
		phrase.Word(len(names), "counts", "the first of them counts"), phrase.Time(earliest))
	if earliest.IsZero() {
		consequence = "no time runs while a FleetFreeze stops changes there" // a frozen member has no Until
	}
	return fmt.Sprintf("wave %s: %s %s not Ready (%s) and %s; the soak waits meanwhile, %s", w.Name,
		phrase.Count(len(names), "cluster"), phrase.Word(len(names), "is", "are"), phrase.First(names, maxNamed),
		consequence, formatWaveProgress(w))
}

// readAbortReason returns the reason of the abort, or "" if the rollout is not aborted.
func readAbortReason(spec v1alpha1.OperatorRolloutSpec) string {
	if spec.Abort == nil {
		return ""
	}
	return spec.Abort.Reason
}

// prefixColon returns ": " and the text, or "" if the text is empty.
func prefixColon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
