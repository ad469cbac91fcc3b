// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit keeps the trail of what people and the hub decided about an
// operator. It compares what holds in specs now with what was recorded before, so
// that it needs no events and no order. It is pure, and the one place that adds to
// the trail.
package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Limits of the API.
const (
	maxEntries = 50
	maxInForce = 300
	maxOn      = 256
	maxReason  = 512
)

// fact is a decision that holds now.
type fact v1alpha1.Decision

// ends says what the end of a fact is called. The end of the others is no decision.
var ends = map[v1alpha1.DecisionReason]v1alpha1.DecisionReason{
	v1alpha1.DecisionApproved:          v1alpha1.DecisionApprovalWithdrawn,
	v1alpha1.DecisionGateOverridden:    v1alpha1.DecisionGateOverrideWithdrawn,
	v1alpha1.DecisionWindowsOverridden: v1alpha1.DecisionWindowOverrideWithdrawn,
	v1alpha1.DecisionPaused:            v1alpha1.DecisionResumed,
	v1alpha1.DecisionBlocked:           v1alpha1.DecisionUnblocked,
	v1alpha1.DecisionVersionHeld:       v1alpha1.DecisionHoldLifted,
	v1alpha1.DecisionPolicyNotMet:      v1alpha1.DecisionPolicyMet,
}

// Input is what the trail is brought up to date with.
type Input struct {
	Now      time.Time
	Operator *v1alpha1.ManagedOperator
	// Rollouts of the operator, in any order. What was decided about one that ended
	// and is not the newest does not change any more.
	Rollouts []v1alpha1.OperatorRollout
	// LiftsHolds tells whether the hub itself lifts the hold of a version.
	LiftsHolds func(version string) bool
}

// Update returns the trail as it is now, and the entries that are new, the oldest
// first. It does not change the trail in the status of the operator.
func Update(in Input) (*v1alpha1.DecisionLog, []v1alpha1.Decision) {
	log := in.Operator.Status.Decisions.DeepCopy()
	if log == nil {
		log = &v1alpha1.DecisionLog{}
	}
	facts, watched := collect(in)
	var fresh []v1alpha1.Decision
	inForce := make([]string, 0, len(facts))
	for _, f := range facts[:min(len(facts), maxInForce)] {
		key := f.key()
		if !slices.Contains(log.InForce, key) {
			fresh = append(fresh, f.entry(in.Now))
		}
		inForce = append(inForce, key)
	}
	for _, key := range log.InForce {
		if f, ok := ended(key, facts, watched); ok {
			if f.What == v1alpha1.DecisionHoldLifted && in.LiftsHolds != nil && in.LiftsHolds(versionOf(f.On)) {
				f.By = v1alpha1.DecidedByHub
			}
			fresh = append(fresh, f.entry(in.Now))
		}
	}
	slices.SortStableFunc(fresh, func(a, b v1alpha1.Decision) int { return a.At.Compare(b.At.Time) })
	log.InForce = inForce
	push(log, fresh)
	if len(log.Entries) == 0 && len(log.InForce) == 0 {
		return nil, nil
	}
	return log, fresh
}

// push puts entries before those that are there, and drops the oldest.
func push(log *v1alpha1.DecisionLog, fresh []v1alpha1.Decision) {
	newest := slices.Clone(fresh)
	slices.Reverse(newest)
	all := append(newest, log.Entries...)
	if more := len(all) - maxEntries; more > 0 {
		log.Dropped += int64(more)
		all = all[:maxEntries]
	}
	log.Entries = all
}

// ended returns the end of a fact that was in force and is not any more; false where
// that is no decision, or the rollout is gone, or the same was decided anew.
func ended(key string, facts []fact, watched map[string]bool) (fact, bool) {
	parts := strings.Split(key, separator)
	if len(parts) != keyParts {
		return fact{}, false
	}
	f := fact{Rollout: parts[0], What: v1alpha1.DecisionReason(parts[1]), On: parts[2]}
	end, isDecision := ends[f.What]
	if !isDecision || !watched[f.Rollout] || slices.ContainsFunc(facts, func(o fact) bool {
		return o.Rollout == f.Rollout && o.What == f.What && (clean(o.On) == f.On || o.replaces(f))
	}) {
		return fact{}, false
	}
	f.What = end
	return f, true
}

const (
	separator = "|"
	keyParts  = 4
)

// key identifies a fact: another signature or reason is another fact.
func (f fact) key() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{f.By, f.Reason, f.At.UTC().Format(time.RFC3339)}, separator)))
	return strings.Join([]string{f.Rollout, string(f.What), clean(f.On), hex.EncodeToString(sum[:4])}, separator)
}

// clean is a text that can be a part of a key.
func clean(text string) string {
	return phrase.Truncate(strings.ReplaceAll(phrase.OneLine(text), separator, "/"), maxOn)
}

// replaces tells whether a decision is instead of one about something else: an operator has the approval of one version
// only, and the approval of the next one withdraws none.
func (f fact) replaces(o fact) bool { return f.Rollout == "" && o.What == v1alpha1.DecisionApproved }

func (f fact) entry(now time.Time) v1alpha1.Decision {
	d := v1alpha1.Decision(f)
	d.On, d.Reason = clean(f.On), phrase.Truncate(phrase.OneLine(f.Reason), maxReason)
	if d.At.IsZero() {
		d.At = metav1.Time{Time: now.UTC().Truncate(time.Second)}
	}
	return d
}

// Text is a decision in a sentence.
func Text(d v1alpha1.Decision) string {
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
	return phrase.Truncate(text, maxText)
}

// maxText keeps an Event within the limit of its API.
const maxText = 1000
