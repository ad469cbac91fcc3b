// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// collectDecisionFacts returns all decisions that are in force, and the names of the rollouts that were examined. The
// name of the operator itself is "".
func collectDecisionFacts(in DecisionLogInput) ([]decisionFact, map[string]bool) {
	facts, watched := listOperatorFacts(in.Operator), map[string]bool{"": true}
	all := slices.Clone(in.Rollouts)
	slices.SortFunc(all, func(a, b v1alpha1.OperatorRollout) int {
		return cmp.Compare(a.Spec.Revision, b.Spec.Revision)
	})
	for i := range all {
		if r := &all[i]; i >= len(all)-watchedRollouts || !r.Status.Phase.Ended() {
			watched[r.Name] = true
			facts = append(facts, listRolloutFacts(r)...)
		}
	}
	return facts, watched
}

// watchedRollouts is how many of the newest rollouts are examined even if they ended. The rollout before the newest
// might have ended after it was examined last.
const watchedRollouts = 2

const versionPrefix = "version "

// parseSubjectVersion returns the version in the subject of a hold.
func parseSubjectVersion(subject string) string {
	_, version, _ := strings.Cut(subject, versionPrefix)
	return version
}

// buildHoldFact returns the fact for a hold. Earlier versions of the hub recorded holds of settings as holds of
// versions. Such a fact keeps its subject, so that no end of the hold is recorded.
func buildHoldFact(o *v1alpha1.ManagedOperator, h v1alpha1.VersionHold) decisionFact {
	f := decisionFact{What: v1alpha1.DecisionVersionHeld, On: versionPrefix + h.Version, Reason: h.Reason, At: h.Since}
	if !h.IsByPerson() {
		f.By = v1alpha1.DecidedByHub
	}
	if log := o.Status.Decisions; log != nil && slices.Contains(log.InForce, f.buildKey()) {
		return f
	}
	f.On = h.Subject()
	return f
}

// listOperatorFacts returns the decisions in the operator's spec: holds, pause, restart, approval and removal.
func listOperatorFacts(o *v1alpha1.ManagedOperator) []decisionFact {
	var facts []decisionFact
	for _, h := range o.Spec.Holds {
		facts = append(facts, buildHoldFact(o, h))
	}
	if o.Spec.Paused {
		facts = append(facts, decisionFact{What: v1alpha1.DecisionPaused})
	}
	if o.Spec.Restart != "" {
		facts = append(facts, decisionFact{What: v1alpha1.DecisionRestartRequested, On: "restart " + o.Spec.Restart})
	}
	if u := o.Spec.Updates; u != nil && u.Approved != nil {
		facts = append(facts, decisionFact{What: v1alpha1.DecisionApproved, By: u.Approved.By,
			On: versionPrefix + u.Approved.Version, Reason: u.Approved.Reason, At: u.Approved.At})
	}
	if r := o.Spec.Removal; r != nil && r.Confirm != "" {
		facts = append(facts, decisionFact{What: v1alpha1.DecisionRemovalConfirmed, On: "request " + r.Confirm})
	}
	return facts
}

// listRolloutFacts returns the decisions in a rollout's spec, and the unmet policy in its conditions.
func listRolloutFacts(r *v1alpha1.OperatorRollout) []decisionFact {
	facts := listGateFacts(r)
	add := func(decision v1alpha1.DecisionReason, by, subject, reason string, at metav1.Time) {
		facts = append(facts, decisionFact{Rollout: r.Name, What: decision, By: by, On: subject, Reason: reason,
			At: at})
	}
	noTime := metav1.Time{}
	spec := r.Spec
	if o := spec.WindowOverride; o != nil {
		add(v1alpha1.DecisionWindowsOverridden, o.By, "", o.Reason, o.At)
	}
	if spec.Paused {
		add(v1alpha1.DecisionPaused, "", "", spec.PausedReason, noTime)
	}
	if spec.Retries > 0 {
		add(v1alpha1.DecisionRetried, "", fmt.Sprintf("attempt %d", spec.Retries), "", noTime)
	}
	if spec.Blocked != "" {
		add(v1alpha1.DecisionBlocked, "", versionPrefix+spec.Release.Version, spec.Blocked, noTime)
	}
	if b := spec.Rollback; b != nil {
		by := ""
		if b.Automatic {
			by = v1alpha1.DecidedByHub
		}
		add(v1alpha1.DecisionRollbackStarted, by, fmt.Sprintf("%s%s, brought by %s", versionPrefix, b.Version, b.Of),
			b.Reason, noTime)
	}
	switch a := spec.Abort; {
	case a == nil: // the rollout is not aborted
	case a.Rollback != nil:
		add(v1alpha1.DecisionRollbackRequested, "", versionPrefix+spec.Release.VersionText(), a.Reason, noTime)
	case a.Superseded:
		add(v1alpha1.DecisionSuperseded, v1alpha1.DecidedByHub, "", a.Reason, noTime)
	default:
		add(v1alpha1.DecisionAborted, "", "", a.Reason, noTime)
	}
	if c := conditions.Get(r.Status.Conditions, v1alpha1.ConditionReady); c.Reason == v1alpha1.ReasonPolicyNotMet {
		add(v1alpha1.DecisionPolicyNotMet, v1alpha1.DecidedByHub, "", c.Message, noTime)
	}
	return facts
}

// listGateFacts returns the approvals and overrides of a rollout's gates.
func listGateFacts(r *v1alpha1.OperatorRollout) []decisionFact {
	var facts []decisionFact
	for _, a := range r.Spec.Approvals {
		facts = append(facts, decisionFact{Rollout: r.Name, What: v1alpha1.DecisionApproved, By: a.By,
			On: formatGateSubject(a.Wave, a.Gate), Reason: a.Reason, At: a.At})
	}
	for _, o := range r.Spec.Overrides {
		facts = append(facts, decisionFact{Rollout: r.Name, What: v1alpha1.DecisionGateOverridden, By: o.By,
			On: formatGateSubject(o.Wave, o.Gate), Reason: o.Reason, At: o.At})
	}
	return facts
}

// formatGateSubject returns the subject of a decision on a gate.
func formatGateSubject(wave, gate string) string { return "gate " + gate + " of wave " + wave }
