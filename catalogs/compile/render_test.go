// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"
	"github.com/operator-framework/operator-registry/pkg/image"
	"github.com/operator-framework/operator-registry/pkg/registry"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/bundletest"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
)

// TestRenderAsOpmDoes compares the result with operator-registry, which reads the bundle folder independently, as
// opm does. (The output of opm render was also compared manually, with and without bundle-object-to-csv-metadata,
// and was equal.)
func TestRenderAsOpmDoes(t *testing.T) {
	const ref = "registry.example.com/bundle@sha256:1111111111111111111111111111111111111111111111111111111111111111"
	for _, name := range bundletest.Names(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, bundletest.Files(t, name)); err != nil {
				t.Fatal(err)
			}
			theirs, err := registry.NewImageInput(image.SimpleReference(ref), dir)
			if err != nil {
				t.Fatal(err)
			}
			_, want, err := registry.ObjectsAndPropertiesFromBundle(theirs.Bundle)
			if err != nil {
				t.Fatal(err)
			}
			ours := bundletest.Read(t, name)
			inline, err := compile.Render(ours, ref, true)
			if err != nil {
				t.Fatal(err)
			}
			got := slices.Clone(inline.Properties)
			byTypeAndValue := func(a, b property.Property) int {
				return strings.Compare(a.Type+string(a.Value), b.Type+string(b.Value))
			}
			slices.SortFunc(got, byTypeAndValue)
			slices.SortFunc(want, byTypeAndValue)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("opm (-) and we (+):\n%s", diff)
			}
			checkMetadata(t, ours, ref)
		})
	}
}

// TestRenderOfAPIServicesAsOpmDoes has what no published bundle has: a release, and APIs that are not of definitions.
func TestRenderOfAPIServicesAsOpmDoes(t *testing.T) {
	b, err := bundles.FromManifests([][]byte{[]byte(`
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: e.v1.0.0}
spec:
  version: 1.0.0
  release: "2"
  customresourcedefinitions:
    required: [{name: needs.e.example.com, version: v1, kind: Need}]
  apiservicedefinitions:
    owned: [{name: served, group: e.example.com, version: v1, kind: Served}]
    required: [{name: used, group: f.example.com, version: v2, kind: Used}]
  install: {strategy: deployment, spec: {deployments: []}}
`)}, map[string]string{bundles.AnnotationPackage: "e", bundles.AnnotationChannels: "stable"})
	if err != nil {
		t.Fatal(err)
	}
	theirs := registry.NewBundle(b.Name, &registry.Annotations{PackageName: "e", Channels: "stable"})
	theirs.Add(b.Objects[0].Unstructured)
	_, want, err := registry.ObjectsAndPropertiesFromBundle(theirs)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := compile.Render(b, "", true)
	if err != nil {
		t.Fatal(err)
	}
	byType := func(a, b property.Property) int { return strings.Compare(a.Type, b.Type) }
	slices.SortStableFunc(want, byType)
	slices.SortStableFunc(ours.Properties, byType)
	if diff := cmp.Diff(want, ours.Properties); diff != "" {
		t.Errorf("opm (-) and we (+):\n%s", diff)
	}
}

// checkMetadata compares the property that replaces the manifests.
func checkMetadata(t *testing.T, b *bundles.Bundle, ref string) {
	t.Helper()
	d, err := compile.Render(b, ref, false)
	if err != nil {
		t.Fatal(err)
	}
	last := d.Properties[len(d.Properties)-1]
	if want := property.MustBuildCSVMetadata(*b.CSV); last.Type != want.Type ||
		string(last.Value) != string(want.Value) {
		t.Errorf("the last property is %s %s", last.Type, last.Value)
	}
	for _, p := range d.Properties {
		if p.Type == property.TypeBundleObject {
			t.Error("a bundle with an image carries manifests")
		}
	}
	if d.Image != ref || !slices.ContainsFunc(d.RelatedImages,
		func(r declcfg.RelatedImage) bool { return r.Image == ref }) {
		t.Errorf("its image is %q and its related images are %v", d.Image, d.RelatedImages)
	}
}

// TestRenderListsEveryImage checks the listed images, because tools that mirror a catalog copy them.
func TestRenderListsEveryImage(t *testing.T) {
	b, err := bundles.FromManifests([][]byte{[]byte(`
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: e.v1.0.0, annotations: {containerImage: r/annotation}}
spec:
  version: 1.0.0
  relatedImages: [{name: listed, image: r/listed}, {name: web, image: r/web}]
  install:
    strategy: deployment
    spec:
      deployments:
      - name: d
        spec:
          template:
            spec:
              initContainers: [{name: i, image: r/init}]
              containers: [{name: web, image: r/web, env: [{name: RELATED_IMAGE_A, value: r/variable},
                {name: RELATED_IMAGE_B, value: $(A)/b}]}]
              volumes: [{name: v, image: {reference: r/volume}}]
`)}, map[string]string{bundles.AnnotationPackage: "e", bundles.AnnotationChannels: "stable"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := compile.Render(b, "r/bundle", false)
	if err != nil {
		t.Fatal(err)
	}
	want := []declcfg.RelatedImage{{Image: "r/bundle"}, {Image: "r/init"}, {Name: "listed", Image: "r/listed"},
		{Image: "r/variable"}, {Image: "r/volume"}, {Name: "web", Image: "r/web"}}
	if diff := cmp.Diff(want, d.RelatedImages); diff != "" {
		t.Errorf("related images (-want +got):\n%s", diff)
	}
}
