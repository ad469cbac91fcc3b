// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
)

// ErrNotSBOM means that a document is not an SBOM in a format that this package reads.
var ErrNotSBOM = errors.New("not an SBOM in the format SPDX 2 (JSON) or CycloneDX (JSON)")

// Component is a package in an image.
type Component struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// PURL is the package URL; empty if the SBOM has none.
	PURL string `json:"purl,omitempty"`
}

// Inventory is the content of an SBOM.
type Inventory struct {
	// Digests are the digests by which the SBOM names its subject, in the form sha256:..., sorted.
	Digests []string
	// Names are the names by which the SBOM names its subject, such as an image reference, sorted.
	Names []string
	// Components are the packages, sorted, without duplicates.
	Components []Component
}

// IsAbout reports whether the SBOM is about an image. The digest of a reference must be a digest of the subject. A
// reference without a digest must be a name of the subject.
func (i Inventory) IsAbout(image string) bool {
	if _, digest, ok := strings.Cut(image, "@"); ok {
		return slices.Contains(i.Digests, digest)
	}
	return slices.Contains(i.Names, image)
}

// maxNesting bounds the depth of nested envelopes and statements.
const maxNesting = 4

// ReadInventory reads an SBOM. Errors wrap ErrNotSBOM.
func ReadInventory(content []byte) (Inventory, error) {
	out, err := readDocument(content, maxNesting)
	if err != nil {
		return Inventory{}, err
	}
	return out.normalize(), nil
}

// header has the fields that distinguish the formats.
type header struct {
	BOMFormat   string `json:"bomFormat"`
	SPDXVersion string `json:"spdxVersion"`
	// An in-toto statement.
	Subject []struct {
		Name   string            `json:"name"`
		Digest map[string]string `json:"digest"`
	} `json:"subject"`
	Predicate json.RawMessage `json:"predicate"`
	// A DSSE envelope around a statement, and a sigstore bundle around the envelope.
	Payload  []byte          `json:"payload"`
	Envelope json.RawMessage `json:"dsseEnvelope"`
}

// readDocument reads an SBOM, or the SBOM in an envelope or statement. nesting is the number of permitted envelopes and
// statements around the SBOM.
func readDocument(content []byte, nesting int) (Inventory, error) {
	var h header
	if err := json.Unmarshal(content, &h); err != nil {
		return Inventory{}, fmt.Errorf("%w: %w", ErrNotSBOM, err)
	}
	switch {
	case h.BOMFormat != "":
		return readCycloneDX(content)
	case h.SPDXVersion != "":
		return readSPDX(content)
	case nesting == 0:
		return Inventory{}, fmt.Errorf("%w: too many envelopes", ErrNotSBOM)
	case len(h.Envelope) > 0:
		return readDocument(h.Envelope, nesting-1)
	case len(h.Payload) > 0:
		return readDocument(h.Payload, nesting-1)
	case len(h.Predicate) > 0:
		out, err := readDocument(h.Predicate, nesting-1)
		for _, s := range h.Subject { // the statement can name its subject more exactly than the SBOM
			out.Names = append(out.Names, s.Name)
			if digest := s.Digest["sha256"]; digest != "" {
				out.Digests = append(out.Digests, "sha256:"+digest)
			}
		}
		return out, err
	}
	return Inventory{}, ErrNotSBOM
}

// normalize returns the inventory with sorted lists, without duplicates and empty texts.
func (i Inventory) normalize() Inventory {
	compare := func(a, b Component) int {
		return strings.Compare(a.PURL+"\x00"+a.Name+"\x00"+a.Version, b.PURL+"\x00"+b.Name+"\x00"+b.Version)
	}
	slices.SortFunc(i.Components, compare)
	i.Components = slices.Compact(i.Components)
	for _, list := range []*[]string{&i.Digests, &i.Names} {
		slices.Sort(*list)
		*list = slices.DeleteFunc(slices.Compact(*list), func(s string) bool { return s == "" })
	}
	return i
}

// digestPattern finds digests in names, versions and package URLs, where the colon can be escaped.
var digestPattern = regexp.MustCompile(`(?i)sha256(?::|%3A)([0-9a-f]{64})`)

// addSubject adds the names of the subject, and all digests in its name, its version and its other texts.
func (i *Inventory) addSubject(name, version string, otherTexts ...string) {
	i.Names = append(i.Names, name)
	if version != "" {
		i.Names = append(i.Names, name+":"+version)
	}
	for _, text := range append(otherTexts, name, version) {
		for _, found := range digestPattern.FindAllStringSubmatch(text, -1) {
			i.Digests = append(i.Digests, "sha256:"+strings.ToLower(found[1]))
		}
	}
}

