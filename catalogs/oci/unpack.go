// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	yamlv3 "go.yaml.in/yaml/v3"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/untrusted"
)

// annotationsFile is what OLM's unpacker (util/cpb of OLM) looks for. It walks the whole image, takes the last file of
// that name, and copies the folder that the file names. Labels of the image mean nothing to it.
const annotationsFile = "annotations.yaml"

// mounted are the folders over which the runtime, or OLM's Job, may mount something: what the image has there is not
// what the unpacker finds.
var mounted = []string{"dev", "proc", "sys", "etc", "run", "var", "bundle", "util"}

// unpacked is what OLM's unpacker takes from a bundle image.
type unpacked struct {
	// digest is that of what the reference names, which may be an index.
	digest string
	// manifests is the folder of the manifests.
	manifests string
	// files are those in that folder and in that of annotations.yaml, by their names in the image.
	files map[string][]byte
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
		name, err := c.difference(b.manifests, sums, p.image)
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
	for name, content := range b.files {
		if decides(name, b.manifests) {
			out[name] = sha256.Sum256(content)
		}
	}
	return out
}

// decides tells whether OLM reads a file.
func decides(name, manifests string) bool {
	return path.Base(name) == annotationsFile || strings.HasPrefix(name, manifests+"/")
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
	return exactImageFiles(img, config.RootFS.DiffIDs, 2*maxBundle), nil
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
	return bundleIn(all, config.Config.Labels)
}

// bundleIn finds the bundle among all files of an image.
func bundleIn(all map[string][]byte, labels map[string]string) (*unpacked, error) {
	var found []string
	for name := range all {
		if path.Base(name) == annotationsFile {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%w: it has no file %s", ErrNotBundle, annotationsFile)
	case 1:
	default:
		return nil, fmt.Errorf("%w: it has %d files %s (%s): OLM takes one of them; leave only that of the bundle",
			ErrNotBundle, len(found), annotationsFile, strings.Join(found[:2], ", "))
	}
	manifests, err := manifestsFolder(all[found[0]])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", found[0], err)
	}
	if label := labels[manifestsLabel]; label != "" && clean(label) != manifests {
		return nil, fmt.Errorf("%w: its label %s says %q, but %s says %q, which is what OLM takes; make them the same",
			ErrNotBundle, manifestsLabel, label, found[0], manifests)
	}
	b := &unpacked{manifests: manifests, files: map[string][]byte{found[0]: all[found[0]]}}
	metadata := path.Dir(found[0])
	for name, content := range all {
		if strings.HasPrefix(name, manifests+"/") || strings.HasPrefix(name, metadata+"/") {
			b.files[name] = content
		}
	}
	return b, b.checkManifests()
}

// manifestsFolder reads annotations.yaml with the library that the unpacker has: others read unusual documents in
// another way.
func manifestsFolder(annotations []byte) (string, error) {
	if err := untrusted.CheckYAML(annotations); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotBundle, err)
	}
	var in struct {
		Annotations map[string]string `yaml:"annotations"`
	}
	if err := yamlv3.Unmarshal(annotations, &in); err != nil {
		return "", fmt.Errorf("%w: decode: %w", ErrNotBundle, err)
	}
	folder := in.Annotations[manifestsLabel]
	if folder == "" {
		return "", fmt.Errorf("%w: it lacks %s", ErrNotBundle, manifestsLabel)
	}
	cleaned := clean(folder)
	first, _, _ := strings.Cut(cleaned, "/")
	if cleaned == "" || slices.Contains(strings.Split(folder, "/"), "..") || slices.Contains(mounted, first) {
		return "", fmt.Errorf("%w: the manifests cannot be in the folder %q", ErrNotBundle, folder)
	}
	return cleaned, nil
}

// notInKey are the characters that OLM replaces in the names of files.
var notInKey = regexp.MustCompile("[^-A-Za-z0-9_.]")

// checkManifests refuses what OLM takes for a manifest and others do not: it reads every file, whatever its name is.
func (b *unpacked) checkManifests() error {
	keys := map[string]string{}
	for _, name := range b.manifestFiles() {
		base := path.Base(name)
		key := notInKey.ReplaceAllString(base, "-")
		if other := keys[key]; other != "" {
			return fmt.Errorf("%w: OLM takes only one of the files %s and %s: rename one", ErrNotBundle, other, name)
		}
		keys[key] = name
		if isManifest(base) {
			if err := checkManifest(name, b.files[name]); err != nil {
				return err
			}
			continue
		}
		if untrusted.CheckYAML(b.files[name]) != nil || isObject(b.files[name]) {
			return fmt.Errorf("%w: OLM takes the file %s for a manifest: rename it to end in .yaml, or remove it",
				ErrNotBundle, name)
		}
	}
	return nil
}

// checkManifest refuses a manifest that OLM reads in another way. What is too dangerous to decode is not decoded as OLM
// does it.
func checkManifest(name string, content []byte) error {
	if !utilyaml.IsJSONBuffer(content) {
		if err := untrusted.CheckYAML(content); err != nil {
			return fmt.Errorf("%w: manifest %s: %w", ErrNotBundle, name, err)
		}
	}
	if isObject(content) != hasKind(content) {
		return fmt.Errorf("%w: OLM reads the manifest %s in another way than Bellwether: keep one YAML document in "+
			"it, and nothing before that", ErrNotBundle, name)
	}
	return nil
}

// manifestFiles are the files directly in the folder of the manifests, sorted.
func (b *unpacked) manifestFiles() []string {
	var out []string
	for name := range b.files {
		if path.Dir(name) == b.manifests {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func isManifest(base string) bool {
	return !strings.HasPrefix(base, ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(base))
}

// hasKind tells whether a manifest is an object, as it is read here.
func hasKind(content []byte) bool {
	var object struct{ Kind any }
	if utilyaml.IsJSONBuffer(content) {
		return json.Unmarshal(content, &object) == nil && object.Kind != nil
	}
	converted, err := untrusted.ToJSON(content)
	return err == nil && json.Unmarshal(converted, &object) == nil && object.Kind != nil
}

// isObject tells whether OLM reads a file as an object.
func isObject(content []byte) bool {
	var object struct{ Kind any }
	err := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 30).Decode(&object)
	return err == nil && object.Kind != nil
}
