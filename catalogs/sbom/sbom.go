// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sbom creates the SBOM of a catalog, as CycloneDX: its bundles, and the images that the bundles run, by
// digest. For images with Go programs it lists the modules of the program.
//
// Its input is a catalog, or a program's build information, in memory. It reads no image; SBOMs of the images
// themselves list their content. The same input gives the same bytes: the SBOM has no time, and its serial number is
// derived from the digest.
package sbom

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/uuid"
	"github.com/package-url/packageurl-go"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// MediaType is the media type of an SBOM, and the artifact type of the manifest that attaches an SBOM to an image.
const MediaType = "application/vnd.cyclonedx+json"

const specVersion = cyclonedx.SpecVersion1_6

// Names of properties of components.
const (
	PropertyPackage = "bellwether.dev/package"
	PropertyBundle  = "bellwether.dev/bundle"
)

// ErrDiffers means that an SBOM does not match the catalog to which it is attached.
var ErrDiffers = errors.New("SBOM differs from the catalog")

// NewCatalogSBOM returns the SBOM of a catalog as CycloneDX JSON. repository and digest identify the catalog.
func NewCatalogSBOM(repository, digest string, packages []*catalogs.Package) ([]byte, error) {
	root := newImageComponent(repository + "@" + digest)
	root.Description = "file-based catalog of OLM"
	b := &builder{components: map[string]cyclonedx.Component{}, needs: map[string]map[string]bool{root.BOMRef: {}}}
	for _, p := range packages {
		for _, bundle := range slices.Sorted(maps.Keys(p.Bundles)) {
			b.addBundle(root.BOMRef, p.Name, p.Bundles[bundle])
		}
	}
	components, dependencies := b.listSorted()
	return encode(root, components, dependencies)
}

// encode returns an SBOM as JSON. Its serial number is derived from the reference of root.
func encode(root cyclonedx.Component, components []cyclonedx.Component, dependencies []cyclonedx.Dependency) ([]byte,
	error) {
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, []byte(root.BOMRef)).URN()
	bom.Metadata = &cyclonedx.Metadata{
		Tools: &cyclonedx.ToolsChoice{Components: &[]cyclonedx.Component{{Type: cyclonedx.ComponentTypeApplication,
			Name: "bellwether"}}},
		Component: &root,
	}
	bom.Components, bom.Dependencies = &components, &dependencies
	var out bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false)
	if err := encoder.EncodeVersion(bom, specVersion); err != nil {
		return nil, fmt.Errorf("encode SBOM: %w", err)
	}
	return out.Bytes(), nil
}

// builder collects the components of an SBOM, by reference.
type builder struct {
	components map[string]cyclonedx.Component
	// needs are the components of which a component consists.
	needs map[string]map[string]bool
}

// addBundle adds a bundle as a component of root, and its related images as components of the bundle.
func (b *builder) addBundle(root, pkg string, bundle *catalogs.Bundle) {
	c := newImageComponent(bundle.Image)
	if bundle.Image == "" {
		// The manifests are in the catalog itself, so the bundle has no image to identify it.
		c = cyclonedx.Component{Type: cyclonedx.ComponentTypeApplication, BOMRef: "bundle:" + pkg + "/" + bundle.Name,
			Name: bundle.Name}
	}
	c.Version = bundle.VersionString()
	c.Properties = &[]cyclonedx.Property{{Name: PropertyPackage, Value: pkg},
		{Name: PropertyBundle, Value: bundle.Name}}
	b.addComponent(root, c)
	for _, related := range bundle.RelatedImages {
		if related.Image != "" && related.Image != bundle.Image {
			b.addComponent(c.BOMRef, newImageComponent(related.Image))
		}
	}
}

// addComponent adds a component. It replaces an existing component with the same reference only if the existing one has
// no properties: an image can be a bundle, which has properties, and also a related image of another bundle, which has
// none.
func (b *builder) addComponent(parent string, c cyclonedx.Component) {
	b.needs[parent][c.BOMRef] = true
	if existing, ok := b.components[c.BOMRef]; !ok || existing.Properties == nil {
		b.components[c.BOMRef] = c
	}
	if b.needs[c.BOMRef] == nil {
		b.needs[c.BOMRef] = map[string]bool{}
	}
}

