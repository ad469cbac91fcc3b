// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/untrusted"
)

const (
	// The labels of a bundle's image are the annotations of its metadata.
	mediaTypeLabel = registryv1.AnnotationMediaType
	manifestsLabel = registryv1.AnnotationManifests
	metadataLabel  = registryv1.AnnotationMetadata
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
// carry as olm.bundle.object. An image reference without a digest is read as it is now.
func (c *Client) BundleObjects(ctx context.Context, image string, a Access) ([][]byte, error) {
	img, err := c.image(ctx, image, "", a)
	if err != nil {
		return nil, fmt.Errorf("read bundle: %w", err)
	}
	folder, err := label(img, manifestsLabel)
	if err != nil {
		return nil, fmt.Errorf("read bundle %s: %w", image, err)
	}
	if folder == "" {
		return nil, fmt.Errorf("%w: image %s has no label %s", ErrNotBundle, image, manifestsLabel)
	}
	digest, err := img.Digest()
	if err != nil {
		return nil, fmt.Errorf("read digest of %s: %w", image, classify(err))
	}
	found := map[string][]byte{}
	files := c.guard(digest.String(), imageFiles(img, folder, 2*maxBundle, ErrNotBundle))
	err = files(func(name string, content io.Reader) error {
		if strings.Contains(name, "/") || !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
			return nil
		}
		found[name], err = readManifest(content)
		if err != nil {
			return fmt.Errorf("manifest %s: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read bundle %s: %w", image, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: image %s has no manifests in %s", ErrNotBundle, image, folder)
	}
	var objects [][]byte
	for _, name := range slices.Sorted(maps.Keys(found)) {
		objects = append(objects, found[name])
	}
	return objects, nil
}

func readManifest(content io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(content, maxBundle+1))
	switch {
	case err != nil:
		return nil, err
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

// Bundle reads a bundle image: the files of its manifests and metadata as they are in a bundle folder, and the image's
// digest. An image reference without a digest is read as it is now. A link, a device, or a path that leads out of the
// image is an error that wraps ErrNotBundle; more than 32 MiB, packed or unpacked, one that wraps ErrTooLarge.
func (c *Client) Bundle(ctx context.Context, image string, a Access) (fs.FS, string, error) {
	img, err := c.image(ctx, image, "", a)
	if err != nil {
		return nil, "", fmt.Errorf("read bundle: %w", err)
	}
	digest, err := img.Digest()
	if err != nil {
		return nil, "", fmt.Errorf("read digest of %s: %w", image, classify(err))
	}
	manifests, err := label(img, manifestsLabel)
	if err != nil {
		return nil, "", fmt.Errorf("read bundle %s: %w", image, err)
	}
	if manifests == "" {
		return nil, "", fmt.Errorf("%w: image %s has no label %s", ErrNotBundle, image, manifestsLabel)
	}
	metadata, err := label(img, metadataLabel)
	if err != nil {
		return nil, "", fmt.Errorf("read bundle %s: %w", image, err)
	}
	folders := []string{clean(manifests) + "/", clean(cmp.Or(metadata, "metadata")) + "/"}
	var files txtar.Archive
	err = imageFiles(img, "", 2*maxBundle, ErrNotBundle)(func(name string, content io.Reader) error {
		if !strings.HasPrefix(name, folders[0]) && !strings.HasPrefix(name, folders[1]) {
			return nil
		}
		data, err := io.ReadAll(content) // bounded by imageFiles
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		files.Files = append(files.Files, txtar.File{Name: name, Data: data})
		return nil
	})
	if err != nil {
		return nil, "", fmt.Errorf("read bundle %s: %w", image, err)
	}
	out, err := txtar.FS(&files)
	if err != nil {
		return nil, "", fmt.Errorf("%w: image %s: %w", ErrNotBundle, image, err)
	}
	return out, digest.String(), nil
}
