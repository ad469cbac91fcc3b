// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"fmt"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// The findings that need a decision, and with which an operator is taken over if a person accepts them. Each can stay
// as it is on the cluster while the operator is taken over, and none leads to a state that Bellwether cannot leave.
const (
	CSVEdited           v1alpha1.AcceptedFinding = "CSVEdited"
	ChannelNotInCatalog v1alpha1.AcceptedFinding = "ChannelNotInCatalog"
	Dependency          v1alpha1.AcceptedFinding = "Dependency"
	GitOps              v1alpha1.AcceptedFinding = "GitOps"
	PlanPending         v1alpha1.AcceptedFinding = "PlanPending"
	ScaledToZero        v1alpha1.AcceptedFinding = "ScaledToZero"
	SharedNamespace     v1alpha1.AcceptedFinding = "SharedNamespace"
)

// Acceptable returns the reasons of all findings that can be accepted, sorted: those that spec.adopt.accept may have.
func Acceptable() []v1alpha1.AcceptedFinding {
	return []v1alpha1.AcceptedFinding{CSVEdited, ChannelNotInCatalog, Dependency, GitOps, PlanPending, ScaledToZero,
		SharedNamespace}
}

// Blocking returns the findings of a verdict that keep the operator from being taken over, the most severe first:
// conflicts, what needs a decision and is not accepted, and what is not known. Where there are none, and it is not
// managed already, it may be taken over.
func Blocking(v Verdict, accept []v1alpha1.AcceptedFinding) []Finding {
	return slices.DeleteFunc(slices.Clone(v.Findings), func(f Finding) bool {
		switch f.Class {
		case Eligible, Managed:
			return true
		case NeedsDecision:
			return f.IsAcceptable() && slices.Contains(accept, v1alpha1.AcceptedFinding(f.Reason))
		default:
			return false
		}
	})
}

// IsAcceptable tells whether a person can accept a finding.
func (f Finding) IsAcceptable() bool {
	return f.Class == NeedsDecision && slices.Contains(Acceptable(), v1alpha1.AcceptedFinding(f.Reason))
}

// accepting is the choice to take an operator over with a finding; then says what follows, as a clause.
func accepting(reason v1alpha1.AcceptedFinding, then string) string {
	return fmt.Sprintf("Add %s to spec.adopt.accept of the ManagedOperator: %s", reason, then)
}
