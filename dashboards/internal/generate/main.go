// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command generate writes the dashboards where they are shipped: to out, in
// full, and to the chart, on one line each. It runs in the folder of package
// dashboards, by go generate, and decides nothing.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bellwether-dev/bellwether/dashboards"
)

const (
	out   = "out"
	chart = "../charts/bellwether/files/dashboards"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate dashboards:", err)
		os.Exit(1)
	}
}

func run() error {
	for _, dir := range []string{out, chart} {
		if err := empty(dir); err != nil {
			return err
		}
	}
	for _, d := range dashboards.All() {
		text, err := dashboards.JSON(d)
		if err != nil {
			return err
		}
		var line bytes.Buffer
		if err := json.Compact(&line, text); err != nil {
			return fmt.Errorf("compact dashboard: %w", err)
		}
		line.WriteByte('\n')
		for dir, content := range map[string][]byte{out: text, chart: line.Bytes()} {
			if err := os.WriteFile(filepath.Join(dir, dashboards.FileName(d)), content, 0o644); err != nil { //nolint:gosec // dashboards are for everybody
				return fmt.Errorf("write dashboard: %w", err)
			}
		}
	}
	return nil
}

// empty removes the dashboards of a folder, so that none outlives its code.
func empty(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // dashboards are for everybody
		return fmt.Errorf("make folder: %w", err)
	}
	old, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return fmt.Errorf("list dashboards: %w", err)
	}
	for _, file := range old {
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("remove dashboard: %w", err)
		}
	}
	return nil
}
