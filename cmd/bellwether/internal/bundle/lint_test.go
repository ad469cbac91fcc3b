// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/bundles/lint"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/bundle"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/root"
)

const (
	lintedCSV   = "manifests/echo-operator.clusterserviceversion.yaml"
	lintedCRD   = "manifests/echoes.example.com.yaml"
	lintedImage = "registry.example.com/echo/operator@" +
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
)

// goodBundle has no findings.
var goodBundle = func() string {
	dir, err := filepath.Abs("../../../../bundles/lint/testdata/base")
	if err != nil {
		panic(err)
	}
	return dir
}()

// lintedBundle is a copy of a bundle with nothing wrong, in which texts were
// replaced: pairs of old and new, in every file.
func lintedBundle(t *testing.T, dir string, replace ...string) string {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS(goodBundle)); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{lintedCSV, lintedCRD, "metadata/annotations.yaml"} {
		path := filepath.Join(dir, file)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.NewReplacer(replace...).Replace(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestBundleLintExitStatus(t *testing.T) {
	good := lintedBundle(t, filepath.Join(t.TempDir(), "good"))
	tagged := lintedBundle(t, filepath.Join(t.TempDir(), "tagged"), lintedImage,
		"registry.example.com/echo/operator:v1.1.0")
	broken := lintedBundle(t, filepath.Join(t.TempDir(), "broken"), "minKubeVersion: 1.30.0", "minKubeVersion: latest")
	noYAML := lintedBundle(t, filepath.Join(t.TempDir(), "no-yaml"), "kind: ClusterServiceVersion", "kind: [")
	waivers := filepath.Join(t.TempDir(), "waivers.yaml")
	if err := os.WriteFile(waivers, []byte("waivers:\n- {rule: of-csv, reason: ours}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"nothing wrong":       {[]string{good}, 0, "✓ no findings"},
		"warnings":            {[]string{tagged}, 0, "image-digest"},
		"warnings that count": {[]string{tagged, "--fail-on", "warning"}, 1, "image-digest"},
		"warnings of no interest": {[]string{tagged, "--fail-on", "warning", "--skip", "image-digest"}, 0,
			"no findings"},
		"errors":                {[]string{broken}, 1, "minKubeVersion"},
		"errors of no interest": {[]string{broken, "--rule", "image-digest"}, 0, "no findings"},
		"no bundle":             {[]string{t.TempDir()}, 2, "Hint:  a bundle folder has manifests/"},
		"no YAML":               {[]string{noYAML}, 2, lintedCSV},
		"a file":                {[]string{filepath.Join(good, lintedCSV)}, 2, "is a file"},
		"nothing to lint":       {nil, 2, "missing argument: the bundle's folder"},
		"no history":            {[]string{good, "--history", t.TempDir()}, 2, "read history"},
		"no such folder":        {[]string{"nowhere"}, 2, "folder nowhere does not exist"},
		"no such path":          {[]string{"../nowhere/bundle"}, 2, "folder ../nowhere/bundle does not exist"},
		"no such history":       {[]string{good, "--history", "./nowhere"}, 2, "folder ./nowhere does not exist"},
		"no such rule":          {[]string{good, "--rule", "of-everything"}, 2, `unknown rule "of-everything"`},
		"no such severity":      {[]string{good, "--fail-on", "sometimes"}, 2, "use error, warning or info"},
		"no such output":        {[]string{good, "-o", "yaml"}, 2, "use text, json or sarif"},
		"no such flag":          {[]string{good, "--strict"}, 2, "--help"},
		"bad waivers":           {[]string{good, "--waivers", waivers}, 2, "line 2: a waiver needs a day"},
		"no waivers":            {[]string{good, "--waivers", "nowhere.yaml"}, 2, "nowhere.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			got := clitest.NewHub().Run(t, append([]string{"bundle", "lint"}, test.args...)...)
			if got.Code != test.code || !strings.Contains(got.Out+got.Err, test.says) {
				t.Errorf("it ended with %d, want %d and %q:\n%s%s", got.Code, test.code, test.says, got.Out, got.Err)
			}
			if got.Code == bundle.ExitUnusable && got.Out != "" {
				t.Errorf("it printed a report of unusable input:\n%s", got.Out)
			}
		})
	}
}

// One version that cannot be read does not stop the comparison with all others.
func TestBundleLintUnreadableHistory(t *testing.T) {
	published := t.TempDir()
	lintedBundle(t, filepath.Join(published, "0.9.0"), "1.1.0", "0.9.0", "kind: ClusterServiceVersion", "kind: [")
	lintedBundle(t, filepath.Join(published, "1.0.0"), "1.1.0", "1.0.0", "level:\n", "volume:\n")
	dir := lintedBundle(t, filepath.Join(t.TempDir(), "new"))
	got := clitest.NewHub().Run(t, "bundle", "lint", dir, "--history", published)
	for _, want := range []string{"crd-removed-field", "history-unreadable", "0.9.0", lintedCSV,
		"compared with 1.0.0"} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if got.Code != bundle.LintFindings {
		t.Errorf("it ended with %d", got.Code)
	}
	if t.Failed() {
		t.Logf("%s%s", got.Out, got.Err)
	}
}

// History is found in a folder of versions, in a catalog that carries the
// manifests, in one that names images, and in images themselves.
func TestBundleLintHistory(t *testing.T) {
	registry := clitest.StartRegistry(t)
	published := t.TempDir()
	old := lintedBundle(t, filepath.Join(published, "1.0.0"), "1.1.0", "1.0.0", "level:\n", "volume:\n")
	dir := lintedBundle(t, filepath.Join(t.TempDir(), "new"))
	ref := registry + "/bundles/echo:1.0.0"
	digest, err := oci.NewClient(oci.Options{}).PushBundle(t.Context(), old, ref, oci.Access{})
	if err != nil {
		t.Fatal(err)
	}
	catalog := func(image string, objects bool) string {
		folder := t.TempDir()
		properties := []map[string]any{{"type": "olm.package",
			"value": map[string]string{"packageName": "echo-operator", "version": "1.0.0"}}}
		for _, file := range []string{lintedCSV, lintedCRD} {
			if objects {
				text, err := os.ReadFile(filepath.Join(old, file))
				if err != nil {
					t.Fatal(err)
				}
				if text, err = yaml.YAMLToJSON(text); err != nil {
					t.Fatal(err)
				}
				properties = append(properties, map[string]any{"type": "olm.bundle.object",
					"value": map[string][]byte{"data": text}})
			}
		}
		var out bytes.Buffer
		for _, document := range []any{
			map[string]any{"schema": "olm.package", "name": "echo-operator", "defaultChannel": "stable"},
			map[string]any{"schema": "olm.channel", "package": "echo-operator", "name": "stable",
				"entries": []map[string]string{{"name": "echo-operator.v1.0.0"}}},
			map[string]any{"schema": "olm.bundle", "package": "echo-operator", "name": "echo-operator.v1.0.0",
				"image": image, "properties": properties},
		} {
			if err := json.NewEncoder(&out).Encode(document); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(folder, "catalog.json"), out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return folder
	}
	image := registry + "/bundles/echo@" + digest
	for name, place := range map[string]string{
		"a folder of versions":         published,
		"one folder":                   old,
		"a catalog with the manifests": catalog(image, true),
		"a catalog with images":        catalog(image, false),
		"an image":                     ref,
	} {
		t.Run(name, func(t *testing.T) {
			got := clitest.NewHub().Run(t, "bundle", "lint", dir, "--history", place, "-o", "json")
			var report struct {
				History  []string       `json:"history"`
				Findings []lint.Finding `json:"findings"`
			}
			if err := json.Unmarshal([]byte(got.Out), &report); err != nil {
				t.Fatalf("%v: %s%s", err, got.Out, got.Err)
			}
			if diff := cmp.Diff([]string{"1.0.0"}, report.History); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
			found := false
			for _, f := range report.Findings {
				found = found || f.Rule == "crd-removed-field"
			}
			if got.Code != bundle.LintFindings || !found {
				t.Errorf("it ended with %d and did not miss spec.volume:\n%s%s", got.Code, got.Out, got.Err)
			}
		})
	}
	t.Run("of an image", func(t *testing.T) {
		linted := registry + "/bundles/echo:1.1.0"
		if _, err := oci.NewClient(oci.Options{}).PushBundle(t.Context(), dir, linted, oci.Access{}); err != nil {
			t.Fatal(err)
		}
		got := clitest.NewHub().Run(t, "bundle", "lint", linted, "--history", catalog(image, true))
		if want := "\n    " + lintedCRD + ":"; got.Code != bundle.LintFindings || !strings.Contains(got.Out, want) {
			t.Errorf("it ended with %d and names no %q:\n%s%s", got.Code, want, got.Out, got.Err)
		}
	})
	t.Run("an image that is not there", func(t *testing.T) {
		got := clitest.NewHub().Run(t, "bundle", "lint", dir, "--history",
			catalog(registry+"/bundles/none@"+digest, false))
		if got.Code != bundle.ExitUnusable || !strings.Contains(got.Err, "bundles/none") {
			t.Errorf("it ended with %d:\n%s%s", got.Code, got.Out, got.Err)
		}
	})
}

func TestBundleLintImages(t *testing.T) {
	registry := clitest.StartRegistry(t)
	amd64, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(registry + "/echo:v1.1.0")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, amd64); err != nil {
		t.Fatal(err)
	}
	digest, err := amd64.Digest()
	if err != nil {
		t.Fatal(err)
	}
	arm64, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: "arm64"})
	if err != nil {
		t.Fatal(err)
	}
	var index v1.ImageIndex = empty.Index
	for platform, img := range map[string]v1.Image{"linux/amd64": amd64, "linux/arm64": arm64,
		"unknown/unknown": empty.Image} {
		system, architecture, _ := strings.Cut(platform, "/")
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: system, Architecture: architecture}}})
	}
	if err := remote.WriteIndex(ref.Context().Tag("all"), index); err != nil {
		t.Fatal(err)
	}
	all, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	both := lintedBundle(t, filepath.Join(t.TempDir(), "both"), lintedImage, registry+"/echo@"+all.String())
	there := lintedBundle(t, filepath.Join(t.TempDir(), "there"), lintedImage, registry+"/echo@"+digest.String())
	gone := lintedBundle(t, filepath.Join(t.TempDir(), "gone"), lintedImage, registry+"/none@"+digest.String())
	for name, test := range map[string]struct {
		dir, says string
		code      int
	}{
		"both architectures":   {both, "no findings", 0},
		"an architecture less": {there, "is not built for linux/arm64, only for linux/amd64", 1},
		"no image":             {gone, "is not in its registry", 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := clitest.NewHub().Run(t, "bundle", "lint", test.dir, "--check-images")
			if got.Code != test.code || !strings.Contains(got.Out, test.says) {
				t.Errorf("it ended with %d, want %d and %q:\n%s%s", got.Code, test.code, test.says, got.Out, got.Err)
			}
			if offline := clitest.NewHub().Run(t, "bundle", "lint", test.dir); offline.Code != exit.OK {
				t.Errorf("without --check-images it ended with %d:\n%s%s", offline.Code, offline.Out, offline.Err)
			}
		})
	}
}