// readCycloneDX reads an SBOM in the format CycloneDX. Its subject is the component of the metadata.
func readCycloneDX(content []byte) (Inventory, error) {
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(content), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		return Inventory{}, fmt.Errorf("%w: decode CycloneDX: %w", ErrNotSBOM, err)
	}
	var out Inventory
	if bom.Metadata != nil && bom.Metadata.Component != nil {
		root := bom.Metadata.Component
		texts := []string{root.PackageURL, root.BOMRef}
		for _, h := range listElements(root.Hashes) {
			if h.Algorithm == cyclonedx.HashAlgoSHA256 {
				texts = append(texts, "sha256:"+h.Value)
			}
		}
		for _, p := range listElements(root.Properties) {
			texts = append(texts, p.Value)
		}
		out.addSubject(root.Name, root.Version, texts...)
		out.addCycloneDX(root.Components)
	}
	out.addCycloneDX(bom.Components)
	return out, nil
}

// addCycloneDX adds the packages among the components of a list, and among their nested components.
func (i *Inventory) addCycloneDX(list *[]cyclonedx.Component) {
	for _, c := range listElements(list) {
		if isPackage(c) {
			name := c.Name
			if c.Group != "" {
				name = c.Group + "/" + c.Name
			}
			i.Components = append(i.Components, Component{Name: name, Version: c.Version, PURL: c.PackageURL})
		}
		i.addCycloneDX(c.Components)
	}
}

// isPackage reports whether a component is a package, and not a file, an operating system, an image or similar. An
// application without a package URL only groups the packages of a file.
func isPackage(c cyclonedx.Component) bool {
	switch c.Type {
	case cyclonedx.ComponentTypeLibrary, cyclonedx.ComponentTypeFramework:
		return !isImage(c.PackageURL)
	case cyclonedx.ComponentTypeApplication:
		return c.PackageURL != "" && !isImage(c.PackageURL)
	default:
		return false
	}
}

func isImage(purl string) bool {
	return strings.HasPrefix(purl, "pkg:oci/") || strings.HasPrefix(purl, "pkg:docker/")
}

// readSPDX reads an SBOM in the format SPDX. Its subject are the packages that the document describes.
func readSPDX(content []byte) (Inventory, error) {
	document, err := spdxjson.Read(bytes.NewReader(content))
	if err != nil {
		return Inventory{}, fmt.Errorf("%w: decode SPDX: %w", ErrNotSBOM, err)
	}
	isDescribed := listDescribed(document)
	out := Inventory{Names: []string{document.DocumentName}}
	for _, p := range document.Packages {
		if p == nil {
			continue
		}
		purl := findPURL(p)
		if isDescribed[p.PackageSPDXIdentifier] {
			out.addSubject(p.PackageName, p.PackageVersion, append(listSHA256(p), purl, p.PackageFileName)...)
		}
		if isSPDXPackage(p, purl, isDescribed[p.PackageSPDXIdentifier]) {
			version := p.PackageVersion
			if version == "NOASSERTION" {
				version = ""
			}
			out.Components = append(out.Components, Component{Name: p.PackageName, Version: version, PURL: purl})
		}
	}
	return out, nil
}

// listSHA256 returns the SHA-256 checksums of a package, as digests.
func listSHA256(p *spdx.Package) []string {
	var out []string
	for _, c := range p.PackageChecksums {
		if c.Algorithm == common.SHA256 {
			out = append(out, "sha256:"+c.Value)
		}
	}
	return out
}

// isSPDXPackage reports whether an SPDX package is a package in the image, and not an image, an operating system, a
// file, hardware, or a subject without a package URL.
func isSPDXPackage(p *spdx.Package, purl string, isSubject bool) bool {
	switch p.PrimaryPackagePurpose {
	case "CONTAINER", "OPERATING-SYSTEM", "FILE", "DEVICE", "FIRMWARE":
		return false
	}
	return !isImage(purl) && (purl != "" || !isSubject)
}

func findPURL(p *spdx.Package) string {
	for _, r := range p.PackageExternalReferences {
		if r != nil && r.RefType == common.TypePackageManagerPURL {
			return r.Locator
		}
	}
	return ""
}

// listDescribed returns the packages that a document describes.
func listDescribed(document *spdx.Document) map[common.ElementID]bool {
	out := map[common.ElementID]bool{}
	for _, r := range document.Relationships {
		switch {
		case r == nil: // the library permits null
		case r.Relationship == common.TypeRelationshipDescribe && r.RefA.ElementRefID == document.SPDXIdentifier:
			out[r.RefB.ElementRefID] = true
		case r.Relationship == common.TypeRelationshipDescribeBy && r.RefB.ElementRefID == document.SPDXIdentifier:
			out[r.RefA.ElementRefID] = true
		}
	}
	return out
}

// listElements returns the elements of a list, which can be nil.
func listElements[T any](list *[]T) []T {
	if list == nil {
		return nil
	}
	return *list
}
