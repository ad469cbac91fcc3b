// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/veto"
)

// vetoLink says that the owner of a cluster refuses changes.
func vetoLink(c *v1alpha1.FleetCluster, v *v1alpha1.ClusterVeto) Link {
	which := "all operators"
	if len(v.Operators) > 0 {
		which = phrase.First(v.Operators, 5)
	}
	l := Link{State: Waiting, Reason: v1alpha1.ReasonVetoed, Since: timeOf(v.Since),
		Text: fmt.Sprintf("changes of %s are refused on cluster %s: %s", which, c.Name, withoutStop(veto.Message(v))),
		Evidence: []Evidence{{Object: reportedByCluster(c).object, Field: "status.veto",
			Observed: phrase.OneLine(v.Reason), Time: v.Until}}}
	if v.Until != nil {
		l.next = []Next{{Text: "The owner of cluster " + c.Name + " means to end the veto.", At: v.Until}}
	}
	return l
}

// Refusals say who refuses changes on a cluster, by a freeze or a veto, whether or not a change is pending.
func Refusals(c *v1alpha1.FleetCluster) []Link {
	var links []Link
	if f := c.Status.Freeze; f != nil {
		links = append(links, freezeLink(c, f))
	}
	if v := c.Status.Veto; v != nil {
		links = append(links, vetoLink(c, v))
	}
	return links
}

// clusterLinkFor is clusterLink for operators of which something is still to be changed there. A veto or a freeze that
// keeps no change from them is mentioned, but nothing waits for its end.
func clusterLinkFor(c *v1alpha1.FleetCluster, pending []v1alpha1.OperatorReference) Link {
	cluster := clusterLink(c)
	isVetoed := slices.ContainsFunc(pending, func(o v1alpha1.OperatorReference) bool {
		return veto.Covers(c.Status.Veto, o)
	})
	for i := range cluster.Links {
		l := &cluster.Links[i]
		if l.Reason == v1alpha1.ReasonVetoed && !isVetoed || l.Reason == v1alpha1.ReasonFrozen && len(pending) == 0 {
			l.State, l.Reason, l.next = "", "", nil
		}
	}
	return cluster
}

// freezeLink says that nothing is changed on a cluster.
func freezeLink(c *v1alpha1.FleetCluster, f *v1alpha1.ClusterFreeze) Link {
	return Link{State: Waiting, Reason: v1alpha1.ReasonFrozen, Since: timeOf(f.Since),
		Text: fmt.Sprintf("nothing is changed on cluster %s: FleetFreeze %s: %s", c.Name, f.Name,
			phrase.OneLine(f.Reason)),
		Evidence: []Evidence{{Object: reportedByCluster(c).object, Field: "status.freeze.name", Observed: f.Name}}}
}

// heldBackLinks say which clusters of a rollout are not admitted now, why and until
// when: only the named one, or all of them if the name is empty.
func heldBackLinks(r *v1alpha1.OperatorRollout, cluster string) []Link {
	if r.IsStopped() {
		return nil
	}
	var links []Link
	for i, g := range r.Status.HeldBack {
		if cluster != "" && !slices.Contains(g.Clusters, cluster) {
			continue
		}
		who := "cluster " + cluster + " is"
		if cluster == "" {
			who = fmt.Sprintf("%s (%s) %s", phrase.Count(g.Count, "cluster"), phrase.First(g.Clusters, 5),
				phrase.Word(g.Count, "is", "are"))
		}
		l := Link{State: Waiting, Reason: g.Reason,
			Text: fmt.Sprintf("%s not admitted now: %s", who, phrase.OneLine(g.Message)),
			Evidence: []Evidence{{Object: reportedByRollout(r).object, Field: fmt.Sprintf("status.heldBack[%d]", i),
				Observed: g.Reason, Time: g.Until}}}
		if g.Until != nil {
			l.next = []Next{{Text: "What holds the admission back may end.", At: g.Until}}
		}
		links = append(links, l)
	}
	return links
}
