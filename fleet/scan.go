// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/adoption"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// Scans are the reports of agents, with the objects of the hub that are needed to judge the operators in them.
type Scans struct {
	Clusters []v1alpha1.FleetCluster
	// Reports has the reports by cluster name; a cluster without a report has no entry.
	Reports map[string]*v1alpha1.OperatorScan
	// Packages are the packages of the catalogs that could be read.
	Packages []adoption.Package
	// NotRead lists the catalogs that could not be read, with the reasons.
	NotRead []string
	// Operators has all ManagedOperators, Access all FleetAccess objects, and Catalogs all OperatorCatalogs.
	Operators []v1alpha1.ManagedOperator
	Access    []v1alpha1.FleetAccess
	Catalogs  []v1alpha1.OperatorCatalog
}

// selectKnown returns all packages, and the ManagedOperators that select a cluster and are permitted there.
func (s Scans) selectKnown(c *v1alpha1.FleetCluster) adoption.Known {
	known := adoption.Known{Packages: s.Packages, NotRead: s.NotRead}
	for i := range s.Operators {
		o := &s.Operators[i]
		known.All = append(known.All, types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
		if isSelected(&o.Spec.ClusterSelector, c) && holds.HasAccess(s.Access, o.Namespace, c.Labels) {
			known.Operators = append(known.Operators, adoption.OperatorOf(o))
		}
	}
	return known
}

// decideAccess returns on which clusters the FleetAccess objects permit a ManagedOperator. If its OperatorCatalog
// does not exist, an empty catalog is used.
func (s Scans) decideAccess(o *v1alpha1.ManagedOperator) *holds.AccessDecision {
	catalog := &v1alpha1.OperatorCatalog{}
	for i := range s.Catalogs {
		if c := &s.Catalogs[i]; c.Namespace == o.Namespace && c.Name == o.Spec.Catalog.Name {
			catalog = c
		}
	}
	return holds.DecideAccess(s.Access, o.Namespace, holds.ReleaseForAccess(o, catalog))
}

// ListFoundPackages returns the names of the packages to which the clusters have Subscriptions, sorted. If pkg is not
// empty, other packages are left out.
func (s Scans) ListFoundPackages(pkg string) []string {
	var out []string
	for _, scan := range s.Reports {
		for i := range scan.Status.Operators {
			if sub := scan.Status.Operators[i].Subscription; sub != nil && (pkg == "" || pkg == sub.Package) {
				out = append(out, sub.Package)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// findRefusal returns the refusal of an operator by a cluster's veto; nil if the veto does not cover the operator.
// operator is the ManagedOperator that would take over. If operator is nil, only a veto against all operators counts.
func findRefusal(v *v1alpha1.ClusterVeto, operator *adoption.Operator) *adoption.Refusal {
	switch {
	case v == nil:
		return nil
	case operator == nil && len(v.Operators) > 0:
		return nil
	case operator != nil && !holds.VetoCovers(v,
		v1alpha1.OperatorReference{Namespace: operator.Key.Namespace, Name: operator.Key.Name}):
		return nil
	}
	return &adoption.Refusal{Message: holds.VetoMessage(v), ReadOnly: v.ReadOnly}
}
