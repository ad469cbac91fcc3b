// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

// secondOperatorFaults are about a second ManagedOperator that does not go with the first one.
func secondOperatorFaults() map[string]fault {
	stalled := func(name, reason string, change func(*v1alpha1.ManagedOperatorSpec), why ...string) fault {
		return fault{inject: func(x *trial) { x.another(name, change) },
			shows: operatorHas(v1alpha1.ConditionStalled, metav1.ConditionTrue, reason), why: append(why, reason),
			holds: []func(*trial) error{(*trial).isNotAdmitted}, heal: (*trial).undoAll}
	}
	return map[string]fault{
		"two operators in one namespace": stalled("same", v1alpha1.ReasonNamespaceConflict,
			func(s *v1alpha1.ManagedOperatorSpec) { s.Install.Namespace = "trial-canary" },
			"fleet/trial-canary is older and installs into namespace trial-canary as well"),
		"one package twice, in all namespaces and in its own": stalled("twice", v1alpha1.ReasonInstalledElsewhere,
			func(s *v1alpha1.ManagedOperatorSpec) { s.Install.Mode = v1alpha1.InstallAllNamespaces },
			"fleet/trial-canary is older and installs package echo-operator into namespace trial-canary"),
		"typo in the package": stalled("typo", v1alpha1.ReasonUnknownPackage,
			func(s *v1alpha1.ManagedOperatorSpec) { s.Package = "echo-operatr" }, "echo-operatr", "echo-operator"),
	}
}

// removalFaults are about what is removed, and who may do that.
func removalFaults() map[string]fault {
	return map[string]fault{
		"selector that matches nothing, with Uninstall": {
			inject: func(x *trial) {
				x.edit(func(s *v1alpha1.ManagedOperatorSpec) {
					s.ClusterSelector.MatchLabels = map[string]string{"ring": "nowhere"}
				})
			},
			shows: operatorHas(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNoClusters),
			why:   []string{v1alpha1.ReasonNoClusters, "so nothing is installed and nothing is removed"},
			holds: []func(*trial) error{(*trial).stands}, heal: (*trial).undoAll,
		},
		"uninstall above confirmAbove, with a wrong count": {
			inject: func(x *trial) {
				x.bindOperates()
				x.another("counted", func(s *v1alpha1.ManagedOperatorSpec) {
					s.Removal = &v1alpha1.OperatorRemoval{ConfirmAbove: ptr.To(int32(0))}
				})
				x.other.everywhere(1)
				x.must(x.hub.Delete(x.ctx(), x.other.managed()))
			},
			shows: operatorHas(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRemovalUnconfirmed),
			why:   []string{v1alpha1.ReasonRemovalUnconfirmed, "confirm-removal"},
			holds: []func(*trial) error{
				refuses([]string{"is to be removed from 1 cluster, not from 7"},
					"operator", "confirm-removal", "OPERATOR", "--clusters", "7", "--yes"),
				needs("bellwether-remove", "operator", "confirm-removal", "OPERATOR", "--clusters", "1", "--yes"),
				refuses([]string{"uninstalls operator OPERATOR from 1 cluster: CLUSTER"},
					"operator", "confirm-removal", "OPERATOR", "--clusters", "1"),
				(*trial).stands},
			heal: func(x *trial) {
				x.other.run("operator", "confirm-removal", "OPERATOR", "--clusters", "1", "--yes")
				x.undoAll()
			},
		},
		"ManagedOperator deleted, with one cluster paused and one offline": {
			inject: (*trial).deleteWithPausedAndOffline,
			shows:  operatorHas(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonAgentOffline),
			why:    []string{"nothing is uninstalled from clusters that are paused (canary)"},
			holds: []func(*trial) error{(*trial).stands, (*trial).isUninstalledFromTheThird,
				says([]string{"1 of 2 clusters are offline and have not uninstalled the operator: prod-us",
					"fleet remove NAME --offboarding-timeout 0s"}, "operator", "get", "OPERATOR")},
			heal: (*trial).undoAll,
		},
		"fleet remove of the only canary in its soak": {
			inject: (*trial).removeOnlyCanary,
			shows:  rolloutHas(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNotObserved),
			why:    []string{"NotObserved", "bellwether/observation"},
			holds:  []func(*trial) error{(*trial).isNotAdmitted, (*trial).isNotVerified}, heal: (*trial).undoAll,
		},
	}
}

