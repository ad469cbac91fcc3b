// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/reasons"
)

// Catalogs reads published catalogs for the hub's controllers, in the terms of
// the API.
type Catalogs struct {
	client  *oci.Client
	loader  *load.Loader
	secrets PullSecrets
}

// budget bounds what one read of a catalog keeps: docs/reference/limits.md says what that leaves of the hub's memory.
const budget = 128 << 20

// keptBytes bounds the memory: every change of an OperatorInstall asks for its
// package, which is small without its manifests.
const keptBytes = 64 << 20

// NewCatalogs returns a reader that keeps what it pulled in a folder; an empty
// cacheDir means that it keeps nothing on disk.
func NewCatalogs(cacheDir string) *Catalogs {
	images := oci.NewClient(oci.Options{CacheDir: cacheDir})
	return &Catalogs{client: images, loader: load.New(images, load.Options{MaxBytes: keptBytes, Budget: budget})}
}

// Close must be called when the process ends in order: what is being read is not held against its catalog then.
func (c *Catalogs) Close() { c.client.Close() }

// ReadSecrets lets catalogs name a Secret of their namespace as the login. serviceAccount is the hub's, as
// namespace:name, for the message that says what is missing.
func (c *Catalogs) ReadSecrets(live client.Reader, serviceAccount string) {
	c.secrets = PullSecrets{Live: live, Allow: allowOnHub(serviceAccount)}
}

// source is what a catalog in a namespace names, with its login.
func (c *Catalogs) source(ctx context.Context, namespace string, named v1alpha1.CatalogSource) (oci.Source, error) {
	s := oci.SourceOf(named)
	if named.PullSecret == "" {
		return s, nil
	}
	var err error
	s.Access.DockerConfig, err = c.secrets.Read(ctx, namespace, named.PullSecret)
	return s, err
}

// Resolve returns the digest that the source of a catalog in a namespace has now. With public keys it is the digest of
// a catalog that is signed by one of them.
func (c *Catalogs) Resolve(ctx context.Context, namespace string, source v1alpha1.CatalogSource,
	publicKeys []string) (string, error) {
	s, err := c.source(ctx, namespace, source)
	if err != nil {
		return "", err
	}
	for _, key := range publicKeys {
		s.Verification.PublicKeys = append(s.Verification.PublicKeys, []byte(key))
	}
	return c.loader.Resolve(ctx, s)
}

// Summary reads what the catalog with that digest offers. A digest is verified once, when it is resolved.
func (c *Catalogs) Summary(ctx context.Context, namespace string, source v1alpha1.CatalogSource, digest string) (
	catalogs.Summary, error) {
	s, err := c.source(ctx, namespace, source)
	if err != nil {
		return catalogs.Summary{}, err
	}
	return c.loader.Summary(ctx, s, digest)
}

// Package reads one package, without its manifests.
func (c *Catalogs) Package(ctx context.Context, namespace string, source v1alpha1.CatalogSource, digest, name string) (
	*catalogs.Package, error) {
	s, err := c.source(ctx, namespace, source)
	if err != nil {
		return nil, err
	}
	return c.loader.Package(ctx, s, digest, name)
}

// Bundles reads one package, with the manifests of the named bundles as far as they can be read.
func (c *Catalogs) Bundles(ctx context.Context, namespace string, source v1alpha1.CatalogSource, digest, name string,
	bundles ...string) (*catalogs.Package, error) {
	s, err := c.source(ctx, namespace, source)
	if err != nil {
		return nil, err
	}
	return c.loader.Bundles(ctx, s, digest, name, bundles...)
}

// Decode calls decode, which decodes bundles of the catalog with that digest. If it takes the hub's memory, the digest
// is not read again.
func (c *Catalogs) Decode(ctx context.Context, digest string, decode func() error) error {
	return c.loader.Decode(ctx, digest, decode)
}

// Reason names what is wrong with a catalog in the terms of the API.
func (c *Catalogs) Reason(err error) string { return reasons.For(err) }
