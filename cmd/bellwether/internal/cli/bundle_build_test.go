// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

const buildTestdata = "../../../../bundles/build/testdata"

// localRegistry is one that ends with the test.
func localRegistry(t *testing.T) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strings.Split(startRegistry(t), ":")[1])
}

func TestBundleBuild(t *testing.T) {
	w, dir := newWorld(), t.TempDir()
	kustomization, chart := filepath.Join(buildTestdata, "kustomize"), filepath.Join(buildTestdata, "chart")
	folder, layout, ref := filepath.Join(dir, "bundle"), filepath.Join(dir, "layout"),
		localRegistry(t)+"/bundles/snack:1.4.0"

	r := w.run(t, "bundle", "build", kustomization, "--package", "snack-operator", "--version", "1.4.0", "--channels",
		"candidate,stable",
		"--output-dir", folder, "--oci-layout", layout, "--push", ref, "-o", "json")
	if r.code != exitOK {
		t.Fatal(r.err)
	}
	var built builtOutput
	if err := json.Unmarshal([]byte(r.out), &built); err != nil {
		t.Fatal(err)
	}
	if got := mustResolve(t, oci.Source{Image: ref}); got != built.Digest {
		t.Errorf("the registry has %s, and it said %s", got, built.Digest)
	}
	index, err := os.ReadFile(filepath.Join(layout, "index.json"))
	if err != nil || !strings.Contains(string(index), built.Digest) {
		t.Errorf("the layout's index lacks %s: %s, %v", built.Digest, index, err)
	}
	if diff := cmp.Diff("snack-operator.v1.4.0", built.Name); diff != "" || len(built.Warnings) != 4 {
		t.Errorf("built %s with warnings %q", built.Name, built.Warnings)
	}

	t.Run("the bundle again", func(t *testing.T) {
		for _, name := range []string{"one", "two"} {
			r := w.run(t, "bundle", "build", folder, "--oci-layout", filepath.Join(dir, name))
			if r.code != exitOK || !strings.Contains(r.out, built.Digest) {
				t.Errorf("got %d, want the digest %s:\n%s%s", r.code, built.Digest, r.out, r.err)
			}
		}
	})
	t.Run("push of the folder gives the same digest", func(t *testing.T) {
		if r := w.run(t, "bundle", "push", folder, ref); r.out != built.Digest+"\n" {
			t.Errorf("bundle push says %q, bundle build %q: %s", r.out, built.Digest, r.err)
		}
	})
	t.Run("a chart, with its values", func(t *testing.T) {
		out := filepath.Join(dir, "kettle")
		r := w.run(t, "bundle", "build", chart, "--set", "metrics.enabled=true,image.tag=1.2.3", "--output-dir", out)
		if r.code != exitOK || !strings.HasPrefix(r.out, "Built kettle-operator.v0.3.1, 4 files\n") ||
			!strings.Contains(r.err, "Warning: Job kettle-operator-cleanup") {
			t.Errorf("got %d:\n%s%s", r.code, r.out, r.err)
		}
		text, err := os.ReadFile(filepath.Join(out, "manifests", "kettle-operator.clusterserviceversion.yaml"))
		if err != nil || !strings.Contains(string(text), "image: registry.example.com/kettle/operator:1.2.3") {
			t.Errorf("the image is not the one that was set: %v\n%s", err, text)
		}
	})
	t.Run("with properties", func(t *testing.T) {
		out, properties := filepath.Join(dir, "watched"), filepath.Join(t.TempDir(), "properties.yaml")
		const text = "properties:\n- type: bellwether.dev/slo\n  value: {without: [webhook]}\n"
		if err := os.WriteFile(properties, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := w.run(t, "bundle", "build", chart, "--metadata", properties, "--output-dir", out); r.code != exitOK {
			t.Fatal(r.err)
		}
		b, err := bundles.Read(os.DirFS(out))
		if err != nil || len(b.Properties) != 1 || b.Properties[0].Type != "bellwether.dev/slo" {
			t.Errorf("read %+v, %v", b, err)
		}
	})
	t.Run("an image reads as its folder", func(t *testing.T) {
		if r := w.run(t, "bundle", "diff", folder, ref); r.code != exitOK ||
			!strings.Contains(r.out, "Nothing changes.") {
			t.Errorf("got %d:\n%s%s", r.code, r.out, r.err)
		}
	})
}

func TestBrokenBundlesAreNotPushed(t *testing.T) {
	w, dir, ref := newWorld(), t.TempDir(), localRegistry(t)+"/broken:1"
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(buildTestdata, "golden", "chart"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "manifests", "broken.yaml"), []byte("a: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := w.run(t, "bundle", "push", dir, ref); r.code != exitError ||
		!strings.Contains(r.err, "manifests/broken.yaml") {
		t.Errorf("got %d: %s", r.code, r.err)
	}
	if r := w.run(t, "bundle", "diff", ref, dir); r.code == exitOK || !strings.Contains(r.err, "not found") {
		t.Errorf("something was pushed: %d: %s%s", r.code, r.out, r.err)
	}
}

func TestBundleBuildPins(t *testing.T) {
	w, dir, registry := newWorld(), t.TempDir(), localRegistry(t)
	image := registry + "/operator:1"
	if r := w.run(t, "bundle", "push", filepath.Join(buildTestdata, "golden", "chart"), image); r.code != exitOK { // any image does
		t.Fatal(r.err)
	}
	chart := []string{"bundle", "build", filepath.Join(buildTestdata, "chart"), "--pin", "--output-dir", dir, "--set",
		"image.repository=" + registry + "/operator"}
	if r := w.run(t, append(chart, "--set", "image.tag=1")...); r.code != exitOK {
		t.Fatal(r.err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "manifests", "kettle-operator.clusterserviceversion.yaml"))
	if want := "image: " + registry + "/operator@" + mustResolve(t, oci.Source{Image: image}); err != nil ||
		strings.Count(string(text), want) != 2 {
		t.Errorf("want %q twice in\n%s", want, text)
	}
	if r := w.run(t, append(chart, "--set", "image.tag=none")...); r.code != exitError ||
		!strings.Contains(r.err, "pin image "+registry+"/operator:none") {
		t.Errorf("a tag that is not there gave %d: %s", r.code, r.err)
	}
}

func TestBundleBuildSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	full, golden := filepath.Dir(write("full/thesis.txt", "x")), filepath.Join(buildTestdata, "golden", "chart")
	for name, test := range map[string]struct {
		args     []string
		code     int
		want     string
		noOutput bool
	}{
		"nowhere to go": {[]string{golden}, exitError, "there is nowhere for the bundle to go", true},
		"no such source": {[]string{filepath.Join(dir, "absent")}, exitUnusable, "no such file or directory",
			false},
		"broken YAML": {[]string{write("broken.yaml", "a: ["), "--package", "p", "--version", "1.0.0"},
			exitUnusable, "broken.yaml, line 1: broken YAML", false},
		"empty stdin": {[]string{"-", "--package", "p", "--version", "1.0.0"}, exitUnusable,
			"there is no Deployment among the manifests", false},
		"no package": {[]string{"-"}, exitUnusable, "give --package NAME", false},
		"no manifests": {[]string{filepath.Dir(write("none/readme.md", "x"))}, exitUnusable,
			"has no manifests", false},
		"no chart": {[]string{write("c.tgz", "x")}, exitUnusable, "it is no .tgz", false},
		"a broken kustomization": {[]string{filepath.Dir(write("k/kustomization.yaml", "resources: [none.yaml]")),
			"--package", "p"}, exitUnusable, "unusable kustomization", false},
		"a bundle with flags": {[]string{golden, "--version", "1.0.0"}, exitError,
			"is a bundle already, so --version has no meaning", false},
		"other metadata": {[]string{filepath.Join(buildTestdata, "chart"), "--metadata",
			write("notes.yaml", "x")}, exitUnusable, "metadata/notes.yaml is not read by anything", false},
		"broken metadata": {[]string{filepath.Join(buildTestdata, "chart"), "--metadata",
			write("properties.yaml", "properties: 7")}, exitUnusable, "metadata/properties.yaml", false},
		"no metadata": {[]string{"-", "--metadata", filepath.Join(dir, "absent.yaml")}, exitUnusable,
			"read metadata", false},
		"a bad icon": {[]string{"-", "--icon", write("i.bmp", "x")}, exitUnusable,
			"none of svg, png, jpg and gif", false},
		"a bad value": {[]string{filepath.Join(buildTestdata, "chart"), "--values",
			filepath.Join(dir, "absent")}, exitUnusable, "read chart values", false},
		"something in the way": {[]string{golden, "--oci-layout", full}, exitError, "has files, but no oci-layout",
			false},
		"a digest to push to": {[]string{golden, "--push", "127.0.0.1:1/a@sha256:" + strings.Repeat("a", 64)},
			exitError, "a tag is needed", false},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			args := append([]string{"bundle", "build"}, test.args...)
			if !test.noOutput && !strings.Contains(strings.Join(test.args, " "), "--oci-layout") &&
				!strings.Contains(strings.Join(test.args, " "), "--push") {
				args = append(args, "--output-dir", out)
			}
			r := newWorld().run(t, args...)
			if r.code != test.code || !strings.Contains(r.err, test.want) {
				t.Errorf("got %d: %s\nwant %d: %s", r.code, r.err, test.code, test.want)
			}
			if entries, err := os.ReadDir(filepath.Dir(out)); err != nil || len(entries) > 0 {
				t.Errorf("it wrote %v, %v", entries, err)
			}
		})
	}
}

