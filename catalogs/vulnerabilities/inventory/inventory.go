// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inventory reads what is in an image from its SBOM: SPDX 2 or CycloneDX, as JSON, by itself or as the
// predicate of an in-toto statement. It is pure. Signatures of statements are not verified.
package inventory

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

// ErrNotSBOM says that a document is no SBOM in a format that this package reads.
var ErrNotSBOM = errors.New("not an SBOM in the format SPDX 2 (JSON) or CycloneDX (JSON)")

// Component is a package in an image.
type Component struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// PURL is the package URL; empty where the SBOM has none.
	PURL string `json:"purl,omitempty"`
}

// Inventory is what an SBOM says.
type Inventory struct {
	// Digests are those by which the SBOM names its subject, in the form sha256:..., sorted.
	Digests []string
	// Names are those by which it names its subject, such as the reference of an image, sorted.
	Names []string
	// Components are the packages, sorted, each once.
	Components []Component
}

// Concerns reports whether the SBOM is about an image. A reference with a digest has to have one of the subject's
// digests; one with a tag only has to be one of its names.
func (i Inventory) Concerns(image string) bool {
	if _, digest, ok := strings.Cut(image, "@"); ok {
		return slices.Contains(i.Digests, digest)
	}
	return slices.Contains(i.Names, image)
}

// maxNesting bounds statements within envelopes.
const maxNesting = 4

// Read reads an SBOM. Errors wrap ErrNotSBOM.
func Read(content []byte) (Inventory, error) {
	out, err := read(content, maxNesting)
	if err != nil {
		return Inventory{}, err
	}
	return out.normalized(), nil
}

// header has the fields by which the formats are told apart.
type header struct {
	BOMFormat   string `json:"bomFormat"`
	SPDXVersion string `json:"spdxVersion"`
	// An in-toto statement.
	Subject []struct {
		Name   string            `json:"name"`
		Digest map[string]string `json:"digest"`
	} `json:"subject"`
	Predicate json.RawMessage `json:"predicate"`
	// An envelope of DSSE around a statement, and a sigstore bundle around that.
	Payload  []byte          `json:"payload"`
	Envelope json.RawMessage `json:"dsseEnvelope"`
}

func read(content []byte, nesting int) (Inventory, error) {
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
		return read(h.Envelope, nesting-1)
	case len(h.Payload) > 0:
		return read(h.Payload, nesting-1)
	case len(h.Predicate) > 0:
		out, err := read(h.Predicate, nesting-1)
		for _, s := range h.Subject {
			out.Names = append(out.Names, s.Name)
			if digest := s.Digest["sha256"]; digest != "" {
				out.Digests = append(out.Digests, "sha256:"+digest)
			}
		}
		return out, err
	}
	return Inventory{}, ErrNotSBOM
}

func (i Inventory) normalized() Inventory {
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

// digestPattern finds digests in names, versions and package URLs, where the colon may be escaped.
var digestPattern = regexp.MustCompile(`(?i)sha256(?::|%3A)([0-9a-f]{64})`)

// describe adds the texts by which an SBOM names its subject.
func (i *Inventory) describe(name, version string, others ...string) {
	i.Names = append(i.Names, name)
	if version != "" {
		i.Names = append(i.Names, name+":"+version)
	}
	for _, text := range append(others, name, version) {
		for _, found := range digestPattern.FindAllStringSubmatch(text, -1) {
			i.Digests = append(i.Digests, "sha256:"+strings.ToLower(found[1]))
		}
	}
}

func readCycloneDX(content []byte) (Inventory, error) {
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(content), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		return Inventory{}, fmt.Errorf("%w: decode CycloneDX: %w", ErrNotSBOM, err)
	}
	var out Inventory
	if bom.Metadata != nil && bom.Metadata.Component != nil {
		root := bom.Metadata.Component
		texts := []string{root.PackageURL, root.BOMRef}
		for _, h := range all(root.Hashes) {
			if h.Algorithm == cyclonedx.HashAlgoSHA256 {
				texts = append(texts, "sha256:"+h.Value)
			}
		}
		for _, p := range all(root.Properties) {
			texts = append(texts, p.Value)
		}
		out.describe(root.Name, root.Version, texts...)
		out.addCycloneDX(root.Components)
	}
	out.addCycloneDX(bom.Components)
	return out, nil
}

func (i *Inventory) addCycloneDX(list *[]cyclonedx.Component) {
	for _, c := range all(list) {
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

// isPackage leaves out files, operating systems, images and the like. Applications without a package URL only group
// what was found in a file.
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

func readSPDX(content []byte) (Inventory, error) {
	document, err := spdxjson.Read(bytes.NewReader(content))
	if err != nil {
		return Inventory{}, fmt.Errorf("%w: decode SPDX: %w", ErrNotSBOM, err)
	}
	described := describedBy(document)
	out := Inventory{Names: []string{document.DocumentName}}
	for _, p := range document.Packages {
		if p == nil {
			continue
		}
		purl := purlOf(p)
		if described[p.PackageSPDXIdentifier] {
			out.describe(p.PackageName, p.PackageVersion, append(sha256Of(p), purl, p.PackageFileName)...)
		}
		if isSPDXPackage(p, purl, described[p.PackageSPDXIdentifier]) {
			version := p.PackageVersion
			if version == "NOASSERTION" {
				version = ""
			}
			out.Components = append(out.Components, Component{Name: p.PackageName, Version: version, PURL: purl})
		}
	}
	return out, nil
}

// sha256Of are the checksums of a package, as digests.
func sha256Of(p *spdx.Package) []string {
	var out []string
	for _, c := range p.PackageChecksums {
		if c.Algorithm == common.SHA256 {
			out = append(out, "sha256:"+c.Value)
		}
	}
	return out
}

// isSPDXPackage leaves out images, operating systems, files, and a subject without a package URL.
func isSPDXPackage(p *spdx.Package, purl string, subject bool) bool {
	switch p.PrimaryPackagePurpose {
	case "CONTAINER", "OPERATING-SYSTEM", "FILE", "DEVICE", "FIRMWARE":
		return false
	}
	return !isImage(purl) && (purl != "" || !subject)
}

func purlOf(p *spdx.Package) string {
	for _, r := range p.PackageExternalReferences {
		if r != nil && r.RefType == common.TypePackageManagerPURL {
			return r.Locator
		}
	}
	return ""
}

// describedBy are the packages that a document is about.
func describedBy(document *spdx.Document) map[common.ElementID]bool {
	out := map[common.ElementID]bool{}
	for _, r := range document.Relationships {
		switch {
		case r == nil:
		case r.Relationship == common.TypeRelationshipDescribe && r.RefA.ElementRefID == document.SPDXIdentifier:
			out[r.RefB.ElementRefID] = true
		case r.Relationship == common.TypeRelationshipDescribeBy && r.RefB.ElementRefID == document.SPDXIdentifier:
			out[r.RefA.ElementRefID] = true
		}
	}
	return out
}

// all are the elements of a list that may be missing.
func all[T any](list *[]T) []T {
	if list == nil {
		return nil
	}
	return *list
}
