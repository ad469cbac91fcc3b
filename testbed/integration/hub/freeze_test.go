// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestUnfreezeNeedsAPerson: agents read FleetFreezes and change none, no ServiceAccount ends one, whatever its rights,
// and a person does. Nobody changes one.
func TestUnfreezeNeedsAPerson(t *testing.T) {
	h := start(t)
	cluster := fleetCluster("frozen")
	a := h.join(t, cluster)
	freeze := &v1alpha1.FleetFreeze{ObjectMeta: metav1.ObjectMeta{Name: "incident"},
		Spec: v1alpha1.FleetFreezeSpec{Clusters: []string{cluster.Name}, Reason: "test"}}
	must(t, h.Create(t.Context(), freeze))
	t.Cleanup(func() { _ = h.Delete(t.Context(), freeze) })
	eventually(t, func() error {
		err := h.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster)
		if err == nil && (cluster.Status.Freeze == nil || cluster.Status.Freeze.Name != freeze.Name) {
			return fmt.Errorf("the status has %+v", cluster.Status.Freeze)
		}
		return err
	})
	read := &v1alpha1.FleetFreeze{}
	must(t, a.Get(t.Context(), client.ObjectKeyFromObject(freeze), read))
	if err := a.Delete(t.Context(), freeze.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Errorf("an agent ends it: %v", err)
	}
	for _, who := range []string{"system:serviceaccount:argocd:application-controller", "system:node:a"} {
		config := rest.CopyConfig(h.cluster.RESTConfig())
		config.Impersonate = rest.ImpersonationConfig{UserName: who, Groups: []string{"system:masters"}}
		if err := h.as(t, config).Delete(t.Context(), freeze.DeepCopy()); !apierrors.IsForbidden(err) {
			t.Errorf("%s ends it: %v", who, err)
		}
	}
	changed := freeze.DeepCopy()
	changed.Spec.Clusters = []string{"nobody"}
	if err := h.Update(t.Context(), changed); !apierrors.IsInvalid(err) {
		t.Errorf("it can be changed: %v", err)
	}
	must(t, h.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "on-call"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "bellwether-freeze"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "olga"}}}))
	olga := rest.CopyConfig(h.cluster.RESTConfig())
	olga.Impersonate = rest.ImpersonationConfig{UserName: "olga"}
	eventually(t, func() error { return h.as(t, olga).Delete(t.Context(), freeze.DeepCopy()) })
}
