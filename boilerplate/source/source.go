// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package source loads conventions from this program, from a folder, or from a registry. Content of a registry is read
// by digest, and its signature is checked before it is unpacked.
package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

var (
	// ErrMoved means that a version has different content than when it was rendered.
	ErrMoved = errors.New("the version has another content than before")
	// ErrNotFound means that a source does not have the convention or the version.
	ErrNotFound = errors.New("convention not found")
)

// Loader loads conventions.
type Loader struct {
	Builtin fs.FS  // a folder for each convention of this program
	Dir     string // the repository; folders are relative to it
	// Keys are public keys. Content of a registry must be signed by one of them; if there are no keys, signatures are
	// not checked.
	Keys   [][]byte
	Access oci.Access
	Client *oci.Client // nil means a client without a cache
}

// Loaded is a loaded convention and its source, with version and digest.
type Loaded struct {
	*convention.Convention
	Use subscription.Use
}

// Load loads a convention. If use has a digest, Load returns the content with this digest, independent of the tag;
// otherwise it returns the current content of the source. locked is the convention that was rendered last, or nil: if
// the content of its version has changed, the error wraps ErrMoved. Folders and this program are excepted, because
// developers change them without a new version.
func (l *Loader) Load(ctx context.Context, use subscription.Use, locked *subscription.Locked) (*Loaded, error) {
	c, digest, err := l.readConvention(ctx, use)
	if err != nil {
		return nil, fmt.Errorf("convention %s: %w", use.Name, err)
	}
	if c.Name != use.Name {
		return nil, fmt.Errorf("convention %s: %w: %s has the convention %s", use.Name, ErrNotFound, use.Source, c.Name)
	}
	isRemote := strings.HasPrefix(use.Source, subscription.OCI)
	isSame := locked != nil && locked.Version == c.Version && locked.Source == use.Source
	if isRemote && isSame && locked.Digest != digest {
		return nil, fmt.Errorf("convention %s: %w: version %s was %s, and %s has %s", use.Name, ErrMoved, c.Version,
			locked.Digest, use.Source, digest)
	}
	if use.Version != "" && use.Version != c.Version {
		return nil, fmt.Errorf("convention %s: %w: %s has version %s, and not %s", use.Name, ErrNotFound, use.Source,
			c.Version, use.Version)
	}
	return &Loaded{c, subscription.Use{Name: c.Name, Source: use.Source, Version: c.Version, Digest: digest}}, nil
}

// readConvention reads a convention and returns its digest.
func (l *Loader) readConvention(ctx context.Context, use subscription.Use) (*convention.Convention, string, error) {
	if image, ok := strings.CutPrefix(use.Source, subscription.OCI); ok {
		return l.readImage(ctx, image, use.Digest)
	}
	var files fs.FS
	if use.Source == subscription.Builtin {
		if _, err := fs.Stat(l.Builtin, use.Name); err != nil {
			return nil, "", fmt.Errorf("%w: this program has none of that name", ErrNotFound)
		}
		files, _ = fs.Sub(l.Builtin, use.Name) // fs.Stat has checked the name
	} else {
		dir := filepath.FromSlash(use.Source)
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(l.Dir, dir)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, "", fmt.Errorf("%w: %w", ErrNotFound, err)
		}
		defer func() { _ = root.Close() }()
		files = root.FS()
	}
	c, err := convention.Load(files)
	if err != nil {
		return nil, "", err
	}
	return c, c.Digest, nil
}

// readImage reads a convention from a registry. If digest is empty, the reference is resolved.
func (l *Loader) readImage(ctx context.Context, image, digest string) (*convention.Convention, string, error) {
	client := cmp.Or(l.Client, oci.NewClient(oci.Options{}))
	s := oci.Source{Image: image, Access: l.Access, Verification: oci.Verification{PublicKeys: l.Keys}}
	var err error
	if digest == "" {
		digest, err = client.Resolve(ctx, s)
	} else {
		s.Image, err = oci.Repository(image)
	}
	if err != nil {
		return nil, "", err
	}
	files, err := client.Folder(ctx, s, digest, convention.MaxBytes)
	if err != nil {
		return nil, "", err
	}
	c, err := convention.FromFiles(files)
	return c, digest, err
}

// Push writes the convention in a folder to a registry, and returns the digest of its manifest.
func Push(ctx context.Context, dir, reference string, access oci.Access) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("push convention: %w", err)
	}
	defer func() { _ = root.Close() }()
	if _, err := convention.Load(root.FS()); err != nil {
		return "", fmt.Errorf("push convention %s: %w", dir, err)
	}
	return oci.NewClient(oci.Options{}).PushFolder(ctx, dir, reference, access)
}
