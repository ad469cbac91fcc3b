// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

// Images reads bundle images, as *oci.Client does.
type Images interface {
	Bundle(ctx context.Context, image string, a oci.Access) (fs.FS, string, error)
}

// Bundles reads the bundles that ladders name.
type Bundles struct {
	Images Images
	Access oci.Access
	// CacheDir keeps bundles that were read from registries, by digest, and rendered documents, by the hash of
	// everything that they depend on: this program, the ladder, and the bundles. Empty means no cache.
	CacheDir string
	// Repository, if set, is the repository to which bundle folders will be pushed. The documents of a bundle folder
	// then name the image that this push will create.
	Repository string
}

// readContent reads the bundle image or, if image is empty, the bundle folder dir below root. It decodes the bundle
// after the channel decode is closed, to limit memory. The content has an image only for a folder that will be pushed
// to b.Repository.
func (b *Bundles) readContent(ctx context.Context, root *os.Root, image, dir string,
	decode <-chan struct{}) (compile.Content, error) {
	switch {
	case image != "":
		bundle, err := b.fetch(ctx, image, decode)
		return compile.Content{Bundle: bundle}, err
	case dir == "":
		return compile.Content{}, errors.New("it has neither an image nor a path")
	}
	// Opening a file of an os.Root opens all folders from that root, so a root of the bundle folder is faster.
	sub, err := root.OpenRoot(filepath.FromSlash(path.Clean(dir)))
	if err != nil {
		return compile.Content{}, fmt.Errorf("open bundle folder: %w", err)
	}
	defer func() { _ = sub.Close() }()
	bundle, err := readAfterSignal(ctx, sub.FS(), decode)
	if err != nil {
		return compile.Content{}, fmt.Errorf("read bundle folder %s: %w", dir, err)
	}
	content := compile.Content{Bundle: bundle}
	if b.Repository != "" {
		content.Image, err = predictImage(filepath.Join(root.Name(), filepath.FromSlash(dir)), b.Repository)
	}
	return content, err
}

// readAfterSignal decodes a bundle after the channel decode is closed.
func readAfterSignal(ctx context.Context, files fs.FS, decode <-chan struct{}) (*bundles.Bundle, error) {
	select {
	case <-decode:
		return bundles.Read(files)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// predictImage returns the reference, with digest, of the image that pushing a bundle folder will create.
func predictImage(dir, repository string) (string, error) {
	image, err := oci.BundleImage(dir)
	if err != nil {
		return "", err
	}
	digest, err := image.Digest()
	if err != nil {
		return "", fmt.Errorf("digest bundle %s: %w", dir, err)
	}
	return repository + "@" + digest.String(), nil
}

// fetch reads a bundle image from the cache or, if the cache does not have it, from the registry, and adds it to the
// cache. An image without a digest is not cached, because its content can change.
func (b *Bundles) fetch(ctx context.Context, image string, decode <-chan struct{}) (*bundles.Bundle, error) {
	digest := ladder.Digest(image)
	cached := filepath.Join(b.CacheDir, strings.ReplaceAll(digest, ":", "-"))
	if b.CacheDir != "" && digest != "" {
		if _, err := os.Stat(cached); err == nil {
			if bundle, err := readAfterSignal(ctx, os.DirFS(cached), decode); err == nil {
				return bundle, nil
			}
		}
	}
	if b.Images == nil {
		return nil, fmt.Errorf("%w: there is no registry to read %s from", oci.ErrBadSource, image)
	}
	files, _, err := b.Images.Bundle(ctx, image, b.Access)
	if err != nil {
		return nil, err
	}
	bundle, err := readAfterSignal(ctx, files, decode)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", image, err)
	}
	if b.CacheDir != "" && digest != "" {
		// A cache that cannot be written is not an error.
		_ = copyToCache(cached, files)
	}
	return bundle, nil
}

// copyToCache copies a bundle to the cache; an incomplete copy is never visible there.
func copyToCache(dir string, files fs.FS) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return fmt.Errorf("make cache: %w", err)
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".new-*")
	if err != nil {
		return fmt.Errorf("make cache: %w", err)
	}
	defer func() { _ = os.RemoveAll(temp) }()
	if err := os.CopyFS(temp, files); err != nil {
		return fmt.Errorf("fill cache: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("replace cache entry: %w", err)
	}
	if err := os.Rename(temp, dir); err != nil {
		return fmt.Errorf("fill cache: %w", err)
	}
	return nil
}

// maxIcon bounds the size of a package's icon, which is part of the catalog.
const maxIcon = 256 << 10

// iconTypes are the media types that OLM shows, by file extension.
var iconTypes = map[string]string{
	".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif",
}

// readIcon reads the icon that a ladder names; nil if it names none. The error wraps ladder.ErrInvalid if OLM does not
// show icons of its type, or if it is larger than maxIcon.
func readIcon(dir string, l *ladder.Ladder) (*catalogs.Icon, error) {
	if l.Icon == "" {
		return nil, nil
	}
	kind, ok := iconTypes[strings.ToLower(path.Ext(l.Icon))]
	if !ok {
		return nil, fmt.Errorf("%w: icon %s of package %q: use svg, png, jpg or gif", ladder.ErrInvalid, l.Icon,
			l.Package)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open catalog folder: %w", err)
	}
	defer func() { _ = root.Close() }()
	data, err := root.ReadFile(filepath.FromSlash(l.Icon))
	if err != nil {
		return nil, fmt.Errorf("read icon of package %q: %w", l.Package, err)
	}
	if len(data) > maxIcon {
		return nil, fmt.Errorf("%w: icon %s of package %q has more than %d KiB", ladder.ErrInvalid, l.Icon, l.Package,
			maxIcon>>10)
	}
	return &catalogs.Icon{Data: data, MediaType: kind}, nil
}
