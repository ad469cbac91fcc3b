// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/policy"
)

// PolicyOperator returns the operator of a rollout in the form that RolloutPolicies are evaluated with.
func PolicyOperator(ro *v1alpha1.OperatorRollout, labels map[string]string) policy.Operator {
	return policy.Operator{
		OperatorReference: v1alpha1.OperatorReference{Namespace: ro.Namespace, Name: ro.Spec.Operator.Name},
		Labels:            labels, Applied: ro.Status.Policies,
	}
}

// applyPolicies changes the waves as RolloutPolicies require, and returns the applied policies and an unmet
// requirement. The current policies apply to every wave that is not verified, so a stricter policy also binds rollouts
// that are in progress. A rollback ignores policies.
func applyPolicies(in Input, waves []wave) policy.Outcome {
	if in.Rollout.Spec.Rollback != nil || len(in.Policies) == 0 {
		return policy.Outcome{}
	}
	set := policy.Read(in.Policies, PolicyOperator(in.Rollout, in.OperatorLabels))
	members := make([]policy.Wave, len(waves))
	labels := map[string]map[string]string{}
	for i := range in.Clusters {
		labels[in.Clusters[i].Name] = in.Clusters[i].Labels
	}
	places := map[string]int{}
	for i, w := range waves {
		places[w.Name] = i
	}
	for _, install := range in.Installs {
		i, ok := places[install.Wave]
		if !ok || install.Rollout != in.Rollout.Name {
			continue
		}
		members[i].Total++
		members[i].Clusters = append(members[i].Clusters, labels[install.Cluster])
	}
	for i, w := range waves {
		previous := findPriorWave(in.Rollout.Status, w.Name)
		members[i].Total = max(members[i].Total, int(previous.Total))
		members[i].Verified = previous.VerifiedAt != nil
		for _, g := range previous.Gates {
			members[i].Judged = append(members[i].Judged, g.Name)
		}
	}
	return bindWaves(set, waves, members, in.Rollout.Status.Phase == v1alpha1.RolloutSucceeded)
}

// bindWaves changes the waves as the policies require. members has the members of each wave, in the order of the waves;
// bindWaves completes it. done is true if the rollout has succeeded. The outcome is unmet also if a policy's gate has a
// reserved name or can never pass.
func bindWaves(set *policy.Set, waves []wave, members []policy.Wave, done bool) policy.Outcome {
	for i, w := range waves {
		members[i].Wave, members[i].TakesAll = w.Wave, isCatchAll(w.Wave)
	}
	outcome := set.Apply(members, done)
	for i, b := range outcome.Waves {
		waves[i].Wave, waves[i].caps = b.Wave, b.Caps
		waves[i].Gates = fillGateDefaults(b.Gates, b.Soak.Duration)
	}
	outcome.Unmet = cmp.Or(outcome.Unmet, explainReservedGate(outcome.Waves), explainInvalidGates(set, outcome.Applied))
	return outcome
}

// explainReservedGate says that a policy has a gate with the name of the gate that Bellwether adds. Policies that are
// older than that gate can have such a gate. It returns "" if no policy has one.
func explainReservedGate(waves []policy.BoundWave) string {
	for _, w := range waves {
		if slices.ContainsFunc(w.Gates, func(g v1alpha1.Gate) bool { return g.Name == v1alpha1.GateObservation }) {
			return fmt.Sprintf("a RolloutPolicy adds gate %s, which is the name of a gate that Bellwether adds "+
				"itself; give the policy or its gate another name", v1alpha1.GateObservation)
		}
	}
	return ""
}

// explainInvalidGates says which policy has a gate that can never pass. It returns "" if no policy has such a gate.
func explainInvalidGates(set *policy.Set, applied []v1alpha1.AppliedPolicy) string {
	gates := set.Gates()
	for _, a := range applied {
		example := v1alpha1.Wave{Gates: gates[a.Name], Size: new(intstr.FromInt32(1))}
		if problems := validateGates(example, field.NewPath("spec"), slo.Scope{}); len(problems) > 0 {
			return fmt.Sprintf("RolloutPolicy %s is not valid: %v; correct or delete it", a.Name,
				problems.ToAggregate())
		}
	}
	return ""
}

