// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FindConfigMap reads a ConfigMap past the cache. It lists, because that is what an
// agent may do with ConfigMaps. The result is nil where there is none, or no namespace
// to look in.
func FindConfigMap(ctx context.Context, live client.Reader, namespace, name string) (*corev1.ConfigMap, error) {
	if namespace == "" {
		return nil, nil
	}
	var found corev1.ConfigMapList
	err := live.List(ctx, &found, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		return nil, fmt.Errorf("look for ConfigMap %s/%s: %w", namespace, name, err)
	}
	if len(found.Items) == 0 {
		return nil, nil
	}
	return &found.Items[0], nil
}
