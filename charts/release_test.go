// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/charts"
)

const both = "hub: {enabled: true}\nagent: {enabled: true, cluster: prod}\n"

// imagesOf are the images of all containers.
func imagesOf(t *testing.T, manifests []string) map[string]bool {
	t.Helper()
	images := map[string]bool{}
	for _, manifest := range manifests {
		var object struct {
			Spec struct {
				Template struct {
					Spec struct{ InitContainers, Containers []struct{ Image string } }
				}
			}
		}
		if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
			continue // it has no pods
		}
		pod := object.Spec.Template.Spec
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			images[c.Image] = true
		}
	}
	return images
}

// TestChartNamesTheImagesThatAreBuilt: everything that the chart runs is one of Images, which make images builds.
func TestChartNamesTheImagesThatAreBuilt(t *testing.T) {
	loaded := load(t)
	const gate = "hub: {enabled: true, remoteWriteGate: {enabled: true, storeURL: http://store}}\n" +
		"agent: {enabled: true, cluster: prod}\n"
	for _, values := range []string{both, gate} {
		manifests, err := render(t, loaded, values)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]bool{}
		for _, name := range charts.Images {
			want[charts.Registry+"/"+name+":"+loaded.AppVersion()] = true
		}
		if diff := cmp.Diff(want, imagesOf(t, manifests)); diff != "" {
			t.Errorf("images (-built +named):\n%s", diff)
		}
	}
}

func TestReleasedChart(t *testing.T) {
	release := charts.Release{Version: "1.2.3-rc.1", Registry: "registry.example.com:5000/team/bellwether",
		Digests: map[string]string{"hub": "sha256:" + strings.Repeat("a", 64),
			"agent": "sha256:" + strings.Repeat("b", 64)}}
	at := time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC)
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := release.Package(out, at); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same release gives another archive")
	}
	loaded, err := loader.LoadArchive(&first)
	if err != nil {
		t.Fatal(err)
	}
	if loaded.Metadata.Version != "1.2.3-rc.1" || loaded.AppVersion() != "1.2.3-rc.1" {
		t.Errorf("chart %s of version %s", loaded.Metadata.Version, loaded.AppVersion())
	}
	manifests, err := render(t, loaded, both)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for name, digest := range release.Digests {
		want[release.Registry+"/"+name+"@"+digest] = true
	}
	if diff := cmp.Diff(want, imagesOf(t, manifests)); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	// There is no other difference to the chart of the source tree.
	source := load(t)
	for _, f := range source.Raw {
		if f.Name == "Chart.yaml" || f.Name == "values.yaml" {
			continue
		}
		i := slices.IndexFunc(loaded.Raw, func(g *chart.File) bool { return g.Name == f.Name })
		if i < 0 || !bytes.Equal(loaded.Raw[i].Data, f.Data) {
			t.Errorf("%s is not in the package as it is in the tree", f.Name)
		}
	}
}

func TestCRDsAsOneFile(t *testing.T) {
	text, err := charts.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, document := range strings.Split(string(text), "\n---\n") {
		var crd struct {
			Kind string
			Spec struct{ Names struct{ Kind string } }
		}
		if err := yaml.Unmarshal([]byte(document), &crd); err != nil {
			t.Fatal(err)
		}
		if crd.Kind != "CustomResourceDefinition" {
			t.Errorf("a document is of kind %q", crd.Kind)
		}
		kinds[crd.Spec.Names.Kind] = true
	}
	if want := len(definitions(t)); len(kinds) != want {
		t.Errorf("%d kinds: %v, want %d", len(kinds), slices.Sorted(maps.Keys(kinds)), want)
	}
}