// listReportedGates returns the gates of a wave for its status, and the extra gate of a wave that was not observed. A
// wave that is done, or whose rollout ended, keeps the verdicts on gates that were withdrawn later. A skipped wave has
// only the approvals that late joiners wait for.
func listReportedGates(w *judgedWave, phase v1alpha1.WavePhase, mayAdmit bool) []v1alpha1.GateStatus {
	if phase == v1alpha1.WaveSkipped {
		return slices.DeleteFunc(slices.Clone(w.gates), func(g v1alpha1.GateStatus) bool {
			return !g.Approval || w.present == 0
		})
	}
	gates := slices.DeleteFunc(slices.Clone(w.gates), func(g v1alpha1.GateStatus) bool {
		return g.Name == v1alpha1.GateObservation // a policy's gate with a reserved name
	})
	if w.unobserved != nil {
		gates = append(gates, *w.unobserved)
	}
	if !w.prior.IsDone() && mayAdmit {
		return gates
	}
	for _, previous := range w.prior.Gates {
		if !slices.ContainsFunc(gates, func(g v1alpha1.GateStatus) bool { return g.Name == previous.Name }) {
			previous.WaitingSince = nil // the wave does not wait for this gate
			gates = append(gates, previous)
		}
	}
	return gates
}

// hasRecordedMissingApproval reports whether the status has a missing approval that the strategy does not have.
// Callers without policies find the approvals that policies require this way.
func hasRecordedMissingApproval(specs []v1alpha1.Gate, prior []v1alpha1.GateStatus) bool {
	return slices.ContainsFunc(prior, func(g v1alpha1.GateStatus) bool {
		return g.Approval && !g.IsPassed() &&
			!slices.ContainsFunc(specs, func(own v1alpha1.Gate) bool { return own.Name == g.Name })
	})
}

// listPolicyEvents returns an event for each policy that starts or stops binding the rollout, or whose requirements
// have changed.
func listPolicyEvents(previous, current []v1alpha1.AppliedPolicy) []Event {
	previousByName := map[string]v1alpha1.AppliedPolicy{}
	for _, a := range previous {
		previousByName[a.Name] = a
	}
	var events []Event
	for _, a := range current {
		previous, wasApplied := previousByName[a.Name]
		delete(previousByName, a.Name)
		if wasApplied && equality.Semantic.DeepEqual(previous.Added, a.Added) {
			continue
		}
		text := fmt.Sprintf("RolloutPolicy %s adds nothing to what the strategy asks for", a.Name)
		if len(a.Added) > 0 {
			text = fmt.Sprintf("RolloutPolicy %s adds: %s", a.Name, strings.Join(a.Added, "; "))
		}
		if wasApplied {
			text += fmt.Sprintf(" (before: %s)", cmp.Or(strings.Join(previous.Added, "; "), "nothing"))
		}
		events = append(events, Event{Reason: "PolicyApplied", Message: phrase.Truncate(text, maxEventNote)})
	}
	for _, name := range slices.Sorted(maps.Keys(previousByName)) {
		events = append(events, Event{Reason: "PolicyLifted", Message: phrase.Truncate(fmt.Sprintf(
			"RolloutPolicy %s no longer binds the rollout; it had added: %s", name,
			cmp.Or(strings.Join(previousByName[name].Added, "; "), "nothing")), maxEventNote)})
	}
	return events
}

// explainUnmet says which requirement of a policy the rollout does not meet.
func explainUnmet(unmet string) string {
	return phrase.Truncate(unmet+"; nothing is admitted until then", maxMessage)
}

// WaveSpec returns a wave of a rollout's strategy, with the soak that RolloutPolicies require. The gates of
// RolloutPolicies are not included; the rollout's status has them.
func WaveSpec(ro *v1alpha1.OperatorRollout, name string) v1alpha1.Wave {
	spec := v1alpha1.Wave{Name: name}
	for _, w := range ro.Spec.Strategy.Waves {
		if w.Name == name {
			spec = *w.DeepCopy()
		}
	}
	for _, w := range ro.Status.Waves {
		if w.Name == name && w.Soak != nil {
			spec.Soak = w.Soak
		}
	}
	return spec
}

// GateRef names a gate of a rollout.
type GateRef struct{ Wave, Gate string }

// GatesOf lists the gates of a rollout, including the gates of RolloutPolicies that its status has. If approvals is
// true, it lists the approvals, else the gates that judge the release.
func GatesOf(ro *v1alpha1.OperatorRollout, approvals bool) []GateRef {
	var all []GateRef
	isListed := map[GateRef]bool{}
	for _, w := range ro.Spec.Strategy.Waves {
		for _, g := range w.Gates {
			isListed[GateRef{w.Name, g.Name}] = true
			if (g.Approval != nil) == approvals {
				all = append(all, GateRef{w.Name, g.Name})
			}
		}
	}
	for _, w := range ro.Status.Waves {
		for _, g := range w.Gates {
			if ref := (GateRef{w.Name, g.Name}); !isListed[ref] && g.Approval == approvals {
				all = append(all, ref)
			}
		}
	}
	return all
}
