// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"golang.org/x/tools/txtar"
)

// Bundle reads a bundle image: the files of its manifests and metadata as they are in a bundle folder, and the image's
// digest. An image reference without a digest is read as it is now.
func (c *Client) Bundle(ctx context.Context, image string, a Access) (fs.FS, string, error) {
	img, err := c.image(ctx, image, "", a)
	if err != nil {
		return nil, "", fmt.Errorf("read bundle: %w", err)
	}
	digest, err := img.Digest()
	if err != nil {
		return nil, "", fmt.Errorf("read digest of %s: %w", image, classify(err))
	}
	manifests, err := label(img, manifestsLabel)
	if err != nil {
		return nil, "", fmt.Errorf("read bundle %s: %w", image, err)
	}
	if manifests == "" {
		return nil, "", fmt.Errorf("%w: image %s has no label %s", ErrNotBundle, image, manifestsLabel)
	}
	metadata, err := label(img, metadataLabel)
	if err != nil {
		return nil, "", fmt.Errorf("read bundle %s: %w", image, err)
	}
	folders := []string{clean(manifests) + "/", clean(cmp.Or(metadata, "metadata")) + "/"}
	var files txtar.Archive
	err = imageFiles(img, "", 2*maxBundle)(func(name string, content io.Reader) error {
		if !strings.HasPrefix(name, folders[0]) && !strings.HasPrefix(name, folders[1]) {
			return nil
		}
		data, err := io.ReadAll(content) // bounded by imageFiles
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		files.Files = append(files.Files, txtar.File{Name: name, Data: data})
		return nil
	})
	if err != nil {
		return nil, "", fmt.Errorf("read bundle %s: %w", image, err)
	}
	out, err := txtar.FS(&files)
	if err != nil {
		return nil, "", fmt.Errorf("%w: image %s: %w", ErrNotBundle, image, err)
	}
	return out, digest.String(), nil
}
