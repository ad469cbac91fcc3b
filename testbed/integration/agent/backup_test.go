// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups"
	"github.com/bellwether-dev/bellwether/backups/archive"
	"github.com/bellwether-dev/bellwether/backups/restore"
	"github.com/bellwether-dev/bellwether/backups/store"
)

// things is how many custom resources are saved.
const things = 1000

// TestBackups saves the custom resources of an operator before an upgrade that
// changes their storage version, damages them, and restores them.
func TestBackups(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "backups")
	h := start(t, quiet(t), "backups", "--backup-store", "file://"+folder).of(t, "saved")
	bundles := line("1.0.0", "1.1.0")
	bundles[0].change, bundles[1].change = savedVersions("v1"), savedVersions("v1", "v2")
	pin := h.pin(bundles...)
	h.to(pin, "1.0.0")
	h.runs()
	cluster := h.dynamic()
	h.createThings(cluster)
	before := h.things(cluster)

	h.setPolicy(&v1alpha1.BackupPolicy{BeforeUpgrade: v1alpha1.BeforeUpgradeWhenNeeded})
	h.to(pin, "1.1.0")
	h.runs()
	var all v1alpha1.OperatorBackupList
	h.must(h.List(t.Context(), &all, client.InNamespace(h.namespace)))
	hop := backups.Hop{Operator: v1alpha1.OperatorReference{Namespace: "fleet", Name: "saved"},
		From: csvName("saved", "1.0.0"), To: csvName("saved", "1.1.0")}
	b := backups.FindVerified(all.Items, hop)
	if b == nil {
		t.Fatalf("no complete backup before the upgrade: %+v", all.Items)
	}
	want := []v1alpha1.BackedUpResource{{Name: "things." + group("saved"), Version: "v1", Objects: things}}
	if diff := cmp.Diff(want, b.Status.Resources); diff != "" || b.Status.Version != "1.0.0" {
		t.Errorf("resources of a backup of %s (-want +got):\n%s", b.Status.Version, diff)
	}

	h.damage(cluster)
	damaged := h.things(cluster)
	dry := h.restore(cluster, b, restore.Options{DryRun: true})
	if diff := cmp.Diff(damaged, h.things(cluster)); diff != "" {
		t.Errorf("the dry run changed something (-before +after):\n%s", diff)
	}
	report := h.restore(cluster, b, restore.Options{})
	wantReport := restore.Report{Objects: things, Created: 50, Filled: 100, Unchanged: 850, Fields: 150, Kept: 50}
	if diff := cmp.Diff(wantReport, report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	wantReport.DryRun = true
	if diff := cmp.Diff(wantReport, dry); diff != "" {
		t.Errorf("report of the dry run (-want +got):\n%s", diff)
	}
	h.checkRestored(before, h.things(cluster))
	again := restore.Report{Objects: things, Unchanged: things, Kept: 50}
	if diff := cmp.Diff(again, h.restore(cluster, b, restore.Options{})); diff != "" {
		t.Errorf("report of a second restore (-want +got):\n%s", diff)
	}
	h.killedAgentLeavesNoHalfBackup()
}

// savedVersions gives the CRD these versions, the last of them stored, and fields
// that can be lost.
func savedVersions(names ...string) func(csv, crd object) {
	return func(csv, crd object) {
		var versions, owned []any
		text := object{"type": "string"}
		for i, name := range names {
			versions = append(versions, object{"name": name, "served": true, "storage": i == len(names)-1,
				"subresources": object{"status": object{}},
				"schema": object{"openAPIV3Schema": object{"type": "object", "properties": object{
					"spec": object{"type": "object", "properties": object{
						"name": text, "other": text, "more": object{"type": "object", "additionalProperties": text},
						"ports": object{"type": "array", "x-kubernetes-list-type": "map",
							"x-kubernetes-list-map-keys": []any{"name"}, "items": object{"type": "object",
								"required": []any{"name"}, "properties": object{"name": text, "to": text}}},
					}},
					"status": object{"type": "object", "properties": object{"phase": text}},
				}}}})
			owned = append(owned, object{"name": "things." + group("saved"), "version": name, "kind": "Thing"})
		}
		crd["spec"].(object)["versions"] = versions
		csv["spec"].(object)["customresourcedefinitions"].(object)["owned"] = owned
	}
}

