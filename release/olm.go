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

// publishOLM pushes the agent's bundle, and the catalog with this bundle and all earlier
// versions. It also returns the manifest that installs the agent from the catalog. A pre-release
// has no bundle, because version ranges do not include pre-releases; the result is then empty.
func (o *options) publishOLM(ctx context.Context, digests map[string]string) ([]image.Published, []byte, error) {
	if _, err := build.PlainVersion(o.version); err != nil {
		fmt.Fprintln(os.Stderr, "no bundle of the agent:", err)
		return nil, nil, nil
	}
	t, err := o.newTarget(ctx)
	if err != nil {
		return nil, nil, err
	}
	bundle, err := agentbundle.Build(charts.Release{Version: o.version, Registry: o.registry, Digests: digests})
	if err != nil {
		return nil, nil, fmt.Errorf("make bundle of the agent: %w", err)
	}
	p, err := agentbundle.Publish(ctx, t, bundle, time.Now())
	if err != nil {
		return nil, nil, err
	}
	manifest, err := agentbundle.BuildManifest(o.version, p.Catalog.Repository+"@"+p.Catalog.Digest)
	return []image.Published{p.Bundle, p.Catalog}, manifest, err
}
