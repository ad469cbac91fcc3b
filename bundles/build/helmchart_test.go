// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

const chartYAML = "apiVersion: v2\nname: c\nversion: 1.2.3\n"

// entry is a file of an archive.
type entry struct {
	name, text string
	kind       byte
}

func archive(t *testing.T, entries ...entry) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	w := tar.NewWriter(packed)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: 0o644, Typeflag: e.kind, Size: int64(len(e.text))}
		if e.kind == tar.TypeSymlink || e.kind == tar.TypeLink {
			header.Linkname, header.Size = "/etc/passwd", 0
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if header.Size > 0 {
			if _, err := w.Write([]byte(e.text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), packed.Close()); err != nil {
		t.Fatal(err)
	}
	return &out
}

func TestReadArchiveRefuses(t *testing.T) {
	chart := entry{"c/Chart.yaml", chartYAML, tar.TypeReg}
	nested := archive(t, entry{"d/Chart.yaml", strings.Replace(chartYAML, "name: c", "name: d", 1), tar.TypeReg},
		entry{"d/x", "", tar.TypeSymlink}).String()
	for name, test := range map[string]struct {
		entries []entry
		want    string
	}{
		"no chart":     {[]entry{{"c/readme", "x", tar.TypeReg}}, "Chart.yaml file is missing"},
		"broken chart": {[]entry{{"c/Chart.yaml", "a: [", tar.TypeReg}}, "cannot load Chart.yaml"},
		"up": {[]entry{chart, {"c/../../x", "x", tar.TypeReg}},
			`"c/../../x", outside of the chart`},
		"up on Windows": {[]entry{chart, {`c\..\x`, "x", tar.TypeReg}}, "outside of the chart"},
		"absolute":      {[]entry{chart, {"/etc/x", "x", tar.TypeReg}}, "outside of the chart"},
		"a link": {[]entry{chart, {"c/templates/x.yaml", "", tar.TypeSymlink}},
			`a link or a device, "c/templates/x.yaml"`},
		"a hard link": {[]entry{chart, {"c/templates/x.yaml", "", tar.TypeLink}}, "a link or a device"},
		"a link in a chart of it": {[]entry{chart, {"c/charts/d-1.2.3.tgz", nested, tar.TypeReg}},
			"dependency charts/d-1.2.3.tgz"},
		"beside": {[]entry{chart, {"x", "x", tar.TypeReg}}, "beside the chart's folder"},
		"50 MB": {[]entry{chart, {"c/x", strings.Repeat("x", 50<<20), tar.TypeReg}},
			"more than 32 MiB"},
		"a library": {[]entry{{"c/Chart.yaml", chartYAML + "type: library\n", tar.TypeReg}},
			"is a library chart"},
		"a missing dependency": {[]entry{{"c/Chart.yaml", chartYAML +
			"dependencies: [{name: d, version: 1.0.0, repository: 'https://example.com'}]\n", tar.TypeReg}},
			"its dependency d is not in charts/"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ReadChartArchive(archive(t, test.entries...)); !errors.Is(err, ErrChart) ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an ErrChart with %q", err, test.want)
			}
		})
	}
	whole := archive(t, chart).Bytes()
	for name, text := range map[string][]byte{"no archive": []byte("hello"), "nothing": nil,
		"half": whole[:len(whole)/2]} {
		if _, err := ReadChartArchive(bytes.NewReader(text)); !errors.Is(err, ErrChart) {
			t.Errorf("%s: got %v, want ErrChart", name, err)
		}
	}
}

