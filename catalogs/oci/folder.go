// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrNotFolder says that an image is not one of plain files.
var ErrNotFolder = errors.New("not an image of plain files")

// PushFolder writes the files of a folder to a registry as an image of one layer, and returns its digest. Hidden files
// are left out.
func (c *Client) PushFolder(ctx context.Context, dir, ref string, a Access) (string, error) {
	digest, err := c.pushImage(ctx, dir, "", ref, nil, a)
	if err != nil {
		return "", fmt.Errorf("push %s: %w", dir, err)
	}
	return digest, nil
}

// Folder reads all files of the image with a digest, by their paths. Where the source asks for a signature and the
// digest has none, nothing is fetched. A link, a device, or a path that leads out of the image is an error that wraps
// ErrNotFolder; more than limit bytes, packed or unpacked, one that wraps ErrTooLarge. With a cache directory the files
// are kept there, and read from there without the registry.
func (c *Client) Folder(ctx context.Context, s Source, digest string, limit int64) (map[string][]byte, error) {
	if err := c.Verify(ctx, s, digest); err != nil {
		return nil, err
	}
	kept := strings.TrimSuffix(digest+"-"+s.Access.Key(), "-")
	files, isCached := c.cached(kept)
	if !isCached {
		img, err := c.image(ctx, s.Image, digest, s.Access)
		if err != nil {
			return nil, err
		}
		config, err := configOf(img)
		if err != nil {
			return nil, err
		}
		files = c.caching(kept, exactImageFiles(img, config.RootFS.DiffIDs, limit, ErrNotFolder))
	}
	out := map[string][]byte{}
	err := files(func(name string, content io.Reader) error {
		text, err := io.ReadAll(content) // Both sources bound it.
		out[name] = text
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s, err)
	}
	return out, nil
}
