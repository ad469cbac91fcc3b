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

// Registry is the registry where values.yaml expects the images.
const Registry = "ghcr.io/bellwether-dev/bellwether"

// Images are the names of the images that the chart runs, without the registry.
var Images = []string{"hub", "agent"}

// Release has the values that differ between the charts of releases.
type Release struct {
	// Version is the version of the chart and of the images, without a "v".
	Version string
	// Registry is the prefix of the images' repositories; empty for the default.
	Registry string
	// Digests are the digests of images by name. An image without a digest is named by its
	// tag, which is the version.
	Digests map[string]string
}

// errNoMatch means that a file of the chart does not have the format that editFile expects.
var errNoMatch = errors.New("the chart's file is not as expected")

// imageLines matches the lines of an image in values.yaml, from its repository to its empty digest.
var (
	versionLines = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)
	imageLines   = regexp.MustCompile(`(?m)^( +repository: )` + regexp.QuoteMeta(Registry) +
		`/(\w+)\n((?:.*\n)*?)( +digest: )""$`)
)

// editFile returns the content of a chart's file for the release: Chart.yaml with the version, and
// values.yaml with the images. Other files stay unchanged, and comments are kept.
func (r Release) editFile(name string, text []byte) ([]byte, error) {
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

// editImages sets the registry and the digests of the images in values.yaml. It returns an error
// if an image is missing.
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

// Package writes the chart of a release in the format of Helm packages. The same release and the
// same time give the same bytes.
func (r Release) Package(to io.Writer, at time.Time) error {
	compressed := gzip.NewWriter(to)
	archive := tar.NewWriter(compressed)
	write := func(name string) error {
		text, err := files.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read chart: %w", err)
		}
		if text, err = r.editFile(strings.TrimPrefix(name, "bellwether/"), text); err != nil {
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

// CRDs returns all CRDs as one YAML file, for users who apply the CRDs with kubectl.
func CRDs() ([]byte, error) {
	var out bytes.Buffer
	err := forEachCRD(func(text []byte) error {
		if !bytes.HasPrefix(text, []byte("---\n")) {
			out.WriteString("---\n")
		}
		out.Write(text)
		return nil
	})
	return out.Bytes(), err
}

// Definitions returns all CRDs as they are generated, sorted by name.
func Definitions() ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	err := forEachCRD(func(text []byte) error {
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, crd); err != nil {
			return fmt.Errorf("decode CRD: %w", err)
		}
		out = append(out, crd)
		return nil
	})
	return out, err
}

// crdFolder is the folder with one file for each CRD.
const crdFolder = "bellwether/files/crds"

// forEachCRD calls visit with the content of each CRD file, until visit returns an error.
func forEachCRD(visit func(text []byte) error) error {
	entries, err := files.ReadDir(crdFolder)
	if err != nil {
		return fmt.Errorf("read CRDs: %w", err)
	}
	for _, entry := range entries {
		text, err := files.ReadFile(path.Join(crdFolder, entry.Name()))
		if err != nil {
			return fmt.Errorf("read CRDs: %w", err)
		}
		if err := visit(text); err != nil {
			return err
		}
	}
	return nil
}