// listSorted returns the components and their dependencies, sorted by reference.
func (b *builder) listSorted() ([]cyclonedx.Component, []cyclonedx.Dependency) {
	components := make([]cyclonedx.Component, 0, len(b.components))
	for _, ref := range slices.Sorted(maps.Keys(b.components)) {
		components = append(components, b.components[ref])
	}
	dependencies := make([]cyclonedx.Dependency, 0, len(b.needs))
	for _, ref := range slices.Sorted(maps.Keys(b.needs)) {
		needs := slices.Sorted(maps.Keys(b.needs[ref]))
		d := cyclonedx.Dependency{Ref: ref}
		if len(needs) > 0 {
			d.Dependencies = &needs
		}
		dependencies = append(dependencies, d)
	}
	return components, dependencies
}

// newImageComponent returns the component of an image reference. A reference that does not parse is identified by its
// text, because a catalog can contain any text.
func newImageComponent(text string) cyclonedx.Component {
	ref, err := name.ParseReference(text)
	if err != nil {
		return cyclonedx.Component{Type: cyclonedx.ComponentTypeContainer, BOMRef: text, Name: cmp.Or(text, "unknown")}
	}
	c := cyclonedx.Component{Type: cyclonedx.ComponentTypeContainer, Name: ref.Context().Name(),
		Version: ref.Identifier()}
	qualifiers := map[string]string{"repository_url": strings.ToLower(ref.Context().Name())}
	version := ""
	switch r := ref.(type) {
	case name.Digest:
		version = r.DigestStr()
		c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256,
			Value: strings.TrimPrefix(version, "sha256:")}}
	case name.Tag:
		qualifiers["tag"] = r.TagStr()
	}
	base := strings.ToLower(path.Base(ref.Context().RepositoryStr()))
	c.PackageURL = packageurl.NewPackageURL(packageurl.TypeOCI, "", base, version,
		packageurl.QualifiersFromMap(qualifiers), "").ToString()
	c.BOMRef = c.PackageURL
	return c
}

// Check compares an attached SBOM with the catalog: both must have the same components with the same dependencies.
// Errors wrap ErrDiffers and describe the first difference. An SBOM in another format of another program differs.
func Check(attached []byte, repository, digest string, packages []*catalogs.Package) error {
	have, err := decode(attached)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDiffers, err)
	}
	text, err := NewCatalogSBOM(repository, digest, packages)
	if err != nil {
		return err
	}
	want, err := decode(text)
	if err != nil {
		return err
	}
	// The repository can differ from the repository at the time of publishing, because a mirrored catalog is still
	// the same.
	if have.root != want.root {
		return fmt.Errorf("%w: it is the list of %s", ErrDiffers, cmp.Or(have.root, "nothing"))
	}
	for _, ref := range slices.Sorted(maps.Keys(want.needs)) {
		got, ok := have.needs[ref]
		if !ok {
			return fmt.Errorf("%w: %s is missing", ErrDiffers, ref)
		}
		if got != want.needs[ref] {
			return fmt.Errorf("%w: %s consists of other images", ErrDiffers, ref)
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(have.needs)) {
		if _, ok := want.needs[ref]; !ok {
			return fmt.Errorf("%w: the catalog has no %s", ErrDiffers, ref)
		}
	}
	return nil
}

// outline is the part of an SBOM that Check compares.
type outline struct {
	// root is the hash of the catalog.
	root string
	// needs are the components except the catalog, with their dependencies as text.
	needs map[string]string
}

// decode returns the outline of an SBOM in CycloneDX JSON.
func decode(text []byte) (outline, error) {
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		return outline{}, fmt.Errorf("decode SBOM: %w", err)
	}
	out := outline{needs: map[string]string{}}
	root := ""
	if bom.Metadata != nil && bom.Metadata.Component != nil {
		root = bom.Metadata.Component.BOMRef
		for _, h := range listElements(bom.Metadata.Component.Hashes) {
			out.root = h.Value
		}
	}
	for _, c := range listElements(bom.Components) {
		out.needs[c.BOMRef] = ""
	}
	for _, d := range listElements(bom.Dependencies) {
		if d.Ref != root && d.Dependencies != nil {
			out.needs[d.Ref] = strings.Join(slices.Sorted(slices.Values(*d.Dependencies)), "\n")
		}
	}
	return out, nil
}

// listElements returns the elements of a list, which can be nil.
func listElements[T any](list *[]T) []T {
	if list == nil {
		return nil
	}
	return *list
}
