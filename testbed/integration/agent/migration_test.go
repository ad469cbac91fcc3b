// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// migrated is how many custom resources are stored anew.
const migrated = 600

// TestStorageMigration has the agent store custom resources anew after an upgrade
// changed their storage version, and kills it while it does. Afterwards etcd has the
// new version only, and OLM accepts a release that drops the old one.
func TestStorageMigration(t *testing.T) {
	t.Parallel()
	h := start(t, quiet(t), "migrated")
	h.operator = "migrated"
	bundles := line("1.0.0", "1.1.0", "1.2.0")
	bundles[0].change = stores(alpha("a"))
	bundles[1].change = stores(stable("a"), alpha("a"))
	bundles[2].change = stores(stable("a"))
	pin := h.pin(bundles...)
	h.to(pin, "1.0.0")
	h.runs()
	h.createMany()
	h.asksForMigration("")
	h.migration(metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	h.to(pin, "1.1.0")
	h.runs()
	h.migration(metav1.ConditionFalse, v1alpha1.ReasonWaiting)
	h.storedVersions("v1alpha1", "v1")
	before, full := h.reads("v1"), h.everything()

	hash := h.runs().Spec.Admission.Hash
	h.asksForMigration(hash)
	h.eventually("a part of the objects is stored anew", func() bool { return h.storedAs("v1") >= migrated/10 })
	h.agent.Kill()
	done := h.storedAs("v1")
	t.Logf("the agent was killed after %d of %d objects", done, migrated)
	if done == migrated {
		t.Error("the agent was killed too late")
	}
	h.storedVersions("v1alpha1", "v1")
	h.startAgent()
	oi := h.migration(metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	h.storedVersions("v1")
	if old, now := h.storedAs("v1alpha1"), h.storedAs("v1"); old != 0 || now != migrated {
		t.Errorf("etcd has %d objects as v1alpha1 and %d as v1", old, now)
	}
	if p := oi.Status.StorageMigrations; len(p) != 1 || p[0].EndTime == nil || p[0].Failed != 0 || p[0].Objects == 0 ||
		p[0].To != "v1" || p[0].Continue != "" {
		t.Errorf("status.storageMigrations %+v", p)
	}
	if diff := cmp.Diff(full, h.everything()); diff != "" {
		t.Errorf("the migration changed objects (-before +after):\n%s", diff)
	}

	// The rollback class does not depend on the migration: nothing is lost.
	h.goBack(releaseOf(h.operator, pin, "1.0.0"), false)
	h.runs()
	h.only("1.0.0")
	h.has("nothing is lost by going back", "v1alpha1", before)
	h.to(pin, "1.1.0")
	h.runs()
	h.to(pin, "1.2.0")
	h.runs()
	h.only("1.2.0")
	h.has("nothing is lost by the upgrade that drops the old version", "v1", before)
	h.asksForMigration("")
	h.migration(metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
}

// TestStorageMigrationIsNeeded shows what happens without it: OLM refuses a release
// that drops a version that objects may be stored as. With it the same release is
// accepted.
func TestStorageMigrationIsNeeded(t *testing.T) {
	t.Parallel()
	h := start(t, quiet(t), "unmigrated")
	h.operator = "unmigrated"
	bundles := line("1.0.0", "1.1.0", "1.2.0")
	bundles[0].change = stores(alpha("a"))
	bundles[1].change = stores(stable("a"), alpha("a"))
	bundles[2].change = stores(stable("a"))
	pin := h.pin(bundles...)
	h.to(pin, "1.0.0")
	h.runs()
	h.writes("v1alpha1", "mine", object{"a": "1"})
	h.to(pin, "1.1.0")
	h.runs()
	h.to(pin, "1.2.0")
	h.stalls(v1alpha1.ReasonPlanFailed, "v1alpha1", "stored version")
	h.goBack(releaseOf(h.operator, pin, "1.1.0"), false)
	h.runs()
	h.asksForMigration("")
	h.migration(metav1.ConditionFalse, v1alpha1.ReasonWaiting)
	h.to(pin, "1.1.0")
	hash := h.runs().Spec.Admission.Hash
	h.asksForMigration(hash)
	h.migration(metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	h.to(pin, "1.2.0")
	h.runs()
	h.only("1.2.0")
}

// asksForMigration plays the hub of a ManagedOperator whose migrations are
// automatic; the rollout of the release with this hash has succeeded.
func (h *harness) asksForMigration(hash string) {
	h.t.Helper()
	oi := &v1alpha1.OperatorInstall{}
	h.must(h.Get(h.t.Context(), h.key(), oi))
	patch := client.MergeFrom(oi.DeepCopy())
	oi.Spec.StorageMigration = &v1alpha1.StorageMigration{ReleaseHash: hash}
	h.must(h.Patch(h.t.Context(), oi, patch))
}

// migration waits until StorageMigrated is so.
func (h *harness) migration(status metav1.ConditionStatus, reason string) *v1alpha1.OperatorInstall {
	h.t.Helper()
	return h.until("StorageMigrated is "+reason, func(oi *v1alpha1.OperatorInstall) bool {
		c := conditions.Get(oi.Status.Conditions, v1alpha1.ConditionStorageMigrated)
		return c.Status == status && c.Reason == reason
	})
}

func (h *harness) createMany() {
	h.t.Helper()
	h.writes("v1alpha1", "first", object{"a": "first"})
	things := h.thingsAt("v1alpha1")
	h.each(1, migrated, func(ctx context.Context, i int) error {
		_, err := things.Create(ctx, &unstructured.Unstructured{Object: object{
			"apiVersion": group(h.operator) + "/v1alpha1", "kind": "Thing",
			"metadata": object{"name": thingName(i), "labels": object{"number": fmt.Sprint(i)}},
			"spec":     object{"a": fmt.Sprint(i)}}}, metav1.CreateOptions{})
		return err
	})
}

// storedAs counts the objects that etcd has in a version.
func (h *harness) storedAs(version string) int {
	h.t.Helper()
	stored, err := h.cluster.Stored(h.t.Context(), group(h.operator), "things")
	h.must(err)
	n := 0
	for name, text := range stored {
		var o struct {
			APIVersion string `json:"apiVersion"`
		}
		if err := json.Unmarshal(text, &o); err != nil {
			h.t.Fatalf("object %s in etcd: %v", name, err)
		}
		if o.APIVersion == group(h.operator)+"/"+version {
			n++
		}
	}
	return n
}

// everything returns all Things, with all that is not about how they are stored.
func (h *harness) everything() map[string]object {
	h.t.Helper()
	list, err := h.thingsAt("v1").List(h.t.Context(), metav1.ListOptions{})
	h.must(err)
	out := map[string]object{}
	for _, item := range list.Items {
		item.SetResourceVersion("")
		out[item.GetName()] = item.Object
	}
	return out
}
