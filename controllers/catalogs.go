// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

// Catalogs reads published catalogs for the hub. It keeps the packages that were
// read last, because every change of an OperatorInstall asks for one.
type Catalogs struct {
	client   *oci.Client
	packages *lru.Cache[packageKey, *catalogs.Package]
	reading  singleflight.Group
}

type packageKey struct {
	source v1alpha1.CatalogSource
	digest string
	name   string
}

// keptPackages bounds the memory: a package without its manifests is far below
// one MiB.
const keptPackages = 256

// NewCatalogs returns a reader that keeps what it pulled in a folder; an empty
// cacheDir means that it keeps nothing on disk.
func NewCatalogs(cacheDir string) *Catalogs {
	packages, err := lru.New[packageKey, *catalogs.Package](keptPackages)
	if err != nil { // only a size below one is refused
		panic(fmt.Sprintf("make package cache: %v", err))
	}
	return &Catalogs{client: oci.NewClient(oci.Options{CacheDir: cacheDir}), packages: packages}
}

// Resolve returns the digest that the source has now.
func (c *Catalogs) Resolve(ctx context.Context, source v1alpha1.CatalogSource) (string, error) {
	return c.client.Resolve(ctx, ociSource(source))
}

// Summary reads what the catalog with that digest offers.
func (c *Catalogs) Summary(ctx context.Context, source v1alpha1.CatalogSource, digest string) (catalogs.Summary, error) {
	files, err := c.client.Open(ctx, ociSource(source), digest)
	if err != nil {
		return catalogs.Summary{}, err
	}
	return catalogs.ReadSummary(files)
}

// Package reads one package, without its manifests.
func (c *Catalogs) Package(ctx context.Context, source v1alpha1.CatalogSource, digest, name string) (*catalogs.Package, error) {
	key := packageKey{source, digest, name}
	if pkg, ok := c.packages.Get(key); ok {
		return pkg, nil
	}
	read, err, _ := c.reading.Do(fmt.Sprint(key), func() (any, error) {
		files, err := c.client.Open(ctx, ociSource(source), digest)
		if err != nil {
			return nil, err
		}
		pkg, err := catalogs.ReadPackage(files, name)
		if err != nil {
			return nil, err
		}
		slim := withoutManifests(pkg)
		c.packages.Add(key, slim)
		return slim, nil
	})
	if err != nil {
		return nil, err
	}
	return read.(*catalogs.Package), nil
}

// withoutManifests keeps what the upgrade graph needs; manifests are the
// agents' business.
func withoutManifests(pkg *catalogs.Package) *catalogs.Package {
	slim := *pkg
	slim.Icon, slim.Bundles = nil, make(map[string]*catalogs.Bundle, len(pkg.Bundles))
	for name, bundle := range pkg.Bundles {
		kept := *bundle
		kept.Objects, kept.Properties, kept.RelatedImages = nil, nil, nil
		slim.Bundles[name] = &kept
	}
	return &slim
}

// Reason names what is wrong with a catalog in the terms of the API.
func (c *Catalogs) Reason(err error) string {
	for _, known := range []struct {
		err    error
		reason string
	}{
		{catalogs.ErrNoPackage, v1alpha1.ReasonUnknownPackage},
		{catalogs.ErrInvalidPackage, v1alpha1.ReasonCatalogInvalid},
		{catalogs.ErrNotCatalog, v1alpha1.ReasonNotACatalog},
		{oci.ErrDigestMismatch, v1alpha1.ReasonDigestMismatch},
		{oci.ErrBadSource, v1alpha1.ReasonInvalidSpec},
	} {
		if errors.Is(err, known.err) {
			return known.reason
		}
	}
	return v1alpha1.ReasonCatalogUnreachable
}

func ociSource(s v1alpha1.CatalogSource) oci.Source {
	return oci.Source{Image: s.Image, Directory: s.Directory, Access: oci.Access{Insecure: s.Insecure}}
}
