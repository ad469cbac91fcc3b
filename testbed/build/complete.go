// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// completion adds files to a module that cannot be compiled as the module proxy has it, because it embeds files that
// its own release process generates.
type completion struct {
	module string
	files  map[string]string // content by path in the module
}

// complete copies the module into folder, adds the files, and returns the flag with which the go command of the module
// in source uses the copy.
func complete(ctx context.Context, source, folder string, c completion) (string, error) {
	dir, err := upstream(source).requiredDir(ctx, c.module)
	if err != nil {
		return "", err
	}
	copied := filepath.Join(folder, "module")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		return "", fmt.Errorf("copy %s: %w", c.module, err)
	}
	for path, content := range c.files {
		path = filepath.Join(copied, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", fmt.Errorf("create folder: %w", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return "", fmt.Errorf("add file to %s: %w", c.module, err)
		}
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
