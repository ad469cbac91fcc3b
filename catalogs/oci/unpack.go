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

// unpacked is what OLM's unpacker takes from a bundle image.
type unpacked struct {
	// digest is that of what the reference names, which may be an index.
	digest string
	bundles.Unpacked
}

// unpack reads the image of a bundle as OLM's unpacker does, on whatever node. An image of which that cannot be told
// is refused with an error that wraps ErrNotBundle and says what is ambiguous.
func (c *Client) unpack(ctx context.Context, image string, a Access) (*unpacked, error) {
	found, err := c.descriptor(ctx, image, "", a)
	if err != nil {
		return nil, err
	}
	if err := checkKind(found.Manifest); err != nil {
		return nil, fmt.Errorf("image %s: %w", image, err)
	}
	platforms, err := platformImages(found)
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
	sums := b.sums()
	for _, p := range platforms[1:] {
		name, err := c.difference(b.Manifests, sums, p.image)
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

// checkKind refuses a document that one program can take for an image, and another one for an index.
func checkKind(manifest []byte) error {
	var has struct{ Manifests, Config, Layers, FSLayers json.RawMessage }
	if err := json.Unmarshal(manifest, &has); err != nil {
		return fmt.Errorf("%w: its manifest is no JSON: %w", ErrNotBundle, err)
	}
	if has.FSLayers != nil || has.Manifests != nil && (has.Config != nil || has.Layers != nil) {
		return fmt.Errorf("%w: its manifest is that of an image and of an index at once", ErrNotBundle)
	}
	return nil
}

// platformImage is the image for one platform; the name is empty where there is no index.
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

// platformImages are all images that some node may take.
func platformImages(found *remote.Descriptor) ([]platformImage, error) {
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
		// Attestations are listed among the images, for a platform that no node has.
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

// sums are the digests of the manifests and of annotations.yaml.
func (b *unpacked) sums() map[string][sha256.Size]byte {
	out := map[string][sha256.Size]byte{}
	for name, content := range b.Files {
		if decides(name, b.Manifests) {
			out[name] = sha256.Sum256(content)
		}
	}
	return out
}

// decides tells whether OLM reads a file.
func decides(name, manifests string) bool {
	return path.Base(name) == bundles.AnnotationsName || strings.HasPrefix(name, manifests+"/")
}

// difference names a file that an image does not have in common with the one that has these sums; empty where there is
// none. It keeps no content, since the other one is in memory.
func (c *Client) difference(manifests string, want map[string][sha256.Size]byte, img v1.Image) (string, error) {
	got := map[string][sha256.Size]byte{}
	err := c.walkImage(img, func(name string, content io.Reader) error {
		if !decides(name, manifests) {
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

// walkImage visits all files of an image that can be unpacked in one way only.
func (c *Client) walkImage(img v1.Image, visit func(string, io.Reader) error) error {
	digest, err := img.Digest()
	if err != nil {
		return fmt.Errorf("read digest: %w", classify(err))
	}
	files, err := exactFiles(img)
	if err != nil {
		return err
	}
	return c.guard(digest.String(), files)(visit)
}

// walkHere is walkImage for an image that was made here.
func walkHere(img v1.Image, visit func(string, io.Reader) error) error {
	files, err := exactFiles(img)
	if err != nil {
		return err
	}
	return files(visit)
}

// exactFiles are the files of an image in whose root the unpacker starts.
func exactFiles(img v1.Image) (catalogs.Files, error) {
	config, err := configOf(img)
	if err != nil {
		return nil, err
	}
	if dir := config.Config.WorkingDir; dir != "" && dir != "/" {
		return nil, fmt.Errorf("%w: it has the working directory %s, where OLM looks for the bundle; make the image "+
			"without one", ErrNotBundle, dir)
	}
	return exactImageFiles(img, config.RootFS.DiffIDs, 2*maxBundle, ErrNotBundle), nil
}

// unpackFiles reads one image; walk visits its files.
func unpackFiles(img v1.Image, walk func(v1.Image, func(string, io.Reader) error) error) (*unpacked, error) {
	all := map[string][]byte{}
	err := walk(img, func(name string, content io.Reader) error {
		data, err := io.ReadAll(content) // bounded by exactImageFiles
		all[name] = data
		return err
	})
	if err != nil {
		return nil, err
	}
	config, err := configOf(img)
	if err != nil {
		return nil, err
	}
	found, err := bundles.Unpack(all, config.Config.Labels)
	if err != nil {
		return nil, err
	}
	return &unpacked{Unpacked: *found}, nil
}
