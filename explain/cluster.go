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
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// ClusterInput has the data for the explanation of a cluster.
type ClusterInput struct {
	Now     time.Time
	Cluster *v1alpha1.FleetCluster
	// Installs are the installs in the cluster's namespace.
	Installs []v1alpha1.OperatorInstall
	// Rollouts are the rollouts that the installs belong to. An install whose rollout is missing here waits for
	// its admission.
	Rollouts []v1alpha1.OperatorRollout
	Program  string
}

// Cluster explains a FleetCluster and the operators on it.
func Cluster(in ClusterInput) Explanation {
	c := in.Cluster
	cluster := buildClusterLinkFor(c, listPending(in))
	links := listInstallLinks(in)
	if findStaleSince(c) != nil {
		links = clearStates(links)
	}
	names := remedy.Names{Cluster: c.Name, Program: in.Program}
	e := conclude(Subject{Kind: "FleetCluster", Name: c.Name}, append([]Link{cluster}, links...), names,
		fmt.Sprintf("Cluster %s is online, and %s.", c.Name, formatReadiness(len(in.Installs))))
	e.Members = listClusterMembers(in)
	return e
}

// listPending returns the operators that must still be changed on the cluster.
func listPending(in ClusterInput) []v1alpha1.OperatorReference {
	var pending []v1alpha1.OperatorReference
	for i := range in.Installs {
		install := &in.Installs[i]
		var rollout *v1alpha1.OperatorRollout
		for j := range in.Rollouts {
			if r := &in.Rollouts[j]; r.Namespace == install.Spec.Operator.Namespace &&
				r.Name == install.Labels[v1alpha1.LabelRollout] {
				rollout = r
			}
		}
		if isPending(install, rollout) {
			pending = append(pending, install.Spec.Operator)
		}
	}
	return pending
}

// formatReadiness says that the operators of a cluster are Ready.
func formatReadiness(operators int) string {
	if operators == 0 {
		return "no operator is managed on it"
	}
	return phrase.Word(operators, "the operator on it is Ready",
		fmt.Sprintf("all %d operators on it are Ready", operators))
}

