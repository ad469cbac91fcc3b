// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/bellwether-dev/bellwether/bundles/build"
	"github.com/bellwether-dev/bellwether/catalogs/publish"
	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/release/agentbundle"
	"github.com/bellwether-dev/bellwether/release/image"
)

// olmManifest is the file with which OLM installs the agent.
const olmManifest = "bellwether-agent-olm.yaml"

// olm pushes the agent's bundle, and the catalog with it and all earlier versions, and returns the manifest that
// installs the agent from there. A pre-release has neither, as ranges of versions do not see it: the result is empty.
func (o *options) olm(ctx context.Context, digests map[string]string) ([]image.Published, []byte, error) {
	if _, err := build.PlainVersion(o.version); err != nil {
		fmt.Fprintln(os.Stderr, "no bundle of the agent:", err)
		return nil, nil, nil
	}
	t, err := o.target()
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "bellwether-bundle-")
	if err != nil {
		return nil, nil, fmt.Errorf("make folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	made, err := agentbundle.Build(charts.Release{Version: o.version, Registry: o.registry, Digests: digests})
	if err != nil {
		return nil, nil, fmt.Errorf("make bundle of the agent: %w", err)
	}
	folder := filepath.Join(dir, "bundle")
	if err := build.Write(folder, made.Files); err != nil {
		return nil, nil, fmt.Errorf("write bundle of the agent: %w", err)
	}
	bundle, err := t.PublishBundle(ctx, o.version, folder)
	if err != nil {
		return nil, nil, err
	}
	catalog, err := o.catalog(ctx, t, dir, bundle)
	if err != nil {
		return nil, nil, err
	}
	manifest, err := agentbundle.Manifest(o.version, catalog.Repository+"@"+catalog.Digest)
	return []image.Published{bundle, catalog}, manifest, err
}

// catalog publishes the catalog with a further bundle.
func (o *options) catalog(ctx context.Context, t image.Target, dir string, bundle image.Published) (image.Published,
	error) {
	repository := t.Registry + "/" + image.Catalog
	ref := repository + ":" + image.Latest
	held, err := t.Client.Held(ctx, ref, t.Access)
	if err != nil {
		return image.Published{}, err
	}
	compiled, err := agentbundle.Compile(ctx, t.Client, t.Access, dir, agentbundle.Next{Version: bundle.Tag,
		Image: bundle.Repository + "@" + bundle.Digest, Repository: repository, Previous: held, Now: time.Now()})
	if err != nil {
		return image.Published{}, err
	}
	published, err := publish.Publish(ctx, t.Client, publish.Input{Dir: compiled, Ref: ref, Access: t.Access,
		Signer: t.Signer, Expect: cmp.Or(held, publish.Nothing)})
	if err != nil {
		return image.Published{}, fmt.Errorf("publish catalog: %w", err)
	}
	return image.Published{Name: image.Catalog, Repository: repository, Tag: image.Latest, Digest: published.Digest},
		nil
}
