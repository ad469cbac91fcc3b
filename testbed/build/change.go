// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// change is how a group's programs are compiled with a module that differs from what the module proxy has.
type change struct {
	module string
	// files are added: content by path in the module. It may embed files that its own release process generates.
	files map[string]string
	// edits are of files that are there.
	edits []edit
}

// edit replaces a part of a file.
type edit struct{ file, from, to string }

// errOtherSource says that an edit was made for another version of the module.
var errOtherSource = errors.New("the file is not as the edit expects it")

// apply edits the file of the module in dir.
func (e edit) apply(dir string) error {
	path := filepath.Join(dir, filepath.FromSlash(e.file))
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read file to edit: %w", err)
	}
	if n := strings.Count(string(text), e.from); n != 1 {
		return fmt.Errorf("edit %s: %q is there %d times: %w", e.file, e.from, n, errOtherSource)
	}
	if err := os.Remove(path); err != nil { // the copy is read-only, as the module cache is
		return fmt.Errorf("replace file: %w", err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), e.from, e.to, 1)), 0o600); err != nil {
		return fmt.Errorf("write edited file: %w", err)
	}
	return nil
}

// apply copies the module into folder, changes the copy, and returns the flag with which the go command of the module
// in source uses it.
func (c change) apply(ctx context.Context, source, folder string) (string, error) {
	dir, err := goModule{dir: source}.requiredDir(ctx, c.module)
	if err != nil {
		return "", err
	}
	copied := filepath.Join(folder, "module")
	if err := c.copyChanged(dir, copied); err != nil {
		return "", err
	}
	// The go command finds go.sum beside the file that -modfile names.
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", fmt.Errorf("read module: %w", err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return "", fmt.Errorf("write module: %w", err)
		}
	}
	modFile := filepath.Join(folder, "go.mod")
	edit := goModule{dir: folder}
	if _, err := edit.run(ctx, "mod", "edit", "-replace", c.module+"="+copied, modFile); err != nil {
		return "", err
	}
	return "-modfile=" + modFile, nil
}

// copyChanged copies the module in dir and changes the copy.
func (c change) copyChanged(dir, copied string) error {
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		return fmt.Errorf("copy %s: %w", c.module, err)
	}
	for path, content := range c.files {
		path = filepath.Join(copied, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("create folder: %w", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return fmt.Errorf("add file to %s: %w", c.module, err)
		}
	}
	for _, e := range c.edits {
		if err := e.apply(copied); err != nil {
			return fmt.Errorf("change %s: %w", c.module, err)
		}
	}
	return nil
}
