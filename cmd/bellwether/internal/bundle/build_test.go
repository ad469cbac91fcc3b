// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/bundle"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

const buildTestdata = "../../../../bundles/build/testdata"

const machineTypes = `package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

type VendingMachineSpec struct {
	// Slots are for snacks.
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Slots int32 ` + "`json:\"slots\"`" + `
}

// +operator-sdk:csv:customresourcedefinitions:displayName="Snack Machine"
type VendingMachine struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec VendingMachineSpec ` + "`json:\"spec\"`" + `
}

// +operator-sdk:csv:customresourcedefinitions:displayName="Other"
type Other struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}
`

func TestBundleBuild(t *testing.T) {
	h, dir := clitest.NewHub(), t.TempDir()
	kustomization, chart := filepath.Join(buildTestdata, "kustomize"), filepath.Join(buildTestdata, "chart")
	folder, layout, ref := filepath.Join(dir, "bundle"), filepath.Join(dir, "layout"),
		clitest.StartLocalRegistry(t)+"/bundles/snack:1.4.0"

	r := h.Run(t, "bundle", "build", kustomization, "--package", "snack-operator", "--version", "1.4.0", "--channels",
		"candidate,stable",
		"--output-dir", folder, "--oci-layout", layout, "--push", ref, "-o", "json")
	if r.Code != exit.OK {
		t.Fatal(r.Err)
	}
	var built bundle.BuiltOutput
	if err := json.Unmarshal([]byte(r.Out), &built); err != nil {
		t.Fatal(err)
	}
	if got := clitest.MustResolve(t, oci.Source{Image: ref}); got != built.Digest {
		t.Errorf("the registry has %s, and it said %s", got, built.Digest)
	}
	index, err := os.ReadFile(filepath.Join(layout, "index.json"))
	if err != nil || !strings.Contains(string(index), built.Digest) {
		t.Errorf("the layout's index lacks %s: %s, %v", built.Digest, index, err)
	}
	if diff := cmp.Diff("snack-operator.v1.4.0", built.Name); diff != "" || len(built.Warnings) != 6 {
		t.Errorf("built %s with warnings %q", built.Name, built.Warnings)
	}

	t.Run("descriptions from Go types", func(t *testing.T) {
		sources := filepath.Join(dir, "api", "v1")
		if err := os.MkdirAll(sources, 0o750); err != nil {
			t.Fatal(err)
		}
		module := "module example.com/snacks\n"
		for name, text := range map[string]string{"../../go.mod": module, "types.go": machineTypes} {
			if err := os.WriteFile(filepath.Join(sources, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		described := filepath.Join(dir, "described")
		r := h.Run(t, "bundle", "build", kustomization, "--package", "snack-operator", "--version", "1.4.0",
			"--api-sources", filepath.Join(dir, "api"), "--output-dir", described)
		if r.Code != exit.OK || !strings.Contains(r.Err, "kind Other in version v1 is described by markers") {
			t.Errorf("exit %d\n%s", r.Code, r.Err)
		}
		b, err := bundles.Read(os.DirFS(described))
		if err != nil {
			t.Fatal(err)
		}
		for _, owned := range b.CSV.Spec.CustomResourceDefinitions.Owned {
			if owned.Version == "v1" && (owned.DisplayName != "Snack Machine" || len(owned.SpecDescriptors) != 1) ||
				owned.Version != "v1" && len(owned.SpecDescriptors) > 0 {
				t.Errorf("version %s is described as %q with %v", owned.Version, owned.DisplayName,
					owned.SpecDescriptors)
			}
		}
	})
	t.Run("the bundle again", func(t *testing.T) {
		for _, name := range []string{"one", "two"} {
			r := h.Run(t, "bundle", "build", folder, "--oci-layout", filepath.Join(dir, name))
			if r.Code != exit.OK || !strings.Contains(r.Out, built.Digest) {
				t.Errorf("got %d, want the digest %s:\n%s%s", r.Code, built.Digest, r.Out, r.Err)
			}
		}
	})
	t.Run("push of the folder gives the same digest", func(t *testing.T) {
		if r := h.Run(t, "bundle", "push", folder, ref); r.Out != built.Digest+"\n" {
			t.Errorf("bundle push says %q, bundle build %q: %s", r.Out, built.Digest, r.Err)
		}
	})
	t.Run("a chart, with its values", func(t *testing.T) {
		out := filepath.Join(dir, "kettle")
		r := h.Run(t, "bundle", "build", chart, "--set", "metrics.enabled=true,image.tag=1.2.3", "--output-dir", out)
		if r.Code != exit.OK || !strings.HasPrefix(r.Out, "Built kettle-operator.v0.3.1, 4 files\n") ||
			!strings.Contains(r.Err, "Warning: Job kettle-operator-cleanup") {
			t.Errorf("got %d:\n%s%s", r.Code, r.Out, r.Err)
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
		if r := h.Run(t, "bundle", "build", chart, "--metadata", properties, "--output-dir", out); r.Code != exit.OK {
			t.Fatal(r.Err)
		}
		b, err := bundles.Read(os.DirFS(out))
		if err != nil || len(b.Properties) != 1 || b.Properties[0].Type != "bellwether.dev/slo" {
			t.Errorf("read %+v, %v", b, err)
		}
	})
	t.Run("an image reads as its folder", func(t *testing.T) {
		if r := h.Run(t, "bundle", "diff", folder, ref); r.Code != exit.OK ||
			!strings.Contains(r.Out, "Nothing changes.") {
			t.Errorf("got %d:\n%s%s", r.Code, r.Out, r.Err)
		}
	})
}

func TestBrokenBundlesAreNotPushed(t *testing.T) {
	h, dir, ref := clitest.NewHub(), t.TempDir(), clitest.StartLocalRegistry(t)+"/broken:1"
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(buildTestdata, "golden", "chart"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "manifests", "broken.yaml"), []byte("a: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := h.Run(t, "bundle", "push", dir, ref); r.Code != exit.Error ||
		!strings.Contains(r.Err, "manifests/broken.yaml") {
		t.Errorf("got %d: %s", r.Code, r.Err)
	}
	if r := h.Run(t, "bundle", "diff", ref, dir); r.Code == exit.OK || !strings.Contains(r.Err, "not found") {
		t.Errorf("something was pushed: %d: %s%s", r.Code, r.Out, r.Err)
	}
}

func TestBundleBuildPins(t *testing.T) {
	h, dir, registry := clitest.NewHub(), t.TempDir(), clitest.StartLocalRegistry(t)
	image := registry + "/operator:1"
	if r := h.Run(t, "bundle", "push", filepath.Join(buildTestdata, "golden", "chart"),
		image); r.Code != exit.OK { // any image does
		t.Fatal(r.Err)
	}
	chart := []string{"bundle", "build", filepath.Join(buildTestdata, "chart"), "--pin", "--output-dir", dir, "--set",
		"image.repository=" + registry + "/operator"}
	if r := h.Run(t, append(chart, "--set", "image.tag=1")...); r.Code != exit.OK {
		t.Fatal(r.Err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "manifests", "kettle-operator.clusterserviceversion.yaml"))
	if want := "image: " + registry + "/operator@" + clitest.MustResolve(t, oci.Source{Image: image}); err != nil ||
		strings.Count(string(text), want) != 2 {
		t.Errorf("want %q twice in\n%s", want, text)
	}
	if r := h.Run(t, append(chart, "--set", "image.tag=none")...); r.Code != exit.Error ||
		!strings.Contains(r.Err, "pin image "+registry+"/operator:none") {
		t.Errorf("a tag that is not there gave %d: %s", r.Code, r.Err)
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
	packages := filepath.Dir(write("packages/p.package.yaml",
		"packageName: p\nchannels: [{name: stable, currentCSV: p.v1.1.0}]\n"))
	for _, version := range []string{"1.0.0", "1.1.0"} {
		write("packages/"+version+"/csv.yaml", "apiVersion: operators.coreos.com/v1alpha1\n"+
			"kind: ClusterServiceVersion\nmetadata: {name: p.v"+version+"}\nspec: {version: "+version+"}\n")
	}
	full, golden := filepath.Dir(write("full/thesis.txt", "x")), filepath.Join(buildTestdata, "golden", "chart")
	for name, test := range map[string]struct {
		args     []string
		code     int
		want     string
		noOutput bool
	}{
		"nowhere to go": {[]string{golden}, exit.Error, "no output is selected", true},
		"no such source": {[]string{filepath.Join(dir, "absent")}, bundle.ExitUnusable, "no such file or directory",
			false},
		"broken YAML": {[]string{write("broken.yaml", "a: ["), "--package", "p", "--version", "1.0.0"},
			bundle.ExitUnusable, "broken.yaml, line 1: broken YAML", false},
		"empty stdin": {[]string{"-", "--package", "p", "--version", "1.0.0"}, bundle.ExitUnusable,
			"there is no Deployment among the manifests", false},
		"no package": {[]string{"-"}, bundle.ExitUnusable, "give --package NAME", false},
		"a package without a version": {[]string{packages}, bundle.ExitUnusable,
			"has several versions of p (1.0.0, 1.1.0): give --version", false},
		"a package with flags of manifests": {[]string{packages, "--display-name", "P"}, exit.Error,
			"is in the package manifest format; --display-name cannot be used with it", false},
		"a kustomization names files": {[]string{filepath.Dir(write("named/kustomization.yaml",
			"resources: [job.yaml]\n")), "--package", "p", "--version", "1.0.0"}, bundle.ExitUnusable,
			"Job j (" + write("named/job.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n") + ", line 1)",
			false},
		"no manifests": {[]string{filepath.Dir(write("none/readme.md", "x"))}, bundle.ExitUnusable,
			"has no manifests", false},
		"no chart": {[]string{write("c.tgz", "x")}, bundle.ExitUnusable, "it is no .tgz", false},
		"a broken kustomization": {[]string{filepath.Dir(write("k/kustomization.yaml", "resources: [none.yaml]")),
			"--package", "p"}, bundle.ExitUnusable, "unusable kustomization", false},
		"a bundle with flags": {[]string{golden, "--version", "1.0.0"}, exit.Error,
			"is already a bundle; --version cannot be used with it", false},
		"other metadata": {[]string{filepath.Join(buildTestdata, "chart"), "--metadata",
			write("notes.yaml", "x")}, bundle.ExitUnusable, "metadata/notes.yaml is not read by anything", false},
		"broken metadata": {[]string{filepath.Join(buildTestdata, "chart"), "--metadata",
			write("properties.yaml", "properties: 7")}, bundle.ExitUnusable, "metadata/properties.yaml", false},
		"no metadata": {[]string{"-", "--metadata", filepath.Join(dir, "absent.yaml")}, bundle.ExitUnusable,
			"read metadata", false},
		"a bad icon": {[]string{"-", "--icon", write("i.bmp", "x")}, bundle.ExitUnusable,
			"is not an svg, png, jpg or gif file", false},
		"a bad value": {[]string{filepath.Join(buildTestdata, "chart"), "--values",
			filepath.Join(dir, "absent")}, bundle.ExitUnusable, "read chart values", false},
		"something in the way": {[]string{golden, "--oci-layout", full}, exit.Error, "has files, but no oci-layout",
			false},
		"a digest to push to": {[]string{golden, "--push", "127.0.0.1:1/a@sha256:" + strings.Repeat("a", 64)},
			exit.Error, "a tag is needed", false},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			args := append([]string{"bundle", "build"}, test.args...)
			if !test.noOutput && !strings.Contains(strings.Join(test.args, " "), "--oci-layout") &&
				!strings.Contains(strings.Join(test.args, " "), "--push") {
				args = append(args, "--output-dir", out)
			}
			r := clitest.NewHub().Run(t, args...)
			if r.Code != test.code || !strings.Contains(r.Err, test.want) {
				t.Errorf("got %d: %s\nwant %d: %s", r.Code, r.Err, test.code, test.want)
			}
			if entries, err := os.ReadDir(filepath.Dir(out)); err != nil || len(entries) > 0 {
				t.Errorf("it wrote %v, %v", entries, err)
			}
		})
	}
}

// What is broken in a bundle has a remedy of its own.
func TestRemediesOfBrokenBundles(t *testing.T) {
	const csv = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: p.v1}\n"
	for name, test := range map[string]struct {
		files      map[string]string
		want, hint string
	}{
		"a version": {map[string]string{"manifests/csv.yaml": csv + "spec:\n  version: v1.0\n"},
			`manifests/csv.yaml, line 5: spec.version "v1.0": not a semantic version`, "write spec.version as X.Y.Z"},
		"YAML": {map[string]string{"manifests/csv.yaml": "a: [\n"},
			"manifests/csv.yaml: broken YAML", "correct the YAML of that file"},
		"annotations": {map[string]string{"metadata/annotations.yaml": "annotations: ["},
			"decode metadata/annotations.yaml", "correct the YAML of that file"},
		"no CSV": {map[string]string{"manifests/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n"},
			"it has no ClusterServiceVersion", "a bundle folder has manifests/"},
		"a package": {map[string]string{"metadata/annotations.yaml": "", "p.package.yaml": "packageName: p\n" +
			"channels: [{name: stable, currentCSV: p.v1.1.0}]\n", "1.1.0/csv.yaml": csv + "spec: {version: 1.1.0}\n"},
			"is in the package manifest format, with the versions 1.1.0 of p",
			"convert a version with `bellwether bundle build"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := map[string]string{"metadata/annotations.yaml": "annotations: " +
				"{operators.operatorframework.io.bundle.package.v1: p}\n", "manifests/none": ""}
			maps.Copy(files, test.files)
			for name, text := range files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := clitest.NewHub().Run(t, "bundle", "lint", dir)
			if r.Code != bundle.ExitUnusable || !strings.Contains(r.Err, test.want) ||
				!strings.Contains(r.Err, "Hint:  "+test.hint) {
				t.Errorf("got %d: %s\nwant %q and %q", r.Code, r.Err, test.want, test.hint)
			}
		})
	}
}

func TestBundleDiff(t *testing.T) {
	h, echo := clitest.NewHub(), "../../../../testbed/echo/bundles/"
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
  ~ container echo-operator/manager  example.com/bellwether/echo-operator:1.0.0 → ` +
		`example.com/bellwether/echo-operator:1.1.0

Deployments
  deployment echo-operator
    ~ containers[manager].env[ECHO_VERSION].value  1.0.0 → 1.1.0
    ~ template.metadata.labels[app.kubernetes.io/version]  1.0.0 → 1.1.0
`
	if diff := cmp.Diff(clitest.Result{Out: want}, h.Run(t, "bundle", "diff", echo+"1.0.0", echo+"1.1.0")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := h.Run(t, "bundle", "diff", echo+"1.1.0", echo+"1.0.0"); !strings.Contains(r.Out,
		"- spec.uppercase  boolean  breaking: what is in it is lost") {
		t.Errorf("the way back is not called breaking:\n%s%s", r.Out, r.Err)
	}
	if r := h.Run(t, "bundle", "diff", echo+"1.0.0", echo+"1.1.0", "-o", "markdown"); !strings.HasPrefix(r.Out,
		"## echo-operator.v1.0.0 → ") {
		t.Errorf("the Markdown is\n%s%s", r.Out, r.Err)
	}
	for name, args := range map[string][]string{"no bundle": {echo, echo + "1.0.0"},
		"a file": {echo + "1.0.0/metadata/annotations.yaml", echo}} {
		if r := h.Run(t, append([]string{"bundle", "diff"}, args...)...); r.Code != bundle.ExitUnusable ||
			!strings.Contains(r.Err, "Hint:") {
			t.Errorf("%s: got %d: %s", name, r.Code, r.Err)
		}
	}
}

func TestBundleScorecard(t *testing.T) {
	h, echo := clitest.NewHub(), "../../../../testbed/echo/bundles/1.1.0"
	r := h.Run(t, "bundle", "scorecard", echo)
	if r.Code != exit.OK || !strings.HasPrefix(r.Out,
		"echo-operator.v1.1.0\nIt claims Seamless Upgrades, and its bundle shows it.\n\n✓ 1 Basic Install  6 of 6\n") {
		t.Errorf("got %d:\n%s%s", r.Code, r.Out, r.Err)
	}
	if !strings.Contains(r.Out, "To show Full Lifecycle:\n  - required: Have a kind or a field for backups.\n") {
		t.Errorf("what is missing is not said:\n%s", r.Out)
	}
	for format, start := range map[string]string{"html": "<!doctype html>", "svg": "<svg ",
		"markdown": "## Echo Operator 1.1.0", "json": "{", "yaml": "claim: Seamless Upgrades"} {
		if r := h.Run(t, "bundle", "scorecard", echo, "-o", format); r.Code != exit.OK ||
			!strings.HasPrefix(r.Out, start) {
			t.Errorf("-o %s: got %d: %.100s%s", format, r.Code, r.Out, r.Err)
		}
	}
	if r := h.Run(t, "bundle", "scorecard", t.TempDir()); r.Code != bundle.ExitUnusable {
		t.Errorf("an empty folder gave %d: %s", r.Code, r.Err)
	}
}
