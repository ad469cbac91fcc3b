// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package repository reads and writes the files of one repository, and calls the git program for everything that is
// git's. It runs nothing of the repository: no hooks, no make, no script. No path and no symbolic link leads it out of
// the folder.
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

// maxBytes bounds what is read of one file.
const maxBytes = 64 << 20

// Tree is the folder of a repository.
type Tree struct {
	Dir  string // as it was given
	root *os.Root
}

// OpenTree opens a folder. Close ends it.
func OpenTree(dir string) (*Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open repository: %w", err)
	}
	return &Tree{Dir: dir, root: root}, nil
}

// Close ends the use of the folder.
func (t *Tree) Close() error { return t.root.Close() }

// Read returns a file, nil if there is none. What is no file, or is behind a symbolic link or in a submodule, is
// returned with an obstacle.
func (t *Tree) Read(name string) (*update.File, error) {
	for i, r := range name {
		if r != '/' {
			continue
		}
		info, err := t.root.Lstat(name[:i])
		if err != nil {
			return nil, unlessMissing(name, err)
		}
		if is := t.obstacle(name[:i], info); is != folder {
			return &update.File{Obstacle: cmp.Or(is, "a file") + ", " + name[:i] + ","}, nil
		}
	}
	info, err := t.root.Lstat(name)
	if err != nil {
		return nil, unlessMissing(name, err)
	}
	if is := t.obstacle(name, info); is != "" {
		return &update.File{Obstacle: is}, nil
	}
	text, err := t.root.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return &update.File{Text: string(text), Executable: info.Mode()&0o100 != 0}, nil
}

// unlessMissing is an error about a file, nil if there is none.
func unlessMissing(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("read %s: %w", name, err)
}

const folder = "a folder"

// obstacle says what is at a path; empty for a file.
func (t *Tree) obstacle(name string, info fs.FileInfo) string {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return "a symbolic link"
	case info.IsDir():
		if _, err := t.root.Lstat(path.Join(name, ".git")); err == nil {
			return "a submodule"
		}
		return folder
	case !info.Mode().IsRegular():
		return "a device or a pipe"
	case info.Size() > maxBytes:
		return fmt.Sprintf("a file of more than %d MiB", maxBytes>>20)
	}
	return ""
}

// ReadAll reads the files at some paths, as far as they are there.
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

// Text returns the text of one of this program's own files, nil if there is none. A link is an error.
func (t *Tree) Text(name string) ([]byte, error) {
	f, err := t.Read(name)
	switch {
	case err != nil || f == nil:
		return nil, err
	case f.Obstacle != "":
		return nil, fmt.Errorf("read %s: %s is in the way", name, f.Obstacle)
	}
	return []byte(f.Text), nil
}

// Base returns the texts of the folder of bases, by the paths of the files that they are of.
func (t *Tree) Base(lock *subscription.Lock) (map[string]string, error) {
	out := map[string]string{}
	if lock == nil {
		return out, nil
	}
	for _, f := range lock.Files {
		text, err := t.Text(basePath(f.Path))
		if err != nil {
			return nil, err
		}
		if text != nil {
			out[f.Path] = string(text)
		}
	}
	return out, nil
}

func basePath(name string) string { return subscription.BaseFolder + "/" + name }

// temporary is where the text of a file is written before it takes the place of the file. What a killed process leaves
// there is overwritten by the next one.
const temporary = subscription.Folder + "/update.tmp"

// write writes a whole file, or nothing.
func (t *Tree) write(name string, f update.File) error {
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
		err = t.root.Rename(temporary, name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func (t *Tree) writeTemporary(text string, mode fs.FileMode) error {
	if err := t.root.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := t.root.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// remove removes a file, and the folders that are empty then.
func (t *Tree) remove(name string) error {
	if err := t.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if t.root.Remove(dir) != nil { // it is not empty
			break
		}
	}
	return nil //nolint:nilerr // a folder that is not empty stays
}
