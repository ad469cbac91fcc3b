// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

// LeftBehind is the record of the operators that the hub released without the
// cluster's agent. They stay on the cluster as they were last reported.
type LeftBehind struct {
	// Name of the record. One deletion of a FleetCluster has one.
	Name string
	// Why the agent was not waited for.
	Why string
	// LastReport is when the hub last heard from the agent.
	LastReport string
	// Operators has one line for each.
	Operators []string
}

// leftBehindName differs from that of a FleetCluster of the same name that came
// before.
func leftBehindName(c *v1alpha1.FleetCluster) string {
	return fmt.Sprintf("bellwether-left-behind-%s-%.8s", c.Name, c.UID)
}

func leftBehind(in Input, released []Operator) *LeftBehind {
	left := &LeftBehind{Name: leftBehindName(in.Cluster), Why: whyLeft(in), LastReport: lastReport(in)}
	for _, o := range released {
		left.Operators = append(left.Operators, line(o))
	}
	slices.Sort(left.Operators)
	return left
}

func whyLeft(in Input) string {
	switch {
	case in.Namespace == NamespaceTerminating:
		return "the namespace of the cluster on the hub was deleted, and with it the agent's access"
	case reachOf(in) == removal.Gone && isReachable(in):
		return fmt.Sprintf("the agent did not release them within spec.offboardingTimeout (%s)", timeout(in.Cluster))
	case reachOf(in) == removal.Gone:
		return fmt.Sprintf("the cluster was unreachable until spec.offboardingTimeout (%s) had passed",
			timeout(in.Cluster))
	default:
		return "the cluster was unreachable, and spec.offboarding is Orphan"
	}
}

func lastReport(in Input) string {
	switch since := staleSince(in); {
	case since != nil:
		return phrase.Time(since.Time)
	case in.Lease.Found:
		return phrase.Time(in.Now)
	default:
		return "never"
	}
}

// line is what is known of one operator: what to look for on the cluster.
func line(o Operator) string {
	parts := []string{cmp.Or(o.Bundle, "no installed version reported")}
	if o.Package != "" {
		parts = append(parts, "package "+o.Package)
	}
	if o.Target != "" {
		parts = append(parts, "namespace "+o.Target)
	}
	return o.Name + ": " + strings.Join(parts, ", ")
}
