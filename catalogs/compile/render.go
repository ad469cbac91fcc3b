// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/distribution/reference"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"
	"github.com/operator-framework/operator-registry/pkg/registry"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
)

// Render returns the olm.bundle document of a bundle. If image is set and inline is not, the document equals the result
// of `opm render` with the migration bundle-object-to-csv-metadata, which has only the parts of the
// ClusterServiceVersion that lists and resolvers need. If image is empty, or inline is set, it equals the result of
// `opm render` without a migration, which has the manifests. Its related images also include images of volumes and of
// variables RELATED_IMAGE_*, which opm leaves out unless the bundle lists them. The error wraps ErrContent.
func Render(b *bundles.Bundle, image string, inline bool) (declcfg.Bundle, error) {
	document, _, err := renderWithManifests(b, image, inline)
	return document, err
}

// renderWithManifests is like Render, and also returns the manifests that the document has, in its order.
func renderWithManifests(b *bundles.Bundle, image string, inline bool) (declcfg.Bundle, [][]byte, error) {
	in, err := buildRegistryBundle(b, image)
	if err != nil {
		return declcfg.Bundle{}, nil, fmt.Errorf("%w: render %s: %w", ErrContent, b.Name, err)
	}
	_, props, err := registry.ObjectsAndPropertiesFromBundle(in)
	if err != nil {
		return declcfg.Bundle{}, nil, fmt.Errorf("%w: render %s: %w", ErrContent, b.Name, err)
	}
	out := declcfg.Bundle{Schema: declcfg.SchemaBundle, Name: b.Name, Package: b.Package, Image: image,
		RelatedImages: listRelatedImages(b, image)}
	for _, p := range props {
		// The properties with manifests are added below, in only one of the two forms.
		if p.Type != property.TypeBundleObject && p.Type != property.TypeCSVMetadata {
			out.Properties = append(out.Properties, p)
		}
	}
	if image != "" && !inline {
		out.Properties = append(out.Properties, property.MustBuildCSVMetadata(*b.CSV))
		return out, nil, nil
	}
	rendered, err := renderManifests(b)
	if err != nil {
		return declcfg.Bundle{}, nil, fmt.Errorf("%w: render %s: %w", ErrContent, b.Name, err)
	}
	manifests := make([][]byte, 0, len(rendered))
	for _, m := range rendered {
		out.Properties, manifests = append(out.Properties, m.property), append(manifests, m.content)
	}
	return out, manifests, nil
}

// Bundle returns a bundle in the type of package catalogs, with its manifests, and with its image if image is not
// empty. The error wraps ErrContent.
func Bundle(b *bundles.Bundle, image string) (*catalogs.Bundle, error) {
	document, manifests, err := renderWithManifests(b, image, true)
	if err != nil {
		return nil, err
	}
	out := &catalogs.Bundle{Name: b.Name, Version: b.Version}
	fillFromDocument(out, document, manifests)
	return out, nil
}

// renderedManifest is a manifest as JSON, and the property of a document that contains it.
type renderedManifest struct {
	content  []byte
	property property.Property
}

// renderManifests returns the manifests that operator-registry reads from a bundle, in the order of operator-registry.
func renderManifests(b *bundles.Bundle) ([]renderedManifest, error) {
	var out []renderedManifest
	for _, o := range selectObjects(b) {
		raw, err := json.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", o.File, err)
		}
		out = append(out, renderedManifest{content: raw, property: property.MustBuildBundleObject(raw)})
	}
	slices.SortFunc(out, func(a, b renderedManifest) int { return bytes.Compare(a.property.Value, b.property.Value) })
	return out, nil
}

// selectObjects returns the objects that operator-registry reads from a bundle folder: only the first object of
// each file.
func selectObjects(b *bundles.Bundle) []*bundles.Object {
	var out []*bundles.Object
	for i, o := range b.Objects {
		if i == 0 || o.File == "" || o.File != b.Objects[i-1].File {
			out = append(out, o)
		}
	}
	return out
}

// csvFields are the fields of the spec of a ClusterServiceVersion on which properties depend.
var csvFields = []string{"version", "release", "customresourcedefinitions", "apiservicedefinitions"}

// reduceCSV returns a ClusterServiceVersion with its name and csvFields only.
func reduceCSV(o *unstructured.Unstructured) *unstructured.Unstructured {
	spec, ok := o.Object["spec"].(map[string]any)
	if !ok {
		return o // operator-registry refuses it
	}
	kept := map[string]any{}
	for _, field := range csvFields {
		if value, ok := spec[field]; ok {
			kept[field] = value
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(),
		"metadata": map[string]any{"name": o.GetName()}, "spec": kept}}
}

// copyWithoutSchemas returns a CustomResourceDefinition without its large schemas.
func copyWithoutSchemas(o *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(o.Object)}
	spec, _ := o.Object["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	if len(versions) == 0 {
		return o
	}
	stripped := make([]any, 0, len(versions))
	for _, v := range versions {
		version, ok := v.(map[string]any)
		if !ok {
			return o // operator-registry refuses it
		}
		version = maps.Clone(version)
		delete(version, "schema")
		stripped = append(stripped, version)
	}
	spec = maps.Clone(spec)
	spec["versions"] = stripped
	out.Object["spec"] = spec
	return out
}

