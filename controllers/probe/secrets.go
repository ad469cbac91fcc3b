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

	"github.com/bellwether-dev/bellwether/alerts/probes"
)

const (
	// secretMaxAge is how long a Secret is used before it is read again.
	secretMaxAge = 30 * time.Second
	// secretRetention is how long a Secret is used while the API server does not answer.
	secretRetention = time.Hour
)

// valueKind is the kind of an object that a probe reads values from.
type valueKind string

const (
	kindSecret    valueKind = "Secret"
	kindConfigMap valueKind = "ConfigMap"
)

// sourceKey identifies an object.
type sourceKey struct {
	kind valueKind
	types.NamespacedName
}

// secretCache reads only the Secrets and ConfigMaps that probes name. A watch would need
// the permission to list all Secrets, and would hold them in memory. An object that was
// read is used for a while, so that an API server that does not answer does not count as a
// failure of the endpoints.
type secretCache struct {
	// live reads from the API server.
	live client.Reader
	now  func() time.Time

	mu      sync.Mutex
	entries map[sourceKey]cachedSecret
}

// cachedSecret is an object and when it was read.
type cachedSecret struct {
	secret probes.Secret
	readAt time.Time
}

// newSecretCache returns an empty cache. live must read from the API server.
func newSecretCache(live client.Reader, now func() time.Time) *secretCache {
	return &secretCache{live: live, now: now, entries: map[sourceKey]cachedSecret{}}
}

// readObjects returns objects of one kind and one namespace by name. If an object cannot be
// read, its Unreadable field has the reason.
func (c *secretCache) readObjects(ctx context.Context, kind valueKind, namespace string,
	names []string) map[string]probes.Secret {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	out := map[string]probes.Secret{}
	for _, name := range names {
		out[name] = c.readObject(ctx, sourceKey{kind, types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return out
}

// readObject returns an object from the cache if it was read recently, otherwise
// from the API server. If the API server does not answer, it returns the cached
// object for up to secretRetention.
func (c *secretCache) readObject(ctx context.Context, key sourceKey) probes.Secret {
	c.mu.Lock()
	cached, isCached := c.entries[key]
	c.mu.Unlock()
	age := c.now().Sub(cached.readAt)
	if isCached && age < secretMaxAge {
		return cached.secret
	}
	read, err := c.readLive(ctx, key)
	switch {
	case err == nil:
		c.store(key, read)
		return read
	case apierrors.IsNotFound(err):
		c.forget(key)
		return probes.Secret{Unreadable: fmt.Sprintf("%s %s does not exist", key.kind, key.NamespacedName)}
	case apierrors.IsForbidden(err):
		c.forget(key)
		return probes.Secret{Unreadable: fmt.Sprintf("the agent may not read %s %s", key.kind, key.NamespacedName)}
	case isCached && age < secretRetention:
		return cached.secret
	}
	return probes.Secret{Unreadable: fmt.Sprintf("cannot read %s %s: %v", key.kind, key.NamespacedName, err)}
}

// readLive reads an object from the API server.
func (c *secretCache) readLive(ctx context.Context, key sourceKey) (probes.Secret, error) {
	if key.kind == kindConfigMap {
		var configMap corev1.ConfigMap
		err := c.live.Get(ctx, key.NamespacedName, &configMap)
		read := probes.Secret{Data: map[string][]byte{}}
		for name, value := range configMap.Data {
			read.Data[name] = []byte(value)
		}
		return read, err
	}
	var secret corev1.Secret
	err := c.live.Get(ctx, key.NamespacedName, &secret)
	return probes.Secret{Labels: secret.Labels, Data: secret.Data}, err
}

// store adds an object to the cache, and removes objects that were not read for secretRetention.
func (c *secretCache) store(key sourceKey, secret probes.Secret) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for cachedKey, cached := range c.entries {
		if now.Sub(cached.readAt) >= secretRetention {
			delete(c.entries, cachedKey)
		}
	}
	c.entries[key] = cachedSecret{secret: secret, readAt: now}
}

// forget removes an object from the cache.
func (c *secretCache) forget(key sourceKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, key)
}