// A file of waivers beside the bundle is found, and paths in reports are those
// that the user gave.
func TestBundleLintWaivers(t *testing.T) {
	dir := lintedBundle(t, filepath.Join(t.TempDir(), "bundle"), "minKubeVersion: 1.30.0", "minKubeVersion: latest")
	before := clitest.NewHub().Run(t, "bundle", "lint", dir)
	if want := filepath.Join(dir, lintedCSV) + ":"; before.Code != bundle.LintFindings ||
		!strings.Contains(before.Out, want) {
		t.Errorf("it ended with %d and does not name %s:\n%s%s", before.Code, want, before.Out, before.Err)
	}
	text := "waivers:\n- {rule: of-csv, path: spec.minKubeVersion, reason: 'We are early.', expires: 2026-11-21}\n"
	if err := os.WriteFile(filepath.Join(dir, lint.WaiverFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := clitest.NewHub().Run(t, "bundle", "lint", dir); got.Code != exit.OK ||
		!strings.Contains(got.Out, "; 1 waived") {
		t.Errorf("it ended with %d:\n%s%s", got.Code, got.Out, got.Err)
	}
	sarif := clitest.NewHub().Run(t, "bundle", "lint", dir, "-o", "sarif")
	if !strings.Contains(sarif.Out, "We are early. (until 2026-11-21)") {
		t.Errorf("the waiver's reason is not in the SARIF report:\n%s", sarif.Out)
	}
}

// Code hosts take paths from the root of the repository, where CI runs.
func TestBundleLintSARIFPaths(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	dir := lintedBundle(t, filepath.Join(root, "my bundle"), "minKubeVersion: 1.30.0", "minKubeVersion: latest")
	want := `"uri": "my%20bundle/` + lintedCSV + `"`
	for _, source := range []string{dir, "my bundle", "./my bundle/"} {
		if got := clitest.NewHub().Run(t, "bundle", "lint", source, "-o", "sarif"); !strings.Contains(got.Out, want) {
			t.Errorf("%s: no %s in\n%s%s", source, want, got.Out, got.Err)
		}
	}
}

func lintStdin(t *testing.T, in io.Reader, args ...string) clitest.Result {
	t.Helper()
	var out, errOut bytes.Buffer
	a := command.NewEnv("bellwether", genericiooptions.IOStreams{In: in, Out: &out, ErrOut: &errOut})
	c := root.New(a)
	c.SetArgs(append([]string{"bundle", "lint", "-"}, args...))
	code := a.Exit(c.ExecuteContext(t.Context()))
	return clitest.Result{Code: code, Out: out.String(), Err: errOut.String()}
}

func TestBundleLintStdin(t *testing.T) {
	var in bytes.Buffer
	for _, file := range []string{lintedCSV, lintedCRD} {
		text, err := os.ReadFile(filepath.Join(goodBundle, file))
		if err != nil {
			t.Fatal(err)
		}
		in.WriteString("---\n")
		in.Write(text)
	}
	got := lintStdin(t, &in, "--rule", "of-bundle,of-csv,crd-removed-field,olmv0-second-document")
	if got.Code != exit.OK {
		t.Errorf("it ended with %d:\n%s%s", got.Code, got.Out, got.Err)
	}
	if got := lintStdin(t, strings.NewReader("hello")); got.Code != bundle.ExitUnusable {
		t.Errorf("hello is a bundle:\n%s%s", got.Out, got.Err)
	}
}

func TestBundleLintRules(t *testing.T) {
	h := clitest.NewHub()
	list := h.Run(t, "bundle", "lint", "--list")
	for _, r := range lint.Rules() {
		if !strings.Contains(list.Out, r.ID+" ") {
			t.Errorf("%s is not in the list", r.ID)
		}
	}
	if got := h.Run(t, "bundle", "lint", "--explain", "image-digest"); got.Code != exit.OK ||
		!strings.Contains(got.Out, "## How to fix it") {
		t.Errorf("it ended with %d:\n%s%s", got.Code, got.Out, got.Err)
	}
	if got := h.Run(t, "bundle", "lint", "--explain", "image-digests"); got.Code != bundle.ExitUnusable ||
		!strings.Contains(got.Err, "--list") {
		t.Errorf("it ended with %d:\n%s%s", got.Code, got.Out, got.Err)
	}
}
