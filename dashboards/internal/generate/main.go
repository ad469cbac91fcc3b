// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command generate writes each dashboard to the folder out, to the chart, and as a picture with recorded data to the
// documentation. The JSON in the chart has only one line. go generate runs it in the folder of package dashboards.
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

// run removes the generated files of all folders and writes them again: each dashboard as indented JSON, for the chart
// as JSON in one line, and as an SVG picture with recorded data.
func run() error {
	for dir, pattern := range map[string]string{out: "*.json", chart: "*.json", docs: "*.svg"} {
		if err := removeFiles(dir, pattern); err != nil {
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
		data, err := draw.LoadRecorded(strings.TrimSuffix(name, ".json"))
		if err != nil {
			return err
		}
		for file, content := range map[string][]byte{
			filepath.Join(out, name):                                      text,
			filepath.Join(chart, name):                                    line.Bytes(),
			filepath.Join(docs, strings.TrimSuffix(name, ".json")+".svg"): draw.SVG(d, data),
		} {
			if err := os.WriteFile(file, content, 0o644); err != nil { //nolint:gosec // all users may read dashboards
				return fmt.Errorf("write dashboard: %w", err)
			}
		}
	}
	return nil
}

// removeFiles removes the matching files of a folder, so that no file of a removed dashboard remains. It creates
// the folder if it does not exist.
func removeFiles(dir, pattern string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // all users may read dashboards
		return fmt.Errorf("make folder: %w", err)
	}
	oldFiles, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return fmt.Errorf("list dashboards: %w", err)
	}
	for _, file := range oldFiles {
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("remove dashboard: %w", err)
		}
	}
	return nil
}