// requestFaults are requests of people that are refused.
func requestFaults() map[string]fault {
	silence := func(args ...string) []string {
		return append([]string{"silence", "create", "OPERATOR", "--owner", "anna", "--reason", "work"}, args...)
	}
	return map[string]fault{
		"approve, override and remove without the right": {
			inject: func(x *trial) {
				x.bindOperates()
				x.edit(func(s *v1alpha1.ManagedOperatorSpec) {
					s.Strategy.Waves = []v1alpha1.Wave{{Name: "all", Gates: []v1alpha1.Gate{
						{Name: "sre", Approval: &v1alpha1.ApprovalGate{}}}}}
					greeting("after an approval")(s)
				})
			},
			shows: rolloutHas(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonGated),
			why:   []string{"Waiting (Gated)", "bellwether rollout approve"},
			holds: []func(*trial) error{
				needs("bellwether-approve", "rollout", "approve", "OPERATOR", "--reason", "fine"),
				needs("bellwether-override", "rollout", "override-windows", "OPERATOR", "--reason", "now"),
				needs("bellwether-remove", "fleet", "remove", "CLUSTER", "--yes"),
				needs("bellwether-join", "fleet", "revoke", "CLUSTER", "--yes"),
				needs("bellwether-freeze", "fleet", "freeze", "CLUSTER", "--reason", "now"),
				(*trial).refusesPatches},
			heal: func(x *trial) {
				x.run("rollout", "approve", "OPERATOR", "--reason", "the canary is fine")
				x.until("the approved rollout ends", patience, (*trial).reported)
				x.undoAll()
			},
		},
		"field changed that cannot be": {holds: []func(*trial) error{(*trial).refusesAnotherPackage}},
		"silence of an operator that does not exist, for 90 hours, and without an Alertmanager": {
			holds: []func(*trial) error{
				refuses([]string{"operator", "nobody"}, silence("--operator", "nobody")...),
				refuses([]string{"cluster", "nowhere"}, silence("--cluster", "nowhere")...),
				refuses([]string{"24h"}, silence("--operator", "OPERATOR", "--for", "90h")...),
				refuses([]string{"the hub knows no Alertmanager", "alertmanager"},
					silence("--operator", "OPERATOR")...),
				(*trial).hasNoSilence},
		},
	}
}

// isNotAdmitted returns nil if the cluster was not admitted to any release of the operator.
func (x *trial) isNotAdmitted() error {
	oi, err := x.read()
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil && oi.Spec.Admission != nil:
		return fmt.Errorf("%s is admitted to %+v", x.cluster, oi.Spec.Admission)
	}
	return err
}

// isNotVerified returns nil if the first wave of the newest rollout is not verified.
func (x *trial) isNotVerified() error {
	ro, err := x.newestRollout()
	switch {
	case err != nil:
		return err
	case len(ro.Status.Waves) == 0 || ro.Status.Waves[0].VerifiedAt != nil,
		ro.Status.Waves[0].Phase == v1alpha1.WaveVerified:
		return fmt.Errorf("the waves are %+v", ro.Status.Waves)
	}
	return nil
}

// deleteWithPausedAndOffline deletes a ManagedOperator that runs on all clusters, of which one is paused then, and one
// is offline.
func (x *trial) deleteWithPausedAndOffline() {
	x.t.Helper()
	const offline = "prod-us"
	x.another("everywhere", func(s *v1alpha1.ManagedOperatorSpec) { s.ClusterSelector = metav1.LabelSelector{} })
	x.other.everywhere(1)
	x.editCluster(func(c *v1alpha1.FleetCluster) { c.Spec.Paused = true })
	scaleAgent(x.t, offline, 0)
	x.undo = append(x.undo, func() { scaleAgent(x.t, offline, 1) })
	x.online(offline, false)
	x.must(x.hub.Delete(x.ctx(), x.other.managed()))
}

// isUninstalledFromTheThird returns nil if the operator is gone from the cluster that is neither paused nor offline.
func (x *trial) isUninstalledFromTheThird() error {
	third := &trial{operator: x.operator, cluster: "prod-eu"}
	if _, err := third.read(); !apierrors.IsNotFound(err) {
		return fmt.Errorf("the operator is still on %s: %w", third.cluster, err)
	}
	return nil
}

