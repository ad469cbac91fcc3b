// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// Rights are the answers of the hub's API server about a user.
type Rights struct {
	// ListsClusters is true if the user may list FleetClusters.
	ListsClusters bool
	// ListsOperators is true if the user may list the ManagedOperators of all namespaces.
	ListsOperators bool
	// Namespaces are those whose ManagedOperators the user may list.
	Namespaces []string
}

// DecideVisible returns what a user sees: operators, with everything about them, in the namespaces whose
// ManagedOperators the user may list; and the clusters if the user may list FleetClusters, or else those that a
// FleetAccess permits to one of these namespaces. Without a FleetAccess, that is no cluster.
func DecideVisible(r Rights, access []v1alpha1.FleetAccess, clusters []v1alpha1.FleetCluster) Visible {
	v := Visible{AllClusters: r.ListsClusters, AllNamespaces: r.ListsOperators}
	if !v.AllNamespaces {
		v.Namespaces = r.Namespaces
	}
	if v.AllClusters || len(access) == 0 {
		return v
	}
	for i := range clusters {
		if slices.ContainsFunc(r.Namespaces, func(namespace string) bool {
			return holds.HasAccess(access, namespace, clusters[i].Labels)
		}) {
			v.Clusters = append(v.Clusters, clusters[i].Name)
		}
	}
	return v
}
