// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package restore_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/bellwether-dev/bellwether/backups/archive"
	"github.com/bellwether-dev/bellwether/backups/restore"
	"github.com/bellwether-dev/bellwether/backups/restore/plan"
)

type object = map[string]any

var (
	things             = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}
	namespaces         = corev1.SchemeGroupVersion.WithResource("namespaces")
	definitionResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
)

func thing(name string, change ...func(object)) object {
	o := object{"apiVersion": "example.com/v1", "kind": "Thing",
		"metadata": object{"name": name, "namespace": "shop", "uid": "uid-" + name}}
	for _, c := range change {
		c(o)
	}
	return o
}

func spec(fields object) func(object)   { return func(o object) { o["spec"] = fields } }
func status(fields object) func(object) { return func(o object) { o["status"] = fields } }

func ownedBy(names ...string) func(object) {
	return func(o object) {
		var owners []any
		for _, name := range names {
			owners = append(owners, object{"apiVersion": "example.com/v1", "kind": "Thing", "name": name,
				"uid": "uid-" + name})
		}
		o["metadata"].(object)["ownerReferences"] = owners
	}
}

func definition(version string) object {
	return object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": "things.example.com"},
		"spec": object{"group": "example.com", "versions": []any{object{"name": version, "served": true,
			"storage": true, "subresources": object{"status": object{}},
			"schema": object{"openAPIV3Schema": object{"type": "object"}}}}}}
}

func namespace(name string) object {
	return object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name}}
}

// cluster returns a cluster with the objects. It gives new objects new UIDs, and applies by the rules of server-side
// apply for objects without lists.
func cluster(t *testing.T, objects ...object) (restore.Cluster, *fake.FakeDynamicClient) {
	t.Helper()
	var all []runtime.Object
	for _, o := range objects {
		all = append(all, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(o)})
	}
	c := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		things: "ThingList", namespaces: "NamespaceList", definitionResource: "CustomResourceDefinitionList"}, all...)
	c.PrependReactor("create", "things", func(action clienttesting.Action) (bool, runtime.Object, error) {
		o := action.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured)
		o.SetUID(types.UID("new-" + o.GetName()))
		return false, nil, nil
	})
	c.PrependReactor("patch", "things", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		live, err := c.Tracker().Get(things, patch.GetNamespace(), patch.GetName())
		if err != nil {
			return true, nil, err
		}
		var fields object
		if err := json.Unmarshal(patch.GetPatch(), &fields); err != nil {
			return true, nil, err
		}
		merged, _ := plan.AddOwned(live.(*unstructured.Unstructured).Object, fields, nil).(object)
		out := &unstructured.Unstructured{Object: merged}
		return true, out, c.Tracker().Update(things, out, patch.GetNamespace())
	})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(things.GroupVersion().WithKind("Thing"), meta.RESTScopeNamespace)
	return restore.Cluster{Client: c, Mapper: mapper}, c
}

func backup(t *testing.T, objects ...object) (*blob.Bucket, *archive.Manifest) {
	t.Helper()
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { _ = bucket.Close() })
	m, _, err := archive.Write(t.Context(), bucket, archive.Manifest{}, archive.Options{},
		func(add func([]byte) error) ([]archive.Resource, error) {
			for _, o := range objects {
				line, err := json.Marshal(o)
				if err != nil {
					return nil, err
				}
				if err := add(line); err != nil {
					return nil, err
				}
			}
			return []archive.Resource{{Group: "example.com", Version: "v1", Plural: "things", Kind: "Thing",
				Objects: int64(len(objects))}}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return bucket, m
}

// present returns the things of the cluster by name, without UIDs.
func present(t *testing.T, c restore.Cluster) map[string]object {
	t.Helper()
	list, err := c.Client.(*fake.FakeDynamicClient).Tracker().List(things, things.GroupVersion().WithKind("Thing"),
		"shop")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]object{}
	for _, item := range list.(*unstructured.UnstructuredList).Items {
		unstructured.RemoveNestedField(item.Object, "metadata", "uid")
		unstructured.RemoveNestedField(item.Object, "metadata", "resourceVersion")
		out[item.GetName()] = item.Object
	}
	return out
}

