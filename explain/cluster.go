// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// ClusterInput is what the explanation of a cluster is made of.
type ClusterInput struct {
	Now     time.Time
	Cluster *v1alpha1.FleetCluster
	// Installs in the cluster's namespace.
	Installs []v1alpha1.OperatorInstall
	// Rollouts are those that the installs belong to. An install without one here waits for its admission.
	Rollouts []v1alpha1.OperatorRollout
	Program  string
}

// Cluster explains a FleetCluster and what runs on it.
func Cluster(in ClusterInput) Explanation {
	c := in.Cluster
	cluster := clusterLinkFor(c, pendingOn(in))
	links := installsOf(in)
	if staleSince(c) != nil {
		links = asOfThen(links)
	}
	names := remedy.Names{Cluster: c.Name, Program: in.Program}
	e := conclude(Subject{Kind: "FleetCluster", Name: c.Name}, append([]Link{cluster}, links...), names,
		fmt.Sprintf("Cluster %s is online, and %s.", c.Name, allReady(len(in.Installs))))
	e.Members = clusterMembers(in)
	return e
}

// pendingOn are the operators of which something is still to be changed on a cluster.
func pendingOn(in ClusterInput) []v1alpha1.OperatorReference {
	var pending []v1alpha1.OperatorReference
	for i := range in.Installs {
		install := &in.Installs[i]
		var of *v1alpha1.OperatorRollout
		for j := range in.Rollouts {
			if r := &in.Rollouts[j]; r.Namespace == install.Spec.Operator.Namespace &&
				r.Name == install.Labels[v1alpha1.LabelRollout] {
				of = r
			}
		}
		if isPending(install, of) {
			pending = append(pending, install.Spec.Operator)
		}
	}
	return pending
}

// allReady says that the operators of a cluster are Ready.
func allReady(operators int) string {
	if operators == 0 {
		return "no operator is managed on it"
	}
	return phrase.Word(operators, "the operator on it is Ready",
		fmt.Sprintf("all %d operators on it are Ready", operators))
}

func installsOf(in ClusterInput) []Link {
	var links []Link
	for i := range in.Installs {
		install := &in.Installs[i]
		name := install.Spec.Operator.Namespace + "/" + install.Spec.Operator.Name
		l := reportedByInstall(install).summary(name+" is Ready", "operator "+name)
		if l.State != Healthy {
			l.Text = name + ": " + l.Text
			l.remedies = append(l.remedies, remedy.Action{Text: "Explain the operator on this cluster",
				Command: fmt.Sprintf("%s why %s %s -n %s", cmp.Or(in.Program, "bellwether"), in.Cluster.Name,
					install.Spec.Operator.Name, install.Spec.Operator.Namespace)})
		}
		links = append(links, l)
	}
	slices.SortFunc(links, func(a, b Link) int { return cmp.Compare(a.Text, b.Text) })
	return links
}

func clusterMembers(in ClusterInput) []Member {
	members := make([]Member, 0, len(in.Installs))
	for i := range in.Installs {
		install := &in.Installs[i]
		l := reportedByInstall(install).summary("", "")
		m := Member{Operator: install.Spec.Operator.Namespace + "/" + install.Spec.Operator.Name,
			State:  string(l.State),
			Reason: l.Reason, Message: l.Text, Since: l.Since, Attention: severity[l.State] >= severity[Degraded]}
		if since := staleSince(in.Cluster); since != nil {
			m.State, m.Attention = string(Unknown), true
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.Operator, b.Operator) })
	return members
}

func reportedByCluster(c *v1alpha1.FleetCluster) reported {
	return reported{object: "FleetCluster " + c.Name, generation: c.Generation, observed: c.Status.ObservedGeneration,
		conditions: c.Status.Conditions}
}

// staleSince is since when what the hub knows of the cluster is not current; nil
// if it is current. The time is zero where it is not known.
func staleSince(c *v1alpha1.FleetCluster) *metav1.Time {
	if c == nil {
		return nil
	}
	observed := rollouts.ObserveCluster(c)
	if observed.Online {
		return nil
	}
	return &metav1.Time{Time: observed.OfflineSince}
}

// clusterLink says whether the cluster is there and what is reported of it is
// current.
func clusterLink(c *v1alpha1.FleetCluster) Link {
	r := reportedByCluster(c)
	l := connectionLink(c, r)
	l.Links = append(l.Links, clusterDetails(c, r)...)
	return l
}

func connectionLink(c *v1alpha1.FleetCluster, r reported) Link {
	online, reachable := conditions.Get(c.Status.Conditions, v1alpha1.ConditionOnline), conditions.Get(
		c.Status.Conditions, v1alpha1.ConditionAPIServerReachable)
	switch {
	case online.Status != metav1.ConditionTrue && online.Reason == v1alpha1.ReasonHibernating:
		l := r.link(online, Waiting)
		l.Text = fmt.Sprintf("cluster %s hibernates%s: %s", c.Name, since(l.Since), withoutStop(online.Message))
		l.stale = staleCluster(c, "it does not run", l.Since)
		return l
	case online.Status != metav1.ConditionTrue:
		l := r.link(online, Unknown)
		l.Reason = cmp.Or(online.Reason, v1alpha1.ReasonNeverJoined)
		l.Text = fmt.Sprintf("cluster %s is offline%s: %s", c.Name, since(l.Since),
			cmp.Or(withoutStop(online.Message), "no agent has reported yet"))
		l.stale = staleCluster(c, "its agent does not report", l.Since)
		return l
	case reachable.Status == metav1.ConditionFalse:
		l := r.link(reachable, Unknown)
		l.Text = fmt.Sprintf("the agent of cluster %s cannot reach the API server of its cluster%s: %s", c.Name,
			since(l.Since), withoutStop(reachable.Message))
		l.stale = staleCluster(c, "its agent cannot reach the API server of the cluster", l.Since)
		return l
	case reachable.Status != metav1.ConditionTrue:
		return Link{State: Unknown, Reason: remedy.NotReported, Evidence: r.evidence(online), Text: fmt.Sprintf(
			"the agent of cluster %s has not reported whether it reaches the API server of its cluster", c.Name)}
	}
	return Link{State: Healthy, Since: timeOf(online.LastTransitionTime),
		Text: fmt.Sprintf("cluster %s is online (Kubernetes %s), and its agent reaches its API server", c.Name,
			cmp.Or(c.Status.Versions.Kubernetes, "of unknown version")),
		Check:    "the agent of the cluster reports, and reaches the API server of its cluster",
		Evidence: append(r.evidence(online), r.evidence(reachable)...)}
}

