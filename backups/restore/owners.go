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

// setOwners sets the owner references of a new object to the current UIDs of the owners. It drops references to
// owners that do not exist, because the cluster would delete the object.
func (r *run) setOwners(ctx context.Context, object *unstructured.Unstructured, result *Result) {
	var kept []metav1.OwnerReference
	result.DroppedOwners = nil
	for _, owner := range object.GetOwnerReferences() {
		r.mu.Lock()
		current, isRestored := r.currentUIDs[owner.UID]
		r.mu.Unlock()
		switch {
		case isRestored && current != "":
			owner.UID = current
		// The owner is in the backup and was not restored, or it is not in the backup and not on the cluster.
		case r.saved[owner.UID] || !r.hasOwner(ctx, owner, object.GetNamespace()):
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

// hasOwner reports whether the cluster has an owner with this UID. An owner that cannot be read counts as missing.
func (r *run) hasOwner(ctx context.Context, owner metav1.OwnerReference, namespace string) bool {
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

// ensureNamespace checks once for each namespace that it exists, or creates it if the options permit this. Later calls
// return the first result.
func (r *run) ensureNamespace(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	err, isKnown := r.namespaces[name]
	if !isKnown {
		err = r.readOrCreateNamespace(ctx, name)
		r.namespaces[name] = err
	}
	return err
}

// readOrCreateNamespace creates a namespace that does not exist, if the options permit this. Otherwise it returns an
// error for a missing namespace. A dry run creates nothing.
func (r *run) readOrCreateNamespace(ctx context.Context, name string) error {
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
