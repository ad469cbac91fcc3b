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
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/catalogs"
)

// Render returns the olm.bundle document of a bundle. With an image it is what `opm render` with the migration
// bundle-object-to-csv-metadata gives: what lists and resolvers need of the ClusterServiceVersion. Without one, or if
// inline is set, it is what `opm render` gives without a migration: the manifests. Its images are also those of volumes
// and of variables RELATED_IMAGE_*, which opm leaves out unless the bundle lists them. The error wraps ErrContent.
func Render(b *bundles.Bundle, image string, inline bool) (declcfg.Bundle, error) {
	in, err := registryBundle(b, image)
	if err != nil {
		return declcfg.Bundle{}, fmt.Errorf("%w: render %s: %w", ErrContent, b.Name, err)
	}
	_, props, err := registry.ObjectsAndPropertiesFromBundle(in)
	if err != nil {
		return declcfg.Bundle{}, fmt.Errorf("%w: render %s: %w", ErrContent, b.Name, err)
	}
	out := declcfg.Bundle{Schema: declcfg.SchemaBundle, Name: b.Name, Package: b.Package, Image: image,
		RelatedImages: relatedImages(b, image)}
	for _, p := range props {
		if p.Type != property.TypeBundleObject && p.Type != property.TypeCSVMetadata {
			out.Properties = append(out.Properties, p)
		}
	}
	if image != "" && !inline {
		out.Properties = append(out.Properties, property.MustBuildCSVMetadata(*b.CSV))
		return out, nil
	}
	objects, err := objects(b)
	if err != nil {
		return declcfg.Bundle{}, fmt.Errorf("%w: render %s: %w", ErrContent, b.Name, err)
	}
	out.Properties = append(out.Properties, objects...)
	return out, nil
}

// Bundle returns a bundle as catalogs have it, with its manifests, and with its image if it has one. The error wraps
// ErrContent.
func Bundle(b *bundles.Bundle, image string) (*catalogs.Bundle, error) {
	document, err := Render(b, image, true)
	if err != nil {
		return nil, err
	}
	out := &catalogs.Bundle{Name: b.Name, Version: b.Version}
	return out, fill(out, document)
}

// objects are the manifests that operator-registry reads of a bundle, in its order.
func objects(b *bundles.Bundle) ([]property.Property, error) {
	var out []property.Property
	for _, o := range read(b) {
		raw, err := json.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", o.File, err)
		}
		out = append(out, property.MustBuildBundleObject(raw))
	}
	slices.SortFunc(out, func(a, b property.Property) int { return bytes.Compare(a.Value, b.Value) })
	return out, nil
}

// read are the objects that operator-registry has after it has read the bundle's folder: one per file.
func read(b *bundles.Bundle) []*bundles.Object {
	var out []*bundles.Object
	for i, o := range b.Objects {
		if i == 0 || o.File == "" || o.File != b.Objects[i-1].File {
			out = append(out, o)
		}
	}
	return out
}

// withoutSchemas is a definition without what makes it large. Properties depend on names and versions only, and
// operator-registry decodes its objects several times.
func withoutSchemas(o *unstructured.Unstructured) *unstructured.Unstructured {
	if o.GetKind() != "CustomResourceDefinition" {
		return o
	}
	out := &unstructured.Unstructured{Object: maps.Clone(o.Object)}
	spec, _ := o.Object["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	if len(versions) == 0 {
		return o
	}
	thin := make([]any, 0, len(versions))
	for _, v := range versions {
		version, ok := v.(map[string]any)
		if !ok {
			return o // for operator-registry to refuse
		}
		version = maps.Clone(version)
		delete(version, "schema")
		thin = append(thin, version)
	}
	spec = maps.Clone(spec)
	spec["versions"] = thin
	out.Object["spec"] = spec
	return out
}