func (h *harness) dynamic() restore.Cluster {
	h.t.Helper()
	config := rest.CopyConfig(h.cluster.RESTConfig())
	config.QPS = -1
	objects, err := dynamic.NewForConfig(config)
	h.must(err)
	http, err := rest.HTTPClientFor(config)
	h.must(err)
	mapper, err := apiutil.NewDynamicRESTMapper(config, http)
	h.must(err)
	return restore.Cluster{Client: objects, Mapper: mapper}
}

func (h *harness) savedThings(c restore.Cluster) dynamic.ResourceInterface {
	return c.Client.Resource(schema.GroupVersionResource{Group: group("saved"), Version: "v1", Resource: "things"}).
		Namespace("saved")
}

func thingName(i int) string { return fmt.Sprintf("thing-%04d", i) }

// each calls f for so many numbers, several at a time.
func (h *harness) each(from, to int, f func(ctx context.Context, i int) error) {
	h.t.Helper()
	group, ctx := errgroup.WithContext(h.t.Context())
	group.SetLimit(8)
	for i := from; i < to; i++ {
		group.Go(func() error { return f(ctx, i) })
	}
	h.must(group.Wait())
}

func (h *harness) createThings(c restore.Cluster) {
	h.t.Helper()
	h.each(0, things, func(ctx context.Context, i int) error {
		o := &unstructured.Unstructured{Object: object{
			"apiVersion": group("saved") + "/v1", "kind": "Thing",
			"metadata": object{"name": thingName(i), "labels": object{"number": fmt.Sprint(i)}},
			"spec": object{"name": fmt.Sprint("name ", i), "other": "o", "more": object{"a": "1", "b": "2"},
				"ports": []any{object{"name": "x", "to": "1"}, object{"name": "y", "to": "2"}}},
		}}
		created, err := h.savedThings(c).Create(ctx, o, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		created.Object["status"] = object{"phase": "Running"}
		_, err = h.savedThings(c).UpdateStatus(ctx, created, metav1.UpdateOptions{})
		return err
	})
}

// damage removes 50 objects, loses fields of 50 others and of their statuses, and
// changes and loses fields of 50 more.
func (h *harness) damage(c restore.Cluster) {
	h.t.Helper()
	h.each(0, 50, func(ctx context.Context, i int) error {
		return h.savedThings(c).Delete(ctx, thingName(i), metav1.DeleteOptions{})
	})
	h.each(50, 150, func(ctx context.Context, i int) error {
		o, err := h.savedThings(c).Get(ctx, thingName(i), metav1.GetOptions{})
		if err != nil {
			return err
		}
		spec := o.Object["spec"].(object)
		if i < 100 {
			delete(spec["ports"].([]any)[1].(object), "to")
		} else {
			delete(spec, "more")
			spec["name"] = "changed"
		}
		if o, err = h.savedThings(c).Update(ctx, o, metav1.UpdateOptions{}); err != nil || i >= 100 {
			return err
		}
		delete(o.Object["status"].(object), "phase")
		_, err = h.savedThings(c).UpdateStatus(ctx, o, metav1.UpdateOptions{})
		return err
	})
}

// things returns labels, spec and status of all things by name.
func (h *harness) things(c restore.Cluster) map[string]object {
	h.t.Helper()
	list, err := h.savedThings(c).List(h.t.Context(), metav1.ListOptions{})
	h.must(err)
	out := map[string]object{}
	for _, item := range list.Items {
		out[item.GetName()] = object{"labels": item.GetLabels(), "spec": item.Object["spec"],
			"status": item.Object["status"]}
	}
	return out
}

// checkRestored compares every field with those of the time before the damage. The
// values that were changed stay.
func (h *harness) checkRestored(before, after map[string]object) {
	h.t.Helper()
	for i := 100; i < 150; i++ {
		before[thingName(i)]["spec"].(object)["name"] = "changed"
	}
	if diff := cmp.Diff(before, after); diff != "" {
		h.t.Errorf("objects (-before +restored):\n%s", diff)
	}
}

func (h *harness) setPolicy(policy *v1alpha1.BackupPolicy) {
	h.t.Helper()
	oi := &v1alpha1.OperatorInstall{}
	h.must(h.Get(h.t.Context(), h.key(), oi))
	patch := client.MergeFrom(oi.DeepCopy())
	oi.Spec.Backup = policy
	h.must(h.Patch(h.t.Context(), oi, patch))
}

func (h *harness) restore(c restore.Cluster, b *v1alpha1.OperatorBackup, o restore.Options) restore.Report {
	h.t.Helper()
	bucket, err := store.Open(h.t.Context(), b.Status.Location, store.Credentials{})
	h.must(err)
	defer bucket.Close() //nolint:errcheck // nothing was written
	m, sum, err := archive.Open(h.t.Context(), bucket)
	h.must(err)
	if sum != b.Status.Manifest {
		h.t.Errorf("the manifest has SHA-256 %s, and the status says %s", sum, b.Status.Manifest)
	}
	o.Observe = func(r restore.Result) {
		if r.Problem != "" {
			h.t.Errorf("%s: %s", r.Object(), r.Problem)
		}
	}
	report, err := restore.Run(h.t.Context(), c, bucket, m, o)
	h.must(err)
	return report
}

// killedAgentLeavesNoHalfBackup kills the agent while it takes a backup. What is in
// the store then is no backup, or a complete one; the next agent takes it.
func (h *harness) killedAgentLeavesNoHalfBackup() {
	h.t.Helper()
	oi := &v1alpha1.OperatorInstall{}
	h.must(h.Get(h.t.Context(), h.key(), oi))
	b := backups.NewManualBackup(oi, time.Now())
	h.must(h.Create(h.t.Context(), b))
	h.eventually("the backup is being taken", func() bool {
		return h.Get(h.t.Context(), client.ObjectKeyFromObject(b), b) == nil && len(b.Status.Conditions) > 0
	})
	h.agent.Kill()
	h.must(h.Get(h.t.Context(), client.ObjectKeyFromObject(b), b))
	var all v1alpha1.OperatorBackupList
	h.must(h.List(h.t.Context(), &all, client.InNamespace(h.namespace)))
	root, err := store.Folder("file://"+filepath.Join(filepath.Dir(locationOf(h.t, all.Items))), b.Name)
	h.must(err)
	bucket, err := store.Open(h.t.Context(), root, store.Credentials{})
	h.must(err)
	defer bucket.Close() //nolint:errcheck // nothing was written
	if m, sum, err := archive.Open(h.t.Context(), bucket); !errors.Is(err, archive.ErrNoBackup) {
		h.must(err)
		h.must(archive.Verify(h.t.Context(), bucket, sum))
		h.t.Logf("the backup of %d objects was complete before the agent was killed", m.Objects())
	} else if backups.IsVerified(b) {
		h.t.Error("the status says that the backup is complete, and there is none")
	}
	h.startAgent()
	h.eventually("the next agent takes the backup", func() bool {
		return h.Get(h.t.Context(), client.ObjectKeyFromObject(b), b) == nil && backups.IsVerified(b)
	})
	if b.Status.Objects != things {
		h.t.Errorf("the backup holds %d objects, want %d", b.Status.Objects, things)
	}
}

// locationOf is the path of the folder of the first backup that is complete.
func locationOf(t *testing.T, all []v1alpha1.OperatorBackup) string {
	t.Helper()
	for i := range all {
		if backups.IsVerified(&all[i]) {
			return all[i].Status.Location[len("file://"):]
		}
	}
	t.Fatal("no backup is complete")
	return ""
}
