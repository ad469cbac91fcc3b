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

// ErrNotReplaceable means that the output folder exists and is not an earlier output.
var ErrNotReplaceable = errors.New("in the way")

// Write writes either all files or none into a folder: it writes them into a temporary folder beside it, which it then
// renames. An existing bundle is replaced completely. If the path is a file, or a folder with other content,
// the error wraps ErrNotReplaceable.
func Write(dir string, files Files) error {
	return Replace(dir, annotationsFile, func(temporary string) error {
		for _, name := range sortKeys(files) {
			if err := writeFile(filepath.Join(temporary, filepath.FromSlash(name)), files[name]); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeFile writes a file and creates its folder.
func writeFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // a bundle is for everybody to read
		return fmt.Errorf("make folder: %w", err)
	}
	if err := os.WriteFile(name, content, 0o644); err != nil { //nolint:gosec // a bundle is for everybody to read
		return fmt.Errorf("write file: %w", err)
	}
	return nil
}

// Replace lets fill write a temporary folder beside dir, and then renames it to dir. A folder that has the file mark is
// an earlier output and is replaced. If the program is killed, dir is unchanged or, between two renames, missing; it
// never has partial content.
func Replace(dir, mark string, fill func(temporary string) error) (err error) {
	dir = filepath.Clean(dir)
	if err := checkReplaceable(dir, mark); err != nil {
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
	newDir, oldDir := filepath.Join(temporary, "new"), filepath.Join(temporary, "old")
	if err := os.Mkdir(newDir, 0o755); err != nil { //nolint:gosec // a bundle is for everybody to read
		return fmt.Errorf("make folder: %w", err)
	}
	if err := fill(newDir); err != nil {
		return err
	}
	if err := os.Rename(dir, oldDir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("put old folder aside: %w", err)
	}
	if err := os.Rename(newDir, dir); err != nil {
		return fmt.Errorf("name new folder: %w", errors.Join(err, ignoreMissing(os.Rename(oldDir, dir))))
	}
	return nil
}

// ignoreMissing returns nil for fs.ErrNotExist, and other errors unchanged.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// checkReplaceable returns an error unless dir is missing, empty, or an earlier output, which has the file mark.
func checkReplaceable(dir, mark string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %s cannot be replaced: %w", ErrNotReplaceable, dir, err)
	case len(entries) == 0:
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(mark))); err != nil {
		return fmt.Errorf("%w: %s has files, but no %s, so it was not made by this command", ErrNotReplaceable, dir,
			mark)
	}
	return nil
}
