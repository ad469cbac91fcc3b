// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// person is a client of somebody who has a role in the whole hub.
func (h *harness) person(t *testing.T, name, role string) client.Client {
	t.Helper()
	config, err := h.cluster.UserConfig(name)
	must(t, err)
	b := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}
	testenv.Grant(t, h, b)
	t.Cleanup(func() { must(t, h.Delete(context.Background(), b)) })
	return h.as(t, config)
}

// forbids fails unless a request was refused with the role that would permit it.
func forbids(t *testing.T, what string, err error) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ClusterRole bellwether-remove") {
		t.Errorf("%s: %v, want a refusal that names the ClusterRole bellwether-remove", what, err)
	}
}

// TestRemovingAClusterNeedsItsRole: who may operate does not delete a FleetCluster by any means, and the garbage
// collector and who has the role do.
func TestRemovingAClusterNeedsItsRole(t *testing.T) {
	h := start(t)
	operates := h.person(t, "removal-olga", "bellwether-operate")
	removes := h.person(t, "removal-rita", "bellwether-remove")
	cluster := fleetCluster("removal-one")
	must(t, operates.Create(t.Context(), cluster))
	h.reaches(t, cluster, "False NeverJoined")
	// The garbage collector knows no owners in namespaces of objects that are in none.
	owner := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "removal-owner"}}
	must(t, h.Create(t.Context(), owner))
	patch := func(c client.Client, edit func(*v1alpha1.FleetCluster)) error {
		o := fleetCluster(cluster.Name)
		if err := h.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		before := o.DeepCopy()
		edit(o)
		return c.Patch(t.Context(), o, client.MergeFrom(before))
	}
	own := func(o *v1alpha1.FleetCluster) {
		o.OwnerReferences = []metav1.OwnerReference{{APIVersion: rbacv1.SchemeGroupVersion.String(),
			Kind: "ClusterRole", Name: owner.Name, UID: owner.UID}}
	}
	eventually(t, func() error { // an API server evaluates a policy only some time after it was created
		if err := operates.Delete(t.Context(), cluster.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a deletion as a trial ends with %w, and is to be refused", err)
		}
		return nil
	})
	forbids(t, "delete", operates.Delete(t.Context(), cluster.DeepCopy()))
	forbids(t, "give an owner", patch(operates, own))
	must(t, patch(operates, func(o *v1alpha1.FleetCluster) {
		o.Spec.Paused, o.Spec.Offboarding = true, v1alpha1.RemovalOrphan
	}))
	// The finalizer of a test keeps it, to see what may be changed while it leaves.
	must(t, patch(h, func(o *v1alpha1.FleetCluster) { o.Finalizers = append(o.Finalizers, "example.com/test") }))
	must(t, removes.Delete(t.Context(), cluster.DeepCopy()))
	forbids(t, "change how it leaves", patch(operates, func(o *v1alpha1.FleetCluster) {
		o.Spec.Offboarding = v1alpha1.RemovalUninstall
	}))
	must(t, patch(operates, func(o *v1alpha1.FleetCluster) { o.Spec.Paused = false }))
	must(t, patch(removes, func(o *v1alpha1.FleetCluster) { o.Spec.Offboarding = v1alpha1.RemovalUninstall }))
	must(t, patch(h, func(o *v1alpha1.FleetCluster) {
		o.Finalizers = strings.Fields(strings.ReplaceAll(strings.Join(o.Finalizers, " "), "example.com/test", ""))
	}))
	h.gone(t, cluster)

	// Somebody with the role may have a cluster follow another object, in which case the garbage collector deletes it:
	// also in the foreground, where it changes finalizers and owners before.
	cluster = fleetCluster("removal-one")
	must(t, operates.Create(t.Context(), cluster))
	h.reaches(t, cluster, "False NeverJoined")
	must(t, patch(removes, func(o *v1alpha1.FleetCluster) {
		own(o)
		o.OwnerReferences[0].BlockOwnerDeletion = ptr.To(true)
	}))
	must(t, h.Delete(t.Context(), owner, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	h.gone(t, cluster)
	h.gone(t, owner)
}

// TestAgreeingToARemovalNeedsItsRole: who may operate neither agrees that an operator is uninstalled from many
// clusters, nor has nobody asked about it.
func TestAgreeingToARemovalNeedsItsRole(t *testing.T) {
	h := start(t)
	namespace := testenv.Namespace(t, h.cluster.RESTConfig(), "agree")
	operates := h.person(t, "agree-olga", "bellwether-operate")
	removes := h.person(t, "agree-rita", "bellwether-remove")
	operator := &v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "echo"},
		Spec: v1alpha1.ManagedOperatorSpec{Package: "echo", Catalog: v1alpha1.LocalReference{Name: "main"}}}
	asking := operator.DeepCopy()
	asking.Spec.Removal = &v1alpha1.OperatorRemoval{Confirm: "12345678"}
	forbids(t, "create with a confirmation", operates.Create(t.Context(), asking.DeepCopy()))
	asking.Spec.Removal = &v1alpha1.OperatorRemoval{ConfirmAbove: ptr.To(int32(500))}
	forbids(t, "create with a high number", operates.Create(t.Context(), asking.DeepCopy()))
	must(t, operates.Create(t.Context(), operator))
	patch := func(c client.Client, removal *v1alpha1.OperatorRemoval) error {
		o := operator.DeepCopy()
		if err := h.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		before := o.DeepCopy()
		o.Spec.Removal = removal
		return c.Patch(t.Context(), o, client.MergeFrom(before))
	}
	forbids(t, "confirm", patch(operates, &v1alpha1.OperatorRemoval{Confirm: "12345678"}))
	forbids(t, "raise the number", patch(operates, &v1alpha1.OperatorRemoval{ConfirmAbove: ptr.To(int32(6))}))
	must(t, patch(operates, &v1alpha1.OperatorRemoval{ConfirmAbove: ptr.To(int32(0))}))
	forbids(t, "raise the number to the default", patch(operates, nil))
	must(t, patch(removes, &v1alpha1.OperatorRemoval{ConfirmAbove: ptr.To(int32(50)), Confirm: "12345678"}))
	must(t, patch(operates, &v1alpha1.OperatorRemoval{ConfirmAbove: ptr.To(int32(5)), Confirm: "12345678"}))
	must(t, h.Delete(t.Context(), operator))
}
