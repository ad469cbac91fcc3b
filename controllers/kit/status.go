// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PatchStatus writes the status of one of many objects that a reconciler looks at
// together, if it differs from what was read, with the resource version as a precondition.
// It tells whether it was written. An object that is gone needs none, and one that was
// changed meanwhile brings the reconciler back: neither is an error.
func PatchStatus(ctx context.Context, c client.Client, before, after client.Object) (bool, error) {
	if equality.Semantic.DeepEqual(before, after) {
		return false, nil
	}
	err := c.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("patch status of %T %s: %w", before, client.ObjectKeyFromObject(before), err)
	}
	return true, nil
}
