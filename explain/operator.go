// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"time"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/phrase"
)

// OperatorInput is what the explanation of a ManagedOperator is made of.
type OperatorInput struct {
	Now      time.Time
	Operator *v1alpha1.ManagedOperator
	// Rollout is the newest one; nil if there is none.
	Rollout  *v1alpha1.OperatorRollout
	Clusters []v1alpha1.FleetCluster
	Installs []v1alpha1.OperatorInstall
	Program  string
}

// Operator explains a ManagedOperator on all its clusters.
func Operator(in OperatorInput) Explanation {
	o := in.Operator
	names := remedy.Names{Operator: o.Name, HubNamespace: o.Namespace, Catalog: o.Spec.Catalog.Name,
		Package: o.Spec.Package, Namespace: cmp.Or(o.Spec.Install.Namespace, o.Spec.Package), Program: in.Program}
	chain := []Link{intentionLink(o, in.Rollout)}
	var members []Member
	if in.Rollout != nil {
		names.Rollout = in.Rollout.Name
		r := RolloutInput{Now: in.Now, Rollout: in.Rollout, Clusters: in.Clusters, Installs: in.Installs}
		l, found := rolloutLink(r)
		chain, members = append(chain, l), found
		names.Cluster = firstFailed(members)
	}
	byName := clustersByName(in.Clusters)
	for i := range in.Installs {
		chain = append(chain, memberLink(byName, &in.Installs[i]))
	}
	all, pending := o.Status.Clusters, "nothing is pending"
	if a := o.Status.Available; a != nil {
		pending = fmt.Sprintf("version %s waits for an approval", a.Version)
	}
	e := conclude(Subject{Kind: "ManagedOperator", Namespace: o.Namespace, Name: o.Name}, chain, names, fmt.Sprintf(
		"%s %s %s and %s Ready; %s.", phrase.Part(all.Ready, all.Selected, "selected cluster"),
		phrase.Word(all.Selected, "runs", "run"), targetOf(o), phrase.Word(all.Selected, "is", "are"), pending))
	e.Members = members
	return e
}

func clustersByName(clusters []v1alpha1.FleetCluster) map[string]*v1alpha1.FleetCluster {
	out := map[string]*v1alpha1.FleetCluster{}
	for i := range clusters {
		out[clusters[i].Name] = &clusters[i]
	}
	return out
}

// memberLink is an install as the agent reports it, in short.
func memberLink(clusters map[string]*v1alpha1.FleetCluster, install *v1alpha1.OperatorInstall) Link {
	cluster := install.Spec.Cluster
	if c := clusters[cluster]; c != nil && staleSince(c) != nil {
		return connectionLink(c, reportedByCluster(c))
	}
	l := reportedByInstall(install).summary("cluster "+cluster+" is Ready", "cluster "+cluster)
	if l.State != Healthy {
		l.Text = "cluster " + cluster + ": " + l.Text
	}
	return l
}

func objectOf(o *v1alpha1.ManagedOperator) string {
	return "ManagedOperator " + o.Namespace + "/" + o.Name
}

func targetOf(o *v1alpha1.ManagedOperator) string {
	if o.Status.Target != nil {
		return o.Status.Target.Version
	}
	switch version := o.Spec.Version; {
	case version == "":
		return "the head of its channel"
	case !catalogs.IsExact(version):
		return "in the range " + version
	default:
		return version
	}
}

func operatorLink(in InstallInput) Link { return intentionLink(in.Operator, in.Rollout) }

// intentionLink says what is wanted, and whether the hub can bring it about. What
// only repeats the state of the rollout, or of its clusters, is left to their links.
func intentionLink(o *v1alpha1.ManagedOperator, newest *v1alpha1.OperatorRollout) Link {
	r := reported{object: objectOf(o), generation: o.Generation, observed: o.Status.ObservedGeneration,
		conditions: o.Status.Conditions}
	wants := fmt.Sprintf("operator %s/%s wants %s %s", o.Namespace, o.Name, o.Spec.Package, targetOf(o))
	l := r.summary(wants, "the ManagedOperator is Ready")
	l.about = aboutIntention
	if l.State != Healthy {
		l.Text = wants + ": " + l.Text
	}
	if l.Reason == v1alpha1.ReasonClustersNotReady || l.State != Healthy && repeatsRollout(o, newest) {
		l.State, l.Reason, l.Text = "", "", wants
	}
	if a := o.Status.Available; a != nil {
		l.Links = append(l.Links, Link{Since: &a.Since,
			Text:     fmt.Sprintf("version %s waits for an approval: %s", a.Version, a.Reason),
			Evidence: []Evidence{{Object: r.object, Field: "status.available.version", Observed: a.Version}}})
	}
	if o.Spec.Paused {
		l.Links = append(l.Links, Link{State: Waiting, Reason: remedy.OperatorPaused,
			Text:     fmt.Sprintf("operator %s/%s is paused: no new rollout is made", o.Namespace, o.Name),
			Evidence: []Evidence{{Object: r.object, Field: "spec.paused", Observed: "true"}}})
	}
	if o.DeletionTimestamp != nil {
		l.Links = append(l.Links, Link{State: Waiting, Reason: v1alpha1.ReasonDeleting, Since: o.DeletionTimestamp,
			Text: fmt.Sprintf("operator %s/%s is being deleted", o.Namespace, o.Name)})
	}
	return l
}

// repeatsRollout tells whether the operator's state is that of a rollout that is
// not done either.
func repeatsRollout(o *v1alpha1.ManagedOperator, r *v1alpha1.OperatorRollout) bool {
	if r == nil || o.Status.ObservedGeneration < o.Generation ||
		conditions.IsTrue(r.Status.Conditions, v1alpha1.ConditionReady) {
		return false
	}
	reason := conditions.Get(o.Status.Conditions, v1alpha1.ConditionReady).Reason
	return reason == conditions.Get(r.Status.Conditions, v1alpha1.ConditionReady).Reason ||
		reason == string(r.Status.Phase) || reason == v1alpha1.ReasonProgressing
}
