// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
)

// unpacked is the content that OLM's unpacker reads from a bundle image.
type unpacked struct {
	// digest is the digest of the reference, which can be an index.
	digest string
	bundles.Unpacked
}

// unpack reads a bundle image as OLM's unpacker does on a node of any platform. If the result could differ between
// programs or platforms, the error wraps ErrNotBundle and says what is ambiguous.
func (c *Client) unpack(ctx context.Context, image string, a Access) (*unpacked, error) {
	found, err := c.fetchDescriptor(ctx, image, "", a)
	if err != nil {
		return nil, err
	}
	if err := checkKind(found.Manifest); err != nil {
		return nil, fmt.Errorf("image %s: %w", image, err)
	}
	platforms, err := listPlatformImages(found)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", image, err)
	}
	b, err := unpackFiles(platforms[0].image, c.walkImage)
	if err != nil {
		return nil, fmt.Errorf("image %s%s: %w", image, platforms[0].suffix(), err)
	}
	b.digest = found.Digest.String()
	if len(platforms) == 1 {
		return b, nil
	}
	sums := b.digestFiles()
	for _, p := range platforms[1:] {
		name, err := c.findDifference(b.Manifests, sums, p.image)
		if err != nil {
			return nil, fmt.Errorf("image %s%s: %w", image, p.suffix(), err)
		}
		if name != "" {
			return nil, fmt.Errorf("%w: image %s is not the same bundle on all platforms: %s differs between %s and %s",
				ErrNotBundle, image, name, platforms[0].name, p.name)
		}
	}
	return b, nil
}

// checkKind refuses a manifest that one program can read as an image and another program as an index.
func checkKind(manifest []byte) error {
	var fields struct{ Manifests, Config, Layers, FSLayers json.RawMessage }
	if err := json.Unmarshal(manifest, &fields); err != nil {
		return fmt.Errorf("%w: its manifest is no JSON: %w", ErrNotBundle, err)
	}
	isOldImage := fields.FSLayers != nil // Docker's first format
	isImage := fields.Config != nil || fields.Layers != nil
	isBoth := fields.Manifests != nil && isImage
	if isOldImage || isBoth {
		return fmt.Errorf("%w: its manifest is that of an image and of an index at once", ErrNotBundle)
	}
	return nil
}

// platformImage is the image for one platform; the name is empty if there is no index.
type platformImage struct {
	name  string
	image v1.Image
}

func (p platformImage) suffix() string {
	if p.name == "" {
		return ""
	}
	return " for " + p.name
}

// maxPlatforms bounds how many images of an index are read.
const maxPlatforms = 20

// listPlatformImages returns all images that a node could run: the images of an index, or the only image. The error
// wraps ErrNotBundle if the index lists something else, no image, or more than maxPlatforms images.
func listPlatformImages(found *remote.Descriptor) ([]platformImage, error) {
	if !found.MediaType.IsIndex() {
		img, err := found.Image()
		if err != nil {
			return nil, fmt.Errorf("read manifest: %w", classify(err))
		}
		return []platformImage{{image: img}}, nil
	}
	index, manifest, err := readIndex(found)
	if err != nil {
		return nil, err
	}
	var out []platformImage
	for _, m := range manifest.Manifests {
		p := cmp.Or(m.Platform, &v1.Platform{})
		// An index also lists attestations, with a platform that no node has.
		if p.OS == "unknown" && p.Architecture == "unknown" {
			continue
		}
		if !m.MediaType.IsImage() {
			return nil, fmt.Errorf("%w: its index lists %s, which is no image", ErrNotBundle, m.Digest)
		}
		img, err := index.Image(m.Digest)
		if err != nil {
			return nil, fmt.Errorf("fetch %s: %w", m.Digest, classify(err))
		}
		out = append(out, platformImage{cmp.Or(p.String(), m.Digest.String()), img})
	}
	if len(out) == 0 || len(out) > maxPlatforms {
		return nil, fmt.Errorf("%w: its index lists %d images, and 1 to %d are read", ErrNotBundle, len(out),
			maxPlatforms)
	}
	return out, nil
}

// digestFiles returns the digests of the manifests and of annotations.yaml, by file name.
func (b *unpacked) digestFiles() map[string][sha256.Size]byte {
	out := map[string][sha256.Size]byte{}
	for name, content := range b.Files {
		if isBundleFile(name, b.Manifests) {
			out[name] = sha256.Sum256(content)
		}
	}
	return out
}

// isBundleFile reports whether OLM reads the file.
func isBundleFile(name, manifests string) bool {
	return path.Base(name) == bundles.AnnotationsName || strings.HasPrefix(name, manifests+"/")
}

// findDifference returns the name of a bundle file that differs between an image and the digests want; empty if there
// is none. It keeps no content, because the content of the first image is already in memory.
func (c *Client) findDifference(manifests string, want map[string][sha256.Size]byte, img v1.Image) (string, error) {
	got := map[string][sha256.Size]byte{}
	err := c.walkImage(img, func(name string, content io.Reader) error {
		if !isBundleFile(name, manifests) {
			return nil
		}
		sum := sha256.New()
		_, err := io.Copy(sum, content)
		got[name] = [sha256.Size]byte(sum.Sum(nil))
		return err
	})
	if err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if sum, ok := got[name]; !ok || sum != want[name] {
			return name, nil
		}
		delete(got, name)
	}
	if more := slices.Sorted(maps.Keys(got)); len(more) > 0 {
		return more[0], nil
	}
	return "", nil
}

// walkImage visits all files of an image that can be unpacked in only one way, and records the read.
func (c *Client) walkImage(img v1.Image, visit func(string, io.Reader) error) error {
	digest, err := img.Digest()
	if err != nil {
		return fmt.Errorf("read digest: %w", classify(err))
	}
	files, err := openBundleFiles(img)
	if err != nil {
		return err
	}
	return c.recordReads(digest.String(), files)(visit)
}

// walkLocalImage is like walkImage for an image that was made by this process.
func walkLocalImage(img v1.Image, visit func(string, io.Reader) error) error {
	files, err := openBundleFiles(img)
	if err != nil {
		return err
	}
	return files(visit)
}

// openBundleFiles returns the files of an image. The working directory must be the root, because OLM's unpacker
// starts there.
func openBundleFiles(img v1.Image) (catalogs.Files, error) {
	config, err := readConfig(img)
	if err != nil {
		return nil, err
	}
	if dir := config.Config.WorkingDir; dir != "" && dir != "/" {
		return nil, fmt.Errorf("%w: it has the working directory %s, where OLM looks for the bundle; make the image "+
			"without one", ErrNotBundle, dir)
	}
	return openExactImage(img, config.RootFS.DiffIDs, 2*maxBundle, ErrNotBundle), nil
}

// unpackFiles reads all files of an image, which walk visits, and returns the content that OLM's unpacker would read.
func unpackFiles(img v1.Image, walk func(v1.Image, func(string, io.Reader) error) error) (*unpacked, error) {
	all := map[string][]byte{}
	err := walk(img, func(name string, content io.Reader) error {
		data, err := io.ReadAll(content) // bounded by openExactImage
		all[name] = data
		return err
	})
	if err != nil {
		return nil, err
	}
	config, err := readConfig(img)
	if err != nil {
		return nil, err
	}
	found, err := bundles.Unpack(all, config.Config.Labels)
	if err != nil {
		return nil, err
	}
	return &unpacked{Unpacked: *found}, nil
}
