// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
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
// ErrNotFolder; more than limit bytes, packed or unpacked, one that wraps ErrTooLarge. With a cache directory the image
// is kept there, and read from there without the registry.
func (c *Client) Folder(ctx context.Context, s Source, digest string, limit int64) (map[string][]byte, error) {
	if err := c.Verify(ctx, s, digest); err != nil {
		return nil, err
	}
	kept := ""
	if c.options.CacheDir != "" && !strings.ContainsAny(digest, `/\`) {
		kept = filepath.Join(c.options.CacheDir, strings.ReplaceAll(digest, ":", "-"))
		if files, err := keptFolder(kept, digest, limit); err == nil {
			return files, nil
		}
	}
	img, err := c.image(ctx, s.Image, digest, s.Access)
	if err != nil {
		return nil, err
	}
	files, err := folderFiles(img, limit)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s, err)
	}
	if kept != "" {
		keepFolder(kept, img)
	}
	return files, nil
}

// folderFiles reads an image into memory.
func folderFiles(img v1.Image, limit int64) (map[string][]byte, error) {
	config, err := configOf(img)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	err = exactImageFiles(img, config.RootFS.DiffIDs, limit, ErrNotFolder)(func(name string, content io.Reader) error {
		text, err := io.ReadAll(content) // bounded by exactImageFiles
		out[name] = text
		return err
	})
	return out, err
}

// keptFolder reads an image of the cache. Its content is compared with the digest, as that of a registry is.
func keptFolder(dir, digest string, limit int64) (map[string][]byte, error) {
	hash, err := v1.NewHash(digest)
	if err != nil {
		return nil, err
	}
	at, err := layout.FromPath(dir)
	if err != nil {
		return nil, err
	}
	img, err := at.Image(hash)
	if err != nil {
		return nil, err
	}
	manifest, err := img.Manifest()
	if err != nil {
		return nil, err
	}
	err = errors.Join(checkBlob(img.RawManifest, hash), checkBlob(img.RawConfigFile, manifest.Config.Digest))
	if err != nil {
		return nil, err
	}
	return folderFiles(img, limit)
}

// checkBlob compares what was read with its digest.
func checkBlob(read func() ([]byte, error), want v1.Hash) error {
	text, err := read()
	if err != nil {
		return err
	}
	if sum, _, err := v1.SHA256(bytes.NewReader(text)); err != nil || sum != want {
		return ErrDigestMismatch
	}
	return nil
}

// keepFolder adds an image to the cache. Errors of the cache are ignored: the image can be read again.
func keepFolder(dir string, img v1.Image) {
	if os.MkdirAll(filepath.Dir(dir), 0o750) != nil {
		return
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".folder-*")
	if err != nil {
		return
	}
	if _, err := WriteLayout(temp, img, ""); err == nil {
		_ = os.RemoveAll(dir)
		_ = os.Rename(temp, dir)
	}
	_ = os.RemoveAll(temp)
}
