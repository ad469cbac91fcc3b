// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// BundleImage returns the image of a registry+v1 bundle directory that PushBundle pushes: one layer, and the
// annotations as labels. It does not depend on the time and place of its creation. The directory must not change
// while the image is in use.
func BundleImage(dir string) (v1.Image, error) {
	labels, err := readDirectoryLabels(dir)
	if err != nil {
		return nil, fmt.Errorf("make image of bundle %s: %w", dir, err)
	}
	img, err := newImage(dir, "", labels)
	if err != nil {
		return nil, fmt.Errorf("make image of bundle %s: %w", dir, err)
	}
	// An image that readers would refuse must not be made.
	if _, err := unpackFiles(img, walkLocalImage); err != nil {
		return nil, fmt.Errorf("make image of bundle %s: %w", dir, err)
	}
	return img, nil
}

// LayoutMark is the file that identifies an OCI layout.
const LayoutMark = "oci-layout"

// WriteLayout writes an image to an empty directory as an OCI image layout, and returns its digest. A tag, if not
// empty, becomes the annotation org.opencontainers.image.ref.name.
func WriteLayout(dir string, img v1.Image, tag string) (string, error) {
	target, err := layout.Write(dir, empty.Index)
	if err != nil {
		return "", fmt.Errorf("write OCI layout: %w", err)
	}
	var options []layout.Option
	if tag != "" {
		options = append(options, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag}))
	}
	if err := target.AppendImage(img, options...); err != nil {
		return "", fmt.Errorf("write OCI layout: %w", err)
	}
	digest, err := img.Digest()
	if err != nil {
		return "", fmt.Errorf("digest image: %w", err)
	}
	return digest.String(), nil
}

// Labels returns the labels of an image. The labels of a bundle image are its annotations.
func (c *Client) Labels(ctx context.Context, image string, a Access) (map[string]string, error) {
	img, err := c.fetchImage(ctx, image, "", a)
	if err != nil {
		return nil, fmt.Errorf("read labels: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read labels of %s: %w", image, classify(err))
	}
	return config.Config.Labels, nil
}
