// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"fmt"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Platforms returns the platforms of an image as "os/architecture", sorted and without duplicates. It reads the
// image's index, or the configuration of an image without an index, and no layers. Errors do not name the image.
func (c *Client) Platforms(ctx context.Context, image string, a Access) ([]string, error) {
	ref, err := parseReference(image, a)
	if err != nil {
		return nil, err
	}
	options, err := c.remoteOptions(ctx, a)
	if err != nil {
		return nil, err
	}
	found, err := remote.Get(ref, options...)
	if err != nil {
		return nil, fmt.Errorf("query registry: %w", classify(err))
	}
	if !found.MediaType.IsIndex() {
		return readPlatform(found)
	}
	_, manifest, err := readIndex(found)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range manifest.Manifests {
		// An index also lists attestations, with the platform unknown.
		if m.Platform != nil && m.Platform.OS != "unknown" {
			out = append(out, m.Platform.OS+"/"+m.Platform.Architecture)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// readIndex returns the index of a descriptor and the index's manifest.
func readIndex(found *remote.Descriptor) (v1.ImageIndex, *v1.IndexManifest, error) {
	index, err := found.ImageIndex()
	if err != nil {
		return nil, nil, fmt.Errorf("read the image's index: %w", classify(err))
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, nil, fmt.Errorf("read the image's index: %w", classify(err))
	}
	return index, manifest, nil
}

func readPlatform(found *remote.Descriptor) ([]string, error) {
	img, err := found.Image()
	if err != nil {
		return nil, fmt.Errorf("read the image: %w", classify(err))
	}
	config, err := readConfig(img)
	if err != nil {
		return nil, err
	}
	return []string{config.OS + "/" + config.Architecture}, nil
}
