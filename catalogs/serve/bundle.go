// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/operator-registry/alpha/model"
	"github.com/operator-framework/operator-registry/alpha/property"
	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/protobuf/proto"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
)

var errProperties = errors.New("wrong properties")

// storedBundle is the part of a bundle that is equal in every channel: an api.Bundle whose fields are in a blobStore.
type storedBundle struct {
	// fields are the encoded fields without the manifests.
	fields blob
	// manifests are the encoded fields with the manifests and the CSV.
	manifests blob
	// csvSource is an encoded csvSource, for a bundle that has the property olm.csv.metadata instead of a CSV.
	csvSource blob
	hasImage  bool
	provides  []catalogs.GVK
}

// csvSource is the data from which a CSV is generated, if the catalog has only its metadata. The CSV is generated
// when a client requests the bundle, because it contains the package's icon, and OLM lists bundles without the CSV.
type csvSource struct {
	Version       semver.Version       `json:"version"`
	Metadata      json.RawMessage      `json:"metadata"`
	RelatedImages []model.RelatedImage `json:"relatedImages"`
}

// storeBundle encodes a bundle and writes it to a store. If the catalog has only the metadata of the CSV, it also
// writes the csvSource.
func storeBundle(into blobStore, pkg string, b *catalogs.Bundle) (*storedBundle, error) {
	out := &storedBundle{hasImage: b.Image != "", provides: b.Provides()}
	m := model.Bundle{
		Package: &model.Package{Name: pkg}, Channel: &model.Channel{}, Name: b.Name, Image: b.Image, Version: b.Version,
	}
	var metadata []property.Property
	for _, p := range b.Properties {
		if p.Type == bundles.PropertyCSVMetadata {
			metadata = append(metadata, property.Property{Type: p.Type, Value: p.Value})
		} else {
			m.Properties = append(m.Properties, property.Property{Type: p.Type, Value: p.Value})
		}
	}
	fields, err := api.ConvertModelBundleToAPIBundle(m)
	if err != nil {
		return nil, err
	}
	manifests := &api.Bundle{}
	for _, o := range b.Objects {
		manifests.Object = append(manifests.Object, string(o))
		if manifests.CsvJson == "" && bundles.IsCSV(o) {
			manifests.CsvJson = string(o)
		}
	}
	if out.fields, err = storeMessage(into, fields); err != nil {
		return nil, err
	}
	if out.manifests, err = storeMessage(into, manifests); err != nil {
		return nil, err
	}
	if manifests.CsvJson == "" && len(metadata) > 0 {
		out.csvSource, err = storeCSVSource(into, b, metadata)
	}
	return out, err
}

func storeMessage(into blobStore, m *api.Bundle) (blob, error) {
	data, err := proto.Marshal(m)
	if err != nil {
		return blob{}, fmt.Errorf("encode bundle: %w", err)
	}
	return into.write(data)
}

// storeCSVSource writes the data from which the CSV of a bundle can be generated. metadata must be a single property.
func storeCSVSource(into blobStore, b *catalogs.Bundle, metadata []property.Property) (blob, error) {
	// The CSV is generated much later, but errors in the metadata must be reported when the catalog is loaded.
	if _, err := property.Parse(metadata); err != nil {
		return blob{}, fmt.Errorf("parse properties: %w", err)
	}
	if len(metadata) > 1 {
		return blob{}, fmt.Errorf("%w: it has %d properties %s instead of one", errProperties, len(metadata),
			property.TypeCSVMetadata)
	}
	source := csvSource{Version: b.Version, Metadata: metadata[0].Value}
	for _, i := range b.RelatedImages {
		source.RelatedImages = append(source.RelatedImages, model.RelatedImage{Name: i.Name, Image: i.Image})
	}
	data, err := json.Marshal(source)
	if err != nil {
		return blob{}, fmt.Errorf("encode metadata: %w", err)
	}
	return into.write(data)
}

// bundleReader reads messages from the stored blobs. It uses one buffer for all of them, so a message is valid until
// the next message is read.
type bundleReader struct {
	stored io.ReaderAt
	buffer []byte
}

// readListed returns an entry's bundle for ListBundles. A bundle with an image has no manifests there, because OLM
// unpacks the image.
func (r *bundleReader) readListed(e *entry) (*api.Bundle, error) {
	out, err := r.readMessage(e, !e.bundle.hasImage)
	if err != nil {
		return nil, err
	}
	out.Replaces, out.Skips = e.Replaces, e.Skips
	return out, nil
}

// readSingle returns an entry's bundle for calls that return a single bundle: with manifests, but without replaces
// and skips.
func (r *bundleReader) readSingle(e *entry) (*api.Bundle, error) {
	return r.readMessage(e, true)
}

// readMessage returns the message of an entry's bundle, without replaces and skips. If the catalog has no CSV of the
// bundle, a message with manifests contains the generated CSV.
func (r *bundleReader) readMessage(e *entry, withManifests bool) (*api.Bundle, error) {
	out := &api.Bundle{ChannelName: e.channel, SkipRange: e.SkipRange, Deprecation: toAPIDeprecation(e.deprecation)}
	if !withManifests {
		return out, r.addEncodedFields(out, e.bundle.fields)
	}
	if e.bundle.csvSource.size > 0 {
		if err := r.addGeneratedCSV(out, e); err != nil {
			return nil, fmt.Errorf("generate the CSV of bundle %q: %w", e.Name, err)
		}
	}
	return out, r.addEncodedFields(out, e.bundle.fields, e.bundle.manifests)
}

// addGeneratedCSV generates the CSV as operator-registry does. A bundle without manifests gets the CSV as its
// only manifest.
func (r *bundleReader) addGeneratedCSV(out *api.Bundle, e *entry) error {
	data, err := readBlobs(r.stored, nil, e.bundle.csvSource)
	if err != nil {
		return err
	}
	var in csvSource
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("decode metadata: %w", err)
	}
	name := e.pkg.info.GetName()
	m := model.Bundle{
		Package: &model.Package{Name: name, Description: e.pkg.description}, Channel: &model.Channel{}, Name: e.Name,
		Version:       in.Version,
		RelatedImages: in.RelatedImages,
		Properties: []property.Property{property.MustBuildPackage(name, in.Version.String()),
			{Type: property.TypeCSVMetadata, Value: in.Metadata}},
	}
	if e.pkg.icon != nil {
		m.Package.Icon = &model.Icon{Data: e.pkg.icon.Data, MediaType: e.pkg.icon.MediaType}
	}
	generated, err := api.ConvertModelBundleToAPIBundle(m)
	if err != nil {
		return err
	}
	out.CsvJson = generated.GetCsvJson()
	if e.bundle.manifests.size == 0 {
		out.Object = generated.GetObject()
	}
	return nil
}
