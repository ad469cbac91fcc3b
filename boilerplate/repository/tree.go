// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package repository reads and writes the files of one repository, and calls the git program. It must not run programs
// of the repository, such as hooks, make or scripts. Paths and symbolic links cannot lead out of the folder.
package repository

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
	"github.com/bellwether-dev/bellwether/boilerplate/update"
)

// maxBytes is the maximum size of a file that is read.
const maxBytes = 64 << 20

// Tree is the folder of a repository.
type Tree struct {
	Dir  string // as the caller passed it
	root *os.Root
}

// OpenTree opens a folder. The caller must close the tree.
func OpenTree(dir string) (*Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open repository: %w", err)
	}
	return &Tree{Dir: dir, root: root}, nil
}

// Close closes the folder.
func (t *Tree) Close() error { return t.root.Close() }

// Read returns a file, or nil if it does not exist. If the path is not a regular file, or is behind a symbolic link or
// in a submodule, the result has an obstacle.
func (t *Tree) Read(name string) (*update.File, error) {
	for i, r := range name {
		if r != '/' {
			continue
		}
		info, err := t.root.Lstat(name[:i])
		if err != nil {
			return nil, ignoreMissing(name, err)
		}
		if obstacle := t.describeObstacle(name[:i], info); obstacle != folderObstacle {
			return &update.File{Obstacle: cmp.Or(obstacle, "a file") + ", " + name[:i] + ","}, nil
		}
	}
	info, err := t.root.Lstat(name)
	if err != nil {
		return nil, ignoreMissing(name, err)
	}
	if obstacle := t.describeObstacle(name, info); obstacle != "" {
		return &update.File{Obstacle: obstacle}, nil
	}
	text, err := t.root.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return &update.File{Text: string(text), Executable: info.Mode()&0o100 != 0}, nil
}

// ignoreMissing returns nil if a file does not exist, and an error about the file otherwise.
func ignoreMissing(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("read %s: %w", name, err)
}

const folderObstacle = "a folder"

// describeObstacle returns a text about the object at a path; empty for a regular file.
func (t *Tree) describeObstacle(name string, info fs.FileInfo) string {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return "a symbolic link"
	case info.IsDir():
		if _, err := t.root.Lstat(path.Join(name, ".git")); err == nil {
			return "a submodule"
		}
		return folderObstacle
	case !info.Mode().IsRegular():
		return "a device or a pipe"
	case info.Size() > maxBytes:
		return fmt.Sprintf("a file of more than %d MiB", maxBytes>>20)
	}
	return ""
}

// ReadAll returns the existing files at the given paths.
func (t *Tree) ReadAll(paths []string) (map[string]*update.File, error) {
	out := map[string]*update.File{}
	for _, name := range paths {
		f, err := t.Read(name)
		if err != nil {
			return nil, err
		}
		if f != nil {
			out[name] = f
		}
	}
	return out, nil
}

// ReadText returns the text of one of this program's own files, or nil if it does not exist. A link is an error.
func (t *Tree) ReadText(name string) ([]byte, error) {
	f, err := t.Read(name)
	switch {
	case err != nil || f == nil:
		return nil, err
	case f.Obstacle != "":
		return nil, fmt.Errorf("read %s: %s is in the way", name, f.Obstacle)
	}
	return []byte(f.Text), nil
}

// ReadBase returns the texts in the base folder, by the paths of the files that they belong to.
func (t *Tree) ReadBase(lock *subscription.Lock) (map[string]string, error) {
	out := map[string]string{}
	if lock == nil {
		return out, nil
	}
	for _, f := range lock.Files {
		text, err := t.ReadText(toBasePath(f.Path))
		if err != nil {
			return nil, err
		}
		if text != nil {
			out[f.Path] = string(text)
		}
	}
	return out, nil
}

// toBasePath returns the path of the base text of a file.
func toBasePath(name string) string { return subscription.BaseFolder + "/" + name }

// temporaryFile is the file that a text is written to before it replaces the actual file. A leftover of a killed
// process is overwritten.
const temporaryFile = subscription.Folder + "/update.tmp"

// writeFile writes a file completely or not at all.
func (t *Tree) writeFile(name string, f update.File) error {
	if found, err := t.Read(name); err != nil {
		return err
	} else if found != nil && found.Obstacle != "" {
		return fmt.Errorf("write %s: %s is in the way", name, found.Obstacle)
	}
	mode := fs.FileMode(0o644)
	if f.Executable {
		mode = 0o755
	}
	err := errors.Join(t.root.MkdirAll(path.Dir(name), 0o755), t.root.MkdirAll(subscription.Folder, 0o755))
	if err == nil {
		err = t.writeTemporary(f.Text, mode)
	}
	if err == nil {
		err = t.root.Rename(temporaryFile, name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// writeTemporary writes a text to the temporary file.
func (t *Tree) writeTemporary(text string, mode fs.FileMode) error {
	if err := t.root.Remove(temporaryFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := t.root.OpenFile(temporaryFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// removeFile removes a file, and its folders if they are empty.
func (t *Tree) removeFile(name string) error {
	if err := t.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if t.root.Remove(dir) != nil { // the folder is not empty
			break
		}
	}
	return nil //nolint:nilerr // a folder that is not empty stays
}
