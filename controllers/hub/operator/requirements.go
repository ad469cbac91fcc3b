// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/preflight"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

// readRequirements returns what a release requires of a cluster. It is read once for each
// rollout. If the bundles cannot be read, the result has the error in NotRead and the rollout
// continues: agents might reach a registry that the hub does not reach.
func (r *Reconciler) readRequirements(ctx context.Context, in operators.Input,
	release v1alpha1.Release) *v1alpha1.ReleaseRequirements {
	if in.Package == nil || release.AsInstalled {
		return nil // an installed release meets the requirements of its cluster
	}
	pkg, err := in.Package.WithBlocked(catalogs.BlocksOf(in.Catalog.Spec.Blocks, release.Package)...)
	if err != nil { // all versions are blocked, so no rollout continues
		pkg = in.Package
	}
	var installed []catalogs.Installed
	for _, i := range in.Installs {
		installed = append(installed, i.Installed)
	}
	upgrades := preflight.Upgrades(pkg, release, installed)
	readCtx, cancel := context.WithTimeoutCause(ctx, readBundlesTimeout,
		errors.New("the registry did not answer in time"))
	defer cancel()
	read, err := r.Packages.Bundles(readCtx, in.Operator.Namespace, release.Catalog.Source, release.Catalog.Digest,
		release.Package, preflight.BundlesToRead(release, upgrades)...)
	var out *v1alpha1.ReleaseRequirements
	if err == nil {
		err = r.Packages.RunDecoding(ctx, release.Catalog.Digest, func() error {
			out = preflight.Requirements(read, release, upgrades)
			return nil
		})
	}
	if err != nil {
		return &v1alpha1.ReleaseRequirements{NotRead: phrase.Truncate(phrase.OneLine(err.Error()), maxNotReadLength)}
	}
	return out
}

const (
	// readBundlesTimeout limits how long the creation of a rollout waits
	// for the images of bundles.
	readBundlesTimeout = 30 * time.Second
	// maxNotReadLength is the API's limit for the field notRead.
	maxNotReadLength = 512
)