// folderOf returns the folder of a chart with additional files.
func folderOf(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{"Chart.yaml": {Data: []byte(chartYAML)}}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func TestRender(t *testing.T) {
	files := map[string]string{
		"values.yaml":            "name: from-chart\n",
		"crds/crd.yaml":          "kind: CRD\n",
		".helmignore":            "templates/ignored.yaml\n",
		"templates/ignored.yaml": "{{ fail \"rendered\" }}",
		"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Values.name }}, namespace: " +
			"{{ .Release.Namespace }}}\n",
		"templates/b.yaml": "{{- if .Capabilities.APIVersions.Has \"monitoring.coreos.com/v1\" }}\napiVersion: " +
			"v1\nkind: Secret\n{{- end }}\n",
		"templates/hook.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: h, annotations: {helm.sh/hook: " +
			"post-install}}\n",
		"templates/test.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: t, annotations: {helm.sh/hook: test}}\n",
		"templates/NOTES.txt": "notes",
	}
	fsys := folderOf(files)
	folder, err := ReadChartDir(fsys)
	if err != nil {
		t.Fatal(err)
	}
	var entries []entry
	for _, name := range slices.Sorted(maps.Keys(fsys)) {
		if name != "templates/ignored.yaml" {
			entries = append(entries, entry{"c/" + name, string(fsys[name].Data), tar.TypeReg})
		}
	}
	packed, err := ReadChartArchive(archive(t, entries...))
	if err != nil {
		t.Fatal(err)
	}
	want := &RenderedChart{
		Sources: []Source{
			{Name: "c/crds/crd.yaml", Text: []byte("kind: CRD\n")},
			{Name: "c/templates/b.yaml", Where: "c/templates/b.yaml", Text: []byte("apiVersion: v1\nkind: Secret")},
			{Name: "c/templates/a.yaml", Where: "c/templates/a.yaml",
				Text: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-values, namespace: ns}")},
		},
		Warnings: []string{"Pod h (c/templates/hook.yaml) is left out: it is a hook of Helm, and OLM runs no hooks"},
	}
	for name, c := range map[string]*Chart{"folder": folder, "archive": packed} {
		got, err := c.Render(ChartOptions{Namespace: "ns", Values: map[string]any{"name": "from-values"},
			APIVersions: []string{"monitoring.coreos.com/v1"}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRenderRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		files   map[string]string
		options ChartOptions
		want    string
	}{
		"random values": {map[string]string{"templates/a.yaml": "kind: {{ randAlphaNum 20 }}"}, ChartOptions{},
			"c/templates/a.yaml renders differently each time"},
		"certificates": {map[string]string{"templates/a.yaml": "{{ $ca := genCA \"c\" 1 }}\nkind: {{ $ca.Cert | " +
			"b64enc }}"}, ChartOptions{}, "renders differently each time"},
		"fail":            {map[string]string{"templates/a.yaml": `{{ fail "set name" }}`}, ChartOptions{}, "set name"},
		"broken template": {map[string]string{"templates/a.yaml": "{{ if }}"}, ChartOptions{}, "c/templates/a.yaml:1"},
		"broken YAML": {map[string]string{"templates/a.yaml": "a: ["}, ChartOptions{},
			"YAML parse error on c/templates/a.yaml"},
		"broken version": {nil, ChartOptions{KubeVersion: "new"}, `Kubernetes version "new"`},
		"old Kubernetes": {map[string]string{"Chart.yaml": chartYAML + "kubeVersion: '>=1.40.0-0'\n"}, ChartOptions{},
			"it needs Kubernetes >=1.40.0-0"},
		"schema": {map[string]string{"values.schema.json": `{"properties": {"name": {"type": "string"}}}`},
			ChartOptions{Values: map[string]any{"name": 7}}, "values don't meet"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := ReadChartDir(folderOf(test.files))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Render(test.options); !errors.Is(err, ErrChart) ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an ErrChart with %q", err, test.want)
			}
		})
	}
}

func TestReadDirRefuses(t *testing.T) {
	link := folderOf(nil)
	link["templates/x.yaml"] = &fstest.MapFile{Mode: fs.ModeSymlink}
	large := folderOf(nil)
	large["x"] = &fstest.MapFile{Data: make([]byte, 50<<20)}
	for name, fsys := range map[string]fs.FS{"a link": link, "50 MB": large, "no chart": fstest.MapFS{"x": {}}} {
		if _, err := ReadChartDir(fsys); !errors.Is(err, ErrChart) {
			t.Errorf("%s: got %v, want ErrChart", name, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	c, err := ReadChartDir(folderOf(map[string]string{"Chart.yaml": chartYAML +
		"kubeVersion: '>= 1.30'\nmaintainers: [{name: Anna, email: a@example.com}]\nannotations: " +
		"{artifacthub.io/operatorCapabilities: Deep Insights}\n"}))
	if err != nil {
		t.Fatal(err)
	}
	d := c.Defaults()
	got := []string{d.Package, d.Version, d.About.MinKubeVersion, d.About.Provider, d.About.Capabilities}
	if diff := cmp.Diff([]string{"c", "1.2.3", "1.30.0", "Anna", "Deep Insights"}, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	c, err = ReadChartDir(folderOf(map[string]string{"Chart.yaml": "apiVersion: v2\nname: c\nversion: " +
		"1.2.3-rc.1\nkubeVersion: '~1.30'\n"}))
	if err != nil {
		t.Fatal(err)
	}
	if d := c.Defaults(); d.Version != "" || d.About.MinKubeVersion != "" {
		t.Errorf("from a pre-release and an odd constraint came %q and %q", d.Version, d.About.MinKubeVersion)
	}
}

// FuzzReadArchive reads random archives. The call must end with ErrChart or with a chart.
func FuzzReadArchive(f *testing.F) {
	var good bytes.Buffer
	packed := gzip.NewWriter(&good)
	w := tar.NewWriter(packed)
	if err := w.WriteHeader(&tar.Header{Name: "c/Chart.yaml", Size: int64(len(chartYAML)),
		Typeflag: tar.TypeReg}); err != nil {
		f.Fatal(err)
	}
	if _, err := w.Write([]byte(chartYAML)); err != nil {
		f.Fatal(err)
	}
	if err := errors.Join(w.Close(), packed.Close()); err != nil {
		f.Fatal(err)
	}
	f.Add(good.Bytes())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		untrustedtest.Bound(t, len(text), 64<<20, 8<<10, func() {
			c, err := ReadChartArchive(bytes.NewReader(text))
			if err != nil && !errors.Is(err, ErrChart) {
				t.Errorf("got %v, want ErrChart", err)
			}
			if err == nil && c.chart.Name() == "" {
				t.Error("a chart without a name was read")
			}
		})
	})
}
