// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// ErrMoved means that a tag does not have the expected digest.
var ErrMoved = errors.New("the tag has moved")

// CatalogImage returns the image of the catalog in a directory. The catalog must be valid. The directory is read
// again when the image is pushed; if it changed in between, the push fails.
func (c *Client) CatalogImage(dir string) (v1.Image, error) {
	if err := validateCatalog(dir, c.options.MaxBytes); err != nil {
		return nil, fmt.Errorf("make image of catalog %s: %w", dir, err)
	}
	img, err := newImage(dir, "configs", map[string]string{ConfigsLabel: "/configs"})
	if err != nil {
		return nil, fmt.Errorf("make image of catalog %s: %w", dir, err)
	}
	return img, nil
}

// PushImage writes an image to a repository by its digest, without a tag. It returns the reference by digest.
func (c *Client) PushImage(ctx context.Context, img v1.Image, repository string, a Access) (string, error) {
	target, err := parseRepository(repository, a)
	if err != nil {
		return "", err
	}
	options, err := c.remoteOptions(ctx, a)
	if err != nil {
		return "", err
	}
	digest, err := img.Digest()
	if err != nil {
		return "", fmt.Errorf("digest image: %w", err)
	}
	ref := target.Digest(digest.String())
	if err := remote.Write(ref, img, options...); err != nil {
		return "", fmt.Errorf("push %s: %w", ref, classify(err))
	}
	return ref.String(), nil
}

// PushIndex writes an index, with all of its images, to a repository by its digest, without a tag. It returns the
// reference by digest. Content that the repository already has is not sent again.
func (c *Client) PushIndex(ctx context.Context, index v1.ImageIndex, repository string, a Access) (string, error) {
	target, err := parseRepository(repository, a)
	if err != nil {
		return "", err
	}
	options, err := c.remoteOptions(ctx, a)
	if err != nil {
		return "", err
	}
	digest, err := index.Digest()
	if err != nil {
		return "", fmt.Errorf("digest index: %w", err)
	}
	ref := target.Digest(digest.String())
	if err := remote.WriteIndex(ref, index, options...); err != nil {
		return "", fmt.Errorf("push %s: %w", ref, classify(err))
	}
	return ref.String(), nil
}

// Pull returns an image for a platform. Its layers are fetched and verified when they are read. The error wraps
// ErrNotFound if the image is only for other platforms.
func (c *Client) Pull(ctx context.Context, image string, platform v1.Platform, a Access) (v1.Image, error) {
	ref, err := parseReference(image, a)
	if err != nil {
		return nil, err
	}
	options, err := c.remoteOptions(ctx, a)
	if err != nil {
		return nil, err
	}
	img, err := remote.Image(ref, append(options, remote.WithPlatform(platform))...)
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", ref, classify(err))
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", ref, classify(err))
	}
	if config.OS != platform.OS || config.Architecture != platform.Architecture {
		return nil, fmt.Errorf("pull %s: %w: it is for %s/%s", ref, ErrNotFound, config.OS, config.Architecture)
	}
	return img, nil
}

// Copy writes an image, or an index with all of its images, to another repository by its digest. from is a reference
// by digest. Content that the repository already has is not sent again. It returns the new reference by digest.
func (c *Client) Copy(ctx context.Context, from, repository string, source, target Access) (string, error) {
	ref, err := parseDigest(from, source)
	if err != nil {
		return "", err
	}
	targetRepository, err := parseRepository(repository, target)
	if err != nil {
		return "", err
	}
	sourceOptions, err := c.remoteOptions(ctx, source)
	if err != nil {
		return "", err
	}
	targetOptions, err := c.remoteOptions(ctx, target)
	if err != nil {
		return "", err
	}
	copied := targetRepository.Digest(ref.DigestStr())
	if _, err := remote.Head(copied, targetOptions...); err == nil {
		return copied.String(), nil
	}
	got, err := remote.Get(ref, sourceOptions...)
	if err != nil {
		return "", fmt.Errorf("copy %s: %w", ref, classify(err))
	}
	if err := remote.Push(copied, got, targetOptions...); err != nil {
		return "", fmt.Errorf("copy %s to %s: %w", ref, targetRepository, classify(err))
	}
	return copied.String(), nil
}

