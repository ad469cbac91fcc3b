// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/engines/adoption"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Begin returns the offer of a catalog's package for a request, and the route to the release. The offer lacks the parts
// that depend on the manifests of bundles; SetView adds them. No view must be served if the offer has a Problem or
// Route.Serves is false. The offer describes the package even if there is an error.
func (r Request) Begin(pkg *catalogs.Package) (Offer, Route, error) {
	var offer Offer
	addPackage(&offer, pkg, r)
	if r.Release.AsInstalled {
		hasNothing := r.Installed.Name == ""
		if offer.Problem = r.checkInCatalog(*offer.Package); offer.Problem != nil || hasNothing {
			return offer, Route{}, nil
		}
	}
	found, err := FindRoute(pkg, r)
	if err != nil {
		return offer, Route{}, err
	}
	offer.Path, offer.Next, offer.Blocked = found.Path, found.Next, found.Blocked
	offer.Rollback = findRollbackClass(pkg, found.From.Name, found.Next)
	// If the version is blocked, the view still has the installed bundle, because OLM needs a catalog for it.
	found.Serves = offer.Blocked == "" || found.From.Name != ""
	return offer, found, nil
}

// SetView sets the fields of an offer that describe a view, and decodes the manifests in the view for Content and
// Expected. It serves no view itself.
func (o *Offer) SetView(v view.View, release v1alpha1.Release) (err error) {
	o.ViewHash, o.Admitted, o.Route = v.Hash, v.Admitted, findBundleRoute(v, release.Package)
	if o.Content, err = readContents(v); err == nil {
		o.Expected, err = readExpected(v, release)
	}
	return err
}

// findBundleRoute returns how OLM gets the bundle of a package that a view offers; empty if the view offers
// no bundle.
func findBundleRoute(content view.View, pkg string) v1alpha1.BundleRoute {
	var route v1alpha1.BundleRoute
	for _, bundle := range content.Bundles {
		if bundle.Package == pkg && bundle.Route != view.Stub {
			route = v1alpha1.BundleRoute(bundle.Route)
		}
	}
	return route
}

// addPackage adds the versions of a package to an offer and, if the release adopts an operator, the package itself.
func addPackage(offer *Offer, pkg *catalogs.Package, r Request) {
	offer.Versions = map[string]string{}
	for name, bundle := range pkg.Bundles {
		offer.Versions[name] = bundle.VersionString()
	}
	for name, block := range pkg.Blocks { // a blocked bundle may be installed although the catalog does not have it
		offer.Versions[name] = block.Version
	}
	if isAdoption(r.Release) {
		summary := adoption.Summarize(cmp.Or(r.Release.Catalog.Source.Image, r.Release.Catalog.Source.Directory), pkg)
		summary.Admitted = true
		offer.Package = &summary
	}
}

// checkInCatalog returns a problem if the catalog lacks the version that is to be adopted; nil if it does not.
func (r Request) checkInCatalog(p adoption.Package) *Problem {
	if r.Installed.Name == "" || p.Has(r.Installed.Name) {
		return nil
	}
	return &Problem{Reason: v1alpha1.ReasonNotAdoptable, Message: fmt.Sprintf("%s is installed, and package %s "+
		"in %s does not have it. Add version %s to the ladder file of the package, and publish the catalog: "+
		"`bellwether catalog add ./ladders BUNDLE`.", r.Installed.Name, p.Name, p.Catalog,
		cmp.Or(r.Installed.Version, "of that bundle"))}
}

// readExpected returns the fields that the next bundle of a view sets or, if there is no next bundle, the installed
// bundle. It returns nil if the view does not have the bundle's manifests, because OLM unpacks them from an image.
func readExpected(v view.View, release v1alpha1.Release) (*ExpectedFields, error) {
	for _, pkg := range v.Packages {
		bundle, ok := pkg.Bundles[cmp.Or(v.Next, v.Installed)]
		if pkg.Name != release.Package || !ok {
			continue
		}
		csv, err := decodeCSV(bundle)
		if csv == nil || err != nil {
			return nil, err
		}
		return ReadExpectedFields(csv, release.Install.Config)
	}
	return nil, nil
}

// decodeCSV returns the ClusterServiceVersion of a bundle; nil if the bundle has no manifests.
func decodeCSV(b *catalogs.Bundle) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	for _, object := range b.Objects {
		if !bundles.IsCSV(object) {
			continue
		}
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := bundles.CheckCSV(object); err != nil {
			return nil, fmt.Errorf("%w: bundle %q: %w", catalogs.ErrInvalidPackage, b.Name, err)
		}
		if err := json.Unmarshal(object, csv); err != nil {
			return nil, fmt.Errorf("%w: decode ClusterServiceVersion of bundle %q: %w", catalogs.ErrInvalidPackage,
				b.Name, err)
		}
		return csv, nil
	}
	return nil, nil
}

// formatPending returns the message for a read that takes long.
func formatPending(pin v1alpha1.CatalogPin, since time.Time) string {
	return fmt.Sprintf("Reading catalog %s since %s. If this lasts, check that this cluster reaches the registry.",
		cmp.Or(pin.Source.Image, pin.Source.Directory), phrase.Time(since))
}

// findRollbackClass returns what a rollback from a newer to an older bundle needs; empty if the catalog does not say.
// The class is in the newer bundle.
func findRollbackClass(pkg *catalogs.Package, older, newer string) bundles.RollbackClass {
	bundle, ok := pkg.Bundles[newer]
	if !ok {
		return ""
	}
	for _, way := range bundle.Rollbacks() {
		if way.From == older {
			return way.Class
		}
	}
	return ""
}
