// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

var errEmptySecret = errors.New("the Secret has no login")

// PullSecrets reads the Secrets that catalogs name as their login.
type PullSecrets struct {
	// Live reads without the cache, because a watch would need the
	// permission to list all Secrets.
	Live client.Reader
	// Allow returns the instructions to permit reading a Secret.
	Allow func(namespace, name string) string
}

// Read returns the Docker configuration of a Secret of type kubernetes.io/dockerconfigjson. The
// error wraps oci.ErrDenied if a person must correct the Secret or the permission.
func (p PullSecrets) Read(ctx context.Context, namespace, name string) ([]byte, error) {
	var s corev1.Secret
	err := p.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &s)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: there is no Secret %s/%s, which the catalog names as pullSecret", oci.ErrDenied,
			namespace, name)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%w: Secret %s/%s may not be read: %s", oci.ErrDenied, namespace, name,
			p.Allow(namespace, name))
	case err != nil:
		return nil, fmt.Errorf("read Secret %s/%s: %w", namespace, name, err)
	case s.Type != corev1.SecretTypeDockerConfigJson:
		return nil, fmt.Errorf("%w: Secret %s/%s is of type %q, and a pullSecret is of type %s", oci.ErrDenied,
			namespace, name, s.Type, corev1.SecretTypeDockerConfigJson)
	}
	config := s.Data[corev1.DockerConfigJsonKey]
	if len(config) == 0 { // the process's own login must not be used instead
		return nil, fmt.Errorf("%w: Secret %s/%s: %w", oci.ErrDenied, namespace, name, errEmptySecret)
	}
	return config, nil
}
