// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
)

// Names for the agent that OLM installs: its bundles, and the catalog with these bundles.
const (
	AgentBundle = "agent-bundle"
	Catalog     = "catalog"
	// Latest is the tag of the catalog, which contains all versions.
	Latest = "latest"
)

// PublishBundle pushes the agent's bundle from a folder, and signs it. The tag of
// the bundle is its version.
func (t Target) PublishBundle(ctx context.Context, version, dir string) (Published, error) {
	repository := t.Registry + "/" + AgentBundle
	digest, err := t.Client.PushBundle(ctx, dir, repository+":"+version, t.Access)
	if err != nil {
		return Published{}, fmt.Errorf("publish bundle: %w", err)
	}
	if err := t.sign(ctx, repository+"@"+digest, digest); err != nil {
		return Published{}, err
	}
	return Published{Name: AgentBundle, Repository: repository, Tag: version, Digest: digest}, nil
}