// registryBundle is the bundle as operator-registry knows it after it has read the folder, but for the schemas.
func registryBundle(b *bundles.Bundle, image string) (*registry.Bundle, error) {
	out := registry.NewBundle(b.Name, &registry.Annotations{
		PackageName: b.Package, Channels: strings.Join(b.Channels, ","), DefaultChannelName: b.DefaultChannel,
	})
	out.BundleImage = image
	for _, o := range read(b) {
		out.Add(withoutSchemas(o.Unstructured))
	}
	for _, d := range b.Dependencies {
		out.Dependencies = append(out.Dependencies, &registry.Dependency{Type: d.Type, Value: d.Value})
	}
	for _, p := range b.Properties {
		out.Properties = append(out.Properties, registry.Property{Type: p.Type, Value: p.Value})
	}
	// The annotation olm.properties of the ClusterServiceVersion holds further ones.
	if text := b.CSV.GetAnnotations()[registry.PropertyKey]; text != "" {
		var more []registry.Property
		if err := json.Unmarshal([]byte(text), &more); err != nil {
			return nil, fmt.Errorf("decode annotation %s: %w", registry.PropertyKey, err)
		}
		out.Properties = append(out.Properties, more...)
	}
	out.Properties = distinct(out.Properties)
	return out, nil
}

func distinct(in []registry.Property) []registry.Property {
	var out []registry.Property
	for _, p := range in {
		same := func(o registry.Property) bool { return o.Type == p.Type && string(o.Value) == string(p.Value) }
		if !slices.ContainsFunc(out, same) {
			out = append(out, p)
		}
	}
	return out
}

// relatedImages are those that the bundle names for its operator to run, and its own image, sorted. Tools that mirror a
// catalog copy these.
func relatedImages(b *bundles.Bundle, image string) []declcfg.RelatedImage {
	var out []declcfg.RelatedImage
	add := func(image string) {
		listed := slices.ContainsFunc(out, func(r declcfg.RelatedImage) bool { return r.Image == image })
		if image != "" && !listed {
			out = append(out, declcfg.RelatedImage{Image: image})
		}
	}
	for _, r := range b.CSV.Spec.RelatedImages {
		out = append(out, declcfg.RelatedImage{Name: r.Name, Image: r.Image})
	}
	add(image)
	for _, i := range b.Images() {
		_, err := reference.ParseNormalizedNamed(i.Ref)
		if i.Use != bundles.AnnotationImage && (err == nil || i.Use != bundles.VariableImage) {
			add(i.Ref)
		}
	}
	slices.SortStableFunc(out, func(a, b declcfg.RelatedImage) int {
		return cmp.Or(strings.Compare(a.Image, b.Image), strings.Compare(a.Name, b.Name))
	})
	return out
}

// fill adds to a bundle of the package what its document says.
func fill(b *catalogs.Bundle, d declcfg.Bundle) error {
	b.Image = d.Image
	for _, p := range d.Properties {
		if p.Type != property.TypeBundleObject {
			b.Properties = append(b.Properties, registryv1.Property{Type: p.Type, Value: p.Value})
			continue
		}
		var object property.BundleObject
		if err := json.Unmarshal(p.Value, &object); err != nil {
			return fmt.Errorf("%w: decode %s of %s: %w", ErrContent, p.Type, d.Name, err)
		}
		b.Objects, b.Inlined = append(b.Objects, object.Data), true
	}
	for _, r := range d.RelatedImages {
		b.RelatedImages = append(b.RelatedImages, catalogs.RelatedImage{Name: r.Name, Image: r.Image})
	}
	return nil
}

// insertProperty puts a property before the manifests, which opm keeps at the end.
func insertProperty(in []property.Property, kind string, value json.RawMessage) []property.Property {
	at := slices.IndexFunc(in, func(p property.Property) bool {
		return p.Type == property.TypeBundleObject || p.Type == property.TypeCSVMetadata
	})
	if at < 0 {
		at = len(in)
	}
	return slices.Insert(in, at, property.Property{Type: kind, Value: value})
}

// iconOf decodes the picture of a ClusterServiceVersion; nil if it is none.
func iconOf(in operatorsv1alpha1.Icon) *catalogs.Icon {
	data, err := base64.StdEncoding.DecodeString(in.Data)
	if err != nil || len(data) == 0 {
		return nil
	}
	return &catalogs.Icon{Data: data, MediaType: in.MediaType}
}
