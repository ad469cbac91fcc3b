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

// PatchStatus writes an object's status if it changed, with the resource version as a
// precondition, and reports whether it was written. It is for reconcilers that handle many
// objects together. It is not an error if the object was deleted, which needs no status, or was
// changed meanwhile, which triggers another reconcile.
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
