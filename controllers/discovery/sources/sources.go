// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sources reads what other systems know of a cluster: Hive's ClusterDeployment,
// the ClusterProfile of SIG Multicluster, and the Cluster of Cluster API. It turns each of
// them into the same Source. ClusterDeployments are read by Hive's own types; the others field
// by field, so that every version of their APIs that has the fields is understood. It decides
// nothing: package plan does.
package sources

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

// Source is a cluster as its owner describes it.
type Source struct {
	Ref       v1alpha1.SourceReference
	UID       types.UID
	CreatedAt time.Time
	// Fields are what labels can be mapped from: namespace, name, platform, region and
	// version where they are known; labels/KEY for each label of the object, and
	// properties/NAME for each property or variable.
	Fields map[string]string
	// Labels of the object itself.
	Labels map[string]string
	// NotReady says why the cluster cannot be in the fleet yet; empty once it can.
	NotReady string
	// Deleting says that the object is being deleted, and the cluster with it.
	Deleting bool
	// Paused says that the owner wants nothing changed because of this object.
	Paused bool
	// Relocating says that the object is being moved to another management cluster.
	Relocating bool
	// PowerState is empty where the source does not tell.
	PowerState v1alpha1.ClusterPowerState
}

// Name is the name that a FleetCluster of this source has by default: that of the object.
func (s Source) Name() string { return s.Ref.Name }

// Key identifies a source whatever version of its API a reference names.
func Key(ref v1alpha1.SourceReference) string {
	group, _, found := strings.Cut(ref.APIVersion, "/")
	if !found {
		group = ""
	}
	return strings.Join([]string{group, ref.Kind, ref.Namespace, ref.Name}, "/")
}

// Describe names a source in a message.
func Describe(ref v1alpha1.SourceReference) string {
	return fmt.Sprintf("%s %s/%s", ref.Kind, ref.Namespace, ref.Name)
}

// Kind is a kind of source.
type Kind struct {
	// Name is how users configure it.
	Name  string
	Group string
	Kind  string
	// Plural is the name of the resource.
	Plural string
	// Versions that are understood, the preferred one first.
	Versions []string

	// keep are the fields that are read, beside labels and annotations.
	keep [][]string
	// annotations that are read.
	annotations []string
	observe     func(object, *Source)
	secret      func(object) (SecretKey, error)
}

// SecretKey is where the administrator's kubeconfig of a cluster is, in the namespace of
// the source.
type SecretKey struct{ Secret, Key string }

// All are the kinds of sources.
func All() []Kind { return []Kind{hive(), clusterProfile(), clusterAPI()} }

// Find returns the kind with a name.
func Find(name string) (Kind, bool) {
	all := All()
	i := slices.IndexFunc(all, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return all[i], true
}

// Of returns the kind that a reference names.
func Of(ref v1alpha1.SourceReference) (Kind, bool) {
	all := All()
	i := slices.IndexFunc(all, func(k Kind) bool {
		return k.Kind == ref.Kind && strings.HasPrefix(ref.APIVersion, k.Group+"/")
	})
	if i < 0 {
		return Kind{}, false
	}
	return all[i], true
}

// Definition is the name of the kind's CustomResourceDefinition.
func (k Kind) Definition() string { return k.Plural + "." + k.Group }

// WithVersion is the kind in a version of its API.
func (k Kind) WithVersion(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: version, Kind: k.Kind}
}

// Observe returns what the object says.
func (k Kind) Observe(u *unstructured.Unstructured) Source {
	s := Source{
		Ref: v1alpha1.SourceReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(),
			Name: u.GetName()},
		UID: u.GetUID(), CreatedAt: u.GetCreationTimestamp().Time, Labels: u.GetLabels(),
		Deleting: u.GetDeletionTimestamp() != nil,
		Fields:   map[string]string{"namespace": u.GetNamespace(), "name": u.GetName()},
	}
	for key, value := range s.Labels {
		s.set("labels/"+key, value)
	}
	k.observe(object{u}, &s)
	return s
}

// AdminKubeconfig says where the administrator's kubeconfig of the cluster is. The error
// says why there is none, or none that can be used.
func (k Kind) AdminKubeconfig(u *unstructured.Unstructured) (SecretKey, error) {
	return k.secret(object{u})
}

// Prune returns an object with nothing but what is read: caches hold one for each cluster.
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

// set sets a field to the first value that is not empty.
func (s *Source) set(field string, values ...string) {
	for _, value := range values {
		if value != "" {
			s.Fields[field] = value
			return
		}
	}
}

// object reads fields of somebody else's object. A field that is absent, or is not what it
// is expected to be, is zero.
type object struct{ *unstructured.Unstructured }

func (o object) text(path ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, path...)
	return value
}

func (o object) is(path ...string) bool {
	value, _, _ := unstructured.NestedBool(o.Object, path...)
	return value
}

func (o object) list(path ...string) []map[string]any {
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

// condition returns the status of a condition; empty where it is absent.
func (o object) condition(name string) string {
	for _, c := range o.list("status", "conditions") {
		if c["type"] == name {
			status, _ := c["status"].(string)
			return status
		}
	}
	return ""
}
