// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package charts embeds the Helm chart of hub and agent in the binary, so that `bellwether
// install hub` and `bellwether fleet join` install their own version without a chart repository.
// It does not render the chart; Helm does.
package charts

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/bellwether-dev/bellwether/internal/version"
)

// HostedViewPorts is the default number of catalog view ports of a hosted cluster, one port for
// each operator. MaxViewPorts is the maximum number of ports of the Service of hosted agents:
// the chart refuses more ports.
const (
	HostedViewPorts = 30
	MaxViewPorts    = 500
)

//go:embed all:bellwether
var files embed.FS

// registry is the registry from which the command line of a release installs the images; empty
// for the registry in values.yaml. The linker sets it.
var registry string

// Load returns the chart. In the program of a release, the version of the chart, and
// therefore the tag of its images, is the version of the release. The chart's CRDs are
// templates, which depend on the values crds.enabled and crds.keep. Helm would never upgrade
// CRDs in the chart's folder crds.
func Load() (*chart.Chart, error) {
	var buffered []*loader.BufferedFile
	released, isRelease := version.Release()
	err := fs.WalkDir(files, "bellwether", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		if isRelease {
			release := Release{Version: released, Registry: registry}
			if data, err = release.editFile(strings.TrimPrefix(name, "bellwether/"), data); err != nil {
				return err
			}
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
