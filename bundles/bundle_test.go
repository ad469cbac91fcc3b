// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles_test

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/bundletest"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

const (
	annotations = `annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: demo
  operators.operatorframework.io.bundle.channels.v1: "candidate, stable"
  operators.operatorframework.io.bundle.channel.default.v1: stable
`
	csv = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: demo.v1.2.3
spec:
  version: 1.2.3
`
	crd = `---
apiVersion: v1
kind: ConfigMap
metadata: {name: first}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.demo.example.com
spec:
  versions:
  - name: v1
  - name: v2
    served: true
`
)

func bundleFS(changes map[string]string) fstest.MapFS {
	files := map[string]string{
		"metadata/annotations.yaml": annotations, "manifests/csv.yaml": csv, "manifests/things.yaml": crd,
		"manifests/README.md": "{",
		"metadata/dependencies.yaml": "dependencies:\n- type: olm.package\n  value: {packageName: other, version: " +
			"1.0.0}\n",
	}
	for name, text := range changes {
		if files[name] = text; text == "" {
			delete(files, name)
		}
	}
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func TestRead(t *testing.T) {
	b, err := bundles.Read(bundleFS(nil))
	if err != nil {
		t.Fatal(err)
	}
	have := []any{b.Name, b.Version.String(), b.Package, b.Channels, b.DefaultChannel, len(b.CRDs), len(b.Objects),
		string(b.Dependencies[0].Value)}
	want := []any{"demo.v1.2.3", "1.2.3", "demo", []string{"candidate", "stable"}, "stable", 1, 3,
		`{"packageName":"other","version":"1.0.0"}`}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("-want +have\n%s", diff)
	}
	object := b.CRDObject("things.demo.example.com")
	for name, test := range map[string]struct {
		path []any
		want int
	}{
		"the object":      {want: 6},
		"a field":         {path: []any{"metadata", "name"}, want: 9},
		"in a list":       {path: []any{"spec", "versions", 1, "served"}, want: 14},
		"a missing field": {path: []any{"spec", "versions", 1, "schema", "openAPIV3Schema"}, want: 13},
		"a missing place": {path: []any{"spec", "versions", 7}, want: 11},
	} {
		if have := object.Position(test.path...); have != test.want {
			t.Errorf("line of %s: want %d, have %d", name, test.want, have)
		}
	}
	manifests, err := b.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	again, err := bundles.FromManifests(manifests, b.Annotations)
	if err != nil || again.Name != b.Name || !cmp.Equal(again.CRDs, b.CRDs) ||
		!slices.Equal(again.Channels, b.Channels) {
		t.Errorf("from its manifests: %+v (%v)", again, err)
	}
}

// TestOtherAPIVersions checks bundles with another apiVersion, which were published and installed: OLM and opm find the
// ClusterServiceVersion by its kind.
func TestOtherAPIVersions(t *testing.T) {
	for _, version := range []string{"v1alpha1", "binding.operators.coreos.com/v1alpha1"} {
		b, err := bundles.Read(bundleFS(map[string]string{
			"manifests/csv.yaml": strings.Replace(csv, "operators.coreos.com/v1alpha1", version, 1)}))
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		if b.Name != "demo.v1.2.3" || b.Version.String() != "1.2.3" || b.CSVObject() == nil {
			t.Errorf("%s: it is read as %s %s", version, b.Name, b.Version)
		}
	}
}

// TestWholeNumbersStayWhole checks a bound that is larger than the integers that a float represents exactly.
func TestWholeNumbersStayWhole(t *testing.T) {
	const bound = "9223372036854775807"
	for name, text := range map[string]string{
		"YAML": strings.Replace(crd, "served: true", "served: true\n    bound: "+bound, 1),
		"JSON": `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "bound": ` + bound + `}`,
	} {
		b, err := bundles.Read(bundleFS(map[string]string{"manifests/things.yaml": text}))
		if err != nil {
			t.Fatal(err)
		}
		manifests, err := b.Manifests()
		if err != nil || !strings.Contains(string(slices.Concat(manifests...)), `"bound":`+bound) {
			t.Errorf("%s: the bound changed: %s (%v)", name, manifests, err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	tests := map[string]struct {
		changes map[string]string
		err     error
		says    string
	}{
		"no annotations": {map[string]string{"metadata/annotations.yaml": ""}, bundles.ErrNotBundle,
			"no metadata/annotations.yaml"},
		"no package": {map[string]string{"metadata/annotations.yaml": strings.ReplaceAll(annotations,
			"bundle.package.v1", "x")}, bundles.ErrNotBundle, "lacks operators.operatorframework.io.bundle.package.v1"},
		"other media type": {map[string]string{"metadata/annotations.yaml": strings.ReplaceAll(annotations,
			"registry+v1", "helm")}, bundles.ErrNotBundle, `"helm"`},
		"manifests outside": {map[string]string{"metadata/annotations.yaml": strings.ReplaceAll(annotations,
			"manifests/\n", "../up\n")}, bundles.ErrNotBundle, `"../up"`},
		"no CSV": {map[string]string{"manifests/csv.yaml": ""}, bundles.ErrNotBundle,
			"no ClusterServiceVersion among its manifests (manifests/things.yaml)"},
		"two CSVs": {map[string]string{"manifests/other.yaml": csv}, bundles.ErrNotBundle,
			"manifests/csv.yaml"},
		"a CSV of no name": {map[string]string{"manifests/csv.yaml": strings.Replace(csv, "name: demo.v1.2.3",
			"labels: {}", 1)}, bundles.ErrNotBundle, "has no name"},
		"a version": {map[string]string{"manifests/csv.yaml": strings.Replace(csv, "version: 1.2.3",
			"version: one", 1)}, bundles.ErrNotBundle, "not a semantic version"},
		"broken YAML": {map[string]string{"manifests/csv.yaml": csv + "---\na: ["}, bundles.ErrNotBundle,
			"line 8"},
		"no object": {map[string]string{"manifests/csv.yaml": "[]"}, bundles.ErrNotBundle, "not an object"},
		"a field twice": {map[string]string{"manifests/csv.yaml": csv + "  version: 1.2.4\n"}, bundles.ErrNotBundle,
			`line 7: the field "version" is there twice`},
		"a field twice, in JSON": {map[string]string{"manifests/other.json": `{"kind":"A","kind":"B"}`},
			bundles.ErrNotBundle, `duplicate field "kind"`},
		"no kind": {map[string]string{"manifests/other.yaml": "apiVersion: v1"}, bundles.ErrNotBundle,
			"no kind"},
		"50 MB": {map[string]string{"manifests/other.yaml": strings.Repeat("# a comment\n", 50<<20/12)},
			bundles.ErrTooLarge, "32 MiB"},
		"broken metadata": {map[string]string{"metadata/properties.yaml": "properties: 7"}, bundles.ErrNotBundle,
			"metadata/properties.yaml"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := bundles.Read(bundleFS(test.changes))
			if !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("want an error with %q, have %v", test.says, err)
			}
		})
	}
}

// TestAliasBombs puts a YAML alias bomb, which expands from 16 KiB to 16 MiB, into each file of a bundle.
func TestAliasBombs(t *testing.T) {
	for file, text := range map[string]string{
		"metadata/annotations.yaml":  annotations,
		"metadata/dependencies.yaml": "dependencies: []\n",
		"metadata/properties.yaml":   "properties: []\n",
		"manifests/csv.yaml":         csv,
		"manifests/other.json":       "apiVersion: v1\nkind: ConfigMap\n",
	} {
		files := bundleFS(map[string]string{file: text + untrustedtest.AliasBomb("bomb")})
		untrustedtest.Bound(t, 0, 4<<20, 0, func() {
			_, err := bundles.Read(files)
			if !errors.Is(err, bundles.ErrNotBundle) ||
				!strings.Contains(err.Error(), "with its aliases expanded") {
				t.Errorf("%s: got %v", file, err)
			}
		})
	}
}

// TestManyValues has many small manifests with too many values in total, and a ClusterServiceVersion with too
// many values.
func TestManyValues(t *testing.T) {
	many := map[string]string{}
	for i := range 4 {
		many[fmt.Sprintf("manifests/%d.json", i)] = `{"apiVersion":"v1","kind":"ConfigMap","x":[` +
			strings.Repeat("1,", 80_000) + "1]}"
	}
	for says, files := range map[string]map[string]string{
		"manifests have more than 300000 keys and values":           many,
		"ClusterServiceVersion has more than 80000 keys and values": {"manifests/csv.yaml": largeCSV(40_100)},
	} {
		_, err := bundles.Read(bundleFS(files))
		if !errors.Is(err, bundles.ErrTooLarge) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}

// largeCSV returns a CSV with many Deployments, each of which is "{}" as text and 920 bytes in memory.
func largeCSV(deployments int) string {
	return `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1.0.0"},` +
		`"spec":{"version":"1.0.0","install":{"spec":{"deployments":[` + strings.Repeat("{},", deployments-1) + "{}]}}}}"
}

// largeCRD returns a CRD with many schemas, each of which is "{}" as text and 512 bytes in memory.
func largeCRD(schemas int) string {
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"c"},"spec":` +
		`{"versions":[{"schema":{"openAPIV3Schema":{"allOf":[` + strings.Repeat("{},", schemas-1) + "{}]}}}]}}"
}

// TestWorstBundles reads bundles of the maximum size with the values that need the most memory.
func TestWorstBundles(t *testing.T) {
	small := largeCSV(1)
	for name, test := range map[string]struct {
		manifests     []string
		whole, rights int
	}{
		"deployments": {manifests: []string{largeCSV(39_900)}, whole: 64 << 20, rights: 64 << 20},
		"schemas":     {manifests: []string{small, largeCRD(149_000)}, whole: 128 << 20, rights: 24 << 20},
		"objects": {manifests: []string{small, `{"apiVersion":"v1","kind":"ConfigMap","x":[` +
			strings.Repeat(`{"":0},`, 99_000) + "0]}"}, whole: 48 << 20, rights: 48 << 20},
		"many objects": {manifests: append(slices.Repeat([]string{`{"apiVersion":"v1","kind":"ConfigMap","x":[` +
			strings.Repeat(`{"":0},`, 9_900) + "0]}"}, 10), small), whole: 48 << 20, rights: 12 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			var manifests [][]byte
			for _, m := range test.manifests {
				manifests = append(manifests, []byte(m))
			}
			untrustedtest.BoundPeak(t, test.whole, func() {
				if _, err := bundles.FromManifests(manifests, nil); err != nil {
					t.Error(err)
				}
			})
			untrustedtest.BoundPeak(t, test.rights, func() {
				if _, err := bundles.ParseForRights(manifests); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestRightsOf finds the same rights as in the whole bundle, and the names of all other objects.
func TestRightsOf(t *testing.T) {
	// OLM identifies a Role by its kind.
	const role = `{"apiVersion":"example.com/v1","kind":"Role","metadata":{"name":"r"},"rules":[{"x":1}]}`
	const config = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"s"},"data":{"x":"y"}}`
	b, err := bundles.ParseForRights([][]byte{[]byte(largeCSV(2)), []byte(role), []byte(config), []byte(largeCRD(2))})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs); n != 2 || len(b.CRDs) != 0 {
		t.Errorf("%d Deployments, %d definitions", n, len(b.CRDs))
	}
	if b.Objects[1].Object["rules"] == nil {
		t.Error("the Role has no rules")
	}
	want := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "s"}}
	if diff := cmp.Diff(want, b.Objects[2].Object); diff != "" {
		t.Error(diff)
	}
	if got := b.Objects[3].GetKind() + b.Objects[3].GetName(); got != "CustomResourceDefinitionc" {
		t.Errorf("the definition is %s", got)
	}
}

// Some bundles name their folders relative to the root of the image.
func TestReadFromTheRoot(t *testing.T) {
	text := strings.ReplaceAll(annotations, ": manifests/", ": /manifests/")
	b, err := bundles.Read(bundleFS(map[string]string{"metadata/annotations.yaml": text}))
	if err != nil || len(b.Objects) == 0 || text == annotations {
		t.Errorf("read %+v of %s: %v", b, text, err)
	}
}

// TestRealBundles reads bundles of other projects.
func TestRealBundles(t *testing.T) {
	for _, name := range bundletest.Names(t) {
		b, err := bundles.Read(bundletest.Files(t, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if b.Version.String() != path.Base(name) {
			t.Errorf("%s has version %s", name, b.Version)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(csv, crd)
	f.Add("a: &a [*a]", "{}")
	f.Add(largeCSV(1000), crd)
	f.Add(csv, largeCRD(1000))
	f.Add(csv, `{"apiVersion":"v1","kind":"ConfigMap","x":[`+strings.Repeat(`{"":0},`, 2000)+"0]}")
	f.Add(csv+untrustedtest.AliasBomb("x"), crd)
	f.Fuzz(func(t *testing.T, one, two string) {
		untrustedtest.Bound(t, len(one)+len(two), 8<<20, 8<<10, func() {
			b, err := bundles.Read(bundleFS(map[string]string{"manifests/csv.yaml": one, "manifests/things.yaml": two}))
			if err != nil {
				if !errors.Is(err, bundles.ErrNotBundle) {
					t.Error(err)
				}
				return
			}
			if b.CSV == nil || b.Name == "" {
				t.Error("a bundle without its CSV")
			}
			for _, o := range b.Objects {
				if line := o.Position("spec", 0, "x"); line < 1 {
					t.Errorf("%s: line %d", o.File, line)
				}
			}
		})
	})
}
