// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// IsPermitted reports whether the client's user has a permission, according to the API server.
func IsPermitted(ctx context.Context, c client.Writer, attributes authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
	if err := c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("check whether the agent may %s %s.%s: %w", attributes.Verb, attributes.Resource,
			attributes.Group, err)
	}
	return review.Status.Allowed, nil
}