func staleCluster(c *v1alpha1.FleetCluster, why string, since *metav1.Time) []Stale {
	return []Stale{{What: "everything that is shown about cluster " + c.Name, Why: why, Since: since}}
}

// clusterDetails are what else keeps a cluster from being ready.
func clusterDetails(c *v1alpha1.FleetCluster, r reported) []Link {
	var links []Link
	if l, old := r.outdated(); old {
		links = append(links, l)
	}
	if c.DeletionTimestamp != nil {
		links = append(links, Link{State: Waiting, Reason: v1alpha1.ReasonDeleting, Since: c.DeletionTimestamp,
			Text: fmt.Sprintf("cluster %s is leaving the fleet", c.Name)})
	}
	if c.Spec.Paused {
		links = append(links, Link{State: Waiting, Reason: v1alpha1.ReasonClusterPaused,
			Text:     fmt.Sprintf("cluster %s is paused: no rollout admits it", c.Name),
			Evidence: []Evidence{{Object: r.object, Field: "spec.paused", Observed: "true"}}})
	}
	links = append(links, hibernationLinks(c, r)...)
	if c.Status.IsSourcePaused() {
		links = append(links, Link{State: Waiting, Reason: v1alpha1.ReasonSourcePaused,
			Text: fmt.Sprintf("the source of cluster %s is %s: no rollout admits it", c.Name,
				strings.ToLower(string(c.Status.Source.State))),
			Evidence: []Evidence{{Object: r.object, Field: "status.source.state",
				Observed: string(c.Status.Source.State)}}})
	}
	links = append(links, Refusals(c)...)
	links = append(links, r.failureLinks()...)
	explained := []string{v1alpha1.ReasonAgentOffline, v1alpha1.ReasonLeaseExpired, v1alpha1.ReasonAPIServerUnreachable,
		v1alpha1.ReasonNeverJoined, v1alpha1.ReasonHibernating, v1alpha1.ReasonPowerUnknown}
	for _, condition := range c.Status.Conditions {
		switch {
		case condition.Type == v1alpha1.ConditionOnline, condition.Type == v1alpha1.ConditionAPIServerReachable,
			condition.Type == v1alpha1.ConditionReconciling, slices.Contains(explained, condition.Reason):
		case condition.Type == v1alpha1.ConditionVersionSupported:
			links = append(links, r.versionSkew(condition)...)
		case condition.Type == v1alpha1.ConditionStalled && condition.Status == metav1.ConditionTrue:
			links = append(links, r.link(condition, Failed))
		case v1alpha1.ConditionIsBadWhenTrue(condition.Type): // those that are True have links of their own
		case condition.Status != metav1.ConditionTrue &&
			!conditions.IsTrue(c.Status.Conditions, v1alpha1.ConditionStalled):
			links = append(links, r.link(condition, Failed))
		case condition.Type == v1alpha1.ConditionOLMAvailable:
			links = append(links, Link{State: Healthy, Text: nameOfOLM(c) + " is installed",
				Check: "OLM is installed", Evidence: r.evidence(condition)})
		}
	}
	return links
}

// hibernationLinks say that rollouts wait for a cluster whose source says that it does not run, although its agent
// reports. Where it does not report, that is told of its connection.
func hibernationLinks(c *v1alpha1.FleetCluster, r reported) []Link {
	if !c.Status.IsHibernating() || !conditions.IsTrue(c.Status.Conditions, v1alpha1.ConditionOnline) {
		return nil
	}
	hibernates := conditions.Get(c.Status.Conditions, v1alpha1.ConditionHibernating)
	return []Link{{State: Waiting, Reason: v1alpha1.ReasonHibernating, Since: timeOf(hibernates.LastTransitionTime),
		Evidence: r.evidence(hibernates), Text: fmt.Sprintf("the source of cluster %s reports the power state %s, "+
			"although its agent reports: no rollout admits it", c.Name, c.Status.Source.PowerState)}}
}

// versionSkew is a warning: agent and hub go on, also where their versions are too far
// apart.
func (r reported) versionSkew(c metav1.Condition) []Link {
	if c.Status == metav1.ConditionTrue {
		return nil
	}
	l := r.link(c, Degraded)
	l.about = aboutSupport
	return []Link{l}
}

// nameOfOLM is OLM with its version, where the agent can tell that.
func nameOfOLM(c *v1alpha1.FleetCluster) string {
	if v := c.Status.Versions.OLM; v != "" && v != "unknown" {
		return "OLM " + v
	}
	return "OLM"
}
