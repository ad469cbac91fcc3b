// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package hub

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

const (
	// mostOfAnAgent and mostOfAnInstall are what docs/reference/limits.md says that an agent can store in all, and for
	// each operator that the hub brings to its cluster.
	mostOfAnAgent   = 128 << 20
	mostOfAnInstall = 512 << 10
)

// TestAnAgentWritesAllItMay has one agent write the largest value that the API server takes to each field of each kind
// that it may write, in as many objects as it may have. Then the hub still takes in a cluster, and an administrator can
// write.
func TestAnAgentWritesAllItMay(t *testing.T) {
	h := &harness{scheme: runtime.NewScheme(), whole: true}
	must(t, apiextensionsv1.AddToScheme(h.scheme))
	h.prepare(t, testenv.Cluster(t, cluster.Options{EtcdQuota: 512 << 20}))
	h.startHub(t)
	t.Cleanup(func() { h.stop() })
	greedy := fleetCluster("greedy")
	a := h.join(t, greedy)
	must(t, a.renew(t.Context()))
	install := h.install(t, greedy.Name, v1alpha1.OperatorReference{Namespace: "team", Name: "echo"})

	of := &unstructured.Unstructured{}
	of.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("OperatorInstall"))
	must(t, h.Get(t.Context(), client.ObjectKeyFromObject(install), of))
	grown := sizeOf(t, h.grow(t, of, "status", a.report(t)))
	t.Logf("an OperatorInstall: %d bytes", grown)
	if grown > mostOfAnInstall {
		t.Errorf("an OperatorInstall takes %d bytes, want at most %d", grown, mostOfAnInstall)
	}

	scan := &unstructured.Unstructured{}
	scan.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("OperatorScan"))
	must(t, h.Get(t.Context(), client.ObjectKey{Namespace: a.namespace, Name: v1alpha1.ScanName}, scan))
	sum := a.fillLease(t) + a.fillEvents(t) + a.fillBackups(t, h) + sizeOf(t, h.grow(t, scan, "status", a.report(t)))
	t.Logf("all else: %d bytes", sum)
	if sum > mostOfAnAgent {
		t.Errorf("all else takes %d bytes, want at most %d", sum, mostOfAnAgent)
	}
	h.join(t, fleetCluster("another"))
	must(t, h.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "admin"},
		Data: map[string]string{"text": strings.Repeat("x", 512<<10)}}))
}

// report writes the status of an object.
func (a *agent) report(t *testing.T) func(*unstructured.Unstructured) error {
	return func(o *unstructured.Unstructured) error { return a.Status().Update(t.Context(), o) }
}

// grow gives each field of a part of an object the largest value that a write takes, and returns what was written.
func (h *harness) grow(t *testing.T, o *unstructured.Unstructured, part string,
	write func(*unstructured.Unstructured) error) *unstructured.Unstructured {
	t.Helper()
	schema := h.schemaOf(t, o).Properties[part]
	for _, field := range slices.Sorted(maps.Keys(schema.Properties)) {
		if _, set, _ := unstructured.NestedFieldNoCopy(o.Object, part, field); set && part == "spec" {
			continue // it is what the object is about
		}
		var err error
		for _, b := range bounds() {
			next := o.DeepCopy()
			must(t, unstructured.SetNestedField(next.Object, b.largest(schema.Properties[field], field), part, field))
			if err = write(next); err == nil {
				o = next
				break
			}
			if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "too large") {
				t.Fatalf("%s.%s: %v", part, field, err)
			}
		}
		if err != nil {
			t.Errorf("no value of %s.%s is taken: %.600s", part, field, err)
		}
	}
	return o
}

// bound is how large a value is: a list has so many times fewer items than its schema permits, and a text without a
// limit so many characters. Some limits are rules, and no numbers.
type bound struct{ fewer, text int }

func bounds() []bound {
	var all []bound
	for _, text := range []int{64 << 10, 4096, 253, 60} {
		for fewer := 1; fewer <= 16; fewer *= 2 {
			all = append(all, bound{fewer, text})
		}
	}
	return all
}

func sizeOf(t *testing.T, o any) int {
	t.Helper()
	text, err := json.Marshal(o)
	must(t, err)
	return len(text)
}

func (h *harness) schemaOf(t *testing.T, o *unstructured.Unstructured) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	var all apiextensionsv1.CustomResourceDefinitionList
	must(t, h.List(t.Context(), &all))
	for _, crd := range all.Items {
		if crd.Spec.Group == o.GroupVersionKind().Group && crd.Spec.Names.Kind == o.GetKind() {
			return *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		}
	}
	t.Fatalf("no definition of %s", o.GetKind())
	return apiextensionsv1.JSONSchemaProps{}
}

