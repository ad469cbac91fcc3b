// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command generate writes the dashboards where they are shipped: to out, in
// full, to the chart, on one line each, and as pictures of recorded data for the
// documentation. It runs in the folder of package dashboards, by go generate, and decides
// nothing.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bellwether-dev/bellwether/dashboards"
	"github.com/bellwether-dev/bellwether/dashboards/draw"
)

const (
	out   = "out"
	chart = "../charts/bellwether/files/dashboards"
	docs  = "../docs/images/dashboards"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate dashboards:", err)
		os.Exit(1)
	}
}

func run() error {
	for dir, pattern := range map[string]string{out: "*.json", chart: "*.json", docs: "*.svg"} {
		if err := empty(dir, pattern); err != nil {
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
		name := dashboards.FileName(d)
		data, err := draw.Recorded(strings.TrimSuffix(name, ".json"))
		if err != nil {
			return err
		}
		for file, content := range map[string][]byte{
			filepath.Join(out, name):                                      text,
			filepath.Join(chart, name):                                    line.Bytes(),
			filepath.Join(docs, strings.TrimSuffix(name, ".json")+".svg"): draw.SVG(d, data),
		} {
			if err := os.WriteFile(file, content, 0o644); err != nil { //nolint:gosec // dashboards are for everybody
				return fmt.Errorf("write dashboard: %w", err)
			}
		}
	}
	return nil
}

// empty removes the files of a folder, so that none outlives its dashboard.
func empty(dir, pattern string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // dashboards are for everybody
		return fmt.Errorf("make folder: %w", err)
	}
	old, err := filepath.Glob(filepath.Join(dir, pattern))
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