func TestBundleDiff(t *testing.T) {
	w, echo := newWorld(), "../../../../testbed/echo/bundles/"
	const want = `echo-operator.v1.0.0 → echo-operator.v1.1.0
6 changes.

Version
  echo-operator
    + replaces  echo-operator.v1.0.0
    ~ version  1.0.0 → 1.1.0

CRDs
  echoservers.echo.bellwether.dev v1alpha1
    + spec.uppercase  boolean

Images
  ~ container echo-operator/manager  example.com/bellwether/echo-operator:1.0.0 → example.com/bellwether/echo-operator:1.1.0

Deployments
  deployment echo-operator
    ~ containers[manager].env[ECHO_VERSION].value  1.0.0 → 1.1.0
    ~ template.metadata.labels[app.kubernetes.io/version]  1.0.0 → 1.1.0
`
	if diff := cmp.Diff(result{out: want}, w.run(t, "bundle", "diff", echo+"1.0.0", echo+"1.1.0"),
		cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := w.run(t, "bundle", "diff", echo+"1.1.0", echo+"1.0.0"); !strings.Contains(r.out,
		"- spec.uppercase  boolean  breaking: what is in it is lost") {
		t.Errorf("the way back is not called breaking:\n%s%s", r.out, r.err)
	}
	if r := w.run(t, "bundle", "diff", echo+"1.0.0", echo+"1.1.0", "-o", "markdown"); !strings.HasPrefix(r.out,
		"## echo-operator.v1.0.0 → ") {
		t.Errorf("the Markdown is\n%s%s", r.out, r.err)
	}
	for name, args := range map[string][]string{"no bundle": {echo, echo + "1.0.0"},
		"a file": {echo + "1.0.0/metadata/annotations.yaml", echo}} {
		if r := w.run(t, append([]string{"bundle", "diff"}, args...)...); r.code != exitUnusable ||
			!strings.Contains(r.err, "Hint:") {
			t.Errorf("%s: got %d: %s", name, r.code, r.err)
		}
	}
}

func TestBundleScorecard(t *testing.T) {
	w, echo := newWorld(), "../../../../testbed/echo/bundles/1.1.0"
	r := w.run(t, "bundle", "scorecard", echo)
	if r.code != exitOK || !strings.HasPrefix(r.out,
		"echo-operator.v1.1.0\nIt claims Seamless Upgrades, and its bundle shows it.\n\n✓ 1 Basic Install  6 of 6\n") {
		t.Errorf("got %d:\n%s%s", r.code, r.out, r.err)
	}
	if !strings.Contains(r.out, "To show Full Lifecycle:\n  - required: Have a kind or a field for backups.\n") {
		t.Errorf("what is missing is not said:\n%s", r.out)
	}
	for format, start := range map[string]string{"html": "<!doctype html>", "svg": "<svg ",
		"markdown": "## Echo Operator 1.1.0", "json": "{", "yaml": "claim: Seamless Upgrades"} {
		if r := w.run(t, "bundle", "scorecard", echo, "-o", format); r.code != exitOK ||
			!strings.HasPrefix(r.out, start) {
			t.Errorf("-o %s: got %d: %.100s%s", format, r.code, r.out, r.err)
		}
	}
	if r := w.run(t, "bundle", "scorecard", t.TempDir()); r.code != exitUnusable {
		t.Errorf("an empty folder gave %d: %s", r.code, r.err)
	}
}
