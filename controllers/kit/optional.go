// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OptionalKind writes objects of a kind of another project. The API server might not serve the kind,
// so its types are not in the scheme.
type OptionalKind struct {
	Kind    schema.GroupVersionKind
	Manager client.FieldOwner
	// Own are the labels that identify the objects of this manager.
	// Labels are additional labels.
	Own, Labels map[string]string
}

// Apply applies an object with the given spec. spec must be a pointer to
// the spec type of the kind.
func (k OptionalKind) Apply(ctx context.Context, c client.Client, key client.ObjectKey, spec any) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return fmt.Errorf("encode %s: %w", k.Kind.Kind, err)
	}
	o := k.newObject(key)
	all := map[string]string{}
	maps.Copy(all, k.Labels)
	maps.Copy(all, k.Own)
	o.SetLabels(all)
	o.Object["spec"] = content
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), k.Manager, client.ForceOwnership)
}

// DeleteOthers deletes the manager's objects that are not wanted. If the kind is not served,
// there are no such objects.
func (k OptionalKind) DeleteOthers(ctx context.Context, c client.Client, live client.Reader,
	wanted func(client.ObjectKey) bool, options ...client.ListOption) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(k.Kind.GroupVersion().WithKind(k.Kind.Kind + "List"))
	err := live.List(ctx, list, append(options, client.MatchingLabels(k.Own))...)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %ss: %w", k.Kind.Kind, err)
	}
	for i := range list.Items {
		key := client.ObjectKeyFromObject(&list.Items[i])
		if wanted(key) {
			continue
		}
		if err := c.Delete(ctx, k.newObject(key)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %s: %w", k.Kind.Kind, key, err)
		}
	}
	return nil
}

// newObject returns an empty object with the key.
func (k OptionalKind) newObject(key client.ObjectKey) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(k.Kind)
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	return o
}
