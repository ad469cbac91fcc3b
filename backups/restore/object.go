// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/bellwether-dev/bellwether/backups/archive"
	"github.com/bellwether-dev/bellwether/backups/restore/plan"
)

// resource describes a resource of the backup on the cluster.
type resource struct {
	archive.Resource
	schema *plan.Schema
	// hasStatus is set if the status is a subresource.
	hasStatus bool
	// problem is why no object of the resource can be restored; empty if objects can be restored.
	problem string
}

const statusSubresource = "status"

var definitionResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// readResources reads the resources of the backup from the cluster.
func (r *run) readResources(ctx context.Context) error {
	for _, saved := range r.manifest.Resources {
		found, err := r.readResource(ctx, saved)
		if err != nil {
			return err
		}
		r.resources[saved.APIVersion()+" "+saved.Kind] = found
	}
	return nil
}

// readResource reads the CustomResourceDefinition of a resource. A missing definition or version becomes the problem
// of the resource.
func (r *run) readResource(ctx context.Context, saved archive.Resource) (*resource, error) {
	out := &resource{Resource: saved}
	if saved.Group == "" {
		return out, nil // core resources, such as Secrets, have no definition
	}
	object, err := r.cluster.Client.Resource(definitionResource).Get(ctx, saved.Name(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		out.problem = fmt.Sprintf("the cluster has no CustomResourceDefinition %s: install the operator first",
			saved.Name())
		return out, nil
	case err != nil:
		return nil, fmt.Errorf("get CustomResourceDefinition %s: %w", saved.Name(), err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &definition); err != nil {
		return nil, fmt.Errorf("decode CustomResourceDefinition %s: %w", saved.Name(), err)
	}
	for _, v := range definition.Spec.Versions {
		if v.Name != saved.Version || !v.Served {
			continue
		}
		if v.Schema != nil {
			out.schema = v.Schema.OpenAPIV3Schema
		}
		out.hasStatus = v.Subresources != nil && v.Subresources.Status != nil
		return out, nil
	}
	out.problem = fmt.Sprintf("the cluster does not serve version %s of %s, in which it was saved", saved.Version,
		saved.Name())
	return out, nil
}

// newClient returns a client for a resource in a namespace; for a cluster-scoped resource if namespace is empty.
func (r *run) newClient(res *resource, namespace string) dynamic.ResourceInterface {
	c := r.cluster.Client.Resource(schema.GroupVersionResource{Group: res.Group, Version: res.Version,
		Resource: res.Plural})
	if namespace == "" {
		return c
	}
	return c.Namespace(namespace)
}

// maxAttempts limits how often an object is compared again after a concurrent change.
const maxAttempts = 5

// restoreObject creates an object or adds its missing fields, and records in result what it did. It returns the live
// object after the change; nil for a dry run that would create the object. It tries again after a concurrent change, at
// most maxAttempts times.
func (r *run) restoreObject(ctx context.Context, res *resource, saved *unstructured.Unstructured, result *Result) (
	*unstructured.Unstructured, error) {
	var lastErr error
	for range maxAttempts {
		live, err := r.newClient(res, saved.GetNamespace()).Get(ctx, saved.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			live, err = r.createObject(ctx, res, saved, result)
		case err != nil:
			return nil, fmt.Errorf("get: %w", err)
		case live.GetDeletionTimestamp() != nil:
			return nil, fmt.Errorf("it is being deleted; restore it once it is gone")
		default:
			live, err = r.fillObject(ctx, res, saved, live, result)
		}
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			lastErr = err
			continue
		}
		return live, err
	}
	return nil, fmt.Errorf("it keeps changing: %w", lastErr)
}

// createObject creates an object with its current owners, and then its status. It records the fields that the API
// server dropped in result.Pruned.
func (r *run) createObject(ctx context.Context, res *resource, saved *unstructured.Unstructured, result *Result) (
	*unstructured.Unstructured, error) {
	result.Action = Create
	if err := r.ensureNamespace(ctx, saved.GetNamespace()); err != nil {
		return nil, err
	}
	object := saved.DeepCopy()
	r.setOwners(ctx, object, result)
	object.SetUID("")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	if res.hasStatus {
		delete(object.Object, "status")
	}
	if r.options.DryRun {
		return nil, nil
	}
	live, err := r.newClient(res, saved.GetNamespace()).Create(ctx, object,
		metav1.CreateOptions{FieldManager: FieldManager})
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	if res.hasStatus && saved.Object["status"] != nil {
		_, status := plan.Compare(saved.Object, live.Object, res.schema, true)
		if live, err = r.applyFields(ctx, res, live, status.Apply, statusSubresource); err != nil {
			return nil, err
		}
	}
	result.Pruned = listLost(saved, live, res)
	return live, nil
}

// listLost returns the fields of a saved object that the live object still lacks.
func listLost(saved, live *unstructured.Unstructured, res *resource) []string {
	object, status := plan.Compare(saved.Object, live.Object, res.schema, res.hasStatus)
	return append(object.Restored, status.Restored...)
}

// fillObject adds the missing fields of an object and sets the result. Fields that the API server drops are listed
// as pruned.
func (r *run) fillObject(ctx context.Context, res *resource, saved, live *unstructured.Unstructured, result *Result) (
	*unstructured.Unstructured, error) {
	object, status := plan.Compare(saved.Object, live.Object, res.schema, res.hasStatus)
	result.Action = None
	result.Fields = slices.Concat(object.Restored, status.Restored)
	result.Kept = slices.Concat(object.Kept, status.Kept)
	if len(result.Fields) == 0 {
		return live, nil
	}
	result.Action = Fill
	if r.options.DryRun {
		return live, nil
	}
	var err error
	if object.Apply != nil {
		if live, err = r.applyFields(ctx, res, live, object.Apply, ""); err != nil {
			return nil, err
		}
	}
	if status.Apply != nil {
		if live, err = r.applyFields(ctx, res, live, status.Apply, statusSubresource); err != nil {
			return nil, err
		}
	}
	result.Pruned = listLost(saved, live, res)
	result.Fields = slices.DeleteFunc(result.Fields, func(f string) bool { return slices.Contains(result.Pruned, f) })
	if len(result.Fields) == 0 {
		result.Action = None
	}
	return live, nil
}

// applyFields writes fields to an object, or to its status if subresource is "status", and returns the result. It
// writes nothing if fields is nil. The API server refuses the change if the object has changed since it was read.
func (r *run) applyFields(ctx context.Context, res *resource, live *unstructured.Unstructured, fields map[string]any,
	subresource string) (*unstructured.Unstructured, error) {
	if fields == nil {
		return live, nil
	}
	if isManagedInOtherVersions(live) {
		return r.updateFields(ctx, res, live, fields, subresource)
	}
	all, err := addOwnedFields(live, fields, res.schema, subresource)
	if err != nil {
		return nil, err
	}
	config := &unstructured.Unstructured{Object: all}
	config.SetAPIVersion(res.APIVersion())
	config.SetKind(res.Kind)
	config.SetName(live.GetName())
	config.SetNamespace(live.GetNamespace())
	config.SetUID(live.GetUID())
	config.SetResourceVersion(live.GetResourceVersion())
	options := metav1.ApplyOptions{FieldManager: FieldManager, Force: true}
	client := r.newClient(res, live.GetNamespace())
	var applied *unstructured.Unstructured
	if subresource == "" {
		applied, err = client.Apply(ctx, live.GetName(), config, options)
	} else {
		applied, err = client.ApplyStatus(ctx, live.GetName(), config, options)
	}
	if err != nil {
		return nil, fmt.Errorf("apply: %w", err)
	}
	return applied, nil
}

// isManagedInOtherVersions reports whether a field manager wrote an object in another version of the API. For a
// server-side apply, the API server converts the object to that version, and fails if that version lacks fields of
// this version, even if the result would be valid.
func isManagedInOtherVersions(live *unstructured.Unstructured) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.APIVersion != "" && entry.APIVersion != live.GetAPIVersion()
	})
}

