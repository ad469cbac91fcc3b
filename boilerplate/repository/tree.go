// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package repository reads and writes the files of one repository, and calls the git program for everything that is
// git's. It runs nothing of the repository: no hooks, no make, no script. No path and no symbolic link leads it out of
// the folder.
package repository

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
	"github.com/bellwether-dev/bellwether/boilerplate/update"
)

// maxBytes bounds what is read of one file.
const maxBytes = 16 << 20

// Tree is the folder of a repository.
type Tree struct {
	// Dir is the folder as it was given.
	Dir  string
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
		found, err := t.obstacleOnTheWay(name[:i])
		if found != nil || err != nil {
			return found, err
		}
	}
	info, err := t.root.Lstat(name)
	switch {
	case isMissing(err):
		return nil, nil //nolint:nilnil // there is none
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return &update.File{Obstacle: "a symbolic link"}, nil
	case info.IsDir():
		return &update.File{Obstacle: t.folder(name)}, nil
	case !info.Mode().IsRegular():
		return &update.File{Obstacle: "a device or a pipe"}, nil
	case info.Size() > maxBytes:
		return &update.File{Obstacle: fmt.Sprintf("a file of more than %d MiB", maxBytes>>20)}, nil
	}
	text, err := t.readFile(name)
	if err != nil {
		return nil, err
	}
	return &update.File{Text: string(text), Executable: info.Mode()&0o100 != 0}, nil
}

// isMissing reports whether there is nothing at a path. A file in the place of a folder is found on the way.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func (t *Tree) readFile(name string) ([]byte, error) {
	f, err := t.root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxBytes))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return text, nil
}

// obstacleOnTheWay returns what is at the place of a folder; nil if it is a folder of this repository, or missing.
func (t *Tree) obstacleOnTheWay(dir string) (*update.File, error) {
	info, err := t.root.Lstat(dir)
	switch {
	case isMissing(err):
		return nil, nil //nolint:nilnil // nothing is in the way
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", dir, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return &update.File{Obstacle: "a symbolic link, " + dir + ","}, nil
	case !info.IsDir():
		return &update.File{Obstacle: "a file, " + dir + ","}, nil
	case t.folder(dir) == submodule:
		return &update.File{Obstacle: submodule + ", " + dir + ","}, nil
	}
	return nil, nil //nolint:nilnil // nothing is in the way
}

const submodule = "a submodule"

// folder says what a folder is.
func (t *Tree) folder(dir string) string {
	if _, err := t.root.Lstat(path.Join(dir, ".git")); err == nil {
		return submodule
	}
	return "a folder"
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
		if f.Kind != convention.Merged && f.Kind != convention.Shared {
			continue
		}
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
	if err := t.root.Remove(temporary); err != nil && !isMissing(err) {
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
	if err := t.root.Remove(name); err != nil && !isMissing(err) {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if t.root.Remove(dir) != nil { // it is not empty
			break
		}
	}
	return nil
}

// isInside reports whether a path is below one of the folders.
func isInside(name string, folders []string) (string, bool) {
	for _, folder := range folders {
		if name == folder || strings.HasPrefix(name, folder+"/") {
			return folder, true
		}
	}
	return "", false
}