// largest is a value with everything that a schema permits.
func (b bound) largest(s apiextensionsv1.JSONSchemaProps, name string) any {
	some := func(limit *int64) int { return max(int(ptr.Deref(limit, 100))/b.fewer, 1) }
	switch {
	case len(s.Enum) > 0:
		var value any
		_ = json.Unmarshal(s.Enum[0].Raw, &value)
		return value
	case s.XIntOrString:
		return int64(1)
	case s.Type == "boolean":
		return true
	case s.Type == "integer":
		return int64(ptr.Deref(s.Maximum, 1<<30))
	case s.Type == "array":
		list := []any{}
		for i := range some(s.MaxItems) {
			list = append(list, b.largest(*s.Items.Schema, fmt.Sprintf("%s-%d", name, i)))
		}
		return list
	case s.Type == "object" && s.AdditionalProperties != nil:
		object := map[string]any{}
		for i := range some(s.MaxProperties) {
			object[fmt.Sprintf("key-%d", i)] = b.largest(*s.AdditionalProperties.Schema, name)
		}
		return object
	case s.Type == "object":
		object := map[string]any{}
		for key, property := range s.Properties {
			if !slices.Contains(excluded, key) {
				if most, known := ruled[key]; known {
					property.MaxLength = ptr.To(min(ptr.Deref(property.MaxLength, most), most))
				}
				object[key] = b.largest(property, name)
			}
		}
		return object
	}
	return text(s, int(ptr.Deref(s.MaxLength, int64(b.text))), name)
}

// excluded are fields that another one excludes, which has more room.
var excluded = []string{"directory"}

// ruled are the limits of texts that are no numbers in the schema, by the names of their fields.
var ruled = map[string]int64{"message": 4096}

// begins is how texts begin that cannot begin with anything, by the names of their fields.
var begins = map[string]string{"recipients": "age1", "store": "s3://b/"}

// text is a text of a schema, which differs from those of other items of its list.
func text(s apiextensionsv1.JSONSchemaProps, length int, name string) string {
	if s.Format == "date-time" {
		return "2026-03-01T10:00:00Z"
	}
	field, item, _ := strings.Cut(name, "-")
	begin := begins[field] + strings.ReplaceAll("a"+item, "-", "a")
	return begin + strings.Repeat("x", max(length-len(begin), 0))
}

func (a *agent) fillLease(t *testing.T) int {
	t.Helper()
	lease := &coordinationv1.Lease{}
	must(t, a.Get(t.Context(), client.ObjectKey{Namespace: a.namespace, Name: v1alpha1.LeaseName}, lease))
	lease.Spec.HolderIdentity = ptr.To(strings.Repeat("x", 253))
	lease.Annotations["bellwether.dev/filler"] = ""
	room := 16384
	for k, v := range lease.Annotations {
		room -= len(k) + len(v)
	}
	lease.Annotations["bellwether.dev/filler"] = strings.Repeat("x", room)
	must(t, a.Update(t.Context(), lease))
	return sizeOf(t, lease)
}

// fillEvents writes large Events until no other name is permitted.
func (a *agent) fillEvents(t *testing.T) int {
	t.Helper()
	sum, refused := 0, 0
	name := strings.Repeat("x", 253)
	for i := range 256 {
		about := corev1.ObjectReference{Kind: name, Namespace: a.namespace, Name: name, UID: "u", APIVersion: name,
			ResourceVersion: name}
		e := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: fmt.Sprintf("agent-%03x", i)},
			EventTime: metav1.NowMicro(), ReportingController: "bellwether.dev/agent",
			ReportingInstance: strings.Repeat("x", 128), Action: strings.Repeat("x", 128),
			Reason: strings.Repeat("x", 128), Type: "Warning", Note: strings.Repeat("x", 1024), Regarding: about,
			Related: &about}
		switch err := a.Create(t.Context(), e); {
		case apierrors.IsForbidden(err):
			refused++
		default:
			must(t, err)
			sum += sizeOf(t, e)
		}
	}
	if refused != 256-64 {
		t.Errorf("%d of 256 Events were refused, want all but 64", refused)
	}
	return sum
}

// fillBackups makes large OperatorBackups until the quota refuses another one.
func (a *agent) fillBackups(t *testing.T, h *harness) int {
	t.Helper()
	a.isCounted(t)
	b := &unstructured.Unstructured{}
	b.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("OperatorBackup"))
	b.SetNamespace(a.namespace)
	must(t, unstructured.SetNestedStringMap(b.Object, map[string]string{"namespace": "team", "name": "echo"}, "spec",
		"operator"))
	upgrade := h.schemaOf(t, b).Properties["spec"].Properties["upgrade"]
	must(t, unstructured.SetNestedField(b.Object, string(v1alpha1.BackupTriggerUpgrade), "spec", "trigger"))
	must(t, unstructured.SetNestedField(b.Object, bound{fewer: 1}.largest(upgrade, "upgrade"), "spec", "upgrade"))
	named := func(i int) *unstructured.Unstructured {
		o := b.DeepCopy()
		o.SetName(fmt.Sprintf("%s-%03d", strings.Repeat("x", 200), i))
		return o
	}
	b = h.grow(t, named(0), "spec", func(o *unstructured.Unstructured) error {
		return a.Create(t.Context(), o, client.DryRunAll)
	})
	b = &unstructured.Unstructured{Object: map[string]any{"apiVersion": b.GetAPIVersion(), "kind": b.GetKind(),
		"metadata": map[string]any{"namespace": a.namespace}, "spec": b.Object["spec"]}}
	var status any
	sum := 0
	for i := range 1000 {
		o := named(i)
		err := a.Create(t.Context(), o)
		if apierrors.IsForbidden(err) && i > 400 {
			return sum
		}
		must(t, err)
		if status == nil {
			o = h.grow(t, o, "status", a.report(t))
			status = o.Object["status"]
		} else {
			o.Object["status"] = status
			must(t, a.Status().Update(t.Context(), o))
		}
		sum += sizeOf(t, o)
	}
	t.Error("no quota refuses 1,000 OperatorBackups")
	return sum
}