// updateFields does the same as applyFields, but with an update instead of a server-side apply; see
// isManagedInOtherVersions.
func (r *run) updateFields(ctx context.Context, res *resource, live *unstructured.Unstructured, fields map[string]any,
	subresource string) (*unstructured.Unstructured, error) {
	filled, ok := plan.Fill(live.Object, fields, res.schema).(map[string]any)
	if !ok {
		return live, nil
	}
	client, options := r.newClient(res, live.GetNamespace()), metav1.UpdateOptions{FieldManager: FieldManager}
	var updated *unstructured.Unstructured
	var err error
	if object := (&unstructured.Unstructured{Object: filled}); subresource == "" {
		updated, err = client.Update(ctx, object, options)
	} else {
		updated, err = client.UpdateStatus(ctx, object, options)
	}
	if err != nil {
		return nil, fmt.Errorf("update: %w", err)
	}
	return updated, nil
}

// addOwnedFields returns fields together with the fields that an earlier restore applied to the same object, because an
// apply removes owned fields that it leaves out.
func addOwnedFields(live *unstructured.Unstructured, fields map[string]any, schema *plan.Schema, subresource string) (
	map[string]any, error) {
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != FieldManager || entry.Operation != metav1.ManagedFieldsOperationApply ||
			entry.Subresource != subresource || entry.FieldsV1 == nil {
			continue
		}
		raw, err := json.Marshal(entry.FieldsV1)
		if err != nil {
			return nil, fmt.Errorf("encode managed fields: %w", err)
		}
		owned, err := plan.SelectOwned(live.Object, raw)
		if err != nil {
			return nil, fmt.Errorf("decode managed fields: %w", err)
		}
		if all, ok := plan.AddOwned(owned, fields, schema).(map[string]any); ok {
			return all, nil
		}
	}
	return fields, nil
}
