// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
)

// The agent as OLM installs it: its bundles, and the catalog of them.
const (
	AgentBundle = "agent-bundle"
	Catalog     = "catalog"
	// Latest is the tag of the catalog, which has all versions.
	Latest = "latest"
)

// PublishBundle pushes the agent's bundle from a folder, and signs it. The version is its tag.
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
