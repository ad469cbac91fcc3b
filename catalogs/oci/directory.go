// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// walkDirectory visits the regular files below a directory in the order of their names. Hidden files and directories
// are left out. Links are followed as long as they stay within the directory, as the files of a mounted ConfigMap do.
func walkDirectory(dir string, visit func(name string, size int64, content io.Reader) error) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open directory: %w: %w", ErrNotFound, err)
	}
	if err != nil {
		return fmt.Errorf("open directory: %w", err)
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("read directory: %w", err)
		case name != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		return visitFile(root, name, visit)
	})
}

func visitFile(root *os.Root, name string, visit func(string, int64, io.Reader) error) error {
	// To open a named pipe would wait for whoever writes to it.
	info, err := root.Stat(name)
	if err != nil {
		return fmt.Errorf("stat file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is neither a file nor a directory", ErrBadSource, name)
	}
	f, err := root.Open(name)
	if err != nil {
		return fmt.Errorf("open file: %w", err)
	}
	defer func() { _ = f.Close() }()
	return visit(name, info.Size(), f)
}

// directoryHash is a hash of names and contents; it does not depend on times, owners or the order of reading.
type directoryHash struct {
	hash hash.Hash
}

func newDirectoryHash() directoryHash { return directoryHash{sha256.New()} }

// add hashes the content by itself first, so that no two lists of files look alike.
func (h directoryHash) add(name string, content hash.Hash) {
	h.hash.Write(fmt.Appendf(nil, "%x  %q\n", content.Sum(nil), name))
}

func (h directoryHash) String() string { return "sha256:" + hex.EncodeToString(h.hash.Sum(nil)) }

func directoryDigest(dir string) (string, error) {
	sum := newDirectoryHash()
	err := walkDirectory(dir, func(name string, _ int64, content io.Reader) error {
		file := sha256.New()
		if _, err := io.Copy(file, content); err != nil {
			return fmt.Errorf("read file %q: %w", name, err)
		}
		sum.add(name, file)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("digest %s: %w", dir, err)
	}
	return sum.String(), nil
}

func openDirectory(dir, digest string, limit int64) catalogs.Files {
	return func(visit func(string, io.Reader) error) error {
		sum := newDirectoryHash()
		budget := &budget{left: limit}
		var broken error
		err := walkDirectory(dir, func(name string, _ int64, content io.Reader) error {
			file := sha256.New()
			hashed := io.TeeReader(budget.reader(content), file)
			if broken == nil {
				broken = visit(name, hashed)
			}
			// The rest counts for the digest even if the visitor did not want it.
			if _, err := io.Copy(io.Discard, hashed); err != nil {
				return fmt.Errorf("read file %q: %w", name, err)
			}
			sum.add(name, file)
			return nil
		})
		switch {
		case err != nil:
			return err
		case sum.String() != digest:
			return fmt.Errorf("%w: expected %s, but %s is %s", ErrDigestMismatch, digest, dir, sum)
		default:
			return broken
		}
	}
}

// budget bounds what is read of a whole catalog.
type budget struct {
	left int64
}

func (b *budget) reader(r io.Reader) io.Reader { return budgetReader{r, b} }

type budgetReader struct {
	io.Reader
	budget *budget
}

func (r budgetReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.budget.left -= int64(n)
	if r.budget.left < 0 {
		return 0, fmt.Errorf("%w: there is more of it than may be read", ErrTooLarge)
	}
	return n, err
}
