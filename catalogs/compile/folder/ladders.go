// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package folder

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

var (
	// ErrNoLadders means that a folder contains no ladder file.
	ErrNoLadders = errors.New("no ladder files")
	// ErrSeveralLadders means that a folder contains more than one ladder file.
	ErrSeveralLadders = errors.New("several ladder files")
	// ErrNoLadder means that a folder contains no ladder file of the package.
	ErrNoLadder = errors.New("no ladder file")
	// ErrOtherPackage means that a ladder file is about another package.
	ErrOtherPackage = errors.New("the ladder file is about another package")
)

// Path returns the path of a package's ladder file in a folder.
func Path(dir, pkg string) string { return filepath.Join(dir, pkg+".yaml") }

// Load reads one ladder file. Errors wrap ladder.ErrInvalid, or are errors of the file system.
func Load(path string) (*ladder.File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read ladder: %w", err)
	}
	f, err := ladder.Parse(path, text)
	if err != nil {
		return nil, err
	}
	if base := filepath.Base(path); base != f.Ladder.Package+filepath.Ext(base) {
		return nil, fmt.Errorf("%w: %s is about package %q: call it %s", ladder.ErrInvalid, path, f.Ladder.Package,
			f.Ladder.Package+".yaml")
	}
	return f, nil
}

// LoadAll reads all ladder files at the top of a folder, sorted by file name, and reports the problems of all files.
// It ignores hidden files, and files that are not YAML. Errors wrap ErrNoLadders, or are those of Load.
func LoadAll(dir string) ([]*ladder.File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read catalog folder: %w", err)
	}
	var files []*ladder.File
	var problems []error
	fileByPackage := map[string]string{}
	for _, e := range entries {
		extension := filepath.Ext(e.Name())
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") || (extension != ".yaml" && extension != ".yml") {
			continue
		}
		f, err := Load(filepath.Join(dir, e.Name()))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if other, ok := fileByPackage[f.Ladder.Package]; ok {
			problems = append(problems, fmt.Errorf("%w: %s and %s are about the same package", ladder.ErrInvalid, other,
				f.Name))
		}
		fileByPackage[f.Ladder.Package] = f.Name
		files = append(files, f)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%w in %s", ErrNoLadders, dir)
	}
	return files, nil
}

// LoadOnly reads the ladder file at place or, if place is a folder, the only ladder file in it. Errors wrap
// ErrSeveralLadders, or are those of Load and LoadAll.
func LoadOnly(place string) (*ladder.File, error) {
	if !isFolder(place) {
		return Load(place)
	}
	files, err := LoadAll(place)
	if err != nil {
		return nil, err
	}
	if len(files) > 1 {
		return nil, fmt.Errorf("%w in %s, for example %s", ErrSeveralLadders, place, files[0].Name)
	}
	return files[0], nil
}

// FindPackage reads the ladder file of a package: the file at place or, if place is a folder, the package's file in it.
// Errors wrap ErrNoLadder or ErrOtherPackage, or are those of Load.
func FindPackage(place, pkg string) (*ladder.File, error) {
	path := place
	if isFolder(place) {
		path = Path(place, pkg)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w for package %q in %s", ErrNoLadder, pkg, place)
		}
	}
	file, err := Load(path)
	if err != nil {
		return nil, err
	}
	if file.Ladder.Package != pkg {
		return nil, fmt.Errorf("%w: package %q in %s, package %q in the bundle", ErrOtherPackage, file.Ladder.Package,
			path, pkg)
	}
	return file, nil
}

// HasLadders reports whether a folder contains ladder files, as opposed to a compiled catalog.
func HasLadders(dir string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*.y*ml"))
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && bytes.Contains(text, []byte("kind: "+ladder.Kind))
	})
}

// Dir returns the folder to which paths in a ladder file are relative.
func Dir(f *ladder.File) string { return cmp.Or(filepath.Dir(f.Name), ".") }

func isFolder(place string) bool {
	info, err := os.Stat(place)
	return err == nil && info.IsDir()
}

// Save replaces a ladder file completely, or leaves the old file in place.
func Save(f *ladder.File) error {
	text, err := f.Format()
	if err != nil {
		return err
	}
	return replaceFile(f.Name, text)
}

// replaceFile writes a file beside its place and moves it there. A file with the same content is not changed.
func replaceFile(path string, text []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return nil
	}
	return replaceFileWith(path, bytes.NewReader(text))
}

// replaceFileWith writes content beside the path and moves it there, so that the file is never incomplete.
func replaceFileWith(path string, content io.Reader) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = io.Copy(temp, content)
	if err = errors.Join(err, temp.Chmod(readMode(path)), temp.Sync(), temp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// readMode returns the mode of the file that is replaced. A new file is readable by all users, like a catalog.
func readMode(path string) fs.FileMode {
	if info, err := os.Stat(path); err == nil {
		return info.Mode().Perm()
	}
	return 0o644
}
