// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Registry is where values.yaml expects the images.
const Registry = "ghcr.io/bellwether-dev/bellwether"

// Images are the names of the images that the chart runs, below the registry.
var Images = []string{"hub", "agent"}

// Release says what the chart of a release names.
type Release struct {
	// Version of the chart and of what it installs, without a "v".
	Version string
	// Registry is the repository that the images are below; empty for the default.
	Registry string
	// Digests of images by their names. Those that are not there are named by their tag, the version.
	Digests map[string]string
}

// errNoMatch says that a file of the chart is not written as edit expects it.
var errNoMatch = errors.New("the chart's file is not as expected")

var (
	versionLines = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)
	imageLines   = regexp.MustCompile(`(?m)^( +repository: )` + regexp.QuoteMeta(Registry) +
		`/(\w+)\n((?:.*\n)*?)( +digest: )""$`)
)

// edit returns what a file of the chart is in the release. Comments stay.
func (r Release) edit(name string, text []byte) ([]byte, error) {
	switch name {
	case "Chart.yaml":
		if n := len(versionLines.FindAll(text, -1)); n != 2 {
			return nil, fmt.Errorf("%w: %s has %d lines with versions, want 2", errNoMatch, name, n)
		}
		return versionLines.ReplaceAll(text, []byte("$1: "+r.Version)), nil
	case "values.yaml":
		return r.editImages(name, text)
	}
	return text, nil
}

func (r Release) editImages(name string, text []byte) ([]byte, error) {
	registry := r.Registry
	if registry == "" {
		registry = Registry
	}
	found := map[string]bool{}
	text = imageLines.ReplaceAllFunc(text, func(match []byte) []byte {
		m := imageLines.FindSubmatch(match)
		image := string(m[2])
		found[image] = true
		return fmt.Appendf(nil, "%s%s/%s\n%s%s%q", m[1], registry, image, m[3], m[4], r.Digests[image])
	})
	for _, image := range Images {
		if !found[image] {
			return nil, fmt.Errorf("%w: %s does not name the image %s", errNoMatch, name, image)
		}
	}
	return text, nil
}

// Package writes the chart of a release as Helm packages one. The same release at the same time gives the same bytes.
func (r Release) Package(to io.Writer, at time.Time) error {
	compressed := gzip.NewWriter(to)
	archive := tar.NewWriter(compressed)
	write := func(name string) error {
		text, err := files.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read chart: %w", err)
		}
		if text, err = r.edit(strings.TrimPrefix(name, "bellwether/"), text); err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text)), ModTime: at,
			Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if _, err := archive.Write(text); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		return nil
	}
	err := fs.WalkDir(files, "bellwether", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return write(name)
	})
	return errors.Join(err, archive.Close(), compressed.Close())
}

// CRDs returns all CRDs as one YAML file, for those who apply them with kubectl.
func CRDs() ([]byte, error) {
	var out bytes.Buffer
	err := eachCRD(func(text []byte) error {
		if !bytes.HasPrefix(text, []byte("---\n")) {
			out.WriteString("---\n")
		}
		out.Write(text)
		return nil
	})
	return out.Bytes(), err
}

// Definitions returns all CRDs as they are generated, in the order of their names.
func Definitions() ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	err := eachCRD(func(text []byte) error {
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, crd); err != nil {
			return fmt.Errorf("decode CRD: %w", err)
		}
		out = append(out, crd)
		return nil
	})
	return out, err
}

// crdFiles is the folder with a file for each CRD.
const crdFiles = "bellwether/files/crds"

func eachCRD(do func(text []byte) error) error {
	entries, err := files.ReadDir(crdFiles)
	if err != nil {
		return fmt.Errorf("read CRDs: %w", err)
	}
	for _, entry := range entries {
		text, err := files.ReadFile(path.Join(crdFiles, entry.Name()))
		if err != nil {
			return fmt.Errorf("read CRDs: %w", err)
		}
		if err := do(text); err != nil {
			return err
		}
	}
	return nil
}
