// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// outdated is a client whose reads return an object as it was, like a cache that has not seen the newest change.
type outdated struct {
	client.Client
	install *v1alpha1.OperatorInstall
}

func (o outdated) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	o.install.DeepCopyInto(into.(*v1alpha1.OperatorInstall))
	return nil
}

// TestApplyOfOutdatedRead applies a part of an OperatorInstall that was changed, deleted, or deleted and created again
// since it was read. Each time the API server refuses with a conflict, and the object stays as it is.
func TestApplyOfOutdatedRead(t *testing.T) {
	for name, since := range map[string]func(t *testing.T, h *harness, install *v1alpha1.OperatorInstall){
		"changed": func(t *testing.T, h *harness, install *v1alpha1.OperatorInstall) {
			h.change(t, install, func() { install.Labels["example.com/team"] = "a" })
		},
		"deleted": func(t *testing.T, h *harness, install *v1alpha1.OperatorInstall) {
			must(t, h.Delete(t.Context(), install))
			h.gone(t, install)
		},
		"recreated": func(t *testing.T, h *harness, install *v1alpha1.OperatorInstall) {
			again := install.DeepCopy()
			again.UID, again.ResourceVersion = "", ""
			must(t, h.Delete(t.Context(), install))
			h.gone(t, install)
			must(t, h.Create(t.Context(), again))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t)
			cluster := fleetCluster("outdated-" + name)
			h.join(t, cluster)
			read := h.install(t, cluster.Name, v1alpha1.OperatorReference{Namespace: "team", Name: "echo"})
			key := client.ObjectKeyFromObject(read)
			spec := map[string]any{"removalPolicy": v1alpha1.RemovalUninstall}
			since(t, h, read.DeepCopy())
			err := kit.ApplyInstall(t.Context(), outdated{h.Client, read}, kit.RemovalManager, key, spec)
			if !apierrors.IsConflict(err) {
				t.Errorf("the apply ended with %v, want a conflict", err)
			}
			var now v1alpha1.OperatorInstall
			switch err := h.Get(t.Context(), key, &now); {
			case name == "deleted" && !apierrors.IsNotFound(err):
				t.Errorf("the deleted install is there: %+v, error %v", now, err)
			case name != "deleted" && (err != nil || now.Spec.RemovalPolicy == v1alpha1.RemovalUninstall):
				t.Errorf("the install has the removal policy of an outdated apply: %+v, error %v", now.Spec, err)
			}
			if name == "deleted" {
				return
			}
			if err := kit.ApplyInstall(t.Context(), h.Client, kit.RemovalManager, key, spec); err != nil {
				t.Errorf("an apply after a current read fails: %v", err)
			}
		})
	}
}
