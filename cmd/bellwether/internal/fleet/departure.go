// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/fleet"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// readRemovals reads from the hub how the removal of each cluster affects its operators and backups.
func readRemovals(ctx context.Context, h *hub.Client, clusters []v1alpha1.FleetCluster,
	o *removeOptions) ([]fleet.ClusterRemoval, error) {
	var out []fleet.ClusterRemoval
	for i := range clusters {
		c := clusters[i].DeepCopy()
		o.setOffboarding(c)
		inNamespace := client.InNamespace(v1alpha1.ClusterNamespace(c.Name))
		installs, backups := &v1alpha1.OperatorInstallList{}, &v1alpha1.OperatorBackupList{}
		if err := h.List(ctx, installs, inNamespace); err != nil {
			return nil, fmt.Errorf("list the operators of cluster %s: %w", c.Name, err)
		}
		if err := h.List(ctx, backups, inNamespace); err != nil {
			return nil, fmt.Errorf("list the backups of cluster %s: %w", c.Name, err)
		}
		r := fleet.ClusterRemoval{Cluster: c, Backups: len(backups.Items)}
		for j := range installs.Items {
			r.Operators = append(r.Operators, installs.Items[j].Name)
		}
		slices.Sort(r.Operators)
		out = append(out, r)
	}
	return out, nil
}

// describeRemovals returns the text of the confirmation: the effects of
// removing the clusters, and the data that is lost.
func describeRemovals(removals []fleet.ClusterRemoval) string {
	var out strings.Builder
	subject, pronoun := "these "+phrase.Count(len(removals), "cluster"), "each"
	if len(removals) == 1 {
		subject, pronoun = "cluster "+removals[0].Cluster.Name, "it"
	}
	fmt.Fprintf(&out, "This removes %s from the fleet, and cannot be taken back:\n", subject)
	for _, r := range removals[:min(len(removals), maxListedClusters)] {
		fmt.Fprintf(&out, "  %s\n", r)
	}
	if more := len(removals) - maxListedClusters; more > 0 {
		fmt.Fprintf(&out, "  and %d more, which --dry-run lists\n", more)
	}
	fmt.Fprintf(&out, "The hub deletes the agent's access, its reports and the history of %s. Custom resources and "+
		"their definitions stay there.\n", pronoun)
	return out.String()
}

// maxListedClusters is the number of clusters that a confirmation lists.
const maxListedClusters = 20
