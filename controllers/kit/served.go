// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// IsServed reports whether the API server serves a kind at the moment. The definition of a kind
// can be added or removed at any time.
func IsServed(
	ctx context.Context,
	c discovery.DiscoveryInterface,
	version schema.GroupVersion,
	kind string,
) (bool, error) {
	list, err := c.ServerResourcesForGroupVersion(version.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind }), ctx.Err()
}
