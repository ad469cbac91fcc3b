// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"archive/tar"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

// manifestsIn returns an annotations.yaml that names a folder.
func manifestsIn(folder string) string {
	return strings.ReplaceAll(annotations, "manifests/", folder)
}

// withConfig returns the image with another configuration than that of layered.
func withConfig(t *testing.T, img v1.Image, config v1.Config) v1.Image {
	t.Helper()
	img, err := mutate.Config(img, config)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// otherDiffID returns the image with a configuration that names other content.
func otherDiffID(t *testing.T, img v1.Image, ids ...v1.Hash) v1.Image {
	t.Helper()
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.RootFS.DiffIDs = ids
	img, err = mutate.ConfigFile(img, config)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// OLM reads the manifests from the folder that an annotations.yaml names, independently of the place of that file.
func TestWhatOLMUnpacks(t *testing.T) {
	const ok, evil = "kind: Benign\n", "kind: Evil\n"
	names := func(folder string) file { return file{name: "metadata/annotations.yaml", content: manifestsIn(folder)} }
	good := []file{names("manifests/"), {name: "manifests/a.yaml", content: ok}}
	bad := []file{names("evil/"), {name: "evil/a.yaml", content: evil}}
	second := file{name: "x/annotations.yaml", content: manifestsIn("evil/")}
	with := func(more ...file) []file { return append(slices.Clone(good), more...) }
	label := func(folder string) v1.Config {
		return v1.Config{Labels: map[string]string{"operators.operatorframework.io.bundle.manifests.v1": folder}}
	}
	tests := map[string]struct {
		layers [][]file
		config v1.Config
		says   string // empty: the manifests are ok
	}{
		"without a label":  {layers: [][]file{good}},
		"the label agrees": {layers: [][]file{good}, config: label("/manifests")},
		"the label is another": {layers: [][]file{append(slices.Clone(bad), file{name: "ok/a.yaml", content: ok})},
			config: label("ok/"), says: `says "ok/", but metadata/annotations.yaml says "evil"`},
		"no annotations.yaml": {layers: [][]file{{{name: "manifests/a.yaml", content: ok}}},
			config: label("manifests/"), says: "no file annotations.yaml"},
		"no folder is named": {layers: [][]file{{{name: "metadata/annotations.yaml", content: "annotations: {a: b}"}}},
			says: "lacks"},
		"two annotations.yaml": {layers: [][]file{with(second, file{name: "evil/a.yaml", content: evil})},
			says: "2 files annotations.yaml"},
		"one in a later layer": {layers: [][]file{good, {second}}, says: "2 files annotations.yaml"},
		"one in a hidden folder": {layers: [][]file{with(file{name: ".x/annotations.yaml",
			content: manifestsIn("evil/")})}, says: "2 files annotations.yaml"},
		"a second one removed": {layers: [][]file{with(second), {{name: ".wh.x"}}}},
		"replaced later":       {layers: [][]file{bad, good}},
		"a manifest replaced":  {layers: [][]file{{{name: "manifests/a.yaml", content: evil}}, good}},
		"removed where it is": {layers: [][]file{with(file{name: "manifests/.wh.a.yaml"})},
			says: "more than one entry manifests/a.yaml"},
		"the folder is a link": {layers: [][]file{with(file{name: "evil/a.yaml", content: evil}),
			{{name: "manifests", link: "evil"}}}, says: "manifests is a link"},
		"written through a link": {layers: [][]file{{{name: "x", link: "metadata"}}, good, {second}, {{name: ".wh.x"}}},
			says: "x is a link"},
		"a hidden link": {layers: [][]file{with(file{name: ".x", link: "metadata"})}, says: ".x is a link"},
		"a working directory": {layers: [][]file{good}, config: v1.Config{WorkingDir: "/evil"},
			says: "working directory /evil"},
		"the root as such": {layers: [][]file{good}, config: v1.Config{WorkingDir: "/"}},
		"a mounted folder": {layers: [][]file{{names("/proc/self/root/evil"), {name: "proc/self/root/evil/a.yaml",
			content: ok}}}, says: `folder "/proc/self/root/evil"`},
		"a way up":   {layers: [][]file{{names("x/../manifests"), good[1]}}, says: "x/../manifests"},
		"everything": {layers: [][]file{{names("./"), {name: "a.yaml", content: ok}}}, says: "folder"},
		"a key that JSON takes for the same": {layers: [][]file{bad, {{name: "metadata/annotations.yaml",
			content: manifestsIn("evil/") + strings.Replace(annotations, "annotations:", "annotation\u017f:", 1)}}},
			config: label("manifests/"), says: `says "evil"`},
		"another kind of file": {layers: [][]file{with(file{name: "manifests/b.txt", content: evil})},
			says: "treats the file manifests/b.txt as a manifest"},
		"a hidden manifest": {layers: [][]file{with(file{name: "manifests/.b.yaml", content: evil})},
			says: "treats the file manifests/.b.yaml as a manifest"},
		"files that are no manifests": {layers: [][]file{with(file{name: "manifests/README.md", content: "# Read me\n"},
			file{name: "manifests/.gitkeep"})}},
		"a document that OLM does not reach": {layers: [][]file{with(file{name: "manifests/b.yaml",
			content: "# Empty\n---\nkind: ClusterRole\n"})}, says: "in another way"},
		"two names of one key": {layers: [][]file{with(file{name: "manifests/a:b.yaml", content: ok},
			file{name: "manifests/a-b.yaml", content: ok})}, says: "only one of the files"},
	}
	r, c := newRegistry(t), oci.NewClient(oci.Options{})
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			img := withConfig(t, layered(t, tc.layers...), tc.config)
			image := r.host + "/team/catalog@" + write(t, r.image("x"), img)
			objects, err := c.BundleObjects(t.Context(), image, oci.Access{})
			checkRefusal(t, err, tc.says)
			if want := [][]byte{[]byte(`{"kind":"Benign"}`)}; err == nil && !cmp.Equal(want, objects) {
				t.Errorf("manifests %s", objects)
			}
			files, _, err := c.Bundle(t.Context(), image, oci.Access{})
			checkRefusal(t, err, tc.says)
			if err == nil {
				if text, err := fs.ReadFile(files, "manifests/a.yaml"); err != nil || string(text) != ok {
					t.Errorf("manifest %q, %v", text, err)
				}
			}
		})
	}
}