// AddKeepTag adds a tag to an image that is named by digest: kind, a dash, and the start of the digest. Many registries
// remove images without a tag, and clusters keep using a digest long after the tag that they follow was moved.
func (c *Client) AddKeepTag(ctx context.Context, image, kind string, a Access) error {
	ref, err := parseDigest(image, a)
	if err != nil {
		return err
	}
	tag := ref.Context().Tag(kind + "-" + strings.TrimPrefix(ref.DigestStr(), "sha256:")[:16])
	current, err := c.resolveTag(ctx, tag, a)
	if err != nil {
		return fmt.Errorf("keep %s: %w", ref, err)
	}
	if current == ref.DigestStr() {
		return nil
	}
	options, err := c.remoteOptions(ctx, a)
	if err != nil {
		return err
	}
	got, err := remote.Get(ref, options...)
	if err != nil {
		return fmt.Errorf("keep %s: %w", ref, classify(err))
	}
	if err := remote.Tag(tag, got, options...); err != nil {
		return fmt.Errorf("keep %s: %w", ref, classify(err))
	}
	return nil
}

// Exists returns nil if the registry has the image; the error wraps ErrNotFound if it does not.
func (c *Client) Exists(ctx context.Context, image string, a Access) error {
	ref, err := parseReference(image, a)
	if err != nil {
		return err
	}
	if _, err := c.resolveReference(ctx, ref, a); err != nil {
		return fmt.Errorf("find %s: %w", ref, err)
	}
	return nil
}

// MoveTag moves a tag to an image in the same repository, if the tag still has the digest expected, or does not
// exist if expected is empty. It changes nothing if the tag already has the new digest. The error wraps ErrMoved if
// the tag has another digest, before or after the move.
//
// Registries cannot compare and set a tag. If two processes move a tag within the same few milliseconds, both can
// succeed. The later one wins, and both leave a complete image behind.
func (c *Client) MoveTag(ctx context.Context, tag, digest, expected string, a Access) error {
	target, err := parseTag(tag, a)
	if err != nil {
		return err
	}
	options, err := c.remoteOptions(ctx, a)
	if err != nil {
		return err
	}
	image, err := remote.Get(target.Context().Digest(digest), options...)
	if err != nil {
		return fmt.Errorf("move tag %s: %w", target, classify(err))
	}
	current, err := c.resolveTag(ctx, target, a)
	switch {
	case err != nil:
		return fmt.Errorf("move tag %s: %w", target, err)
	case current == digest:
		return nil
	case current != expected:
		return fmt.Errorf("move tag %s: %w: it holds %s, expected was %s", target, ErrMoved, formatDigest(current),
			formatDigest(expected))
	}
	if err := remote.Tag(target, image, options...); err != nil {
		return fmt.Errorf("move tag %s: %w", target, classify(err))
	}
	current, err = c.resolveTag(ctx, target, a)
	switch {
	case err != nil:
		return fmt.Errorf("look at tag %s again: %w", target, err)
	case current != digest:
		return fmt.Errorf("move tag %s: %w: it was moved to %s at the same time", target, ErrMoved,
			formatDigest(current))
	}
	return nil
}

// TagDigest returns the digest of a tag; empty if the tag does not exist.
func (c *Client) TagDigest(ctx context.Context, tag string, a Access) (string, error) {
	target, err := parseTag(tag, a)
	if err != nil {
		return "", err
	}
	digest, err := c.resolveTag(ctx, target, a)
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", target, err)
	}
	return digest, nil
}

// resolveTag returns the digest of a tag; empty if the tag does not exist.
func (c *Client) resolveTag(ctx context.Context, tag name.Reference, a Access) (string, error) {
	digest, err := c.resolveReference(ctx, tag, a)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return digest, err
}

// formatDigest returns the digest for messages, or "nothing" if it is empty.
func formatDigest(digest string) string {
	if digest == "" {
		return "nothing"
	}
	return digest
}

func parseRepository(repository string, a Access) (name.Repository, error) {
	var options []name.Option
	if a.Insecure {
		options = append(options, name.Insecure)
	}
	r, err := name.NewRepository(repository, options...)
	if err != nil {
		return name.Repository{}, fmt.Errorf("%w: %w", ErrBadSource, err)
	}
	return r, nil
}

func parseTag(ref string, a Access) (name.Tag, error) {
	parsed, err := parseReference(ref, a)
	if err != nil {
		return name.Tag{}, err
	}
	tag, ok := parsed.(name.Tag)
	if !ok {
		return name.Tag{}, fmt.Errorf("%w: %s is a digest, a tag is needed to push to", ErrBadSource, ref)
	}
	return tag, nil
}

// Repository returns the repository of an image reference, without tag and digest.
func Repository(ref string) (string, error) {
	parsed, err := parseReference(ref, Access{})
	if err != nil {
		return "", err
	}
	return parsed.Context().Name(), nil
}
