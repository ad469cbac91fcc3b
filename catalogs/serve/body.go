// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/operator-registry/alpha/model"
	"github.com/operator-framework/operator-registry/alpha/property"
	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/protobuf/proto"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/catalogs"
)

// body is what a bundle is in every channel: pieces of an encoded api.Bundle. Pieces one after another are one message,
// by the rules of protobuf.
type body struct {
	// whole begins with everything but the manifests, which take light bytes; the manifests follow.
	whole extent
	light int32
	// recipe is a recipe for the CSV of a bundle that has only olm.csv.metadata; its size is 0 where there is none.
	recipe   extent
	image    bool
	provides []catalogs.GVK
}

// recipe is what a CSV is made of that is not in the catalog as such. It is made when somebody asks: it repeats the
// package's icon, and OLM lists bundles without it.
type recipe struct {
	Version       semver.Version       `json:"version"`
	Metadata      json.RawMessage      `json:"metadata"`
	RelatedImages []model.RelatedImage `json:"relatedImages"`
}

// newBody encodes a bundle.
func newBody(spool spool, pkg string, b *catalogs.Bundle) (*body, error) {
	out := &body{image: b.Image != "", provides: b.Provides()}
	m := model.Bundle{
		Package: &model.Package{Name: pkg}, Channel: &model.Channel{}, Name: b.Name, Image: b.Image, Version: b.Version,
	}
	var metadata []property.Property
	for _, p := range b.Properties {
		into := &m.Properties
		if p.Type == registryv1.PropertyCSVMetadata {
			into = &metadata
		}
		*into = append(*into, property.Property{Type: p.Type, Value: p.Value})
	}
	light, err := api.ConvertModelBundleToAPIBundle(m)
	if err != nil {
		return nil, err
	}
	heavy := &api.Bundle{}
	for _, o := range b.Objects {
		heavy.Object = append(heavy.Object, string(o))
		if heavy.CsvJson == "" && isCSV(o) {
			heavy.CsvJson = string(o)
		}
	}
	encoded, err := proto.Marshal(light)
	if err != nil {
		return nil, fmt.Errorf("encode bundle: %w", err)
	}
	out.light = int32(len(encoded))
	if encoded, err = (proto.MarshalOptions{}).MarshalAppend(encoded, heavy); err != nil {
		return nil, fmt.Errorf("encode manifests: %w", err)
	}
	if out.whole, err = spool.write(encoded); err != nil {
		return nil, err
	}
	if heavy.CsvJson == "" && len(metadata) > 0 {
		out.recipe, err = writeRecipe(spool, b, metadata)
	}
	return out, err
}

func isCSV(object []byte) bool {
	// Most objects are CRDs, and large.
	if !bytes.Contains(object, []byte("ClusterServiceVersion")) {
		return false
	}
	var in struct {
		Kind string `json:"kind"`
	}
	return json.Unmarshal(object, &in) == nil && in.Kind == "ClusterServiceVersion"
}

func writeRecipe(spool spool, b *catalogs.Bundle, metadata []property.Property) (extent, error) {
	// It is made much later, and what is wrong with it has to be known now.
	if _, err := property.Parse(metadata); err != nil {
		return extent{}, fmt.Errorf("parse properties: %w", err)
	}
	if len(metadata) > 1 {
		return extent{}, fmt.Errorf("%w: it has %d properties %s instead of one", errProperties, len(metadata),
			property.TypeCSVMetadata)
	}
	r := recipe{Version: b.Version, Metadata: metadata[0].Value}
	for _, i := range b.RelatedImages {
		r.RelatedImages = append(r.RelatedImages, model.RelatedImage{Name: i.Name, Image: i.Image})
	}
	text, err := json.Marshal(r)
	if err != nil {
		return extent{}, fmt.Errorf("encode metadata: %w", err)
	}
	return spool.write(text)
}

var errProperties = errors.New("wrong properties")

// reading puts messages together. Its buffer is used again for the next one: a message is only valid until then.
type reading struct {
	spool  spool
	buffer []byte
}

// listed is a bundle as ListBundles gives it: with an image, the manifests are left out, because OLM unpacks the image.
func (r *reading) listed(b *storedBundle) (*api.Bundle, error) {
	out := b.place()
	out.Replaces, out.Skips = b.Replaces, b.Skips
	if b.body.image {
		return out, r.fill(out, extent{b.body.whole.offset, b.body.light})
	}
	return out, r.whole(out, b)
}

// single is a bundle as the calls for a single one give it: without its place in the channel.
func (r *reading) single(b *storedBundle) (*api.Bundle, error) {
	out := b.place()
	return out, r.whole(out, b)
}

func (b *storedBundle) place() *api.Bundle {
	return &api.Bundle{ChannelName: b.channel, SkipRange: b.SkipRange, Deprecation: apiDeprecation(b.deprecation)}
}

func (r *reading) whole(out *api.Bundle, b *storedBundle) error {
	if b.body.recipe.size > 0 {
		if err := r.cook(out, b); err != nil {
			return fmt.Errorf("make the CSV of bundle %q: %w", b.Name, err)
		}
	}
	return r.fill(out, b.body.whole)
}

// fill adds encoded fields to a message. They stay encoded: gRPC sends fields that it does not know as they are, and
// for a message with manifests of a megabyte that is all the difference.
func (r *reading) fill(out *api.Bundle, e extent) error {
	if err := r.read(e); err != nil {
		return err
	}
	out.ProtoReflect().SetUnknown(r.buffer)
	return nil
}

func (r *reading) read(e extent) error {
	if int(e.size) > cap(r.buffer) {
		r.buffer = make([]byte, e.size)
	}
	r.buffer = r.buffer[:e.size]
	if _, err := r.spool.ReadAt(r.buffer, e.offset); err != nil {
		return fmt.Errorf("read bundle: %w", err)
	}
	return nil
}

// cook makes the CSV as operator-registry does it.
func (r *reading) cook(out *api.Bundle, b *storedBundle) error {
	if err := r.read(b.body.recipe); err != nil {
		return err
	}
	var in recipe
	if err := json.Unmarshal(r.buffer, &in); err != nil {
		return fmt.Errorf("decode metadata: %w", err)
	}
	name := b.pkg.info.GetName()
	m := model.Bundle{
		Package: &model.Package{Name: name, Description: b.pkg.description}, Channel: &model.Channel{}, Name: b.Name,
		Version:       in.Version,
		RelatedImages: in.RelatedImages,
		Properties: []property.Property{property.MustBuildPackage(name, in.Version.String()),
			{Type: property.TypeCSVMetadata, Value: in.Metadata}},
	}
	if b.pkg.icon != nil {
		m.Package.Icon = &model.Icon{Data: b.pkg.icon.Data, MediaType: b.pkg.icon.MediaType}
	}
	made, err := api.ConvertModelBundleToAPIBundle(m)
	if err != nil {
		return err
	}
	out.CsvJson = made.GetCsvJson()
	if b.body.whole.size == b.body.light {
		out.Object = made.GetObject()
	}
	return nil
}
