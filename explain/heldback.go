// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// buildVetoLink says that the owner of a cluster refuses changes.
func buildVetoLink(c *v1alpha1.FleetCluster, v *v1alpha1.ClusterVeto) Link {
	operators := "all operators"
	if len(v.Operators) > 0 {
		operators = phrase.First(v.Operators, 5)
	}
	l := Link{State: Waiting, Reason: v1alpha1.ReasonVetoed, Since: toTime(v.Since),
		Text: fmt.Sprintf("changes of %s are refused on cluster %s: %s", operators, c.Name,
			trimPeriod(holds.VetoMessage(v))),
		Evidence: []Evidence{{Object: readClusterStatus(c).object, Field: "status.veto",
			Observed: phrase.OneLine(v.Reason), Time: v.Until}}}
	if v.Until != nil {
		l.next = []Next{{Text: "The owner of cluster " + c.Name + " means to end the veto.", At: v.Until}}
	}
	return l
}

// ListRefusals returns links for a freeze and a veto on a cluster, also if no change is pending.
func ListRefusals(c *v1alpha1.FleetCluster) []Link {
	var links []Link
	if f := c.Status.Freeze; f != nil {
		links = append(links, buildFreezeLink(c, f))
	}
	if v := c.Status.Veto; v != nil {
		links = append(links, buildVetoLink(c, v))
	}
	return links
}

// buildClusterLinkFor returns the link of buildClusterLink for operators that must still be changed there. A veto or a
// freeze that blocks no pending change is mentioned, but does not affect the state.
func buildClusterLinkFor(c *v1alpha1.FleetCluster, pending []v1alpha1.OperatorReference) Link {
	cluster := buildClusterLink(c)
	isVetoed := slices.ContainsFunc(pending, func(o v1alpha1.OperatorReference) bool {
		return holds.VetoCovers(c.Status.Veto, o)
	})
	for i := range cluster.Links {
		l := &cluster.Links[i]
		blocksNothing := l.Reason == v1alpha1.ReasonVetoed && !isVetoed ||
			l.Reason == v1alpha1.ReasonFrozen && len(pending) == 0
		if blocksNothing {
			l.State, l.Reason, l.next = "", "", nil
		}
	}
	return cluster
}

// buildFreezeLink says that a freeze stops changes on a cluster.
func buildFreezeLink(c *v1alpha1.FleetCluster, f *v1alpha1.ClusterFreeze) Link {
	return Link{State: Waiting, Reason: v1alpha1.ReasonFrozen, Since: toTime(f.Since),
		Text: fmt.Sprintf("nothing is changed on cluster %s: FleetFreeze %s: %s", c.Name, f.Name,
			phrase.OneLine(f.Reason)),
		Evidence: []Evidence{{Object: readClusterStatus(c).object, Field: "status.freeze.name", Observed: f.Name}}}
}

// listHeldBackLinks returns a link for each hold of a rollout: it says which clusters are not admitted now, why and
// until when. If cluster is not empty, only the holds of this cluster count. A stopped rollout has no such links.
func listHeldBackLinks(r *v1alpha1.OperatorRollout, cluster string) []Link {
	if r.IsStopped() {
		return nil
	}
	var links []Link
	for i, g := range r.Status.HeldBack {
		if cluster != "" && !slices.Contains(g.Clusters, cluster) {
			continue
		}
		subject := "cluster " + cluster + " is"
		if cluster == "" {
			subject = fmt.Sprintf("%s (%s) %s", phrase.Count(g.Count, "cluster"), phrase.First(g.Clusters, 5),
				phrase.Word(g.Count, "is", "are"))
		}
		l := Link{State: Waiting, Reason: g.Reason,
			Text: fmt.Sprintf("%s not admitted now: %s", subject, phrase.OneLine(g.Message)),
			Evidence: []Evidence{{Object: readRolloutStatus(r).object, Field: fmt.Sprintf("status.heldBack[%d]", i),
				Observed: g.Reason, Time: g.Until}}}
		if g.Until != nil {
			l.next = []Next{{Text: "The hold might end.", At: g.Until}}
		}
		links = append(links, l)
	}
	return links
}