// listInstallLinks returns a link for each operator on the cluster.
func listInstallLinks(in ClusterInput) []Link {
	var links []Link
	for i := range in.Installs {
		install := &in.Installs[i]
		name := install.Spec.Operator.Namespace + "/" + install.Spec.Operator.Name
		l := readInstallStatus(install).summarize(name+" is Ready", "operator "+name)
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

// listClusterMembers returns the operators on the cluster with their states. The states are Unknown if the cluster's
// reports are not current.
func listClusterMembers(in ClusterInput) []Member {
	members := make([]Member, 0, len(in.Installs))
	for i := range in.Installs {
		install := &in.Installs[i]
		l := readInstallStatus(install).summarize("", "")
		m := Member{Operator: install.Spec.Operator.Namespace + "/" + install.Spec.Operator.Name,
			State:  string(l.State),
			Reason: l.Reason, Message: l.Text, Since: l.Since, Attention: severity[l.State] >= severity[Degraded]}
		if since := findStaleSince(in.Cluster); since != nil {
			m.State, m.Attention = string(Unknown), true
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.Operator, b.Operator) })
	return members
}

// readClusterStatus returns the status of a cluster.
func readClusterStatus(c *v1alpha1.FleetCluster) objectStatus {
	return objectStatus{object: "FleetCluster " + c.Name, generation: c.Generation,
		observed:   c.Status.ObservedGeneration,
		conditions: c.Status.Conditions}
}

// findStaleSince returns since when the hub's data about the cluster is not current. It returns nil if the data is
// current. The time is zero if it is not known.
func findStaleSince(c *v1alpha1.FleetCluster) *metav1.Time {
	if c == nil {
		return nil
	}
	observed := rollouts.ObserveCluster(c)
	if observed.Online {
		return nil
	}
	return &metav1.Time{Time: observed.OfflineSince}
}

// buildClusterLink says whether the cluster is available and its reports are current.
func buildClusterLink(c *v1alpha1.FleetCluster) Link {
	r := readClusterStatus(c)
	l := buildConnectionLink(c, r)
	l.Links = append(l.Links, listClusterDetails(c, r)...)
	return l
}

// buildConnectionLink says whether the agent reports and reaches the API server of its cluster. If it does not, the
// link says that the data about the cluster is not current. A hibernating cluster is Waiting and not Unknown.
func buildConnectionLink(c *v1alpha1.FleetCluster, r objectStatus) Link {
	online, reachable := conditions.Get(c.Status.Conditions, v1alpha1.ConditionOnline), conditions.Get(
		c.Status.Conditions, v1alpha1.ConditionAPIServerReachable)
	switch {
	case online.Status != metav1.ConditionTrue && online.Reason == v1alpha1.ReasonHibernating:
		l := r.buildLink(online, Waiting)
		l.Text = fmt.Sprintf("cluster %s hibernates%s: %s", c.Name, formatSince(l.Since), trimPeriod(online.Message))
		l.stale = newStaleCluster(c, "it does not run", l.Since)
		return l
	case online.Status != metav1.ConditionTrue:
		l := r.buildLink(online, Unknown)
		l.Reason = cmp.Or(online.Reason, v1alpha1.ReasonNeverJoined)
		l.Text = fmt.Sprintf("cluster %s is offline%s: %s", c.Name, formatSince(l.Since),
			cmp.Or(trimPeriod(online.Message), "no agent has reported yet"))
		l.stale = newStaleCluster(c, "its agent does not report", l.Since)
		return l
	case reachable.Status == metav1.ConditionFalse:
		l := r.buildLink(reachable, Unknown)
		l.Text = fmt.Sprintf("the agent of cluster %s cannot reach the API server of its cluster%s: %s", c.Name,
			formatSince(l.Since), trimPeriod(reachable.Message))
		l.stale = newStaleCluster(c, "its agent cannot reach the API server of the cluster", l.Since)
		return l
	case reachable.Status != metav1.ConditionTrue:
		return Link{State: Unknown, Reason: remedy.NotReported, Evidence: r.buildEvidence(online), Text: fmt.Sprintf(
			"the agent of cluster %s has not reported whether it reaches the API server of its cluster", c.Name)}
	}
	return Link{State: Healthy, Since: toTime(online.LastTransitionTime),
		Text: fmt.Sprintf("cluster %s is online (Kubernetes %s), and its agent reaches its API server", c.Name,
			cmp.Or(c.Status.Versions.Kubernetes, "of unknown version")),
		Check:    "the agent of the cluster reports, and reaches the API server of its cluster",
		Evidence: append(r.buildEvidence(online), r.buildEvidence(reachable)...)}
}

// newStaleCluster marks everything about a cluster as not current.
func newStaleCluster(c *v1alpha1.FleetCluster, why string, since *metav1.Time) []Stale {
	return []Stale{{What: "everything that is shown about cluster " + c.Name, Why: why, Since: since}}
}

// listClusterDetails returns links for the other reasons why a cluster is not ready or is not changed, and a link for
// OLM. Conditions with a reason that buildConnectionLink explains have no link.
func listClusterDetails(c *v1alpha1.FleetCluster, r objectStatus) []Link {
	var links []Link
	if l, isOutdated := r.checkOutdated(); isOutdated {
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
	links = append(links, listHibernationLinks(c, r)...)
	if c.Status.IsSourcePaused() {
		links = append(links, Link{State: Waiting, Reason: v1alpha1.ReasonSourcePaused,
			Text: fmt.Sprintf("the source of cluster %s is %s: no rollout admits it", c.Name,
				strings.ToLower(string(c.Status.Source.State))),
			Evidence: []Evidence{{Object: r.object, Field: "status.source.state",
				Observed: string(c.Status.Source.State)}}})
	}
	links = append(links, ListRefusals(c)...)
	links = append(links, r.listFailureLinks()...)
	connectionReasons := []string{v1alpha1.ReasonAgentOffline, v1alpha1.ReasonLeaseExpired,
		v1alpha1.ReasonAPIServerUnreachable, v1alpha1.ReasonNeverJoined, v1alpha1.ReasonHibernating,
		v1alpha1.ReasonPowerUnknown}
	for _, condition := range c.Status.Conditions {
		switch {
		case condition.Type == v1alpha1.ConditionOnline, condition.Type == v1alpha1.ConditionAPIServerReachable,
			condition.Type == v1alpha1.ConditionReconciling, slices.Contains(connectionReasons, condition.Reason):
			// buildConnectionLink and listHibernationLinks describe these conditions.
		case condition.Type == v1alpha1.ConditionVersionSupported:
			links = append(links, r.listSkewLinks(condition)...)
		case condition.Type == v1alpha1.ConditionStalled && condition.Status == metav1.ConditionTrue:
			links = append(links, r.buildLink(condition, Failed))
		case v1alpha1.ConditionIsBadWhenTrue(condition.Type): // these conditions have their own links if they are True
		case condition.Status != metav1.ConditionTrue &&
			!conditions.IsTrue(c.Status.Conditions, v1alpha1.ConditionStalled):
			links = append(links, r.buildLink(condition, Failed))
		case condition.Type == v1alpha1.ConditionOLMAvailable:
			links = append(links, Link{State: Healthy, Text: formatOLM(c) + " is installed",
				Check: "OLM is installed", Evidence: r.buildEvidence(condition)})
		}
	}
	return links
}

// listHibernationLinks says that rollouts wait for a cluster whose source reports that it does not run, although its
// agent reports. If the agent does not report, the link for the connection says this.
func listHibernationLinks(c *v1alpha1.FleetCluster, r objectStatus) []Link {
	if !c.Status.IsHibernating() || !conditions.IsTrue(c.Status.Conditions, v1alpha1.ConditionOnline) {
		return nil
	}
	hibernates := conditions.Get(c.Status.Conditions, v1alpha1.ConditionHibernating)
	return []Link{{State: Waiting, Reason: v1alpha1.ReasonHibernating, Since: toTime(hibernates.LastTransitionTime),
		Evidence: r.buildEvidence(hibernates),
		Text: fmt.Sprintf("the source of cluster %s reports the power state %s, "+
			"although its agent reports: no rollout admits it", c.Name, c.Status.Source.PowerState)}}
}

// listSkewLinks returns a warning if the versions of agent and hub differ too much. Hub and agent continue to work.
func (r objectStatus) listSkewLinks(c metav1.Condition) []Link {
	if c.Status == metav1.ConditionTrue {
		return nil
	}
	l := r.buildLink(c, Degraded)
	l.about = aboutSupport
	return []Link{l}
}

// formatOLM returns "OLM" with its version, if the agent reports the version.
func formatOLM(c *v1alpha1.FleetCluster) string {
	if v := c.Status.Versions.OLM; v != "" && v != "unknown" {
		return "OLM " + v
	}
	return "OLM"
}