func run(t *testing.T, c restore.Cluster, bucket *blob.Bucket, m *archive.Manifest, o restore.Options) (
	restore.Report, map[string]restore.Result) {
	t.Helper()
	results := map[string]restore.Result{}
	o.Observe = func(r restore.Result) { results[r.Name] = r }
	report, err := restore.Run(t.Context(), c, bucket, m, o)
	if err != nil {
		t.Fatal(err)
	}
	return report, results
}

func TestRestore(t *testing.T) {
	gone := thing("gone", spec(object{"a": "1"}), status(object{"phase": "Running"}))
	lossy := thing("lossy", spec(object{"a": "1", "b": "2"}), status(object{"phase": "Running"}))
	same := thing("same", spec(object{"a": "1"}))
	bucket, m := backup(t, gone, lossy, same)
	c, _ := cluster(t, definition("v1"), namespace("shop"), same,
		thing("lossy", spec(object{"a": "changed"}), status(object{})))
	before := present(t, c)
	want := restore.Report{Objects: 3, Created: 1, Filled: 1, Unchanged: 1, Fields: 2, Kept: 1}

	dryWant := want
	dryWant.DryRun = true
	dry, results := run(t, c, bucket, m, restore.Options{DryRun: true})
	if diff := cmp.Diff(dryWant, dry); diff != "" {
		t.Errorf("dry run (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"spec.b", "status.phase"}, results["lossy"].Fields); diff != "" {
		t.Errorf("fields to bring back (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, present(t, c)); diff != "" {
		t.Errorf("the dry run wrote (-before +after):\n%s", diff)
	}

	report, _ := run(t, c, bucket, m, restore.Options{})
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	after := map[string]object{"gone": gone, "same": same,
		"lossy": thing("lossy", spec(object{"a": "changed", "b": "2"}), status(object{"phase": "Running"}))}
	for _, o := range after {
		delete(o["metadata"].(object), "uid")
	}
	if diff := cmp.Diff(after, present(t, c)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	again, _ := run(t, c, bucket, m, restore.Options{})
	if diff := cmp.Diff(restore.Report{Objects: 3, Unchanged: 3, Kept: 1}, again); diff != "" {
		t.Errorf("second restore (-want +got):\n%s", diff)
	}
}

// TestOwnersComeFirst restores a chain of owners into another cluster, the last one
// first in the backup.
func TestOwnersComeFirst(t *testing.T) {
	bucket, m := backup(t, thing("leaf", ownedBy("branch", "stranger")), thing("branch", ownedBy("root")),
		thing("root"))
	c, client := cluster(t, definition("v1"), namespace("shop"))
	report, results := run(t, c, bucket, m, restore.Options{})
	if report.Created != 3 || report.DroppedOwners != 1 {
		t.Errorf("report: %+v", report)
	}
	if diff := cmp.Diff([]string{"Thing stranger"}, results["leaf"].DroppedOwners); diff != "" {
		t.Errorf("dropped owners (-want +got):\n%s", diff)
	}
	for name, owner := range map[string]string{"leaf": "new-branch", "branch": "new-root"} {
		live, err := client.Tracker().Get(things, "shop", name)
		if err != nil {
			t.Fatal(err)
		}
		owners := live.(*unstructured.Unstructured).GetOwnerReferences()
		if len(owners) != 1 || string(owners[0].UID) != owner {
			t.Errorf("%s is owned by %+v, want %s", name, owners, owner)
		}
	}
}

func TestOwnersInACircleAreDropped(t *testing.T) {
	bucket, m := backup(t, thing("a", ownedBy("b")), thing("b", ownedBy("a")))
	c, _ := cluster(t, definition("v1"), namespace("shop"))
	report, _ := run(t, c, bucket, m, restore.Options{})
	if report.Created != 2 || report.DroppedOwners == 0 {
		t.Errorf("report: %+v", report)
	}
}

func TestWhatCannotBeRestoredIsReported(t *testing.T) {
	for name, test := range map[string]struct {
		cluster []object
		says    string
	}{
		"no definition":             {cluster: []object{namespace("shop")}, says: "no CustomResourceDefinition"},
		"the version is not served": {cluster: []object{namespace("shop"), definition("v2")}, says: "does not serve version v1"},
		"no namespace":              {cluster: []object{definition("v1")}, says: "namespace shop does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			bucket, m := backup(t, thing("a"))
			c, _ := cluster(t, test.cluster...)
			report, results := run(t, c, bucket, m, restore.Options{})
			if report.Failed != 1 || !strings.Contains(results["a"].Problem, test.says) {
				t.Errorf("report %+v, problem %q, want one that says %q", report, results["a"].Problem, test.says)
			}
		})
	}
}

func TestNamespacesAreCreatedOnlyIfAsked(t *testing.T) {
	bucket, m := backup(t, thing("a"), thing("b"))
	c, client := cluster(t, definition("v1"))
	if report, _ := run(t, c, bucket, m, restore.Options{CreateNamespaces: true}); report.Created != 2 {
		t.Errorf("report: %+v", report)
	}
	if _, err := client.Tracker().Get(namespaces, "", "shop"); err != nil {
		t.Errorf("namespace: %v", err)
	}
}

// TestADamagedBackupWritesNothing checks that the whole backup is read before anything is written.
func TestADamagedBackupWritesNothing(t *testing.T) {
	var objects []object
	for i := range 200 {
		objects = append(objects, thing(fmt.Sprint("t", i), spec(object{"seed": i * i * 7919})))
	}
	bucket, m := backup(t, objects...)
	text, err := bucket.ReadAll(t.Context(), m.Content.File)
	if err != nil {
		t.Fatal(err)
	}
	if err := bucket.WriteAll(t.Context(), m.Content.File, text[:len(text)-5], nil); err != nil {
		t.Fatal(err)
	}
	c, client := cluster(t, definition("v1"), namespace("shop"))
	if _, err := restore.Run(t.Context(), c, bucket, m, restore.Options{}); err == nil {
		t.Error("no error")
	}
	verbs := map[string]bool{}
	for _, action := range client.Actions() {
		verbs[action.GetVerb()] = true
	}
	if got := slices.Sorted(maps.Keys(verbs)); slices.Contains(got, "create") || slices.Contains(got, "patch") {
		t.Errorf("the cluster was written to: %v", got)
	}
}

// TestAnObjectThatWasWrittenInAnotherVersion checks that such an object is written by an update: the API server
// refuses a server-side apply if the other version lacks the field.
func TestAnObjectThatWasWrittenInAnotherVersion(t *testing.T) {
	managed := func(o object) {
		o["metadata"].(object)["managedFields"] = []any{object{"manager": "operator", "operation": "Update",
			"apiVersion": "example.com/v2", "fieldsType": "FieldsV1", "fieldsV1": object{"f:spec": object{}}}}
	}
	bucket, m := backup(t, thing("a", spec(object{"a": "1", "b": "2"}), status(object{"phase": "Running"})))
	c, client := cluster(t, definition("v1"), namespace("shop"), thing("a", spec(object{"a": "changed"}), managed))
	report, _ := run(t, c, bucket, m, restore.Options{})
	want := restore.Report{Objects: 1, Filled: 1, Fields: 2, Kept: 1}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	after := present(t, c)["a"]
	if diff := cmp.Diff(object{"a": "changed", "b": "2"}, after["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(object{"phase": "Running"}, after["status"]); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	for _, action := range client.Actions() {
		if action.GetVerb() == "patch" {
			t.Errorf("%s was applied", action.GetResource().Resource)
		}
	}
}
