// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command echo-bundles writes the sample operator's bundles into a directory,
// one folder per version.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/bellwether-dev/bellwether/testbed/echo/bundle"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: echo-bundles DIRECTORY")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "echo-bundles:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	for _, r := range bundle.Releases() {
		files, err := bundle.Files(r)
		if err != nil {
			return fmt.Errorf("render bundle %s: %w", r.Version, err)
		}
		for name, data := range files {
			file := filepath.Join(dir, r.Version, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return fmt.Errorf("make bundle folder: %w", err)
			}
			if err := os.WriteFile(file, data, 0o644); err != nil {
				return fmt.Errorf("write bundle file: %w", err)
			}
		}
	}
	return nil
}
