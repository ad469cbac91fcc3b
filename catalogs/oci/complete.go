// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// CheckComplete returns nil if a registry has all of an image: its manifest, configuration and layers. It compares
// their sizes with the sizes in the manifest. If deep is true, it also reads all content and compares it with its
// digest. The error wraps ErrNotFound if something is missing, and ErrDigestMismatch if something is altered.
func (c *Client) CheckComplete(ctx context.Context, image string, deep bool, a Access) error {
	img, err := c.fetchImage(ctx, image, "", a)
	if err != nil {
		return fmt.Errorf("find %s: %w", image, err)
	}
	// The library verifies the manifest and the configuration against their digests.
	manifest, err := img.Manifest()
	if err != nil {
		return fmt.Errorf("read %s: %w", image, classify(err))
	}
	if _, err := readConfig(img); err != nil {
		return fmt.Errorf("read %s: %w", image, err)
	}
	ref, err := parseReference(image, a)
	if err != nil {
		return err
	}
	options, err := c.remoteOptions(ctx, a)
	if err != nil {
		return err
	}
	for _, d := range manifest.Layers {
		layer, err := remote.Layer(ref.Context().Digest(d.Digest.String()), options...)
		if err == nil {
			err = checkLayer(layer, d, deep)
		}
		if err != nil {
			return fmt.Errorf("find layer %s of %s: %w", d.Digest, image, classify(err))
		}
	}
	return nil
}

// checkLayer compares the size of a layer with its descriptor d. If deep is true, it also compares the content.
func checkLayer(layer v1.Layer, d v1.Descriptor, deep bool) error {
	size, err := layer.Size()
	if err != nil {
		return err
	}
	if size != d.Size {
		return errorf(ErrDigestMismatch, "it has %d bytes, and the manifest says %d", size, d.Size)
	}
	if !deep {
		return nil
	}
	blob, err := layer.Compressed()
	if err != nil {
		return err
	}
	verified := &verifiedBody{ReadCloser: blob, verifier: newVerifier(d.Digest, d.Size)}
	_, err = io.Copy(io.Discard, verified)
	return errors.Join(err, verified.Close())
}
