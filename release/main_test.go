// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	helmregistry "helm.sh/helm/v3/pkg/registry"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/registry"
	"github.com/bellwether-dev/bellwether/catalogs/sign"
	"github.com/bellwether-dev/bellwether/internal/version"
	"github.com/bellwether-dev/bellwether/release/image"
)

// newTree is a repository with programs that take a moment to compile, in place of the product's.
func newTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"go.mod": "module example.com/tree\n\ngo 1.26\n", "LICENSE": "free\n",
		"README.md": "# x\n", "docs/releases/unreleased.md": "# Next\n\n## Upgrade notes\n\nLook out.\n"}
	for _, name := range image.Names {
		files["cmd/"+name+"/main.go"] = "package main\n\nfunc main() { println(\"" + name + "\") }\n"
	}
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"commit", "--quiet", "-m", "Begin"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
			"GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE=@1700000000 +0000",
			"GIT_AUTHOR_DATE=@1700000000 +0000", "GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

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

// TestRelease builds a release twice, and checks everything that users get.
func TestRelease(t *testing.T) {
	pair, err := sign.GenerateKey(sign.ECDSA, nil)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "release.key")
	if err := os.WriteFile(key, pair.Private, 0o600); err != nil {
		t.Fatal(err)
	}
	address := serve(t) + "/bellwether"
	var sums []string
	var dir string
	for range 2 {
		dir = t.TempDir()
		o := options{root: newTree(t), version: "v1.2.3", registry: address + "/", platforms: image.Platforms, key: key,
			cliPlatforms: []string{"linux/" + runtime.GOARCH, "windows/amd64"}, out: io.Discard}
		if err := o.buildRelease(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		sums = append(sums, read(t, dir, checksumFile))
	}
	if diff := cmp.Diff(sums[0], sums[1]); diff != "" {
		t.Errorf("the same commit gives another release (-first +second):\n%s", diff)
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", checksumFile)
	check.Dir = dir
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("checksums: %v\n%s", err, out)
	}
	looksAtArchives(t, dir)
	looksAtChart(t, dir, address, pair.Public)
	looksAtCatalog(t, dir, address, pair.Public)
	looksAtProvenance(t, dir, address, pair.Public)
	if text := read(t, dir, "release-notes.md"); !strings.Contains(text, "- Begin (") ||
		!strings.Contains(text, "## Upgrade notes\n\nLook out.\n") ||
		!strings.Contains(text, address+"/charts/bellwether:1.2.3@sha256:") {
		t.Errorf("notes:\n%s", text)
	}
}

