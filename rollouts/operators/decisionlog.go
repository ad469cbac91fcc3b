// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// The API's limits.
const (
	maxLogEntries    = 50
	maxFactsInForce  = 300
	maxLoggedSubject = 256
	maxLoggedReason  = 512
)

// decisionFact is a decision that is in force now.
type decisionFact v1alpha1.Decision

// decisionEndReasons are the reasons of the decision that ends a fact. The end of other facts is not a decision.
var decisionEndReasons = map[v1alpha1.DecisionReason]v1alpha1.DecisionReason{
	v1alpha1.DecisionApproved:          v1alpha1.DecisionApprovalWithdrawn,
	v1alpha1.DecisionGateOverridden:    v1alpha1.DecisionGateOverrideWithdrawn,
	v1alpha1.DecisionWindowsOverridden: v1alpha1.DecisionWindowOverrideWithdrawn,
	v1alpha1.DecisionPaused:            v1alpha1.DecisionResumed,
	v1alpha1.DecisionBlocked:           v1alpha1.DecisionUnblocked,
	v1alpha1.DecisionVersionHeld:       v1alpha1.DecisionHoldLifted,
	v1alpha1.DecisionPolicyNotMet:      v1alpha1.DecisionPolicyMet,
}

// DecisionLogInput has the data that the log is updated from.
type DecisionLogInput struct {
	Now      time.Time
	Operator *v1alpha1.ManagedOperator
	// Rollouts are the rollouts of the operator, in any order. Decisions about ended rollouts do not change, except
	// for the newest rollouts.
	Rollouts []v1alpha1.OperatorRollout
	// LiftsHolds reports whether the hub itself lifts the hold of a version.
	LiftsHolds func(version string) bool
}

// UpdateDecisionLog returns the updated log of the decisions that people and the hub made about an operator, and the
// new entries, the oldest first: an entry for each fact that is new since the last update, and for each fact whose end
// is a decision. It compares the current specs with the recorded decisions, so it needs no events and no order. No
// other code adds to the log. It does not change the log in the operator's status, and returns nil if the log is empty.
func UpdateDecisionLog(in DecisionLogInput) (*v1alpha1.DecisionLog, []v1alpha1.Decision) {
	log := in.Operator.Status.Decisions.DeepCopy()
	if log == nil {
		log = &v1alpha1.DecisionLog{}
	}
	facts, watched := collectDecisionFacts(in)
	var newEntries []v1alpha1.Decision
	inForce := make([]string, 0, len(facts))
	for _, f := range facts[:min(len(facts), maxFactsInForce)] {
		key := f.buildKey()
		if !slices.Contains(log.InForce, key) {
			newEntries = append(newEntries, f.buildEntry(in.Now))
		}
		inForce = append(inForce, key)
	}
	for _, key := range log.InForce {
		if f, ok := findDecisionEnd(key, facts, watched); ok {
			if f.What == v1alpha1.DecisionHoldLifted && in.LiftsHolds != nil &&
				in.LiftsHolds(parseSubjectVersion(f.On)) {
				f.By = v1alpha1.DecidedByHub
			}
			newEntries = append(newEntries, f.buildEntry(in.Now))
		}
	}
	slices.SortStableFunc(newEntries, func(a, b v1alpha1.Decision) int { return a.At.Compare(b.At.Time) })
	log.InForce = inForce
	prependLogEntries(log, newEntries)
	if len(log.Entries) == 0 && len(log.InForce) == 0 {
		return nil, nil
	}
	return log, newEntries
}

// prependLogEntries adds new entries at the front of the log, and drops the oldest entries.
func prependLogEntries(log *v1alpha1.DecisionLog, newEntries []v1alpha1.Decision) {
	newest := slices.Clone(newEntries)
	slices.Reverse(newest)
	all := append(newest, log.Entries...)
	if more := len(all) - maxLogEntries; more > 0 {
		log.Dropped += int64(more)
		all = all[:maxLogEntries]
	}
	log.Entries = all
}

// findDecisionEnd returns the decision that ended the fact with this key. It returns false if the fact is still in
// force, if its end is not a decision, if the rollout was not examined (watched), or if the same subject was decided
// again.
func findDecisionEnd(key string, facts []decisionFact, watched map[string]bool) (decisionFact, bool) {
	parts := strings.Split(key, keySeparator)
	if len(parts) != keyParts {
		return decisionFact{}, false
	}
	f := decisionFact{Rollout: parts[0], What: v1alpha1.DecisionReason(parts[1]), On: parts[2]}
	end, isDecision := decisionEndReasons[f.What]
	if !isDecision || !watched[f.Rollout] || slices.ContainsFunc(facts, func(o decisionFact) bool {
		return o.Rollout == f.Rollout && o.What == f.What && (cleanKeyPart(o.On) == f.On || o.isReplacing(f))
	}) {
		return decisionFact{}, false
	}
	f.What = end
	return f, true
}

const (
	keySeparator = "|"
	keyParts     = 4
)

// buildKey returns a key of a fact. A fact with another author, reason or time has another key.
func (f decisionFact) buildKey() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{f.By, f.Reason, f.At.UTC().Format(time.RFC3339)}, keySeparator)))
	parts := []string{f.Rollout, string(f.What), cleanKeyPart(f.On), hex.EncodeToString(sum[:4])}
	return strings.Join(parts, keySeparator)
}

// cleanKeyPart returns the text without separators, cut to the maximum length of a subject.
func cleanKeyPart(text string) string {
	return phrase.Truncate(strings.ReplaceAll(phrase.OneLine(text), keySeparator, "/"), maxLoggedSubject)
}

// isReplacing reports whether a decision f replaces a decision o on another subject: an operator has only one approval
// of a version, so the approval of the next version replaces the earlier approval and does not withdraw it.
func (f decisionFact) isReplacing(o decisionFact) bool {
	return f.Rollout == "" && o.What == v1alpha1.DecisionApproved
}

// buildEntry returns the entry of the log for a fact.
func (f decisionFact) buildEntry(now time.Time) v1alpha1.Decision {
	d := v1alpha1.Decision(f)
	d.On, d.Reason = cleanKeyPart(f.On), phrase.Truncate(phrase.OneLine(f.Reason), maxLoggedReason)
	if d.At.IsZero() {
		d.At = metav1.Time{Time: now.UTC().Truncate(time.Second)}
	}
	return d
}

// FormatLoggedDecision describes a decision in a sentence.
func FormatLoggedDecision(d v1alpha1.Decision) string {
	text := string(d.What)
	if d.Rollout != "" {
		text += " in rollout " + d.Rollout
	}
	if d.On != "" {
		text += ", " + d.On
	}
	if d.By != "" {
		text += ", by " + d.By
	}
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	return phrase.Truncate(text, maxLoggedText)
}

// maxLoggedText is the maximum length of the text, so that it fits into an Event.
const maxLoggedText = 1000
