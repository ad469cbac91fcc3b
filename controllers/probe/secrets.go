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

// valueKind is the kind of an object that a probe takes values from.
type valueKind string

const (
	ofSecret    valueKind = "Secret"
	ofConfigMap valueKind = "ConfigMap"
)

// sourceKey names an object.
type sourceKey struct {
	kind valueKind
	types.NamespacedName
}

// secretCache reads the Secrets and ConfigMaps that probes name, and no others: a watch would
// need the permission to list all Secrets, and hold them in memory. So that an
// API server that does not answer is not taken for a failure of the endpoints,
// what was read is used for a while.
type secretCache struct {
	// live reads from the API server.
	live client.Reader
	now  func() time.Time

	mu   sync.Mutex
	read map[sourceKey]cachedSecret
}

type cachedSecret struct {
	secret plan.Secret
	at     time.Time
}

func newSecretCache(live client.Reader, now func() time.Time) *secretCache {
	return &secretCache{live: live, now: now, read: map[sourceKey]cachedSecret{}}
}

// get returns objects of a kind and a namespace by name.
func (c *secretCache) get(ctx context.Context, kind valueKind, namespace string,
	names []string) map[string]plan.Secret {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	out := map[string]plan.Secret{}
	for _, name := range names {
		out[name] = c.getOne(ctx, sourceKey{kind, types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return out
}

func (c *secretCache) getOne(ctx context.Context, key sourceKey) plan.Secret {
	c.mu.Lock()
	cached, known := c.read[key]
	c.mu.Unlock()
	age := c.now().Sub(cached.at)
	if known && age < secretMaxAge {
		return cached.secret
	}
	read, err := c.readLive(ctx, key)
	switch {
	case err == nil:
		c.store(key, read)
		return read
	case apierrors.IsNotFound(err):
		c.forget(key)
		return plan.Secret{Unreadable: fmt.Sprintf("%s %s does not exist", key.kind, key.NamespacedName)}
	case apierrors.IsForbidden(err):
		c.forget(key)
		return plan.Secret{Unreadable: fmt.Sprintf("the agent may not read %s %s", key.kind, key.NamespacedName)}
	case known && age < secretKept:
		return cached.secret
	}
	return plan.Secret{Unreadable: fmt.Sprintf("cannot read %s %s: %v", key.kind, key.NamespacedName, err)}
}

func (c *secretCache) readLive(ctx context.Context, key sourceKey) (plan.Secret, error) {
	if key.kind == ofConfigMap {
		var configMap corev1.ConfigMap
		err := c.live.Get(ctx, key.NamespacedName, &configMap)
		read := plan.Secret{Data: map[string][]byte{}}
		for name, value := range configMap.Data {
			read.Data[name] = []byte(value)
		}
		return read, err
	}
	var secret corev1.Secret
	err := c.live.Get(ctx, key.NamespacedName, &secret)
	return plan.Secret{Labels: secret.Labels, Data: secret.Data}, err
}

// store also removes what has not been read for long.
func (c *secretCache) store(key sourceKey, secret plan.Secret) {
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

func (c *secretCache) forget(key sourceKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.read, key)
}
