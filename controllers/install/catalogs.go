// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

// published reads published catalogs. It keeps nothing in memory: what the
// agent needs of a catalog is the view, which the server holds.
type published struct {
	client *oci.Client
}

// NewCatalogs returns a reader of published catalogs that keeps what it pulled
// in a folder; an empty cacheDir means that it keeps nothing.
func NewCatalogs(cacheDir string) Catalogs {
	return published{client: oci.NewClient(oci.Options{CacheDir: cacheDir})}
}

func sourceOf(s v1alpha1.CatalogSource) oci.Source {
	return oci.Source{Image: s.Image, Directory: s.Directory, Access: access(s)}
}

func access(s v1alpha1.CatalogSource) oci.Access { return oci.Access{Insecure: s.Insecure} }

func (p published) Package(ctx context.Context, pin v1alpha1.CatalogPin, name string) (*catalogs.Package, error) {
	files, err := p.client.Open(ctx, sourceOf(pin.Source), pin.Digest)
	if err != nil {
		return nil, err
	}
	return catalogs.ReadPackage(files, name)
}

func (p published) Suppliers(ctx context.Context, pin v1alpha1.CatalogPin, needs []catalogs.Requirement) ([]*catalogs.Package, error) {
	if len(needs) == 0 {
		return nil, nil
	}
	files, err := p.client.Open(ctx, sourceOf(pin.Source), pin.Digest)
	if err != nil {
		return nil, err
	}
	summary, err := catalogs.ReadSummary(files)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, need := range needs {
		for _, name := range suppliers(summary, need) {
			names[name] = true
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	return catalogs.ReadPackages(files, slices.Sorted(maps.Keys(names))...)
}

// suppliers names the packages that may satisfy a requirement. Whether one of
// their bundles really does is for the view to find out.
func suppliers(summary catalogs.Summary, need catalogs.Requirement) []string {
	var names []string
	for _, pkg := range summary.Packages {
		if pkg.Problem == "" && (pkg.Name == need.Package || need.GVK != nil && slices.Contains(pkg.Provides, *need.GVK)) {
			names = append(names, pkg.Name)
		}
	}
	for _, sub := range slices.Concat(need.All, need.Any) {
		names = append(names, suppliers(summary, sub)...)
	}
	return names
}

func (p published) WithContent(ctx context.Context, pin v1alpha1.CatalogPin, pkg *catalogs.Package, bundle string) (*catalogs.Package, error) {
	found, ok := pkg.Bundles[bundle]
	if !ok || len(found.Objects) > 0 || found.Image == "" {
		return pkg, nil
	}
	objects, err := p.client.BundleObjects(ctx, found.Image, access(pin.Source))
	if errors.Is(err, oci.ErrTooLarge) {
		return pkg, nil // OLM unpacks it
	}
	if err != nil {
		return nil, err
	}
	filled, copied := *found, *pkg
	filled.Objects = objects
	copied.Bundles = maps.Clone(pkg.Bundles)
	copied.Bundles[bundle] = &filled
	return &copied, nil
}
