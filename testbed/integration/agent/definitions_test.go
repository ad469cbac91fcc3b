// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups"
	"github.com/bellwether-dev/bellwether/backups/restore"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
)

// TestRollbackOfDefinitions changes the definition of a custom resource by an
// upgrade and goes back. What the rollback class says has to be what happens: nothing
// is lost where it says in-place; something would be lost without the backup, and
// comes back with it, where it says needs-backup; and the API server refuses the
// older definition, or it would not work, where it says one-way.
func TestRollbackOfDefinitions(t *testing.T) {
	t.Parallel()
	c := quiet(t)
	for name, scenario := range map[string]func(*harness){
		"removedfield": removedFieldComesBack,
		"moved":        movedStorageLosesNothing,
		"movedlossy":   movedStorageLosesFields,
		"newstored":    newStoredVersionStays,
		"newlossy":     newStoredVersionIsOneWay,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, c, name, "--backup-store", "file://"+filepath.Join(t.TempDir(), "backups"))
			h.operator = name
			scenario(h)
		})
	}
}

// apiVersion is a version of the definition of Things, which is served.
type apiVersion struct {
	name   string
	fields []string
}

// stores are versions, the first of which objects are stored as.
func stores(versions ...apiVersion) func(csv, crd object) {
	return func(csv, crd object) {
		all := make([]any, len(versions))
		owned := make([]any, len(versions))
		for i, v := range versions {
			properties := object{}
			for _, field := range v.fields {
				properties[field] = object{"type": "string"}
			}
			all[i] = object{"name": v.name, "served": true, "storage": i == 0,
				"schema": object{"openAPIV3Schema": object{"type": "object", "properties": object{
					"spec": object{"type": "object", "properties": properties}}}}}
			owned[i] = object{"name": crd["metadata"].(object)["name"], "version": v.name, "kind": "Thing"}
		}
		crd["spec"].(object)["versions"] = all
		csv["spec"].(object)["customresourcedefinitions"].(object)["owned"] = owned
	}
}

func alpha(fields ...string) apiVersion  { return apiVersion{"v1alpha1", fields} }
func stable(fields ...string) apiVersion { return apiVersion{"v1", fields} }

// twoVersions are 1.0.0 and 1.1.0 with these definitions.
func twoVersions(before, after func(csv, crd object)) []bundle {
	bundles := line("1.0.0", "1.1.0")
	bundles[0].change, bundles[1].change = before, after
	return bundles
}

// thingsAt are the Things in a version of the API.
func (h *harness) thingsAt(version string) dynamic.ResourceInterface {
	h.t.Helper()
	return h.dynamic().Client.Resource(schema.GroupVersionResource{Group: group(h.operator), Version: version,
		Resource: "things"}).Namespace("default")
}

// writes creates a Thing in a version of the API.
func (h *harness) writes(version, name string, spec object) {
	h.t.Helper()
	o := &unstructured.Unstructured{Object: object{"apiVersion": group(h.operator) + "/" + version, "kind": "Thing",
		"metadata": object{"name": name, "labels": object{"by": "test"}}, "spec": spec}}
	var err error
	h.eventually("Thing "+name+" is written", func() bool {
		_, err = h.thingsAt(version).Create(h.t.Context(), o, metav1.CreateOptions{})
		return err == nil
	})
}