func checkRefusal(t *testing.T, err error, says string) {
	t.Helper()
	if says == "" && err != nil {
		t.Errorf("refused: %v", err)
	}
	if says != "" && (!errors.Is(err, oci.ErrNotBundle) || !strings.Contains(err.Error(), says)) {
		t.Errorf("%v, want a refusal that says %q", err, says)
	}
}

// A runtime identifies a layer that it already has by the digest in the configuration.
func TestLayersAreThoseOfTheConfiguration(t *testing.T) {
	good := layered(t, []file{{name: "metadata/annotations.yaml", content: annotations},
		{name: "manifests/a.yaml", content: "kind: A"}})
	other, err := v1.NewHash("sha256:" + strings.Repeat("0", 64))
	if err != nil {
		t.Fatal(err)
	}
	overlay := rawImage(t, archive(t, &tar.Header{Name: "metadata/annotations.yaml",
		PAXRecords: map[string]string{"SCHILY.xattr.trusted.overlay.redirect": "/evil"}}))
	r, c := newRegistry(t), oci.NewClient(oci.Options{})
	for name, tc := range map[string]struct {
		image v1.Image
		says  string
	}{
		"its own":      {good, ""},
		"other":        {otherDiffID(t, good, other), "the image's configuration names " + other.String()},
		"none":         {otherDiffID(t, good), "has 1 layers, but its configuration names 0"},
		"an attribute": {overlay, "overlay.redirect"},
	} {
		t.Run(name, func(t *testing.T) {
			image := r.host + "/team/catalog@" + write(t, r.image("x"), tc.image)
			_, err := c.BundleObjects(t.Context(), image, oci.Access{})
			checkRefusal(t, err, tc.says)
		})
	}
}

// A node uses the image of its platform.
func TestBundleOfSeveralPlatforms(t *testing.T) {
	bundle := func(kind string) v1.Image {
		return layered(t, []file{{name: "metadata/annotations.yaml", content: annotations},
			{name: "manifests/a.yaml", content: "kind: " + kind}})
	}
	attestation, err := mutate.AppendLayers(empty.Image, static.NewLayer([]byte("{}"), types.OCILayer))
	if err != nil {
		t.Fatal(err)
	}
	platform := func(text string) *v1.Platform {
		os, architecture, _ := strings.Cut(text, "/")
		return &v1.Platform{OS: os, Architecture: architecture}
	}
	tests := map[string]struct {
		images map[string]v1.Image
		says   string
	}{
		"the same": {images: map[string]v1.Image{"linux/amd64": bundle("A"), "linux/arm64": bundle("A")}},
		"another one": {images: map[string]v1.Image{"linux/amd64": bundle("A"), "linux/arm64": bundle("B")},
			says: "manifests/a.yaml differs between"},
		"without amd64": {images: map[string]v1.Image{"linux/s390x": bundle("A")}},
		"with an attestation": {images: map[string]v1.Image{"linux/amd64": bundle("A"),
			"unknown/unknown": attestation}},
		"of no platform": {images: map[string]v1.Image{"linux/amd64": bundle("A"), "": bundle("B")},
			says: "manifests/a.yaml differs between"},
		"only an attestation": {images: map[string]v1.Image{"unknown/unknown": attestation}, says: "lists 0 images"},
	}
	r, c := newRegistry(t), oci.NewClient(oci.Options{})
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			index := v1.ImageIndex(empty.Index)
			for text, img := range tc.images {
				added := mutate.IndexAddendum{Add: img}
				if text != "" {
					added.Platform = platform(text)
				}
				index = mutate.AppendManifests(index, added)
			}
			digest := write(t, r.image("x"), index)
			image := r.host + "/team/catalog@" + digest
			_, err := c.BundleObjects(t.Context(), image, oci.Access{})
			checkRefusal(t, err, tc.says)
			_, got, err := c.Bundle(t.Context(), image, oci.Access{})
			checkRefusal(t, err, tc.says)
			if err == nil && got != digest {
				t.Errorf("digest %s, want %s", got, digest)
			}
		})
	}
}

// An image that readers would refuse must not be made.
func TestBundleImageIsWhatOLMUnpacks(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir+"/metadata/annotations.yaml", annotations)
	writeFile(t, dir+"/manifests/a.yaml", "kind: A\n")
	writeFile(t, dir+"/tests/annotations.yaml", annotations)
	_, err := oci.BundleImage(dir)
	checkRefusal(t, err, "2 files annotations.yaml (metadata/annotations.yaml, tests/annotations.yaml)")
}
