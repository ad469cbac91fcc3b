// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FindConfigMap reads a ConfigMap without the cache. It uses a list, because an agent
// may list ConfigMaps, but not get them. It returns nil if the ConfigMap does not
// exist or namespace is empty.
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
