// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Source is a cluster as the object of another system describes it.
type Source struct {
	Ref       v1alpha1.SourceReference
	UID       types.UID
	CreatedAt time.Time
	// Fields are the values that labels can be mapped from: namespace, name, platform, region and version if they are
	// known; labels/KEY for each label of the object, and properties/NAME for each property or variable.
	Fields map[string]string
	// Labels are the labels of the object.
	Labels map[string]string
	// NotReady is why the cluster cannot be in the fleet yet; empty if it can.
	NotReady string
	// Deleting is true if the object is being deleted, and the cluster with it.
	Deleting bool
	// Paused is true if the object's owner paused it, so the cluster must not be changed.
	Paused bool
	// Relocating is true if the object is being moved to another management cluster.
	Relocating bool
	// PowerState is empty if the source does not report it.
	PowerState v1alpha1.ClusterPowerState
}

// Name returns the default name of a FleetCluster of this source: the name of the object.
func (s Source) Name() string { return s.Ref.Name }

// SourceKey returns a key of a source that does not depend on the version of its API.
func SourceKey(ref v1alpha1.SourceReference) string {
	group, _, found := strings.Cut(ref.APIVersion, "/")
	if !found {
		group = ""
	}
	return strings.Join([]string{group, ref.Kind, ref.Namespace, ref.Name}, "/")
}

// DescribeSource returns the name of a source for a message.
func DescribeSource(ref v1alpha1.SourceReference) string {
	return fmt.Sprintf("%s %s/%s", ref.Kind, ref.Namespace, ref.Name)
}

// Kind is a kind of source.
type Kind struct {
	// Name is the name in the configuration.
	Name  string
	Group string
	Kind  string
	// Plural is the name of the resource.
	Plural string
	// Versions are the supported versions, the preferred version first.
	Versions []string

	// keep are the fields that are read, in addition to labels and annotations.
	keep [][]string
	// annotations are the annotations that are read.
	annotations []string
	observe     func(object, *Source)
	secret      func(object) (SecretKey, error)
}

// SecretKey is the location of the administrator's kubeconfig of a cluster, in the namespace of the source.
type SecretKey struct{ Secret, Key string }

// Kinds returns the kinds of sources.
func Kinds() []Kind { return []Kind{newHiveKind(), newClusterProfileKind(), newClusterAPIKind()} }

// FindKind returns the kind with this name in the configuration, and whether there is one.
func FindKind(name string) (Kind, bool) {
	all := Kinds()
	i := slices.IndexFunc(all, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return all[i], true
}

// KindOf returns the kind of a reference, and whether there is one.
func KindOf(ref v1alpha1.SourceReference) (Kind, bool) {
	all := Kinds()
	i := slices.IndexFunc(all, func(k Kind) bool {
		return k.Kind == ref.Kind && strings.HasPrefix(ref.APIVersion, k.Group+"/")
	})
	if i < 0 {
		return Kind{}, false
	}
	return all[i], true
}

// Definition returns the name of the kind's CustomResourceDefinition.
func (k Kind) Definition() string { return k.Plural + "." + k.Group }

// WithVersion returns the kind in a version of its API.
func (k Kind) WithVersion(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: version, Kind: k.Kind}
}

// Observe reads an object into a Source.
func (k Kind) Observe(u *unstructured.Unstructured) Source {
	s := Source{
		Ref: v1alpha1.SourceReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(),
			Name: u.GetName()},
		UID: u.GetUID(), CreatedAt: u.GetCreationTimestamp().Time, Labels: u.GetLabels(),
		Deleting: u.GetDeletionTimestamp() != nil,
		Fields:   map[string]string{"namespace": u.GetNamespace(), "name": u.GetName()},
	}
	for key, value := range s.Labels {
		s.setField("labels/"+key, value)
	}
	k.observe(object{u}, &s)
	return s
}

// AdminKubeconfig returns where the administrator's kubeconfig of the cluster is. The error says why there is none, or
// none that can be used.
func (k Kind) AdminKubeconfig(u *unstructured.Unstructured) (SecretKey, error) {
	return k.secret(object{u})
}

// Prune returns the object with only the fields that are read, because caches keep one object for each cluster.
func (k Kind) Prune(u *unstructured.Unstructured) *unstructured.Unstructured {
	pruned := &unstructured.Unstructured{Object: map[string]any{}}
	pruned.SetGroupVersionKind(u.GroupVersionKind())
	pruned.SetNamespace(u.GetNamespace())
	pruned.SetName(u.GetName())
	pruned.SetUID(u.GetUID())
	pruned.SetResourceVersion(u.GetResourceVersion())
	pruned.SetCreationTimestamp(u.GetCreationTimestamp())
	pruned.SetDeletionTimestamp(u.GetDeletionTimestamp())
	pruned.SetLabels(u.GetLabels())
	annotations := map[string]string{}
	for _, key := range k.annotations {
		if value, ok := u.GetAnnotations()[key]; ok {
			annotations[key] = value
		}
	}
	if len(annotations) > 0 {
		pruned.SetAnnotations(annotations)
	}
	for _, path := range k.keep {
		if value, found, err := unstructured.NestedFieldNoCopy(u.Object, path...); found && err == nil {
			// The path is new in the pruned object, so this does not fail.
			_ = unstructured.SetNestedField(pruned.Object, value, path...)
		}
	}
	return pruned
}

// setField sets a field to the first value that is not empty.
func (s *Source) setField(field string, values ...string) {
	for _, value := range values {
		if value != "" {
			s.Fields[field] = value
			return
		}
	}
}

// object reads fields of an object of another system. A field that is absent or has another type is zero.
type object struct{ *unstructured.Unstructured }

// readText returns the string at a path.
func (o object) readText(path ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, path...)
	return value
}

// readBool returns the boolean at a path.
func (o object) readBool(path ...string) bool {
	value, _, _ := unstructured.NestedBool(o.Object, path...)
	return value
}

// readList returns the objects in the list at a path.
func (o object) readList(path ...string) []map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	elements, _ := value.([]any)
	var list []map[string]any
	for _, element := range elements {
		if fields, ok := element.(map[string]any); ok {
			list = append(list, fields)
		}
	}
	return list
}

// readCondition returns the status of a condition. It returns "" if the condition is absent.
func (o object) readCondition(name string) string {
	for _, c := range o.readList("status", "conditions") {
		if c["type"] == name {
			status, _ := c["status"].(string)
			return status
		}
	}
	return ""
}
