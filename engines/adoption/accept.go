// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"fmt"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// The findings that need a decision, and that a person can accept. An accepted finding stays as it is on the cluster
// while the operator is taken over. None leads to a state that Bellwether cannot leave.
const (
	CSVEdited           v1alpha1.AcceptedFinding = "CSVEdited"
	ChannelNotInCatalog v1alpha1.AcceptedFinding = "ChannelNotInCatalog"
	Dependency          v1alpha1.AcceptedFinding = "Dependency"
	GitOps              v1alpha1.AcceptedFinding = "GitOps"
	PlanPending         v1alpha1.AcceptedFinding = "PlanPending"
	ScaledToZero        v1alpha1.AcceptedFinding = "ScaledToZero"
	SharedNamespace     v1alpha1.AcceptedFinding = "SharedNamespace"
)

// ListAcceptable returns the reasons of all findings that a person can accept, sorted: the values for
// spec.adopt.accept.
func ListAcceptable() []v1alpha1.AcceptedFinding {
	return []v1alpha1.AcceptedFinding{CSVEdited, ChannelNotInCatalog, Dependency, GitOps, PlanPending, ScaledToZero,
		SharedNamespace}
}

// ListBlocking returns the findings of a verdict that prevent the take-over of the operator, the most severe first:
// conflicts, unaccepted decisions, and unknowns. If there are none, and the operator is not managed already, it may
// be taken over.
func ListBlocking(v Verdict, accept []v1alpha1.AcceptedFinding) []Finding {
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

// IsAcceptable reports whether a person can accept a finding.
func (f Finding) IsAcceptable() bool {
	return f.Class == NeedsDecision && slices.Contains(ListAcceptable(), v1alpha1.AcceptedFinding(f.Reason))
}

// accept returns the choice to take an operator over with a finding. then is the consequence, as a clause.
func accept(reason v1alpha1.AcceptedFinding, then string) string {
	return fmt.Sprintf("Add %s to spec.adopt.accept of the ManagedOperator: %s", reason, then)
}
