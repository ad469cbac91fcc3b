// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// judgeGates gives the verdict on each gate of a wave, in order. A gate of a kind
// that this version does not know stays shut.
func (p *pass) judgeGates(w wave) []v1alpha1.GateStatus {
	gates := make([]v1alpha1.GateStatus, 0, len(w.Gates))
	for _, g := range w.Gates {
		gates = append(gates, p.judgeApproval(w.Name, g))
	}
	return gates
}

func (p *pass) judgeApproval(waveName string, g v1alpha1.Gate) v1alpha1.GateStatus {
	status := v1alpha1.GateStatus{Name: g.Name, Verdict: v1alpha1.GateWaiting, Evidence: "not approved yet"}
	for _, a := range p.in.Rollout.Spec.Approvals {
		if g.Approval == nil || a.Wave != waveName || a.Gate != g.Name {
			continue
		}
		status.Verdict = v1alpha1.GatePassed
		status.Evidence = fmt.Sprintf("approved by %s: %s", a.By, a.Reason)
		status.DecidedAt = p.decidedAt(waveName, g.Name, a)
	}
	return status
}

// decidedAt is what the approval says, else when the hub first saw it.
func (p *pass) decidedAt(waveName, gate string, a v1alpha1.Approval) *metav1.Time {
	if !a.At.IsZero() {
		return a.At.DeepCopy()
	}
	for _, g := range p.priorWave(waveName).Gates {
		if g.Name == gate && g.DecidedAt != nil {
			return g.DecidedAt
		}
	}
	return stampTime(p.in.Now)
}

func passed(gates []v1alpha1.GateStatus) bool {
	return !slices.ContainsFunc(gates, func(g v1alpha1.GateStatus) bool { return g.Verdict != v1alpha1.GatePassed })
}

func waiting(gates []v1alpha1.GateStatus) string {
	for _, g := range gates {
		if g.Verdict != v1alpha1.GatePassed {
			return g.Name
		}
	}
	return ""
}
