// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

// IsUnmet reports whether a requirement of a ClusterServiceVersion prevents its installation. OLM writes Present for
// an object that exists, and Satisfied for an account with enough permissions.
func IsUnmet(r operatorsv1alpha1.RequirementStatus) bool {
	switch r.Status {
	case operatorsv1alpha1.RequirementStatusReasonPresent, operatorsv1alpha1.DependentStatusReasonSatisfied:
		return false
	}
	return true
}
