// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/blocks"
	"github.com/bellwether-dev/bellwether/catalogs/preflight"
	"github.com/bellwether-dev/bellwether/controllers/operator/plan"
	"github.com/bellwether-dev/bellwether/phrase"
)

// readRequirements reads what a release needs of a cluster, once for its rollout.
// Where the bundles cannot be read, it says so: agents may reach a registry that the
// hub does not reach.
func (r *Reconciler) readRequirements(ctx context.Context, in plan.Input,
	release v1alpha1.Release) *v1alpha1.ReleaseRequirements {
	if in.Package == nil || release.AsInstalled {
		return nil // what is installed fits its cluster
	}
	pkg, err := in.Package.WithBlocked(blocks.Of(in.Catalog.Spec.Blocks, release.Package)...)
	if err != nil { // the blocks leave nothing, so no rollout goes on
		pkg = in.Package
	}
	var installed []catalogs.Installed
	for _, i := range in.Installs {
		installed = append(installed, i.Installed)
	}
	upgrades := preflight.Upgrades(pkg, release, installed)
	reading, cancel := context.WithTimeoutCause(ctx, readBundlesTimeout,
		errors.New("the registry did not answer in time"))
	defer cancel()
	read, err := r.Packages.Bundles(reading, in.Operator.Namespace, release.Catalog.Source, release.Catalog.Digest,
		release.Package, preflight.BundlesToRead(release, upgrades)...)
	var out *v1alpha1.ReleaseRequirements
	if err == nil {
		err = r.Packages.Decode(ctx, release.Catalog.Digest, func() error {
			out = preflight.Requirements(read, release, upgrades)
			return nil
		})
	}
	if err != nil {
		return &v1alpha1.ReleaseRequirements{NotRead: phrase.Truncate(phrase.OneLine(err.Error()), maxNotRead)}
	}
	return out
}

const (
	// readBundlesTimeout bounds the time for which a rollout waits for the images of
	// bundles.
	readBundlesTimeout = 30 * time.Second
	// maxNotRead is the API's limit.
	maxNotRead = 512
)
