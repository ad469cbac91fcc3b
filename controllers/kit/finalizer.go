// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// AddFinalizer puts a finalizer on an object and takes over the metadata that
// the API server answers with. The status in memory stays as it is.
func AddFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizer string) error {
	return patchFinalizers(ctx, c, obj, func(o client.Object) bool { return controllerutil.AddFinalizer(o, finalizer) })
}

// RemoveFinalizer takes a finalizer away, like AddFinalizer. An object that is
// gone already is no error.
func RemoveFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizer string) error {
	err := patchFinalizers(ctx, c, obj, func(o client.Object) bool {
		return controllerutil.RemoveFinalizer(o,
			finalizer)
	})
	return client.IgnoreNotFound(err)
}

func patchFinalizers(ctx context.Context, c client.Client, obj client.Object, change func(client.Object) bool) error {
	// Work on a copy: the answer would overwrite the status that the reconciler
	// has in hand.
	after := obj.DeepCopyObject().(client.Object)
	if !change(after) {
		return nil
	}
	patch := client.MergeFromWithOptions(obj.DeepCopyObject().(client.Object), client.MergeFromWithOptimisticLock{})
	if err := c.Patch(ctx, after, patch, FinalizersManager); err != nil {
		return fmt.Errorf("patch finalizers: %w", err)
	}
	obj.SetFinalizers(after.GetFinalizers())
	obj.SetResourceVersion(after.GetResourceVersion())
	return nil
}
