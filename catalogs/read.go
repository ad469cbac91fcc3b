// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// Schemas of the documents of a file-based catalog.
const (
	schemaPackage     = "olm.package"
	schemaChannel     = "olm.channel"
	schemaBundle      = "olm.bundle"
	schemaDeprecation = "olm.deprecations"
)

// Files walks over the files of a catalog: it calls visit once for each file, in a stable order, and returns the
// first error of visit. The reader is valid during the call only.
type Files func(visit func(name string, content io.Reader) error) error

// SingleFile returns a catalog that consists of one file.
func SingleFile(name string, content io.Reader) Files {
	return func(visit func(string, io.Reader) error) error { return visit(name, content) }
}

// ReadPackage reads one package. It keeps nothing of other packages, so its memory is bounded by this package and the
// largest document. Errors wrap ErrNotCatalog, ErrNoPackage or ErrInvalidPackage, or are errors of the files.
func ReadPackage(files Files, name string) (*Package, error) {
	packages, err := ReadPackages(files, name)
	if err != nil {
		return nil, err
	}
	return packages[0], nil
}

// ReadPackageWithManifests is like ReadPackage, but keeps the manifests of the named bundles only. The upgrade graph is
// complete, and memory is bounded by the named bundles and the largest document.
func ReadPackageWithManifests(files Files, name string, bundles ...string) (*Package, error) {
	return DefaultBudget.ReadPackageWithManifests(files, name, bundles...)
}

// ReadPackageWithManifests is the function ReadPackageWithManifests with the budget b instead of DefaultBudget.
func (b Budget) ReadPackageWithManifests(files Files, name string, withManifests ...string) (*Package, error) {
	r := newReader(b, func(pkg string) bool { return pkg == name })
	r.canSkip = newUnneededBundleFilter([]string{name})
	r.keepsProperty = func(p bundles.Property, bundle string) bool {
		isManifest := p.Type == bundles.PropertyBundleObject || p.Type == bundles.PropertyCSVMetadata
		return !isManifest || slices.Contains(withManifests, bundle)
	}
	if err := r.read(files); err != nil {
		return nil, err
	}
	return r.assemble(name)
}

