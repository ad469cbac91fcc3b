// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agentbundle

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/bellwether-dev/bellwether/bundles/build"
	"github.com/bellwether-dev/bellwether/catalogs/publish"
	"github.com/bellwether-dev/bellwether/release/image"
)

// Published is a published bundle of the agent, and the catalog with this
// bundle and all earlier bundles.
type Published struct{ Bundle, Catalog image.Published }

// Publish pushes a bundle, adds it to the catalog, and signs both. The tag of the catalog moves last. Publishing the
// same bundle again changes nothing.
func Publish(ctx context.Context, t image.Target, bundleFiles *build.Result, now time.Time) (Published, error) {
	dir, err := os.MkdirTemp("", "bellwether-bundle-")
	if err != nil {
		return Published{}, fmt.Errorf("make folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	folder := filepath.Join(dir, "bundle")
	if err := build.Write(folder, bundleFiles.Files); err != nil {
		return Published{}, fmt.Errorf("write bundle of the agent: %w", err)
	}
	bundle, err := t.PublishBundle(ctx, bundleFiles.Version, folder)
	if err != nil {
		return Published{}, err
	}
	out := image.Published{Name: image.Catalog, Repository: t.Registry + "/" + image.Catalog, Tag: image.Latest}
	ref := out.Repository + ":" + out.Tag
	previous, err := t.Client.TagDigest(ctx, ref, t.Access)
	if err != nil {
		return Published{}, err
	}
	compiled, err := compileCatalog(ctx, t.Client, t.Access, dir, catalogUpdate{version: bundleFiles.Version,
		image: bundle.Repository + "@" + bundle.Digest, repository: out.Repository, previous: previous, now: now})
	if err != nil {
		return Published{}, err
	}
	published, err := publish.Publish(ctx, t.Client, publish.Input{Dir: compiled, Ref: ref, Access: t.Access,
		Signer: t.Signer, Expect: cmp.Or(previous, publish.Nothing)})
	if err != nil {
		return Published{}, fmt.Errorf("publish catalog: %w", err)
	}
	out.Digest = published.Digest
	return Published{Bundle: bundle, Catalog: out}, nil
}
