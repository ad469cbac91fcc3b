// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// collect lists everything that was decided and holds now, and the rollouts that were
// looked at; the operator itself has no name there.
func collect(in Input) ([]fact, map[string]bool) {
	facts, watched := ofOperator(in.Operator), map[string]bool{"": true}
	all := slices.Clone(in.Rollouts)
	slices.SortFunc(all, func(a, b v1alpha1.OperatorRollout) int {
		return cmp.Compare(a.Spec.Revision, b.Spec.Revision)
	})
	for i := range all {
		if r := &all[i]; i >= len(all)-watchedRollouts || !r.Status.Phase.Ended() {
			watched[r.Name] = true
			facts = append(facts, ofRollout(r)...)
		}
	}
	return facts, watched
}

// watchedRollouts are the newest ones, also if they ended: the last look at the one
// before the newest may have been before it ended.
const watchedRollouts = 2

const versionPrefix = "version "

// versionOf is the version of what is held, which may be its settings only.
func versionOf(on string) string {
	_, version, _ := strings.Cut(on, versionPrefix)
	return version
}

// ofHold is a hold. Hubs of earlier versions recorded those of settings like those of versions: what they recorded
// goes on, so that no end of it is recorded.
func ofHold(o *v1alpha1.ManagedOperator, h v1alpha1.VersionHold) fact {
	f := fact{What: v1alpha1.DecisionVersionHeld, On: versionPrefix + h.Version, Reason: h.Reason, At: h.Since}
	if !h.IsByPerson() {
		f.By = v1alpha1.DecidedByHub
	}
	if log := o.Status.Decisions; log != nil && slices.Contains(log.InForce, f.key()) {
		return f
	}
	f.On = h.Subject()
	return f
}

func ofOperator(o *v1alpha1.ManagedOperator) []fact {
	var facts []fact
	for _, h := range o.Spec.Holds {
		facts = append(facts, ofHold(o, h))
	}
	if o.Spec.Paused {
		facts = append(facts, fact{What: v1alpha1.DecisionPaused})
	}
	if o.Spec.Restart != "" {
		facts = append(facts, fact{What: v1alpha1.DecisionRestartRequested, On: "restart " + o.Spec.Restart})
	}
	if u := o.Spec.Updates; u != nil && u.Approved != nil {
		facts = append(facts, fact{What: v1alpha1.DecisionApproved, By: u.Approved.By,
			On: versionPrefix + u.Approved.Version, Reason: u.Approved.Reason, At: u.Approved.At})
	}
	if r := o.Spec.Removal; r != nil && r.Confirm != "" {
		facts = append(facts, fact{What: v1alpha1.DecisionRemovalConfirmed, On: "request " + r.Confirm})
	}
	return facts
}

func ofRollout(r *v1alpha1.OperatorRollout) []fact {
	facts := ofGates(r)
	add := func(what v1alpha1.DecisionReason, by, on, reason string, at metav1.Time) {
		facts = append(facts, fact{Rollout: r.Name, What: what, By: by, On: on, Reason: reason, At: at})
	}
	none := metav1.Time{}
	spec := r.Spec
	if o := spec.WindowOverride; o != nil {
		add(v1alpha1.DecisionWindowsOverridden, o.By, "", o.Reason, o.At)
	}
	if spec.Paused {
		add(v1alpha1.DecisionPaused, "", "", spec.PausedReason, none)
	}
	if spec.Retries > 0 {
		add(v1alpha1.DecisionRetried, "", fmt.Sprintf("attempt %d", spec.Retries), "", none)
	}
	if spec.Blocked != "" {
		add(v1alpha1.DecisionBlocked, "", versionPrefix+spec.Release.Version, spec.Blocked, none)
	}
	if b := spec.Rollback; b != nil {
		by := ""
		if b.Automatic {
			by = v1alpha1.DecidedByHub
		}
		add(v1alpha1.DecisionRollbackStarted, by, fmt.Sprintf("%s%s, brought by %s", versionPrefix, b.Version, b.Of),
			b.Reason, none)
	}
	switch a := spec.Abort; {
	case a == nil:
	case a.Rollback != nil:
		add(v1alpha1.DecisionRollbackRequested, "", versionPrefix+spec.Release.VersionText(), a.Reason, none)
	case a.Superseded:
		add(v1alpha1.DecisionSuperseded, v1alpha1.DecidedByHub, "", a.Reason, none)
	default:
		add(v1alpha1.DecisionAborted, "", "", a.Reason, none)
	}
	if c := conditions.Get(r.Status.Conditions, v1alpha1.ConditionReady); c.Reason == v1alpha1.ReasonPolicyNotMet {
		add(v1alpha1.DecisionPolicyNotMet, v1alpha1.DecidedByHub, "", c.Message, none)
	}
	return facts
}

func ofGates(r *v1alpha1.OperatorRollout) []fact {
	var facts []fact
	for _, a := range r.Spec.Approvals {
		facts = append(facts, fact{Rollout: r.Name, What: v1alpha1.DecisionApproved, By: a.By,
			On: gateText(a.Wave, a.Gate), Reason: a.Reason, At: a.At})
	}
	for _, o := range r.Spec.Overrides {
		facts = append(facts, fact{Rollout: r.Name, What: v1alpha1.DecisionGateOverridden, By: o.By,
			On: gateText(o.Wave, o.Gate), Reason: o.Reason, At: o.At})
	}
	return facts
}

func gateText(wave, gate string) string { return "gate " + gate + " of wave " + wave }
