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

	"github.com/bellwether-dev/bellwether/version"
)

// HostedViewPorts is how many ports of catalog views a hosted cluster gets unless the user names others, one for each
// operator. MaxViewPorts is how many the Service of hosted agents has at most: the chart refuses more.
const (
	HostedViewPorts = 30
	MaxViewPorts    = 500
)

//go:embed all:bellwether
var files embed.FS

// registry is where the command line of a release installs the images from; empty for what values.yaml names. The
// linker sets it.
var registry string

// Load returns the chart. In a program of a release its version, and so the tag of its images, is that of the release.
// Its CRDs are templates, which the values crds.enabled and crds.keep are about; Helm would never upgrade those of a
// chart's folder crds.
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
			if data, err = release.edit(strings.TrimPrefix(name, "bellwether/"), data); err != nil {
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
