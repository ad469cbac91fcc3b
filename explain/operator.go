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
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// OperatorInput has the data for the explanation of a ManagedOperator.
type OperatorInput struct {
	Now      time.Time
	Operator *v1alpha1.ManagedOperator
	// Rollout is the newest rollout; nil if there is none.
	Rollout  *v1alpha1.OperatorRollout
	Clusters []v1alpha1.FleetCluster
	Installs []v1alpha1.OperatorInstall
	Program  string
}

// Operator explains a ManagedOperator: its spec, its newest rollout, and its install on each cluster.
func Operator(in OperatorInput) Explanation {
	o := in.Operator
	names := remedy.Names{Operator: o.Name, HubNamespace: o.Namespace, Catalog: o.Spec.Catalog.Name,
		Package: o.Spec.Package, Namespace: cmp.Or(o.Spec.Install.Namespace, o.Spec.Package), Program: in.Program}
	chain := []Link{buildIntentionLink(o, in.Rollout)}
	var members []Member
	if in.Rollout != nil {
		names.Rollout = in.Rollout.Name
		r := RolloutInput{Now: in.Now, Rollout: in.Rollout, Clusters: in.Clusters, Installs: in.Installs}
		l, listed := buildRolloutLink(r)
		chain, members = append(chain, l), listed
		names.Cluster = findFirstFailed(members)
	}
	byName := indexClusters(in.Clusters)
	for i := range in.Installs {
		chain = append(chain, buildMemberLink(byName, &in.Installs[i]))
	}
	counts, pending := o.Status.Clusters, "nothing is pending"
	if a := o.Status.Available; a != nil {
		pending = fmt.Sprintf("version %s waits for an approval", a.Version)
	}
	e := conclude(Subject{Kind: "ManagedOperator", Namespace: o.Namespace, Name: o.Name}, chain, names, fmt.Sprintf(
		"%s %s %s and %s Ready; %s.", phrase.Part(counts.Ready, counts.Selected, "selected cluster"),
		phrase.Word(counts.Selected, "runs", "run"), describeTarget(o), phrase.Word(counts.Selected, "is", "are"),
		pending))
	e.Members = members
	return e
}

// indexClusters returns the clusters by name.
func indexClusters(clusters []v1alpha1.FleetCluster) map[string]*v1alpha1.FleetCluster {
	out := map[string]*v1alpha1.FleetCluster{}
	for i := range clusters {
		out[clusters[i].Name] = &clusters[i]
	}
	return out
}

// buildMemberLink describes the install of one cluster in short.
func buildMemberLink(clusters map[string]*v1alpha1.FleetCluster, install *v1alpha1.OperatorInstall) Link {
	cluster := install.Spec.Cluster
	if c := clusters[cluster]; c != nil && findStaleSince(c) != nil {
		return buildConnectionLink(c, readClusterStatus(c))
	}
	l := readInstallStatus(install).summarize("cluster "+cluster+" is Ready", "cluster "+cluster)
	if l.State != Healthy {
		l.Text = "cluster " + cluster + ": " + l.Text
	}
	return l
}

// formatObject returns the name of a ManagedOperator as in Evidence.
func formatObject(o *v1alpha1.ManagedOperator) string {
	return "ManagedOperator " + o.Namespace + "/" + o.Name
}

// describeTarget returns the target version of the operator, or what the spec says about the version.
func describeTarget(o *v1alpha1.ManagedOperator) string {
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

// buildOperatorLink describes the operator of an install.
func buildOperatorLink(in InstallInput) Link { return buildIntentionLink(in.Operator, in.Rollout) }

// buildIntentionLink says what the spec requests, and whether the hub can do that. If the operator only repeats the
// state of the rollout or of its clusters, the link has no state.
func buildIntentionLink(o *v1alpha1.ManagedOperator, newest *v1alpha1.OperatorRollout) Link {
	r := objectStatus{object: formatObject(o), generation: o.Generation, observed: o.Status.ObservedGeneration,
		conditions: o.Status.Conditions}
	intention := fmt.Sprintf("operator %s/%s wants %s %s", o.Namespace, o.Name, o.Spec.Package, describeTarget(o))
	l := r.summarize(intention, "the ManagedOperator is Ready")
	l.about = aboutIntention
	if l.State != Healthy {
		l.Text = intention + ": " + l.Text
	}
	repeatsClusters := l.Reason == v1alpha1.ReasonClustersNotReady
	if repeatsClusters || l.State != Healthy && isSameAsRollout(o, newest) {
		l.State, l.Reason, l.Text = "", "", intention
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

// isSameAsRollout reports whether the operator's state only repeats the state of the rollout r, which is not Ready:
// both have the same reason, the reason is the phase of the rollout, or the operator is Progressing.
func isSameAsRollout(o *v1alpha1.ManagedOperator, r *v1alpha1.OperatorRollout) bool {
	if r == nil || o.Status.ObservedGeneration < o.Generation ||
		conditions.IsTrue(r.Status.Conditions, v1alpha1.ConditionReady) {
		return false
	}
	reason := conditions.Get(o.Status.Conditions, v1alpha1.ConditionReady).Reason
	return reason == conditions.Get(r.Status.Conditions, v1alpha1.ConditionReady).Reason ||
		reason == string(r.Status.Phase) || reason == v1alpha1.ReasonProgressing
}
