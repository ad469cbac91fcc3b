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

	"github.com/bellwether-dev/bellwether/controllers/migration/plan"
)

// fieldManager owns nothing: what the agent writes changes no field.
const fieldManager = "bellwether-storage-migration"

// Cluster stores objects anew. It reads their metadata only.
type Cluster struct{ Client metadata.Interface }

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

// Page returns the names of some objects, and where the list goes on; empty at its
// end.
func (c Cluster) Page(ctx context.Context, d plan.Definition, limit int64, next string) ([]types.NamespacedName,
	string, error) {
	resource := c.Client.Resource(resourceOf(d))
	list, err := resource.List(ctx, metav1.ListOptions{Limit: limit, Continue: next})
	if apierrors.IsResourceExpired(err) {
		// The list goes on with the objects as they are now: what was created since is
		// stored in the storage version.
		list, err = resource.List(ctx, metav1.ListOptions{Limit: limit, Continue: continueOf(err)})
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

// continueOf returns where an expired list may go on; empty if it has to begin again.
func continueOf(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Continue
	}
	return ""
}

// Rewrite has the API server store an object anew, without a change of it: a patch
// that is empty is written if the object is stored in another version.
func (c Cluster) Rewrite(ctx context.Context, d plan.Definition, name types.NamespacedName) error {
	resource := c.Client.Resource(resourceOf(d))
	var err error
	options := metav1.PatchOptions{FieldManager: fieldManager}
	if name.Namespace == "" {
		_, err = resource.Patch(ctx, name.Name, types.MergePatchType, []byte("{}"), options)
	} else {
		_, err = resource.Namespace(name.Namespace).Patch(ctx, name.Name, types.MergePatchType, []byte("{}"), options)
	}
	return err
}

// Finish says in a definition that objects are stored in its storage version only,
// if the definition is as it was read.
func (c Cluster) Finish(ctx context.Context, name, resourceVersion, storage string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resourceVersion},
		"status":   map[string]any{"storedVersions": []string{storage}},
	})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	_, err = c.Client.Resource(definitions).Patch(ctx, name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: fieldManager}, "status")
	if err != nil {
		return fmt.Errorf("write status.storedVersions of CustomResourceDefinition %s: %w", name, err)
	}
	return nil
}

func resourceOf(d plan.Definition) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: d.Group, Version: d.Version, Resource: d.Plural}
}
