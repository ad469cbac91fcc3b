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

// ErrMoved says that a tag holds something else than it was expected to hold.
var ErrMoved = errors.New("the tag has moved")

// CatalogImage builds the image of the catalog in a directory, which must hold a valid one. It reads the directory
// again when it is pushed; a directory that changed in between makes the push fail.
func (c *Client) CatalogImage(dir string) (v1.Image, error) {
	if err := validate(dir, c.options.MaxBytes); err != nil {
		return nil, fmt.Errorf("make image of catalog %s: %w", dir, err)
	}
	img, err := newImage(dir, "configs", map[string]string{ConfigsLabel: "/configs"})
	if err != nil {
		return nil, fmt.Errorf("make image of catalog %s: %w", dir, err)
	}
	return img, nil
}

// PushImage writes an image to a repository by its digest, and moves no tag. It returns the reference by digest.
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

// PushIndex writes an index, with all of its images, to a repository by its digest, and moves no tag. It returns the
// reference by digest. What is there already is not sent again.
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

// Pull returns an image for a platform. Its layers are fetched, and verified, when they are read. An image that
// is only for others is an error.
func (c *Client) Pull(ctx context.Context, image string, platform v1.Platform, a Access) (v1.Image, error) {
	ref, err := parse(image, a)
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

// Copy writes an image, or an index with all of its images, to another repository by its digest. The source is a
// reference by digest. What is there already is not sent again.
func (c *Client) Copy(ctx context.Context, from, repository string, source, target Access) (string, error) {
	ref, err := parseDigest(from, source)
	if err != nil {
		return "", err
	}
	to, err := parseRepository(repository, target)
	if err != nil {
		return "", err
	}
	read, err := c.remoteOptions(ctx, source)
	if err != nil {
		return "", err
	}
	write, err := c.remoteOptions(ctx, target)
	if err != nil {
		return "", err
	}
	copied := to.Digest(ref.DigestStr())
	if _, err := remote.Head(copied, write...); err == nil {
		return copied.String(), nil
	}
	got, err := remote.Get(ref, read...)
	if err != nil {
		return "", fmt.Errorf("copy %s: %w", ref, classify(err))
	}
	if err := remote.Push(copied, got, write...); err != nil {
		return "", fmt.Errorf("copy %s to %s: %w", ref, to, classify(err))
	}
	return copied.String(), nil
}

// Keep gives an image, named by digest, a tag of its own: kind, a dash, and the start of the digest. Many registries
// remove what no tag holds, and clusters stay with a digest long after the tag that they follow has moved on.
func (c *Client) Keep(ctx context.Context, image, kind string, a Access) error {
	ref, err := parseDigest(image, a)
	if err != nil {
		return err
	}
	tag := ref.Context().Tag(kind + "-" + strings.TrimPrefix(ref.DigestStr(), "sha256:")[:16])
	held, err := c.held(ctx, tag, a)
	if err != nil {
		return fmt.Errorf("keep %s: %w", ref, err)
	}
	if held == ref.DigestStr() {
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

// Exists returns nil if the registry has the image; the error wraps ErrNotFound if it has not.
func (c *Client) Exists(ctx context.Context, image string, a Access) error {
	ref, err := parse(image, a)
	if err != nil {
		return err
	}
	if _, err := c.head(ctx, ref, a); err != nil {
		return fmt.Errorf("find %s: %w", ref, err)
	}
	return nil
}

// MoveTag makes a tag hold an image that is in the tag's repository already, if the tag still holds what is expected: a
// digest, or nothing if that is empty. The error wraps ErrMoved if it holds something else, before or after.
//
// Registries have no way to compare and set, so two who move a tag within the same few milliseconds may both succeed.
// The later one wins, and both leave a whole image behind.
func (c *Client) MoveTag(ctx context.Context, tag, digest, expect string, a Access) error {
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
	held, err := c.held(ctx, target, a)
	switch {
	case err != nil:
		return fmt.Errorf("move tag %s: %w", target, err)
	case held == digest:
		return nil
	case held != expect:
		return fmt.Errorf("move tag %s: %w: it holds %s, expected was %s", target, ErrMoved, orNothing(held),
			orNothing(expect))
	}
	if err := remote.Tag(target, image, options...); err != nil {
		return fmt.Errorf("move tag %s: %w", target, classify(err))
	}
	held, err = c.held(ctx, target, a)
	switch {
	case err != nil:
		return fmt.Errorf("look at tag %s again: %w", target, err)
	case held != digest:
		return fmt.Errorf("move tag %s: %w: it was moved to %s at the same time", target, ErrMoved,
			orNothing(held))
	}
	return nil
}

// Held returns the digest that a tag holds; empty if there is no such tag.
func (c *Client) Held(ctx context.Context, tag string, a Access) (string, error) {
	target, err := parseTag(tag, a)
	if err != nil {
		return "", err
	}
	held, err := c.held(ctx, target, a)
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", target, err)
	}
	return held, nil
}

func (c *Client) held(ctx context.Context, tag name.Reference, a Access) (string, error) {
	digest, err := c.head(ctx, tag, a)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return digest, err
}

func orNothing(digest string) string {
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
	parsed, err := parse(ref, a)
	if err != nil {
		return name.Tag{}, err
	}
	tag, ok := parsed.(name.Tag)
	if !ok {
		return name.Tag{}, fmt.Errorf("%w: %s is a digest, a tag is needed to push to", ErrBadSource, ref)
	}
	return tag, nil
}

// Repository is the repository of an image reference, without tag and digest.
func Repository(ref string) (string, error) {
	parsed, err := parse(ref, Access{})
	if err != nil {
		return "", err
	}
	return parsed.Context().Name(), nil
}
