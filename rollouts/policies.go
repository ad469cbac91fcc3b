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
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/policy"
)

// PolicyOperator is the operator of a rollout, as RolloutPolicies see it.
func PolicyOperator(ro *v1alpha1.OperatorRollout, labels map[string]string) policy.Operator {
	return policy.Operator{
		OperatorReference: v1alpha1.OperatorReference{Namespace: ro.Namespace, Name: ro.Spec.Operator.Name},
		Labels:            labels, Applied: ro.Status.Policies,
	}
}

// bind applies the RolloutPolicies to the waves. They bind every wave that is not
// verified as they are now, so one that becomes stricter does so in a rollout that
// runs. A rollback ignores them.
func (p *pass) bind() {
	if p.isBack() || len(p.in.Policies) == 0 {
		return
	}
	set := policy.Read(p.in.Policies, PolicyOperator(p.in.Rollout, p.in.OperatorLabels))
	members := make([]policy.Wave, len(p.waves))
	labels := map[string]map[string]string{}
	for _, c := range p.in.Clusters {
		labels[c.Name] = c.Labels
	}
	places := map[string]int{}
	for i, w := range p.waves {
		places[w.Name] = i
	}
	for _, install := range p.in.Installs {
		i, ok := places[install.Wave]
		if !ok || install.Rollout != p.in.Rollout.Name {
			continue
		}
		members[i].Total++
		members[i].Clusters = append(members[i].Clusters, labels[install.Cluster])
	}
	for i, w := range p.waves {
		was := p.priorWave(w.Name)
		members[i].Total = max(members[i].Total, int(was.Total))
		members[i].Verified = was.VerifiedAt != nil
		for _, g := range was.Gates {
			members[i].Judged = append(members[i].Judged, g.Name)
		}
	}
	outcome := bindWaves(set, p.waves, members, p.prior.Phase == v1alpha1.RolloutSucceeded)
	p.policies, p.unmet = outcome.Applied, outcome.Unmet
}

// bindWaves writes into waves what policies ask for. The members of the waves are
// given by place.
func bindWaves(set *policy.Set, waves []wave, members []policy.Wave, done bool) policy.Outcome {
	for i, w := range waves {
		members[i].Wave, members[i].TakesAll = w.Wave, takesAll(w.Wave)
	}
	outcome := set.Apply(members, done)
	for i, b := range outcome.Waves {
		waves[i].Wave, waves[i].caps = b.Wave, b.Caps
		waves[i].Gates = withDefaults(b.Gates, b.Soak.Duration)
	}
	outcome.Unmet = cmp.Or(outcome.Unmet, reservedGate(outcome.Waves), invalidGates(set, outcome.Applied))
	return outcome
}

// reservedGate says that a policy has a gate with the name of the one that waves have by themselves, which policies
// from before that gate may have; empty where none has.
func reservedGate(waves []policy.Bound) string {
	for _, w := range waves {
		if slices.ContainsFunc(w.Gates, func(g v1alpha1.Gate) bool { return g.Name == v1alpha1.GateObservation }) {
			return fmt.Sprintf("a RolloutPolicy adds gate %s, which is the name of a gate that Bellwether adds "+
				"itself; give the policy or its gate another name", v1alpha1.GateObservation)
		}
	}
	return ""
}

// invalidGates says which policy has a gate that can never be passed; empty if none
// has.
func invalidGates(set *policy.Set, applied []v1alpha1.AppliedPolicy) string {
	gates := set.Gates()
	for _, a := range applied {
		some := v1alpha1.Wave{Gates: gates[a.Name], Size: new(intstr.FromInt32(1))}
		if problems := validateGates(some, field.NewPath("spec"), slo.Scope{}); len(problems) > 0 {
			return fmt.Sprintf("RolloutPolicy %s is not valid: %v; correct or delete it", a.Name,
				problems.ToAggregate())
		}
	}
	return ""
}

