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
	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

const (
	// The labels of a bundle image are the annotations in its metadata.
	mediaTypeLabel = bundles.AnnotationMediaType
	manifestsLabel = bundles.AnnotationManifests
	packageLabel   = bundles.AnnotationPackage

	registryV1 = bundles.MediaType
	// maxBundle bounds the manifests of one bundle, in bytes. OLM can only install bundles well below this limit.
	maxBundle = untrusted.MaxBytes
)

// readBundleLabels returns the labels of a bundle image from its annotations.yaml. The error wraps ErrNotBundle.
func readBundleLabels(annotations []byte) (map[string]string, error) {
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

// BundleObjects reads the manifests of a bundle image as JSON, in the order of their file names. They are the objects
// that a catalog would contain as olm.bundle.object, and that OLM installs when it unpacks the image, on a node of
// any platform. A reference with a digest selects that image, a tag its present image.
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
		delete(b.Files, name) // it can be large
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%w: image %s has no manifests in %s", ErrNotBundle, image, b.Manifests)
	}
	return objects, nil
}

// readManifest returns a manifest as JSON. Errors wrap ErrTooLarge or ErrNotBundle.
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
// of the referenced image or index. The error wraps ErrNotBundle if the image has a link, a device, a path that leads
// out of the image, or anything that OLM could read differently. It wraps ErrTooLarge if the image has more than 32
// MiB, packed or unpacked.
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
