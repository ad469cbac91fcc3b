// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/bellwether-dev/bellwether/bundles/build"
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
	t, err := o.target(ctx)
	if err != nil {
		return nil, nil, err
	}
	made, err := agentbundle.Build(charts.Release{Version: o.version, Registry: o.registry, Digests: digests})
	if err != nil {
		return nil, nil, fmt.Errorf("make bundle of the agent: %w", err)
	}
	p, err := agentbundle.Publish(ctx, t, made, time.Now())
	if err != nil {
		return nil, nil, err
	}
	manifest, err := agentbundle.Manifest(o.version, p.Catalog.Repository+"@"+p.Catalog.Digest)
	return []image.Published{p.Bundle, p.Catalog}, manifest, err
}