// reportedGates are the gates of a wave in a phase. A wave that is verified, or whose
// rollout ended, keeps the verdicts on gates that nothing asks for any more. One that is
// skipped has none, but for the approvals that clusters wait for which joined it later.
func (p *pass) reportedGates(s *waveState, phase v1alpha1.WavePhase) []v1alpha1.GateStatus {
	if phase == v1alpha1.WaveSkipped {
		return slices.DeleteFunc(slices.Clone(s.gates), func(g v1alpha1.GateStatus) bool {
			return !g.Approval || s.present == 0
		})
	}
	gates := slices.DeleteFunc(slices.Clone(s.gates), func(g v1alpha1.GateStatus) bool {
		return g.Name == v1alpha1.GateObservation // of a policy, which is not met
	})
	if s.observation != nil {
		gates = append(gates, *s.observation)
	}
	if !s.prior.IsDone() && !p.ending() {
		return gates
	}
	for _, was := range s.prior.Gates {
		if !slices.ContainsFunc(gates, func(g v1alpha1.GateStatus) bool { return g.Name == was.Name }) {
			was.WaitingSince = nil // nobody waits for it any more
			gates = append(gates, was)
		}
	}
	return gates
}

// isRecordedShut tells, for whoever has no policies to look at, whether the status has
// an approval that is missing and that the strategy does not ask for.
func (s *waveState) isRecordedShut() bool {
	return slices.ContainsFunc(s.prior.Gates, func(g v1alpha1.GateStatus) bool {
		return g.Approval && !g.IsPassed() &&
			!slices.ContainsFunc(s.Gates, func(own v1alpha1.Gate) bool { return own.Name == g.Name })
	})
}

// appliedPolicies is what the status says of policies.
func (p *pass) appliedPolicies() []v1alpha1.AppliedPolicy {
	if p.ending() {
		return p.prior.Policies
	}
	return p.policies
}

// policyEvents tell of each policy that begins to bind the rollout, that binds it
// otherwise than before, and that no longer binds it.
func (p *pass) policyEvents(status v1alpha1.OperatorRolloutStatus) []Event {
	before := map[string]v1alpha1.AppliedPolicy{}
	for _, a := range p.prior.Policies {
		before[a.Name] = a
	}
	var events []Event
	for _, a := range status.Policies {
		was, known := before[a.Name]
		delete(before, a.Name)
		if known && equality.Semantic.DeepEqual(was.Added, a.Added) {
			continue
		}
		text := fmt.Sprintf("RolloutPolicy %s adds nothing to what the strategy asks for", a.Name)
		if len(a.Added) > 0 {
			text = fmt.Sprintf("RolloutPolicy %s adds: %s", a.Name, strings.Join(a.Added, "; "))
		}
		if known {
			text += fmt.Sprintf(" (before: %s)", cmp.Or(strings.Join(was.Added, "; "), "nothing"))
		}
		events = append(events, Event{Reason: "PolicyApplied", Message: phrase.Truncate(text, maxEventNote)})
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		events = append(events, Event{Reason: "PolicyLifted", Message: phrase.Truncate(fmt.Sprintf(
			"RolloutPolicy %s no longer binds the rollout; it had added: %s", name,
			cmp.Or(strings.Join(before[name].Added, "; "), "nothing")), maxEventNote)})
	}
	return events
}

// explainUnmet says what the rollout cannot meet.
func (p *pass) explainUnmet() string {
	return phrase.Truncate(p.unmet+"; nothing is admitted until then", maxMessage)
}

// WaveSpec is a wave of a rollout's strategy, with the soak that RolloutPolicies ask
// for. Their gates are in the rollout's status only.
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

// GatesOf lists the gates of a rollout, those that RolloutPolicies add included:
// approvals, or those that judge the release.
func GatesOf(ro *v1alpha1.OperatorRollout, approvals bool) []GateRef {
	var all []GateRef
	known := map[GateRef]bool{}
	for _, w := range ro.Spec.Strategy.Waves {
		for _, g := range w.Gates {
			known[GateRef{w.Name, g.Name}] = true
			if (g.Approval != nil) == approvals {
				all = append(all, GateRef{w.Name, g.Name})
			}
		}
	}
	for _, w := range ro.Status.Waves {
		for _, g := range w.Gates {
			if ref := (GateRef{w.Name, g.Name}); !known[ref] && g.Approval == approvals {
				all = append(all, ref)
			}
		}
	}
	return all
}