// ReadPackages is like ReadPackage for several packages, and reads the files once. The result has the order of names.
func ReadPackages(files Files, names ...string) ([]*Package, error) {
	r := newReader(DefaultBudget, func(pkg string) bool { return slices.Contains(names, pkg) })
	r.canSkip = newUnneededBundleFilter(names)
	if err := r.read(files); err != nil {
		return nil, err
	}
	out := make([]*Package, 0, len(names))
	for _, name := range names {
		p, err := r.assemble(name)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// ReadAll reads every package, sorted by name. It needs as much memory as the catalog has content.
func ReadAll(files Files) ([]*Package, error) {
	r := newReader(unlimited, func(string) bool { return true })
	if err := r.read(files); err != nil {
		return nil, err
	}
	var out []*Package
	for _, name := range slices.Sorted(maps.Keys(r.drafts)) {
		p, err := r.assemble(name)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// reader collects the documents of the packages that needsPackage selects. Documents can have any order.
type reader struct {
	needsPackage func(pkg string) bool
	// canSkip, if set, reports whether a document can be skipped without parsing it.
	canSkip func(doc []byte) bool
	// keepsProperty reports whether a property of a bundle is kept.
	keepsProperty func(p bundles.Property, bundle string) bool
	drafts        map[string]*draft
	// packageNames are the names of all packages in the catalog, for the message about a missing package.
	packageNames map[string]bool
	documents    int
	skipped      bool
	// joinsHeads makes assemble join the heads of a channel that has several heads.
	joinsHeads bool
	// summaryOnly leaves out fields that are needed only to install or show a package.
	summaryOnly bool
	// budget bounds keptBytes, which estimates the memory of the kept documents.
	budget    Budget
	keptBytes int
}

// draft is a package whose documents are being read.
type draft struct {
	declared bool
	pkg      *Package
	// deprecations are applied after everything that they refer to has been read. They are in one document.
	deprecations    []deprecationEntry
	hasDeprecations bool
	blocks          []Block
	problems        problems
	// cost estimates the memory of this draft, in bytes.
	cost int
	// values are the property values by their text. Bundles share equal values, because versions of an operator have
	// most property values in common.
	values map[string]json.RawMessage
}

func newReader(budget Budget, needsPackage func(string) bool) *reader {
	return &reader{needsPackage: needsPackage, budget: cmp.Or(budget, DefaultBudget),
		keepsProperty: func(bundles.Property, string) bool { return true },
		drafts:        map[string]*draft{}, packageNames: map[string]bool{}}
}

// read reads all files into drafts.
func (r *reader) read(files Files) error {
	err := files(func(name string, content io.Reader) error {
		if err := r.readFile(content); err != nil {
			return fmt.Errorf("read catalog file %q: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.checkCatalog()
}

// checkCatalog returns an error if the input was not a catalog.
func (r *reader) checkCatalog() error {
	if r.documents == 0 {
		return fmt.Errorf("%w: it has no documents", ErrNotCatalog)
	}
	// Skipped documents are bundles, so the input is a catalog.
	if len(r.packageNames) == 0 && !r.skipped {
		return fmt.Errorf("%w: it has %d documents, none of them a package", ErrNotCatalog, r.documents)
	}
	return nil
}

func (r *reader) readFile(content io.Reader) error {
	documents := newDocumentReader(content)
	for n := 1; ; n++ {
		doc, err := documents.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = r.add(doc, documents.line)
		}
		if err != nil {
			return fmt.Errorf("document %d: %w", n, err)
		}
	}
}

// document has the fields of all schemas, so that one pass over the bytes decodes any of them.
type document struct {
	Schema  string `json:"schema"`
	Package string `json:"package"`
	Name    string `json:"name"`

	// olm.package
	DefaultChannel string `json:"defaultChannel"`
	Description    string `json:"description"`
	Icon           *Icon  `json:"icon"`

	// olm.channel and olm.deprecations
	Entries json.RawMessage `json:"entries"`

	// bellwether.dev/blocks
	Blocks []Block `json:"blocks"`

	// olm.bundle
	Image         string             `json:"image"`
	Properties    []bundles.Property `json:"properties"`
	RelatedImages []RelatedImage     `json:"relatedImages"`
}

// add adds a document to the draft of its package. A wrong document is recorded as a problem of the package; an error
// means that the catalog cannot be read, or exceeds a limit. line is the first line of the document in its file.
func (r *reader) add(doc []byte, line int) error {
	if r.documents++; r.documents > maxDocuments {
		return fmt.Errorf("%w: it has more than %d documents", ErrNotCatalog, maxDocuments)
	}
	if r.canSkip != nil && r.canSkip(doc) {
		r.skipped = true
		return nil
	}
	var in document
	if err := decode(doc, line, &in); err != nil {
		return err
	}
	pkg := in.Package
	switch in.Schema {
	case "":
		return fmt.Errorf("%w: the document has no schema", ErrNotCatalog)
	case schemaPackage:
		pkg = in.Name
		if err := r.addName(pkg); err != nil {
			return err
		}
	case schemaChannel, schemaBundle, schemaDeprecation, SchemaBlocks: // the package is in.Package
	default:
		// Documents of other schemas belong to other tools.
		return nil
	}
	if !r.needsPackage(pkg) {
		return nil
	}
	if r.summaryOnly {
		in.Description, in.Icon, in.Image, in.RelatedImages = "", nil, "", nil
	}
	d := r.ensureDraft(pkg)
	costBefore := d.cost
	if err := d.add(in, r.keepsProperty); err != nil {
		// A wrong document makes its package invalid, not the catalog.
		d.addProblem(err)
	}
	return r.spend(pkg, d.cost-costBefore)
}

// addName records the name of a package.
func (r *reader) addName(pkg string) error {
	if r.packageNames[pkg] {
		return nil
	}
	r.packageNames[pkg] = true
	if len(r.packageNames) > maxPackages {
		return fmt.Errorf("%w: it has more than %d packages", ErrNotCatalog, maxPackages)
	}
	return r.spend(pkg, costPackage+len(pkg))
}

// ensureDraft returns the draft of a package, and creates it if necessary.
func (r *reader) ensureDraft(pkg string) *draft {
	d, ok := r.drafts[pkg]
	if !ok {
		d = &draft{pkg: &Package{Name: pkg, Channels: map[string]*Channel{}, Bundles: map[string]*Bundle{}},
			values: map[string]json.RawMessage{}}
		r.drafts[pkg] = d
	}
	return d
}

// assemble returns the valid package of a draft, with its deprecations and blocks applied. The error wraps ErrNoPackage
// or ErrInvalidPackage.
func (r *reader) assemble(name string) (*Package, error) {
	d, ok := r.drafts[name]
	if !ok {
		return nil, fmt.Errorf("%w %q: %s", ErrNoPackage, name, suggest(name, slices.Sorted(maps.Keys(r.packageNames))))
	}
	if !d.declared {
		return nil, fmt.Errorf("%w %q: it has channels or bundles but no %s document", ErrInvalidPackage, name,
			schemaPackage)
	}
	d.applyDeprecations()
	if len(d.problems) > 0 {
		return nil, fmt.Errorf("%w %q: %w", ErrInvalidPackage, name, errors.Join(d.problems...))
	}
	if r.joinsHeads && d.pkg.checkSize() == nil {
		d.pkg.joinHeads()
	}
	if err := d.pkg.Validate(); err != nil {
		return nil, err
	}
	if len(d.blocks) > 0 {
		return d.pkg.WithBlocked(d.blocks...)
	}
	return d.pkg, nil
}

// add adds a document to the draft. An error means that the package is invalid.
func (d *draft) add(in document, keepsProperty func(bundles.Property, string) bool) error {
	switch in.Schema {
	case schemaPackage:
		return d.addPackage(in)
	case schemaChannel:
		return d.addChannel(in)
	case schemaBundle:
		return d.addBundle(in, keepsProperty)
	case SchemaBlocks:
		d.blocks = append(d.blocks, in.Blocks...)
		for _, b := range in.Blocks {
			d.cost += b.estimateCost()
		}
		return nil
	default:
		return d.addDeprecations(in)
	}
}

// addPackage sets the fields of the package. A second document is an error.
func (d *draft) addPackage(in document) error {
	if d.declared {
		return errors.New("the package is declared twice")
	}
	d.declared = true
	d.pkg.DefaultChannel, d.pkg.Description, d.pkg.Icon = in.DefaultChannel, in.Description, in.Icon
	d.cost += costPackage + len(in.DefaultChannel) + len(in.Description)
	if in.Icon != nil {
		d.cost += len(in.Icon.Data) + len(in.Icon.MediaType)
	}
	return nil
}

// addChannel adds a channel with its entries. A channel without a name or with a name in use is an error.
func (d *draft) addChannel(in document) error {
	if in.Name == "" {
		return errors.New("a channel has no name")
	}
	if d.pkg.Channels[in.Name] != nil {
		return fmt.Errorf("channel %q is declared twice", in.Name)
	}
	c := &Channel{Name: in.Name}
	if len(in.Entries) > 0 {
		if err := json.Unmarshal(in.Entries, &c.Entries); err != nil {
			return fmt.Errorf("decode entries of channel %q: %w", in.Name, err)
		}
		c.Entries = slices.Clone(c.Entries) // the decoder allocates more capacity than needed
	}
	d.cost += costChannel + len(in.Name)
	for _, e := range c.Entries {
		d.cost += e.estimateCost()
	}
	d.pkg.Channels[in.Name] = c
	return nil
}

// addBundle adds a bundle with the properties that keepsProperty selects.
func (d *draft) addBundle(in document, keepsProperty func(bundles.Property, string) bool) error {
	if in.Name == "" {
		return errors.New("a bundle has no name")
	}
	if d.pkg.Bundles[in.Name] != nil {
		return fmt.Errorf("bundle %q is declared twice", in.Name)
	}
	b := &Bundle{Name: in.Name, Image: in.Image, RelatedImages: in.RelatedImages}
	if err := b.readVersion(d.pkg.Name, in.Properties); err != nil {
		return fmt.Errorf("bundle %q: %w", in.Name, err)
	}
	if err := b.addProperties(in.Properties, keepsProperty); err != nil {
		return fmt.Errorf("bundle %q: %w", in.Name, err)
	}
	d.addGraphBundle(b)
	return nil
}

// addGraphBundle adds b to the draft and lets its properties share values with other bundles.
func (d *draft) addGraphBundle(b *Bundle) {
	for i, p := range b.Properties {
		if shared, ok := d.values[string(p.Value)]; ok {
			b.Properties[i].Value = shared
			d.cost -= len(p.Value)
			continue
		}
		if len(p.Value) <= maxShared {
			d.values[string(p.Value)] = p.Value
			d.cost += costProperty + len(p.Value)
		}
	}
	d.cost += b.estimateCost()
	d.pkg.Bundles[b.Name] = b
}

// maxShared bounds the length of shared property values. Larger values differ from version to version.
const maxShared = 512

// addProblem records a reason why the package is invalid, and counts the memory that the reason needs.
func (d *draft) addProblem(err error) {
	if d.problems.add(err) {
		d.cost += costProblem + len(err.Error())
	}
}

// readVersion sets the bundle's version and release from its olm.package property. It is an error if the bundle does
// not have exactly one such property, or if the property names another package.
func (b *Bundle) readVersion(pkg string, properties []bundles.Property) error {
	found := 0
	for _, p := range properties {
		if p.Type != bundles.PropertyPackage {
			continue
		}
		var in struct {
			PackageName string `json:"packageName"`
			Version     string `json:"version"`
			Release     string `json:"release"`
		}
		if err := json.Unmarshal(p.Value, &in); err != nil {
			return fmt.Errorf("decode property %s: %w", bundles.PropertyPackage, err)
		}
		if in.PackageName != pkg {
			return fmt.Errorf("its property %s names package %q", bundles.PropertyPackage, in.PackageName)
		}
		version, err := semver.Parse(in.Version)
		if err != nil {
			return fmt.Errorf("its version %q is not semantic: %w", in.Version, err)
		}
		b.Version, b.Release = version, in.Release
		found++
	}
	if found != 1 {
		return fmt.Errorf("it has %d properties %s instead of one", found, bundles.PropertyPackage)
	}
	return nil
}

// addProperties adds those properties to the bundle that keepsProperty selects. Manifests become Objects.
func (b *Bundle) addProperties(properties []bundles.Property, keepsProperty func(bundles.Property, string) bool) error {
	for _, p := range properties {
		b.Inlined = b.Inlined || p.Type == bundles.PropertyBundleObject
		switch {
		case !keepsProperty(p, b.Name): // the property is not needed
		case p.Type == bundles.PropertyBundleObject:
			object, err := decodeObject(p.Value)
			if err != nil {
				return err
			}
			b.Objects = append(b.Objects, object)
		default:
			value, err := canonicalizeJSON(p.Value)
			if err != nil {
				return fmt.Errorf("decode property %s: %w", p.Type, err)
			}
			b.Properties = append(b.Properties, bundles.Property{Type: p.Type, Value: value})
		}
	}
	return nil
}

// canonicalizeJSON returns the JSON without white space and with sorted keys. Property values are copied to an
// annotation of the CSV, whose size is limited, and equal values must have equal bytes.
func canonicalizeJSON(value []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.Clone(bytes.TrimSpace(out.Bytes())), nil
}

// decodeObject returns the manifest of a property as JSON. It converts YAML to JSON, as operator-registry does.
func decodeObject(value []byte) ([]byte, error) {
	data, err := decodeObjectData(value)
	if err != nil {
		return nil, fmt.Errorf("decode property %s: %w", bundles.PropertyBundleObject, err)
	}
	if utilyaml.IsJSONBuffer(data) {
		// Callers decode the manifest and rely on this check.
		return data, untrusted.CheckJSON(data)
	}
	object, err := untrusted.ToJSON(data)
	if err != nil {
		return nil, fmt.Errorf("convert property %s: %w", bundles.PropertyBundleObject, err)
	}
	return object, nil
}

type deprecationEntry struct {
	Reference deprecationTarget `json:"reference"`
	Message   string            `json:"message"`
}

// deprecationTarget is the package, channel or bundle that a deprecation refers to.
type deprecationTarget struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
}

func (r deprecationTarget) String() string {
	if r.Schema == schemaPackage {
		return "the package"
	}
	return fmt.Sprintf("%s %q", strings.TrimPrefix(r.Schema, "olm."), r.Name)
}

// addDeprecations adds the deprecations of a document. A second document is an error, as in opm.
func (d *draft) addDeprecations(in document) error {
	if d.hasDeprecations {
		return fmt.Errorf("it has two documents with the schema %s: keep one, with all deprecations", schemaDeprecation)
	}
	d.hasDeprecations = true
	if len(in.Entries) == 0 {
		return nil
	}
	var entries []deprecationEntry
	if err := json.Unmarshal(in.Entries, &entries); err != nil {
		return fmt.Errorf("decode deprecations: %w", err)
	}
	d.deprecations = append(d.deprecations, entries...)
	for _, n := range entries {
		d.cost += n.estimateCost()
	}
	return nil
}

// applyDeprecations sets the deprecations of the package, its channels and its bundles. As in opm, it is a problem if
// a deprecation refers to something that does not exist, or if two deprecations refer to the same object.
func (d *draft) applyDeprecations() {
	isDeprecated := map[deprecationTarget]bool{}
	for _, n := range d.deprecations {
		c, b := d.pkg.Channels[n.Reference.Name], d.pkg.Bundles[n.Reference.Name]
		switch {
		case isDeprecated[n.Reference]:
			d.addProblem(fmt.Errorf("%s is deprecated twice: keep one of the two entries", n.Reference))
		case n.Reference.Schema == schemaPackage && n.Reference.Name != "":
			d.addProblem(fmt.Errorf("the deprecation of the package has the name %q: remove it, the document names "+
				"the package", n.Reference.Name))
		case n.Reference.Schema == schemaPackage:
			d.pkg.Deprecation = n.Message
		case n.Reference.Schema == schemaChannel && c != nil:
			c.Deprecation = n.Message
		case n.Reference.Schema == schemaBundle && b != nil:
			b.Deprecation = n.Message
		default:
			d.addProblem(fmt.Errorf("a deprecation refers to %s, which does not exist", n.Reference))
		}
		isDeprecated[n.Reference] = true
	}
	d.deprecations = nil
}
