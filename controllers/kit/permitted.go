// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// IsPermitted asks the API server whether the client's user may do something.
func IsPermitted(ctx context.Context, c client.Writer, what authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	if err := c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("check whether the agent may %s %s.%s: %w", what.Verb, what.Resource, what.Group, err)
	}
	return review.Status.Allowed, nil
}
