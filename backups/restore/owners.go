// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// setOwners has an object that is created refer to its owners as they are now. A
// reference to an owner that does not exist is left out: the cluster would delete
// the object because of it.
func (r *run) setOwners(ctx context.Context, object *unstructured.Unstructured, result *Result) {
	var kept []metav1.OwnerReference
	result.DroppedOwners = nil
	for _, owner := range object.GetOwnerReferences() {
		r.mu.Lock()
		now, restored := r.now[owner.UID]
		r.mu.Unlock()
		switch {
		case restored && now != "":
			owner.UID = now
		case r.saved[owner.UID] || !r.exists(ctx, owner, object.GetNamespace()):
			result.DroppedOwners = append(result.DroppedOwners, owner.Kind+" "+owner.Name)
			continue
		}
		kept = append(kept, owner)
	}
	if len(kept) == 0 {
		unstructured.RemoveNestedField(object.Object, "metadata", "ownerReferences")
		return
	}
	object.SetOwnerReferences(kept)
}

// exists tells whether the cluster has an owner with this UID. One that cannot be
// read counts as gone.
func (r *run) exists(ctx context.Context, owner metav1.OwnerReference, namespace string) bool {
	kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
	mapping, err := r.cluster.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false
	}
	client := dynamic.ResourceInterface(r.cluster.Client.Resource(mapping.Resource))
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		client = r.cluster.Client.Resource(mapping.Resource).Namespace(namespace)
	}
	live, err := client.Get(ctx, owner.Name, metav1.GetOptions{})
	return err == nil && live.GetUID() == owner.UID
}

// ensureNamespace checks once that a namespace exists, or creates it.
func (r *run) ensureNamespace(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	err, known := r.namespaces[name]
	if !known {
		err = r.namespace(ctx, name)
		r.namespaces[name] = err
	}
	return err
}

func (r *run) namespace(ctx context.Context, name string) error {
	client := r.cluster.Client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	_, err := client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("get namespace %s: %w", name, err)
	case !r.options.CreateNamespaces:
		return fmt.Errorf("namespace %s does not exist: create it, or have the restore create namespaces", name)
	case r.options.DryRun:
		return nil
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(name)
	_, err = client.Create(ctx, namespace, metav1.CreateOptions{FieldManager: FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}
