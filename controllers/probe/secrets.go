// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/controllers/probe/plan"
)

const (
	// secretMaxAge is how long a Secret is used before it is read again.
	secretMaxAge = 30 * time.Second
	// secretKept is how long a Secret is used while the API server does not answer.
	secretKept = time.Hour
)

// secretCache reads the Secrets that probes name, and no others: a watch would
// need the permission to list all Secrets, and hold them in memory. So that an
// API server that does not answer is not taken for a failure of the endpoints,
// what was read is used for a while.
type secretCache struct {
	// live reads from the API server.
	live client.Reader
	now  func() time.Time

	mu   sync.Mutex
	read map[types.NamespacedName]cachedSecret
}

type cachedSecret struct {
	secret plan.Secret
	at     time.Time
}

func newSecretCache(live client.Reader, now func() time.Time) *secretCache {
	return &secretCache{live: live, now: now, read: map[types.NamespacedName]cachedSecret{}}
}

// get returns Secrets of a namespace by name.
func (c *secretCache) get(ctx context.Context, namespace string, names []string) map[string]plan.Secret {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	out := map[string]plan.Secret{}
	for _, name := range names {
		out[name] = c.getOne(ctx, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return out
}

func (c *secretCache) getOne(ctx context.Context, key types.NamespacedName) plan.Secret {
	c.mu.Lock()
	cached, known := c.read[key]
	c.mu.Unlock()
	age := c.now().Sub(cached.at)
	if known && age < secretMaxAge {
		return cached.secret
	}
	var secret corev1.Secret
	err := c.live.Get(ctx, key, &secret)
	switch {
	case err == nil:
		read := plan.Secret{Labels: secret.Labels, Data: secret.Data}
		c.store(key, read)
		return read
	case apierrors.IsNotFound(err):
		c.forget(key)
		return plan.Secret{Unreadable: fmt.Sprintf("Secret %s does not exist", key)}
	case apierrors.IsForbidden(err):
		c.forget(key)
		return plan.Secret{Unreadable: fmt.Sprintf("the agent may not read Secret %s", key)}
	case known && age < secretKept:
		return cached.secret
	}
	return plan.Secret{Unreadable: fmt.Sprintf("cannot read Secret %s: %v", key, err)}
}

// store also removes what has not been read for long.
func (c *secretCache) store(key types.NamespacedName, secret plan.Secret) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for other, cached := range c.read {
		if now.Sub(cached.at) >= secretKept {
			delete(c.read, other)
		}
	}
	c.read[key] = cachedSecret{secret: secret, at: now}
}

func (c *secretCache) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.read, key)
}
