// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/reasons"
)

// Catalogs reads published catalogs for the hub's controllers, in the terms of
// the API.
type Catalogs struct {
	client *oci.Client
	loader *load.Loader
}

// keptBytes bounds the memory: every change of an OperatorInstall asks for its
// package, which is small without its manifests.
const keptBytes = 64 << 20

// NewCatalogs returns a reader that keeps what it pulled in a folder; an empty
// cacheDir means that it keeps nothing on disk.
func NewCatalogs(cacheDir string) *Catalogs {
	images := oci.NewClient(oci.Options{CacheDir: cacheDir})
	return &Catalogs{client: images, loader: load.New(images, load.Options{MaxBytes: keptBytes})}
}

// Close must be called when the process ends in order: what is being read is not held against its catalog then.
func (c *Catalogs) Close() { c.client.Close() }

// Resolve returns the digest that the source has now. With public keys it is the digest of a catalog that is signed by
// one of them.
func (c *Catalogs) Resolve(ctx context.Context, source v1alpha1.CatalogSource, publicKeys []string) (string, error) {
	s := oci.SourceOf(source)
	for _, key := range publicKeys {
		s.Verification.PublicKeys = append(s.Verification.PublicKeys, []byte(key))
	}
	return c.loader.Resolve(ctx, s)
}

// Summary reads what the catalog with that digest offers. A digest is verified once, when it is resolved.
func (c *Catalogs) Summary(ctx context.Context, source v1alpha1.CatalogSource, digest string) (catalogs.Summary,
	error) {
	return c.loader.Summary(ctx, oci.SourceOf(source), digest)
}

// Package reads one package, without its manifests.
func (c *Catalogs) Package(ctx context.Context, source v1alpha1.CatalogSource, digest, name string) (*catalogs.Package,
	error) {
	return c.loader.Package(ctx, oci.SourceOf(source), digest, name)
}

// Bundles reads one package, with the manifests of the named bundles as far as they can be read.
func (c *Catalogs) Bundles(ctx context.Context, source v1alpha1.CatalogSource, digest, name string,
	bundles ...string) (*catalogs.Package, error) {
	return c.loader.Bundles(ctx, oci.SourceOf(source), digest, name, bundles...)
}

// Reason names what is wrong with a catalog in the terms of the API.
func (c *Catalogs) Reason(err error) string { return reasons.For(err) }
