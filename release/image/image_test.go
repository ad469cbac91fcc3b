// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"context"
	"crypto/x509"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/registry"
	"github.com/bellwether-dev/bellwether/catalogs/sbom"
	"github.com/bellwether-dev/bellwether/catalogs/sign"
	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/release/image"
)

// source is a program that takes a moment to compile.
const source = "package main\n\nfunc main() { println(\"sheep\") }\n"

// newTree makes a module with the program cmd/hub in a folder of its own.
func newTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/tree\n\ngo 1.26\n",
		"cmd/hub/main.go": source} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// newSet builds the program from scratch, and makes its image for both architectures.
func newSet(t *testing.T) image.Set {
	t.Helper()
	tree := newTree(t)
	var programs []image.Program
	for _, platform := range image.Platforms {
		built, err := image.Compile(t.Context(), image.Compilation{Root: tree, Names: []string{image.Hub},
			Platform: platform, Release: "v1.2.3"}, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, built...)
	}
	s, err := image.NewSet(programs, func(v1.Platform) (v1.Image, error) { return image.DefaultBase() })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTwoBuildsGiveTheSameDigest compiles in two folders. TestTwoBuildsOfTheProductGiveTheSameDigest, which takes
// minutes, does so with hub, agent and command line.
func TestTwoBuildsGiveTheSameDigest(t *testing.T) {
	first, err := newSet(t).Index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	second, err := newSet(t).Index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if first != second {
		t.Errorf("one build gives %s, another one %s", first, second)
	}
}

// TestImagesAreForEveryArchitectureAndNotRoot checks the fields that a cluster's
// nodes and admission read.
func TestImagesAreForEveryArchitectureAndNotRoot(t *testing.T) {
	s := newSet(t)
	manifest, err := s.Index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.OS+"/"+m.Platform.Architecture)
	}
	if diff := cmp.Diff(image.Platforms, platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	for _, img := range s.Images {
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if c := config.Config; c.User != "65532:65532" || len(c.Volumes) > 0 || len(c.Cmd) > 0 ||
			cmp.Diff([]string{"/usr/bin/hub"}, c.Entrypoint) != "" {
			t.Errorf("configuration %+v", c)
		}
		if got := config.Config.Labels["org.opencontainers.image.version"]; got != "1.2.3" {
			t.Errorf("version %q", got)
		}
	}
}

