// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sbom lists what a catalog consists of, as CycloneDX: its bundles, and the images that those run, by digest.
// For images of programs in Go it lists the modules that a program was built of.
//
// Its input is a catalog, or a program's build information, in memory. It reads no image, so what is within the images
// of a catalog is for their own lists to say. The same input gives the same bytes: there is no time in them, and the
// serial number is made from the digest.
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

// MediaType is the media type of a list, and the artifact type of the manifest that attaches one to an image.
const MediaType = "application/vnd.cyclonedx+json"

const specVersion = cyclonedx.SpecVersion1_6

// Names of properties of components.
const (
	PropertyPackage = "bellwether.dev/package"
	PropertyBundle  = "bellwether.dev/bundle"
)

// ErrDiffers says that a list is not the one of the catalog that it is attached to.
var ErrDiffers = errors.New("SBOM differs from the catalog")

// Of lists a catalog as CycloneDX JSON. The catalog is known by its repository and digest.
func Of(repository, digest string, packages []*catalogs.Package) ([]byte, error) {
	root := image(repository + "@" + digest)
	root.Description = "file-based catalog of OLM"
	b := &builder{components: map[string]cyclonedx.Component{}, needs: map[string]map[string]bool{root.BOMRef: {}}}
	for _, p := range packages {
		for _, bundle := range slices.Sorted(maps.Keys(p.Bundles)) {
			b.bundle(root.BOMRef, p.Name, p.Bundles[bundle])
		}
	}
	components, dependencies := b.sorted()
	return encode(root, components, dependencies)
}

// encode writes a list, with a serial number that is made of what it lists.
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

type builder struct {
	components map[string]cyclonedx.Component
	// needs are the components that a component consists of.
	needs map[string]map[string]bool
}

func (b *builder) bundle(root, pkg string, bundle *catalogs.Bundle) {
	c := image(bundle.Image)
	if bundle.Image == "" {
		// Its manifests are in the catalog itself, so there is no image to name it by.
		c = cyclonedx.Component{Type: cyclonedx.ComponentTypeApplication, BOMRef: "bundle:" + pkg + "/" + bundle.Name,
			Name: bundle.Name}
	}
	c.Version = bundle.VersionString()
	c.Properties = &[]cyclonedx.Property{{Name: PropertyPackage, Value: pkg},
		{Name: PropertyBundle, Value: bundle.Name}}
	b.add(root, c)
	for _, related := range bundle.RelatedImages {
		if related.Image != "" && related.Image != bundle.Image {
			b.add(c.BOMRef, image(related.Image))
		}
	}
}

// add keeps the first component of a name, unless the later one knows more: an image may be a bundle and be related to
// another one.
func (b *builder) add(parent string, c cyclonedx.Component) {
	b.needs[parent][c.BOMRef] = true
	if known, ok := b.components[c.BOMRef]; !ok || known.Properties == nil {
		b.components[c.BOMRef] = c
	}
	if b.needs[c.BOMRef] == nil {
		b.needs[c.BOMRef] = map[string]bool{}
	}
}

func (b *builder) sorted() ([]cyclonedx.Component, []cyclonedx.Dependency) {
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

// image is the component of an image reference. A reference that does not parse is named by its text: a catalog may say
// anything, and the list says what it says.
func image(text string) cyclonedx.Component {
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

// Check compares a list with the catalog it is attached to: the same components, each made of the same others. Errors
// wrap ErrDiffers and name the first difference. A list that another program made in another format differs.
func Check(attached []byte, repository, digest string, packages []*catalogs.Package) error {
	have, err := decode(attached)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDiffers, err)
	}
	text, err := Of(repository, digest, packages)
	if err != nil {
		return err
	}
	want, err := decode(text)
	if err != nil {
		return err
	}
	// The repository may be another one than at the time of publishing: what was mirrored is still the same.
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

// outline is what Check compares.
type outline struct {
	// root is the hash of the catalog.
	root string
	// needs are the components other than the catalog, with what they consist of.
	needs map[string]string
}

func decode(text []byte) (outline, error) {
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		return outline{}, fmt.Errorf("decode SBOM: %w", err)
	}
	out := outline{needs: map[string]string{}}
	root := ""
	if bom.Metadata != nil && bom.Metadata.Component != nil {
		root = bom.Metadata.Component.BOMRef
		for _, h := range all(bom.Metadata.Component.Hashes) {
			out.root = h.Value
		}
	}
	for _, c := range all(bom.Components) {
		out.needs[c.BOMRef] = ""
	}
	for _, d := range all(bom.Dependencies) {
		if d.Ref != root && d.Dependencies != nil {
			out.needs[d.Ref] = strings.Join(slices.Sorted(slices.Values(*d.Dependencies)), "\n")
		}
	}
	return out, nil
}

// all are the elements of a list that may be missing.
func all[T any](list *[]T) []T {
	if list == nil {
		return nil
	}
	return *list
}
