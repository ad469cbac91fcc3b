// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// AddFinalizer adds a finalizer to an object, and copies the changed metadata from the API
// server's response. The status in memory stays unchanged.
func AddFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizer string) error {
	return patchFinalizers(ctx, c, obj, func(o client.Object) bool { return controllerutil.AddFinalizer(o, finalizer) })
}

// RemoveFinalizer removes a finalizer from an object, like AddFinalizer. It is not an error if
// the object does not exist.
func RemoveFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizer string) error {
	err := patchFinalizers(ctx, c, obj, func(o client.Object) bool {
		return controllerutil.RemoveFinalizer(o,
			finalizer)
	})
	return client.IgnoreNotFound(err)
}

// patchFinalizers applies a change of finalizers to an object, on the API server and in memory.
// It does nothing if change returns false.
func patchFinalizers(ctx context.Context, c client.Client, obj client.Object, change func(client.Object) bool) error {
	// The patch uses a copy, because the response would overwrite the
	// reconciler's status in memory.
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