func looksAtArchives(t *testing.T, dir string) {
	t.Helper()
	name := "bellwether_1.2.3_linux_" + runtime.GOARCH + ".tar.gz"
	to := t.TempDir()
	untar := exec.CommandContext(t.Context(), "tar", "--extract", "--gzip", "--file", filepath.Join(dir, name),
		"--directory", to)
	if out, err := untar.CombinedOutput(); err != nil {
		t.Fatalf("unpack %s: %v\n%s", name, err, out)
	}
	program := exec.CommandContext(t.Context(), filepath.Join(to, "bellwether"))
	if out, err := program.CombinedOutput(); err != nil || string(out) != "bellwether\n" {
		t.Errorf("the command line printed %q, error %v", out, err)
	}
	zipped, err := zip.OpenReader(filepath.Join(dir, "bellwether_1.2.3_windows_amd64.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = zipped.Close() }()
	var got []string
	for _, f := range zipped.File {
		got = append(got, f.Name)
	}
	if diff := cmp.Diff([]string{"bellwether.exe", "LICENSE", "README.md"}, got); diff != "" {
		t.Errorf("files for Windows (-want +got):\n%s", diff)
	}
}

// looksAtChart pulls the chart as Helm does. It names the images that are in the registry, and is signed as they are.
func looksAtChart(t *testing.T, dir, address string, public []byte) {
	t.Helper()
	client, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP(), helmregistry.ClientOptWriter(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := client.Pull(address + "/charts/bellwether:1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(pulled.Chart.Data, []byte(read(t, dir, "bellwether-1.2.3.tgz"))) {
		t.Error("the chart in the registry is not the one in the folder")
	}
	loaded, err := loader.LoadArchive(bytes.NewReader(pulled.Chart.Data))
	if err != nil {
		t.Fatal(err)
	}
	images := oci.NewClient(oci.Options{})
	for _, name := range []string{image.Hub, image.Agent} {
		part, _ := loaded.Values[name].(map[string]any)
		named, _ := part["image"].(map[string]any)
		digest, err := images.Resolve(t.Context(), oci.Source{Image: address + "/" + name + ":1.2.3",
			Verification: oci.Verification{PublicKeys: [][]byte{public}}})
		if err != nil || named["digest"] != digest || named["repository"] != address+"/"+name {
			t.Errorf("the chart names %v, the registry has %s, error %v", named, digest, err)
		}
	}
	if _, err := images.Resolve(t.Context(), oci.Source{Image: address + "/charts/bellwether:1.2.3",
		Verification: oci.Verification{PublicKeys: [][]byte{public}}}); err != nil {
		t.Errorf("verify chart: %v", err)
	}
}

// looksAtCatalog reads the agent's catalog as a hub does. It has one version, whose bundle runs the release's image.
func looksAtCatalog(t *testing.T, dir, address string, public []byte) {
	t.Helper()
	client := oci.NewClient(oci.Options{})
	source := oci.Source{Image: address + "/catalog:latest", Verification: oci.Verification{
		PublicKeys: [][]byte{public}}}
	digest, err := client.Resolve(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	if manifest := read(t, dir, olmManifest); !strings.Contains(manifest, address+"/catalog@"+digest) ||
		!strings.Contains(manifest, "startingCSV: bellwether-agent.v1.2.3") {
		t.Errorf("%s does not install from catalog %s:\n%s", olmManifest, digest, manifest)
	}
	files, err := client.Open(t.Context(), source, digest)
	if err != nil {
		t.Fatal(err)
	}
	p, err := catalogs.ReadPackage(files, v1alpha1.AgentPackage)
	if err != nil {
		t.Fatal(err)
	}
	b := p.Bundles["bellwether-agent.v1.2.3"]
	if len(p.Bundles) != 1 || b == nil || !strings.HasPrefix(b.Image, address+"/agent-bundle@sha256:") {
		t.Fatalf("the catalog has %v", p.Bundles)
	}
	unpacked, _, err := client.Bundle(t.Context(), b.Image, oci.Access{})
	if err != nil {
		t.Fatal(err)
	}
	csv, err := fs.ReadFile(unpacked, "manifests/bellwether-agent.clusterserviceversion.yaml")
	if err != nil {
		t.Fatal(err)
	}
	agent, err := client.Resolve(t.Context(), oci.Source{Image: address + "/agent:1.2.3"})
	if err != nil || !strings.Contains(string(csv), "image: "+address+"/agent@"+agent) {
		t.Errorf("the bundle does not run the image of the release, %s, error %v", agent, err)
	}
}

// looksAtProvenance verifies that there is a signed statement of how each file and each image
// was built. The statement must not count as a signature.
func looksAtProvenance(t *testing.T, dir, address string, public []byte) {
	t.Helper()
	keys, err := sign.ParseKeys(public)
	if err != nil {
		t.Fatal(err)
	}
	about, err := keys.Statement([]byte(read(t, dir, provenanceFile)), image.Type)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range about.GetSubject() {
		got[s.GetName()] = s.GetDigest()["sha256"]
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		want := fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, dir, e.Name()))))
		if e.Name() != provenanceFile && got[e.Name()] != want {
			t.Errorf("the statement is about %s as %q, want %s", e.Name(), got[e.Name()], want)
		}
	}
	client := oci.NewClient(oci.Options{})
	digest, err := client.TagDigest(t.Context(), address+"/hub:1.2.3", oci.Access{})
	if err != nil {
		t.Fatal(err)
	}
	bundles, err := client.ReadArtifacts(t.Context(), address+"/hub@"+digest, sign.BundleMediaType, oci.Access{})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, b := range bundles {
		one, err := keys.Statement(b, image.Type)
		if err != nil {
			continue
		}
		found++
		if one.GetSubject()[0].GetDigest()["sha256"] != strings.TrimPrefix(digest, "sha256:") ||
			!strings.Contains(one.GetPredicate().String(), "gitCommit") {
			t.Errorf("the statement about the image is %v", one)
		}
		if keys.Verify([][]byte{b}, digest) == nil {
			t.Error("it is taken for a signature")
		}
	}
	if found != 1 || len(bundles) != 2 {
		t.Errorf("the image has %d statements among %d bundles", found, len(bundles))
	}
}

func TestReleaseNeedsAVersion(t *testing.T) {
	for _, text := range []string{"", "1.2", "latest", "1.2.3+dirty"} {
		o := options{version: text, registry: "registry.example.com/bellwether"}
		err := o.buildRelease(t.Context(), t.TempDir())
		if err == nil || (text != "" && !errors.Is(err, version.ErrInvalid)) {
			t.Errorf("%q: got error %v", text, err)
		}
	}
}

// TestMakefileNamesWhatIsThere verifies that the command has the flags that make images passes.
func TestMakefileNamesWhatIsThere(t *testing.T) {
	text := read(t, "..", "Makefile")
	_, line, ok := strings.Cut(text, "\nRELEASE_FLAGS = ")
	if !ok {
		t.Fatal("the Makefile has no RELEASE_FLAGS")
	}
	line, _, _ = strings.Cut(line, "\n")
	flags := newCommand().PersistentFlags()
	for word := range strings.FieldsSeq(line) {
		if name, is := strings.CutPrefix(word, "--"); is && flags.Lookup(name) == nil {
			t.Errorf("make passes --%s, which the command does not have", name)
		}
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
