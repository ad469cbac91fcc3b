// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

// LeftBehind is the record of the operators that stay on the cluster because the hub did not wait for its agent. They
// stay as they were last reported.
type LeftBehind struct {
	// Name is the name of the record. Each deletion of a FleetCluster has one record.
	Name string
	// Why is why the hub did not wait for the agent.
	Why string
	// LastReport is when the agent last reported.
	LastReport string
	// Operators has one line for each operator.
	Operators []string
}

// buildRecordName returns the name of the record. It contains the UID, so that an earlier FleetCluster with the same
// name has another record.
func buildRecordName(c *v1alpha1.FleetCluster) string {
	return fmt.Sprintf("bellwether-left-behind-%s-%.8s", c.Name, c.UID)
}

// buildLeftBehind returns the record of the released operators.
func buildLeftBehind(in Input, released []Operator) *LeftBehind {
	record := &LeftBehind{Name: buildRecordName(in.Cluster), Why: explainLeft(in), LastReport: formatLastReport(in)}
	for _, o := range released {
		record.Operators = append(record.Operators, describeOperator(o))
	}
	slices.Sort(record.Operators)
	return record
}

// explainLeft says why the hub did not wait for the agent.
func explainLeft(in Input) string {
	switch {
	case in.Namespace == NamespaceTerminating:
		return "the namespace of the cluster on the hub was deleted, and with it the agent's access"
	case readReach(in) == removal.Gone && isReachable(in):
		return fmt.Sprintf("the agent did not release them within spec.offboardingTimeout (%s)",
			readTimeout(in.Cluster))
	case readReach(in) == removal.Gone:
		return fmt.Sprintf("the cluster was unreachable until spec.offboardingTimeout (%s) had passed",
			readTimeout(in.Cluster))
	default:
		return "the cluster was unreachable, and spec.offboarding is Orphan"
	}
}

// formatLastReport returns the time of the agent's last report, or "never".
func formatLastReport(in Input) string {
	switch since := findStaleSince(in); {
	case since != nil:
		return phrase.Time(since.Time)
	case in.Lease.Found:
		return phrase.Time(in.Now)
	default:
		return "never"
	}
}

// describeOperator returns what is known about an operator, so that a person can find it on the cluster.
func describeOperator(o Operator) string {
	parts := []string{cmp.Or(o.Bundle, "no installed version reported")}
	if o.Package != "" {
		parts = append(parts, "package "+o.Package)
	}
	if o.Target != "" {
		parts = append(parts, "namespace "+o.Target)
	}
	return o.Name + ": " + strings.Join(parts, ", ")
}
