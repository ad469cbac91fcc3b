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

// ErrNotFolder means that an image does not consist of plain files.
var ErrNotFolder = errors.New("not an image of plain files")

// PushFolder writes the files of a folder to a registry as an image of one layer, and returns its digest. Hidden
// files are left out.
func (c *Client) PushFolder(ctx context.Context, dir, ref string, a Access) (string, error) {
	digest, err := c.pushImage(ctx, dir, "", ref, nil, a)
	if err != nil {
		return "", fmt.Errorf("push %s: %w", dir, err)
	}
	return digest, nil
}

// Folder reads all files of the image with a digest, by their paths. If the source requires a signature and the
// digest has none, nothing is fetched. The error wraps ErrNotFolder if the image has a link, a device, or a path that
// leads out of the image. It wraps ErrTooLarge if the image has more than limit bytes, packed or unpacked. If there
// is a cache directory, the files are kept there, and read from there without the registry.
func (c *Client) Folder(ctx context.Context, s Source, digest string, limit int64) (map[string][]byte, error) {
	if err := c.Verify(ctx, s, digest); err != nil {
		return nil, err
	}
	cacheKey := strings.TrimSuffix(digest+"-"+s.Access.Key(), "-")
	files, isCached := c.openCached(cacheKey)
	if !isCached {
		img, err := c.fetchImage(ctx, s.Image, digest, s.Access)
		if err != nil {
			return nil, err
		}
		config, err := readConfig(img)
		if err != nil {
			return nil, err
		}
		files = c.wrapWithCache(cacheKey, openExactImage(img, config.RootFS.DiffIDs, limit, ErrNotFolder))
	}
	out := map[string][]byte{}
	err := files(func(name string, content io.Reader) error {
		text, err := io.ReadAll(content) // openExactImage and the cache bound the size
		out[name] = text
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s, err)
	}
	return out, nil
}
