// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package charts carries the Helm chart of hub and agent inside the binary, so
// that `bellwether install hub` and `bellwether fleet join` install exactly the
// version that they belong to, without a chart repository. It renders nothing:
// that is Helm's job.
package charts

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

//go:embed all:bellwether
var files embed.FS

// Load returns the chart. Its CRDs are in CRDObjects: Helm installs them and
// leaves them alone afterwards, so who upgrades the hub applies them first. The
// agent needs none of them.
func Load() (*chart.Chart, error) {
	var buffered []*loader.BufferedFile
	err := fs.WalkDir(files, "bellwether", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		buffered = append(buffered, &loader.BufferedFile{Name: strings.TrimPrefix(name, "bellwether/"), Data: data})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read embedded chart: %w", err)
	}
	loaded, err := loader.LoadFiles(buffered)
	if err != nil {
		return nil, fmt.Errorf("load embedded chart: %w", err)
	}
	return loaded, nil
}
