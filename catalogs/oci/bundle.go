// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/untrusted"
)

const (
	// The labels of a bundle's image are the annotations of its metadata.
	mediaTypeLabel = registryv1.AnnotationMediaType
	manifestsLabel = registryv1.AnnotationManifests
	packageLabel   = registryv1.AnnotationPackage

	registryV1 = registryv1.MediaType
	// maxBundle bounds the manifests of one bundle. What OLM can install is well below.
	maxBundle = untrusted.MaxBytes
)

func bundleLabels(annotations []byte) (map[string]string, error) {
	var in struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := untrusted.Unmarshal(annotations, &in); err != nil {
		return nil, fmt.Errorf("%w: decode annotations.yaml: %w", ErrNotBundle, err)
	}
	for _, required := range []string{mediaTypeLabel, manifestsLabel, packageLabel} {
		if in.Annotations[required] == "" {
			return nil, fmt.Errorf("%w: annotations.yaml lacks %s", ErrNotBundle, required)
		}
	}
	if got := in.Annotations[mediaTypeLabel]; got != registryV1 {
		return nil, fmt.Errorf("%w: its media type is %q", ErrNotBundle, got)
	}
	return in.Annotations, nil
}

// BundleObjects reads the manifests of a bundle image as JSON, in the order of their file names: what a catalog would
// carry as olm.bundle.object, and what OLM installs if it unpacks the image, on a node of whatever platform. An image
// reference without a digest is read as it is now.
func (c *Client) BundleObjects(ctx context.Context, image string, a Access) ([][]byte, error) {
	b, err := c.unpack(ctx, image, a)
	if err != nil {
		return nil, fmt.Errorf("read bundle: %w", err)
	}
	var objects [][]byte
	for _, name := range b.ManifestFiles() {
		if !bundles.IsManifest(path.Base(name)) || strings.HasPrefix(path.Base(name), ".") {
			continue
		}
		object, err := readManifest(b.Files[name])
		if err != nil {
			return nil, fmt.Errorf("read bundle %s: manifest %s: %w", image, name, err)
		}
		objects = append(objects, object)
		delete(b.Files, name) // it may be large
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%w: image %s has no manifests in %s", ErrNotBundle, image, b.Manifests)
	}
	return objects, nil
}

func readManifest(raw []byte) ([]byte, error) {
	switch {
	case len(raw) > maxBundle:
		return nil, ErrTooLarge
	case utilyaml.IsJSONBuffer(raw):
		if err := untrusted.CheckJSON(raw); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotBundle, err)
		}
		return raw, nil
	}
	object, err := untrusted.ToJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotBundle, err)
	}
	return object, nil
}

// Bundle reads a bundle image: the files of its manifests and metadata as they are in a bundle folder, and the digest
// of what the reference names. An image reference without a digest is read as it is now. A link, a device, a path that
// leads out of the image, and whatever OLM could read in another way, is an error that wraps ErrNotBundle; more than
// 32 MiB, packed or unpacked, one that wraps ErrTooLarge.
func (c *Client) Bundle(ctx context.Context, image string, a Access) (fs.FS, string, error) {
	b, err := c.unpack(ctx, image, a)
	if err != nil {
		return nil, "", fmt.Errorf("read bundle: %w", err)
	}
	var files txtar.Archive
	for _, name := range slices.Sorted(maps.Keys(b.Files)) {
		if !strings.HasPrefix(path.Base(name), ".") {
			files.Files = append(files.Files, txtar.File{Name: name, Data: b.Files[name]})
		}
	}
	out, err := txtar.FS(&files)
	if err != nil {
		return nil, "", fmt.Errorf("%w: image %s: %w", ErrNotBundle, image, err)
	}
	return out, b.digest, nil
}