// TestPublish pushes an image to the embedded registry, pulls it back, unpacks
// it, and runs its program.
func TestPublish(t *testing.T) {
	ctx, client, s := t.Context(), oci.NewClient(oci.Options{}), newSet(t)
	pair, err := sign.GenerateKey(sign.ECDSA, nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := sign.NewSigner(pair.Private, func() ([]byte, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	target := image.Target{Client: client, Registry: serve(t) + "/team/bellwether", Signer: signer}
	var published image.Published
	for range 2 { // again, and nothing more is attached
		if published, err = target.Publish(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	if published.Tag != "1.2.3" || published.Repository != target.Registry+"/hub" {
		t.Errorf("published %+v", published)
	}
	tag := published.Repository + ":" + published.Tag
	platforms, err := client.Platforms(ctx, tag, oci.Access{})
	if diff := cmp.Diff(image.Platforms, platforms); diff != "" || err != nil {
		t.Errorf("platforms (-want +got):\n%s\nerror %v", diff, err)
	}
	for digest := range s.Images {
		signed(t, client, published.Repository, digest, signer.PublicKey())
		if got := attached(t, client, published.Repository, digest, sbom.MediaType); len(got) != 1 ||
			!strings.Contains(got[0], "pkg:golang/std@") {
			t.Errorf("SBOMs of %s: %q", digest, got)
		}
	}
	signed(t, client, published.Repository, published.Digest, signer.PublicKey())

	if _, err := client.Pull(ctx, tag, v1.Platform{OS: "linux", Architecture: "s390x"}, oci.Access{}); err == nil {
		t.Error("there is an image for s390x")
	}
	img, err := client.Pull(ctx, tag, v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, oci.Access{})
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	program, err := image.Unpack(img, root)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, program).CombinedOutput()
	if err != nil || string(out) != "sheep\n" {
		t.Errorf("the program printed %q, error %v", out, err)
	}
	trusts(t, filepath.Join(root, "etc", "ssl", "certs", "ca-certificates.crt"))
	for _, name := range []string{"etc/passwd", "etc/group"} {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil || !strings.Contains(string(text), "nonroot:x:65532:") {
			t.Errorf("%s: %s, error %v", name, text, err)
		}
	}
}

// TestBase builds on an image of a registry.
func TestBase(t *testing.T) {
	ctx, client := t.Context(), oci.NewClient(oci.Options{})
	target := image.Target{Client: client, Registry: serve(t) + "/base"}
	published, err := target.Publish(ctx, newSet(t))
	if err != nil {
		t.Fatal(err)
	}
	built, err := image.Compile(ctx, image.Compilation{Root: newTree(t), Names: []string{image.Hub},
		Platform: "linux/arm64"}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := image.NewSet(built, func(p v1.Platform) (v1.Image, error) {
		return client.Pull(ctx, published.Repository+"@"+published.Digest, p, oci.Access{})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, img := range s.Images {
		layers, err := img.Layers()
		if err != nil || len(layers) != 3 {
			t.Errorf("%d layers, error %v; want two of the base and one of its own", len(layers), err)
		}
	}
}

func TestProgramsOfDifferentVersionsAreRefused(t *testing.T) {
	tree := newTree(t)
	var programs []image.Program
	for platform, release := range map[string]string{"linux/amd64": "1.2.3", "linux/arm64": "1.2.4"} {
		built, err := image.Compile(t.Context(), image.Compilation{Root: tree, Names: []string{image.Hub},
			Platform: platform, Release: release}, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, built...)
	}
	_, err := image.NewSet(programs, func(v1.Platform) (v1.Image, error) { return image.DefaultBase() })
	if !errors.Is(err, image.ErrMixed) {
		t.Errorf("got error %v", err)
	}
}

// TestEveryImageOfTheChartIsBuilt: the chart runs no image that is not one of these.
func TestEveryImageOfTheChartIsBuilt(t *testing.T) {
	built := map[string]bool{}
	for _, name := range image.Names {
		built[name] = true
	}
	for _, name := range charts.Images {
		if !built[name] {
			t.Errorf("nothing builds %s/%s", image.DefaultRegistry, name)
		}
	}
}

// serve runs a registry until the test ends, and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- registry.Serve(ctx, registry.Options{Ready: func(addr string) { ready <- addr }}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve registry: %v", err)
		}
	})
	select {
	case addr := <-ready:
		return addr
	case err := <-done:
		done <- nil
		t.Fatal(err)
		return ""
	}
}

func attached(t *testing.T, client *oci.Client, repository, digest, kind string) []string {
	t.Helper()
	contents, err := client.ReadArtifacts(t.Context(), repository+"@"+digest, kind, oci.Access{})
	if err != nil {
		t.Fatal(err)
	}
	out := make([]string, len(contents))
	for i, c := range contents {
		out[i] = string(c)
	}
	return out
}

// signed verifies that an image has one signature by the key.
func signed(t *testing.T, client *oci.Client, repository, digest string, key []byte) {
	t.Helper()
	keys, err := sign.ParseKeys(key)
	if err != nil {
		t.Fatal(err)
	}
	bundles := attached(t, client, repository, digest, sign.BundleMediaType)
	if len(bundles) != 1 || keys.Verify([][]byte{[]byte(bundles[0])}, digest) != nil {
		t.Errorf("%s has %d signatures, want a good one", digest, len(bundles))
	}
}

// trusts verifies that a file contains the authorities that public registries use.
func trusts(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) || strings.Count(string(text), "BEGIN CERTIFICATE") < 50 {
		t.Errorf("%s has %d certificates", file, strings.Count(string(text), "BEGIN CERTIFICATE"))
	}
}