// touch writes a Thing in a version of the API as an operator does that sets an
// annotation: with all fields as they were read.
func (h *harness) touch(version, name string) {
	h.t.Helper()
	h.eventually("Thing "+name+" is touched", func() bool {
		o, err := h.thingsAt(version).Get(h.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		o.SetAnnotations(map[string]string{"touched": "true"})
		_, err = h.thingsAt(version).Update(h.t.Context(), o, metav1.UpdateOptions{})
		return err == nil
	})
}

// reads returns labels and spec of each Thing in a version of the API.
func (h *harness) reads(version string) map[string]object {
	h.t.Helper()
	list, err := h.thingsAt(version).List(h.t.Context(), metav1.ListOptions{})
	h.must(err)
	return readThings(list)
}

func readThings(list *unstructured.UnstructuredList) map[string]object {
	out := map[string]object{}
	for _, item := range list.Items {
		spec, _, _ := unstructured.NestedMap(item.Object, "spec")
		out[item.GetName()] = object{"labels": item.GetLabels(), "spec": spec, "uid": string(item.GetUID())}
	}
	return out
}

// has waits until the Things are these in a version of the API. The API server takes
// up another definition a moment after it was written.
func (h *harness) has(what, version string, want map[string]object) {
	h.t.Helper()
	var diff string
	matches := func(ctx context.Context) (bool, error) {
		diff = h.differs(ctx, version, want)
		return diff == "", nil
	}
	if err := wait.PollUntilContextTimeout(h.t.Context(), look, patience, true, matches); err != nil {
		h.t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// differs says how the Things differ from these, or why they cannot be read.
func (h *harness) differs(ctx context.Context, version string, want map[string]object) string {
	h.t.Helper()
	list, err := h.thingsAt(version).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	return cmp.Diff(want, readThings(list))
}

// definition is the live definition of Things.
func (h *harness) definition() *apiextensionsv1.CustomResourceDefinition {
	h.t.Helper()
	object, err := h.dynamic().Client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource(
		"customresourcedefinitions")).Get(h.t.Context(), "things."+group(h.operator), metav1.GetOptions{})
	h.must(err)
	text, err := json.Marshal(object)
	h.must(err)
	d := &apiextensionsv1.CustomResourceDefinition{}
	h.must(json.Unmarshal(text, d))
	return d
}

// storedVersions checks what objects may be stored as.
func (h *harness) storedVersions(want ...string) {
	h.t.Helper()
	if diff := cmp.Diff(want, h.definition().Status.StoredVersions); diff != "" {
		h.t.Errorf("status.storedVersions (-want +got):\n%s", diff)
	}
}

// refusesToPutBack checks that the API server does not take a definition in the
// place of the live one.
func (h *harness) refusesToPutBack(change func(csv, crd object)) {
	h.t.Helper()
	crd := catalogtest.CRD(group(h.operator), 0)
	change(catalogtest.CSV(csvName(h.operator, "1.0.0"), "1.0.0", group(h.operator)), crd)
	text, err := json.Marshal(crd)
	h.must(err)
	older := &unstructured.Unstructured{}
	h.must(older.UnmarshalJSON(text))
	definitions := h.dynamic().Client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource(
		"customresourcedefinitions"))
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error { // others write it too
		older.SetResourceVersion(h.definition().ResourceVersion)
		_, err := definitions.Update(h.t.Context(), older, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "status.storedVersions") {
		h.t.Errorf("the older definition was not refused because of status.storedVersions: %v", err)
	}
}

// backup is the verified backup that was taken before the upgrade to 1.1.0.
func (h *harness) backup() *v1alpha1.OperatorBackup {
	h.t.Helper()
	var all v1alpha1.OperatorBackupList
	h.must(h.List(h.t.Context(), &all, client.InNamespace(h.namespace)))
	b := backups.FindVerified(all.Items, backups.Hop{
		Operator: v1alpha1.OperatorReference{Namespace: "fleet", Name: h.operator},
		From:     csvName(h.operator, "1.0.0"), To: csvName(h.operator, "1.1.0")})
	if b == nil {
		h.t.Fatalf("no complete backup before the upgrade: %+v", all.Items)
	}
	return b
}

// savesBeforeUpgrade has a backup taken before upgrades that need one.
func (h *harness) savesBeforeUpgrade() {
	h.t.Helper()
	h.setPolicy(&v1alpha1.BackupPolicy{BeforeUpgrade: v1alpha1.BeforeUpgradeWhenNeeded})
}

// removedFieldComesBack goes back from a version that removed a field. What the
// operator wrote meanwhile has lost it, and has it again after the restore.
func removedFieldComesBack(h *harness) {
	pin := h.pin(twoVersions(stores(stable("a", "b")), stores(stable("a")))...)
	h.to(pin, "1.0.0")
	h.runs()
	h.savesBeforeUpgrade()
	for _, name := range []string{"touched", "untouched"} {
		h.writes("v1", name, object{"a": "1 " + name, "b": "2 " + name})
	}
	before := h.reads("v1")
	h.to(pin, "1.1.0")
	h.runs()
	h.touch("v1", "touched")

	h.goBack(releaseOf(h.operator, pin, "1.0.0"), false)
	h.runs()
	h.only("1.0.0")
	lost := h.reads("v1")
	h.loses(before, lost, "touched", "b")
	h.comesBack("v1", before)
}

// loses checks that a field of one Thing is gone, and nothing else.
func (h *harness) loses(before, after map[string]object, name, field string) {
	h.t.Helper()
	want := map[string]object{}
	for n, o := range before {
		want[n] = object{}
		for key, value := range o {
			want[n][key] = value
		}
	}
	spec := object{}
	for key, value := range before[name]["spec"].(object) {
		if key != field {
			spec[key] = value
		}
	}
	want[name]["spec"] = spec
	if diff := cmp.Diff(want, after); diff != "" {
		h.t.Errorf("what is lost without a backup (-want +got):\n%s", diff)
	}
}

// comesBack restores the backup and compares every field.
func (h *harness) comesBack(version string, before map[string]object) {
	h.t.Helper()
	report := h.restore(h.dynamic(), h.backup(), restore.Options{})
	if report.Failed > 0 || report.Pruned > 0 || report.Kept > 0 || report.Filled != 1 {
		h.t.Errorf("restore: %+v", report)
	}
	h.has("all that was saved is there again", version, before)
}

// movedStorageLosesNothing changes the storage version between two versions with
// the same fields, and goes back after objects were stored as both.
func movedStorageLosesNothing(h *harness) {
	pin := h.pin(twoVersions(stores(alpha("a"), stable("a")), stores(stable("a"), alpha("a")))...)
	h.to(pin, "1.0.0")
	h.runs()
	for _, name := range []string{"old", "touched"} {
		h.writes("v1alpha1", name, object{"a": name})
	}
	h.to(pin, "1.1.0")
	h.runs()
	uid := h.deployment().UID
	h.writes("v1", "new", object{"a": "new"})
	h.touch("v1", "touched")
	before := h.reads("v1")
	h.storedVersions("v1alpha1", "v1")

	h.goBack(releaseOf(h.operator, pin, "1.0.0"), false)
	h.runs()
	h.only("1.0.0")
	h.unharmed(uid)
	for _, version := range []string{"v1alpha1", "v1"} {
		h.has("nothing is lost in "+version, version, before)
	}
	for name := range before {
		h.touch("v1alpha1", name)
	}
	h.has("nothing is lost when the older operator writes", "v1alpha1", before)
	h.to(pin, "1.1.0")
	h.runs()
	h.has("nothing is lost by another upgrade", "v1", before)
}

// movedStorageLosesFields changes the storage version to one that lacks a field. An
// object that the newer operator wrote has lost it: that needs a backup.
func movedStorageLosesFields(h *harness) {
	pin := h.pin(twoVersions(stores(alpha("a", "old"), stable("a")), stores(stable("a"), alpha("a", "old")))...)
	h.to(pin, "1.0.0")
	h.runs()
	for _, name := range []string{"touched", "untouched"} {
		h.writes("v1alpha1", name, object{"a": "1 " + name, "old": "2 " + name})
	}
	before := h.reads("v1alpha1")
	h.to(pin, "1.1.0")
	h.runs()
	h.goBack(releaseOf(h.operator, pin, "1.0.0"), false)
	h.stalls(v1alpha1.ReasonRollbackNeedsBackup, "things."+group(h.operator), "spec.old", "as v1",
		"Nothing was changed")

	h.goBack(releaseOf(h.operator, pin, "1.0.0"), true)
	h.runs()
	h.only("1.0.0")
	h.has("nothing is lost that nobody wrote", "v1alpha1", before)
	h.savesBeforeUpgrade()
	h.to(pin, "1.1.0")
	h.runs()
	h.touch("v1", "touched")
	h.goBack(releaseOf(h.operator, pin, "1.0.0"), false)
	h.runs()
	h.only("1.0.0")
	h.loses(before, h.reads("v1alpha1"), "touched", "old")
	h.comesBack("v1alpha1", before)
}

// newStoredVersionStays adds a version with the same fields and stores objects as
// it. The API server would not take the older definition; the newer one stays.
func newStoredVersionStays(h *harness) {
	older := stores(alpha("a"))
	pin := h.pin(twoVersions(older, stores(stable("a"), alpha("a")))...)
	h.to(pin, "1.0.0")
	h.runs()
	h.writes("v1alpha1", "old", object{"a": "old"})
	h.to(pin, "1.1.0")
	h.runs()
	uid := h.deployment().UID
	h.writes("v1", "new", object{"a": "new"})
	before := h.reads("v1")
	h.refusesToPutBack(older)

	h.goBack(releaseOf(h.operator, pin, "1.0.0"), false)
	h.runs()
	h.only("1.0.0")
	h.unharmed(uid)
	for name := range before {
		h.touch("v1alpha1", name)
	}
	h.has("nothing is lost", "v1alpha1", before)
	h.storedVersions("v1alpha1", "v1")
	h.to(pin, "1.1.0")
	h.runs()
	h.has("nothing is lost by another upgrade", "v1", before)
}

// newStoredVersionIsOneWay adds a version that lacks a field, and stores objects as
// it: the older definition would be refused, and with the newer one every write of
// the older operator would drop the field.
func newStoredVersionIsOneWay(h *harness) {
	older := stores(alpha("a", "old"))
	pin := h.pin(twoVersions(older, stores(stable("a"), alpha("a", "old")))...)
	h.to(pin, "1.0.0")
	h.runs()
	h.writes("v1alpha1", "mine", object{"a": "1", "old": "2"})
	before := h.reads("v1alpha1")
	h.to(pin, "1.1.0")
	h.runs()
	h.goBack(releaseOf(h.operator, pin, "1.0.0"), true)
	h.stalls(v1alpha1.ReasonRollbackImpossible, "impossible", "things."+group(h.operator), "as v1")
	h.refusesToPutBack(older)
	h.touch("v1alpha1", "mine")
	h.loses(before, h.reads("v1alpha1"), "mine", "old")
}