// removeOnlyCanary removes from the fleet the cluster that is the whole first wave of a rollout, while that soaks. What
// is seen afterwards is seen of a cluster of the second wave.
func (x *trial) removeOnlyCanary() {
	x.t.Helper()
	remove := []string{"fleet", "remove", spare.Name, "--yes", "--offboarding", "Uninstall", "--cluster-kubeconfig",
		shared.Fleet.Cluster(spare.Name).Kubeconfig()}
	x.undo = append(x.undo, func() {
		if err := x.hub.Get(x.ctx(), client.ObjectKey{Name: spare.Name}, &v1alpha1.FleetCluster{}); err == nil {
			x.run(remove...)
		}
	})
	x.must(shared.Join(x.ctx(), spare))
	x.bindOperates()
	x.another("soaks", func(s *v1alpha1.ManagedOperatorSpec) {
		s.ClusterSelector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "region", Operator: metav1.LabelSelectorOpIn, Values: []string{spare.Labels["region"], "us"}}}}
		s.Strategy.Waves = []v1alpha1.Wave{{Name: "canary", Soak: seconds(3600), Selector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"region": spare.Labels["region"]}}}, {Name: "rest"}}
	})
	local, err := shared.Client("prod-us", platform.Scheme())
	x.must(err)
	x.other.cluster, x.other.local = "prod-us", local
	x.other.until("the wave soaks", patience, (*trial).isSoaking)
	x.until("a removal without the right is refused", showLimit, needs("bellwether-remove", remove...))
	x.until("a removal by kubectl is refused", showLimit, (*trial).refusesDeletionOfCanary)
	x.until("a removal without a confirmation is refused", showLimit,
		refuses([]string{"This removes cluster late from the fleet, and cannot be taken back", "not confirmed"},
			"fleet", "remove", spare.Name))
	x.run(remove...)
}

// refusesDeletionOfCanary returns nil if somebody who may only operate cannot delete the FleetCluster.
func (x *trial) refusesDeletionOfCanary() error {
	err := x.asOperates().Delete(x.ctx(), &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: spare.Name}},
		client.DryRunAll)
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("the deletion ends with %w, and is to be refused", err)
	}
	return contains(err.Error(), []string{"ClusterRole bellwether-remove"})
}

// refusesPatches returns nil if somebody who may only operate can neither approve nor override by a patch.
func (x *trial) refusesPatches() error {
	for role, change := range map[string]func(*v1alpha1.OperatorRolloutSpec){
		"bellwether-approve": func(s *v1alpha1.OperatorRolloutSpec) {
			s.Approvals = []v1alpha1.Approval{{Wave: "all", Gate: "sre", By: operates, Reason: "fine"}}
		},
		"bellwether-override": func(s *v1alpha1.OperatorRolloutSpec) {
			s.Overrides = []v1alpha1.GateOverride{{Wave: "all", Gate: "sre", By: operates, Reason: "fine"}}
		},
	} {
		ro, err := x.newestRollout()
		if err != nil {
			return err
		}
		before := ro.DeepCopy()
		change(&ro.Spec)
		err = x.asOperates().Patch(x.ctx(), ro, client.MergeFrom(before), client.DryRunAll)
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("the patch ends with %w, and is to be refused", err)
		}
		if err := contains(err.Error(), []string{"ClusterRole " + role}); err != nil {
			return err
		}
	}
	return nil
}

// refusesAnotherPackage returns nil if the package of a ManagedOperator cannot be changed, and it is said what to do.
func (x *trial) refusesAnotherPackage() error {
	mo := x.managed()
	before := mo.DeepCopy()
	mo.Spec.Package = "another"
	err := x.hub.Patch(x.ctx(), mo, client.MergeFrom(before), client.DryRunAll)
	if !apierrors.IsInvalid(err) {
		return fmt.Errorf("the patch ends with %w, and is to be refused", err)
	}
	return contains(err.Error(), []string{"package cannot be changed: make another ManagedOperator"})
}

// hasNoSilence returns nil if no AlertSilence is left behind.
func (x *trial) hasNoSilence() error {
	err := x.hub.Get(x.ctx(), x.key, &v1alpha1.AlertSilence{})
	if err == nil {
		return errors.New("the AlertSilence is there")
	}
	return client.IgnoreNotFound(err)
}
