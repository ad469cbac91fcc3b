// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// ClusterRemoval describes the effects of removing a cluster from the fleet.
type ClusterRemoval struct {
	// Cluster has the offboarding policy and timeout of the removal in its spec.
	Cluster *v1alpha1.FleetCluster
	// Operators are the names of the cluster's OperatorInstalls, sorted.
	Operators []string
	// Backups is the number of the cluster's OperatorBackups.
	Backups int
}

// String describes the effects of the removal in one line.
func (r ClusterRemoval) String() string {
	text := r.Cluster.Name + ": " + r.describeOperators()
	if r.Backups > 0 {
		text += fmt.Sprintf("; the records of %s are deleted on the hub, and the files stay in their store",
			phrase.Count(r.Backups, "backup"))
	}
	if !meta.IsStatusConditionTrue(r.Cluster.Status.Conditions, v1alpha1.ConditionOnline) {
		text += fmt.Sprintf("; it is offline, and leaves %s after the deletion at the latest", readTimeout(r.Cluster))
	}
	return text
}

// describeOperators describes the effect of the removal on the cluster's operators.
func (r ClusterRemoval) describeOperators() string {
	count := len(r.Operators)
	// The policy Orphan has this effect, and the effect of the policy Restore begins with it.
	effect := phrase.Word(count, "stays installed, and is no longer managed",
		"stay installed, and are no longer managed")
	switch r.Cluster.Spec.Offboarding {
	case v1alpha1.RemovalUninstall:
		effect = phrase.Word(count, "is uninstalled", "are uninstalled")
	case v1alpha1.RemovalRestore:
		effect += ", and what was adopted gets its Subscription back as it was before"
	}
	if count == 0 {
		return "no operators"
	}
	text := fmt.Sprintf("%s %s: %s", phrase.Count(count, "operator"), effect,
		phrase.First(r.Operators, maxOperatorNames))
	// The agent of a paused cluster changes nothing, so the policy has no effect until the timeout ends the removal.
	if r.Cluster.Spec.Offboarding.NeedsAgent() && rollouts.ObserveCluster(r.Cluster).IsChangeForbidden() {
		action, state := "uninstalled", "installed"
		if r.Cluster.Spec.Offboarding == v1alpha1.RemovalRestore {
			action, state = "put back", "as they are"
		}
		text += fmt.Sprintf("; it is paused, and nothing is %s while it is: after %s they stay %s", action,
			readTimeout(r.Cluster), state)
	}
	return text
}

// maxOperatorNames is the number of operators that are named for a cluster, so that lines stay readable.
const maxOperatorNames = 10

// ReadDeletionMessage returns why the removal of a cluster from the fleet is not complete; empty if the cluster is not
// being removed, or the hub has not reported a reason.
func ReadDeletionMessage(c *v1alpha1.FleetCluster) string {
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
	// A condition with an older generation describes the state before the deletion.
	if c.DeletionTimestamp == nil || ready == nil || ready.Status == metav1.ConditionTrue ||
		ready.ObservedGeneration < c.Generation {
		return ""
	}
	return ready.Message
}
