// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// fleetAccess plays a person who has bellwether-operate in one namespace of the hub, and
// brings an operator of their own into kube-system of every cluster. Without any
// FleetAccess that works. As soon as the platform team has written one, nothing more is
// admitted; what runs is left alone, and is said to be outside of what is permitted.
func fleetAccess(t *testing.T, h *harness) {
	f := newFixtureOn(t, h, first, "a", "b")
	for _, a := range f.agents {
		a.work(t)
	}
	testenv.Grant(t, h, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "mallory"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "bellwether-operate"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mallory"}},
	})
	config, err := h.cluster.UserConfig("mallory")
	must(t, err)
	mallory := h.as(t, config)
	f.operator.Spec.Install.Namespace = metav1.NamespaceSystem
	must(t, mallory.Create(t.Context(), f.operator))
	f.reaches(t, f.operator, "True Succeeded", "2 of 2 clusters run 1.0.0")

	permit := &v1alpha1.FleetAccess{ObjectMeta: metav1.ObjectMeta{Name: "teams"}, Spec: v1alpha1.FleetAccessSpec{
		Namespaces: []string{f.namespace}, Registries: []string{"*"}, TargetNamespaces: []string{"echo-*"},
		ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"name": "a"}}}}
	if err := mallory.Create(t.Context(), permit.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Fatalf("who operates writes a FleetAccess: %v", err)
	}
	must(t, h.Create(t.Context(), permit))
	t.Cleanup(func() { _ = h.Delete(t.Context(), permit) })
	f.outsideAccess("FleetAccess teams does not permit the target namespace kube-system", "is left alone, on")

	f.republish(second)
	f.reaches(t, f.operator, "False Progressing", "does not permit the target namespace kube-system")
	f.running(map[string]string{"a": "1.0.0", "b": "1.0.0"})

	f.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Install.Namespace = "echo-a" })
	f.outsideAccess("FleetAccess teams does not permit this cluster (spec.clusterSelector): not admitted: " +
		f.namespace + "-b")
	f.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.ClusterSelector.MatchLabels["name"] = "a" })
	f.reaches(t, f.operator, "True Succeeded", "1 of 1 cluster runs 1.1.0")
	f.outsideAccess()
	must(t, h.Delete(t.Context(), permit))
}

// outsideAccess waits until the operator's condition OutsideAccess says all of this; if
// that is nothing, until it is gone.
func (f *fixture) outsideAccess(says ...string) {
	f.t.Helper()
	eventually(f.t, func() error {
		if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(f.operator), f.operator); err != nil {
			return err
		}
		message := ""
		if conditions.IsTrue(f.operator.Status.Conditions, v1alpha1.ConditionOutsideAccess) {
			message = conditions.Get(f.operator.Status.Conditions, v1alpha1.ConditionOutsideAccess).Message
		}
		if len(says) == 0 && message != "" {
			return fmt.Errorf("OutsideAccess says %q", message)
		}
		for _, text := range says {
			if !strings.Contains(message, text) {
				return fmt.Errorf("OutsideAccess says %q, want %q in it", message, text)
			}
		}
		return nil
	})
}
