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

// walkDirectory visits the regular files below a directory in the order of their names, without hidden files
// and directories. It follows links that stay within the directory, because the files of a mounted ConfigMap
// are such links.
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

// visitFile calls visit for a file. The error wraps ErrBadSource if the name is not a regular file, or a link to one.
func visitFile(root *os.Root, name string, visit func(string, int64, io.Reader) error) error {
	// Stat comes first, because opening a named pipe would wait until another process writes to it.
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

// directoryHash is a hash of names and contents. It does not depend on times, owners or the order of reading.
type directoryHash struct {
	hash hash.Hash
}

func newDirectoryHash() directoryHash { return directoryHash{sha256.New()} }

// add adds the hash of a file's content, because the content itself could look like further files.
func (h directoryHash) add(name string, content hash.Hash) {
	h.hash.Write(fmt.Appendf(nil, "%x  %q\n", content.Sum(nil), name))
}

func (h directoryHash) String() string { return "sha256:" + hex.EncodeToString(h.hash.Sum(nil)) }

// digestDirectory returns the digest of the files in a directory.
func digestDirectory(dir string) (string, error) {
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

// openDirectory returns the files of a directory. A walk fails with ErrDigestMismatch if they do not have the digest,
// and with ErrTooLarge if they have more than limit bytes. An error of visit is returned only if the digest is right,
// because wrong content can be its cause.
func openDirectory(dir, digest string, limit int64) catalogs.Files {
	return func(visit func(string, io.Reader) error) error {
		sum := newDirectoryHash()
		budget := &budget{remaining: limit}
		var visitErr error
		err := walkDirectory(dir, func(name string, _ int64, content io.Reader) error {
			file := sha256.New()
			hashed := io.TeeReader(budget.limitReader(content), file)
			if visitErr == nil {
				visitErr = visit(name, hashed)
			}
			// The digest needs the rest of the file, even if visit did not read it.
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
			return visitErr
		}
	}
}

// budget bounds the bytes that are read of a whole catalog.
type budget struct {
	remaining int64
}

func (b *budget) limitReader(r io.Reader) io.Reader { return budgetReader{r, b} }

type budgetReader struct {
	io.Reader
	budget *budget
}

func (r budgetReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.budget.remaining -= int64(n)
	if r.budget.remaining < 0 {
		return 0, fmt.Errorf("%w: it exceeds the limit for reading", ErrTooLarge)
	}
	return n, err
}