// buildRegistryBundle returns the bundle as operator-registry reads it from a folder, but only with what properties
// depend on: the names and versions of APIs. operator-registry encodes and decodes its objects several times.
func buildRegistryBundle(b *bundles.Bundle, image string) (*registry.Bundle, error) {
	out := registry.NewBundle(b.Name, &registry.Annotations{
		PackageName: b.Package, Channels: strings.Join(b.Channels, ","), DefaultChannelName: b.DefaultChannel,
	})
	out.BundleImage = image
	for _, o := range selectObjects(b) {
		switch o.GetKind() {
		case "ClusterServiceVersion":
			out.Add(reduceCSV(o.Unstructured))
		case "CustomResourceDefinition":
			out.Add(copyWithoutSchemas(o.Unstructured))
		}
	}
	for _, d := range b.Dependencies {
		out.Dependencies = append(out.Dependencies, &registry.Dependency{Type: d.Type, Value: d.Value})
	}
	for _, p := range b.Properties {
		out.Properties = append(out.Properties, registry.Property{Type: p.Type, Value: p.Value})
	}
	// The annotation olm.properties of the ClusterServiceVersion contains further properties.
	if text := b.CSV.GetAnnotations()[registry.PropertyKey]; text != "" {
		var more []registry.Property
		if err := json.Unmarshal([]byte(text), &more); err != nil {
			return nil, fmt.Errorf("decode annotation %s: %w", registry.PropertyKey, err)
		}
		out.Properties = append(out.Properties, more...)
	}
	out.Properties = removeDuplicates(out.Properties)
	return out, nil
}

func removeDuplicates(in []registry.Property) []registry.Property {
	var out []registry.Property
	for _, p := range in {
		isEqual := func(o registry.Property) bool { return o.Type == p.Type && string(o.Value) == string(p.Value) }
		if !slices.ContainsFunc(out, isEqual) {
			out = append(out, p)
		}
	}
	return out
}

// listRelatedImages returns the images that the operator of the bundle runs, and the bundle's own image, sorted.
// Tools that mirror a catalog copy these images.
func listRelatedImages(b *bundles.Bundle, image string) []declcfg.RelatedImage {
	var out []declcfg.RelatedImage
	add := func(image string) {
		isListed := slices.ContainsFunc(out, func(r declcfg.RelatedImage) bool { return r.Image == image })
		if image != "" && !isListed {
			out = append(out, declcfg.RelatedImage{Image: image})
		}
	}
	for _, r := range b.CSV.Spec.RelatedImages {
		out = append(out, declcfg.RelatedImage{Name: r.Name, Image: r.Image})
	}
	add(image)
	for _, i := range b.Images() {
		_, err := reference.ParseNormalizedNamed(i.Ref)
		// An annotation is for information only, and a variable might have a value that is not an image.
		isRun := i.Use != bundles.AnnotationImage
		isOtherValue := i.Use == bundles.VariableImage && err != nil
		if isRun && !isOtherValue {
			add(i.Ref)
		}
	}
	slices.SortStableFunc(out, func(a, b declcfg.RelatedImage) int {
		return cmp.Or(strings.Compare(a.Image, b.Image), strings.Compare(a.Name, b.Name))
	})
	return out
}

// fillFromDocument sets the image of a bundle, and adds the properties and related images of a document, and the
// manifests that the document has.
func fillFromDocument(b *catalogs.Bundle, d declcfg.Bundle, manifests [][]byte) {
	b.Image = d.Image
	for _, p := range d.Properties {
		if p.Type != property.TypeBundleObject {
			b.Properties = append(b.Properties, bundles.Property{Type: p.Type, Value: p.Value})
		}
	}
	b.Objects = append(b.Objects, manifests...)
	b.Inlined = b.Inlined || len(manifests) > 0
	for _, r := range d.RelatedImages {
		b.RelatedImages = append(b.RelatedImages, catalogs.RelatedImage{Name: r.Name, Image: r.Image})
	}
}

// insertProperty inserts a property before the manifests, because opm keeps manifests at the end.
func insertProperty(in []property.Property, kind string, value json.RawMessage) []property.Property {
	index := slices.IndexFunc(in, func(p property.Property) bool {
		return p.Type == property.TypeBundleObject || p.Type == property.TypeCSVMetadata
	})
	if index < 0 {
		index = len(in)
	}
	return slices.Insert(in, index, property.Property{Type: kind, Value: value})
}

// decodeIcon decodes the icon of a ClusterServiceVersion; nil if it is empty or invalid.
func decodeIcon(in operatorsv1alpha1.Icon) *catalogs.Icon {
	data, err := base64.StdEncoding.DecodeString(in.Data)
	if err != nil || len(data) == 0 {
		return nil
	}
	return &catalogs.Icon{Data: data, MediaType: in.MediaType}
}
