// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrInTheWay says that something that is no earlier output is where the output should go.
var ErrInTheWay = errors.New("in the way")

// Write writes the files into a folder, with all of them or none: they are written beside it and then renamed. A bundle
// that is there already is replaced as a whole; anything else that is there, but for an empty folder, is ErrInTheWay.
func Write(dir string, files Files) error {
	return Replace(dir, annotationsFile, func(temporary string) error {
		for _, name := range sortedKeys(files) {
			if err := writeFile(filepath.Join(temporary, filepath.FromSlash(name)), files[name]); err != nil {
				return err
			}
		}
		return nil
	})
}

func writeFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // a bundle is for everybody to read
		return fmt.Errorf("make folder: %w", err)
	}
	if err := os.WriteFile(name, content, 0o644); err != nil { //nolint:gosec // a bundle is for everybody to read
		return fmt.Errorf("write file: %w", err)
	}
	return nil
}

// Replace lets fill write a folder under another name beside dir, and then gives it the name dir. A folder that has the
// file mark is an earlier output and is replaced. Whoever kills the program in between leaves dir as it was, or,
// between two renames, without that name; never half of anything under it.
func Replace(dir, mark string, fill func(temporary string) error) (err error) {
	dir = filepath.Clean(dir)
	if err := mayReplace(dir, mark); err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil { //nolint:gosec // as a user's mkdir -p
		return fmt.Errorf("make folder: %w", err)
	}
	temporary, err := os.MkdirTemp(parent, "."+strings.TrimLeft(filepath.Base(dir), ".")+".new-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	next, old := filepath.Join(temporary, "new"), filepath.Join(temporary, "old")
	if err := os.Mkdir(next, 0o755); err != nil { //nolint:gosec // a bundle is for everybody to read
		return fmt.Errorf("make folder: %w", err)
	}
	if err := fill(next); err != nil {
		return err
	}
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("put old folder aside: %w", err)
	}
	if err := os.Rename(next, dir); err != nil {
		return fmt.Errorf("name new folder: %w", errors.Join(err, ignoreMissing(os.Rename(old, dir))))
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func mayReplace(dir, mark string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %s cannot be replaced: %w", ErrInTheWay, dir, err)
	case len(entries) == 0:
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(mark))); err != nil {
		return fmt.Errorf("%w: %s has files, but no %s, so it was not made by this command", ErrInTheWay, dir, mark)
	}
	return nil
}
