// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/bellwether-dev/bellwether/rollouts/migration"
)

// fieldManager owns no fields, because the agent's writes change no field.
const fieldManager = "bellwether-storage-migration"

// Cluster implements Objects: it rewrites the stored form of objects. It reads
// only the metadata of objects.
type Cluster struct{ Client metadata.Interface }

var definitionResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

// Page returns the names of some objects, and the continue token of the list; empty at its end.
func (c Cluster) Page(ctx context.Context, d migration.Definition, limit int64, next string) ([]types.NamespacedName,
	string, error) {
	resource := c.Client.Resource(toResource(d))
	list, err := resource.List(ctx, metav1.ListOptions{Limit: limit, Continue: next})
	if apierrors.IsResourceExpired(err) {
		// The list continues with the current objects. An object that was created since then is
		// stored in the storage version already.
		list, err = resource.List(ctx, metav1.ListOptions{Limit: limit, Continue: readContinueToken(err)})
	}
	if err != nil {
		return nil, "", fmt.Errorf("list %s: %w", d.Name(), err)
	}
	names := make([]types.NamespacedName, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, types.NamespacedName{Namespace: list.Items[i].Namespace, Name: list.Items[i].Name})
	}
	return names, list.Continue, nil
}

// readContinueToken returns the token with which an expired list can continue; empty if
// the list must start again.
func readContinueToken(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Continue
	}
	return ""
}

// Rewrite makes the API server store an object again, without a change of its content. The API
// server writes the result of an empty patch only if the object is stored in another version.
func (c Cluster) Rewrite(ctx context.Context, d migration.Definition, name types.NamespacedName) error {
	resource := c.Client.Resource(toResource(d))
	var err error
	options := metav1.PatchOptions{FieldManager: fieldManager}
	if name.Namespace == "" {
		_, err = resource.Patch(ctx, name.Name, types.MergePatchType, []byte("{}"), options)
	} else {
		_, err = resource.Namespace(name.Namespace).Patch(ctx, name.Name, types.MergePatchType, []byte("{}"), options)
	}
	return err
}

// Finish writes into a definition that objects are stored in its storage version only. It fails
// if the definition was changed since it was read.
func (c Cluster) Finish(ctx context.Context, name, resourceVersion, storage string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resourceVersion},
		"status":   map[string]any{"storedVersions": []string{storage}},
	})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	_, err = c.Client.Resource(definitionResource).Patch(ctx, name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: fieldManager}, "status")
	if err != nil {
		return fmt.Errorf("write status.storedVersions of CustomResourceDefinition %s: %w", name, err)
	}
	return nil
}

// toResource returns the resource of a definition.
func toResource(d migration.Definition) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: d.Group, Version: d.Version, Resource: d.Plural}
}
