// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// JoinChange is what a request to join the fleet changes of the FleetCluster.
type JoinChange string

const (
	// JoinCreates means that the FleetCluster does not exist yet.
	JoinCreates JoinChange = "Creates"
	// JoinLabels means that the FleetCluster exists and gets other labels.
	JoinLabels JoinChange = "Labels"
	// JoinKeeps means that the FleetCluster exists and has the labels.
	JoinKeeps JoinChange = "Keeps"
	// JoinRefused means that the cluster is being removed from the fleet, and cannot join before that ends.
	JoinRefused JoinChange = "Refused"
)

// PlanJoin returns the FleetCluster of a cluster that is to join the fleet with some labels, and what changes. existing
// is the current FleetCluster, which is not modified; nil if there is none. Its other labels are kept.
func PlanJoin(existing *v1alpha1.FleetCluster, name string, labels map[string]string) (*v1alpha1.FleetCluster,
	JoinChange) {
	switch {
	case existing == nil:
		return &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, JoinCreates
	case existing.DeletionTimestamp != nil:
		return existing, JoinRefused
	}
	cluster := existing.DeepCopy()
	if cluster.Labels == nil {
		cluster.Labels = map[string]string{}
	}
	maps.Copy(cluster.Labels, labels)
	if maps.Equal(existing.Labels, cluster.Labels) {
		return cluster, JoinKeeps
	}
	return cluster, JoinLabels
}

// ExplainMissingNamespace returns why the hub could not create the namespace of a cluster, as the hub reports it. It
// returns "" if there is a namespace or the hub reports no problem.
func ExplainMissingNamespace(c *v1alpha1.FleetCluster) string {
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
	if c.Status.Namespace != "" || ready == nil || ready.Status != metav1.ConditionFalse {
		return ""
	}
	return ready.Message
}

// NewAgentAccount returns the ServiceAccount of a cluster's agent on the hub, with its namespace and name only.
func NewAgentAccount(cluster string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterNamespace(cluster),
		Name: v1alpha1.AgentServiceAccount}}
}

// NewRenewalReview returns a review that a cluster's agent creates on the hub: its status says whether the agent is
// permitted to renew its token.
func NewRenewalReview(cluster string) *authorizationv1.SelfSubjectAccessReview {
	return &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: v1alpha1.ClusterNamespace(cluster),
			Verb: "create", Resource: "serviceaccounts", Subresource: "token", Name: v1alpha1.AgentServiceAccount}}}
}

// SelectToJoin returns the names of the discovered clusters on which an agent can be installed now, in their order. It
// also counts the other discovered clusters by the reason, which is a participle or a clause about a cluster, such as
// "already online".
func SelectToJoin(clusters []v1alpha1.FleetCluster) (names []string, skipped map[string]int) {
	skipped = map[string]int{}
	for i := range clusters {
		c := &clusters[i]
		switch reason := findSkipReason(c); {
		case c.Spec.SourceRef == nil: // not a discovered cluster
		case reason != "":
			skipped[reason]++
		default:
			names = append(names, c.Name)
		}
	}
	return names, skipped
}

// findSkipReason returns why a discovered cluster is not joined; empty if it can be joined.
func findSkipReason(c *v1alpha1.FleetCluster) string {
	source := c.Status.Source
	switch {
	case c.DeletionTimestamp != nil:
		return "being removed from the fleet"
	case meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionOnline):
		return "already online"
	case c.Status.IsHibernating():
		return "hibernating"
	case source != nil && source.State != "" && source.State != v1alpha1.SourcePresent:
		return "whose source is " + strings.ToLower(string(source.State))
	}
	return ""
}
