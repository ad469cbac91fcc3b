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

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/untrusted"
)

// Schemas of the documents of a file-based catalog.
const (
	schemaPackage     = "olm.package"
	schemaChannel     = "olm.channel"
	schemaBundle      = "olm.bundle"
	schemaDeprecation = "olm.deprecations"
)

// Files walks over the files of a catalog: it calls visit once for each of them, in a stable order, and passes on the
// first error. The reader is valid during the call only.
type Files func(visit func(name string, content io.Reader) error) error

// SingleFile is a catalog of one file.
func SingleFile(name string, content io.Reader) Files {
	return func(visit func(string, io.Reader) error) error { return visit(name, content) }
}

// ReadPackage reads one package. It keeps nothing of the others, so its memory is bounded by that package and the
// largest document. Errors wrap ErrNotCatalog, ErrNoPackage or ErrInvalidPackage, or are those of the files.
func ReadPackage(files Files, name string) (*Package, error) {
	packages, err := ReadPackages(files, name)
	if err != nil {
		return nil, err
	}
	return packages[0], nil
}

// ReadPackageWith is ReadPackage, but keeps the manifests of the named bundles only: the graph is whole, and memory is
// bounded by those bundles and the largest document.
func ReadPackageWith(files Files, name string, bundles ...string) (*Package, error) {
	return DefaultBudget.ReadPackageWith(files, name, bundles...)
}

// ReadPackageWith is the function of that name, within the budget.
func (b Budget) ReadPackageWith(files Files, name string, bundles ...string) (*Package, error) {
	r := newReader(b, func(pkg string) bool { return pkg == name })
	r.skip = isBundleOfOthers([]string{name})
	r.keep = func(p registryv1.Property, bundle string) bool {
		content := p.Type == registryv1.PropertyBundleObject || p.Type == registryv1.PropertyCSVMetadata
		return !content || slices.Contains(bundles, bundle)
	}
	if err := r.read(files); err != nil {
		return nil, err
	}
	return r.assemble(name)
}

// ReadPackages is ReadPackage for several packages in one go, in the order of names.
func ReadPackages(files Files, names ...string) ([]*Package, error) {
	r := newReader(DefaultBudget, func(pkg string) bool { return slices.Contains(names, pkg) })
	r.skip = isBundleOfOthers(names)
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

// reader gathers the documents of the packages it is interested in. Documents may come in any order.
type reader struct {
	wanted func(pkg string) bool
	// skip, if set, tells which documents need not even be parsed.
	skip func(doc []byte) bool
	// keep tells which properties of a bundle are wanted.
	keep   func(p registryv1.Property, bundle string) bool
	drafts map[string]*draft
	// names are all packages met, for the message about a missing one.
	names     map[string]bool
	documents int
	skipped   bool
	// join joins the heads of a channel that has several.
	join bool
	// summary leaves out what only those need who install or show a package.
	summary bool
	// budget bounds kept, the estimate of what is kept.
	budget Budget
	kept   int
}

type draft struct {
	declared bool
	pkg      *Package
	// notes are deprecations, applied once everything they refer to has been read. They are in one document.
	notes      []deprecationEntry
	deprecates bool
	blocks     []Block
	problems   problems
	// cost estimates the memory of all this.
	cost int
	// values are those of properties; versions of an operator have most of them in common.
	values map[string]json.RawMessage
}

func newReader(budget Budget, wanted func(string) bool) *reader {
	return &reader{wanted: wanted, budget: cmp.Or(budget, DefaultBudget),
		keep:   func(registryv1.Property, string) bool { return true },
		drafts: map[string]*draft{}, names: map[string]bool{}}
}

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
	return r.complete()
}

// complete reports whether what was read is a catalog at all.
func (r *reader) complete() error {
	if r.documents == 0 {
		return fmt.Errorf("%w: it has no documents", ErrNotCatalog)
	}
	if len(r.names) == 0 && !r.skipped {
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
	Image         string                `json:"image"`
	Properties    []registryv1.Property `json:"properties"`
	RelatedImages []RelatedImage        `json:"relatedImages"`
}

func (r *reader) add(doc []byte, line int) error {
	if r.documents++; r.documents > maxDocuments {
		return fmt.Errorf("%w: it has more than %d documents", ErrNotCatalog, maxDocuments)
	}
	if r.skip != nil && r.skip(doc) {
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
	case schemaChannel, schemaBundle, schemaDeprecation, SchemaBlocks:
	default:
		// Other schemas are other tools' business.
		return nil
	}
	if !r.wanted(pkg) {
		return nil
	}
	if r.summary {
		in.Description, in.Icon, in.Image, in.RelatedImages = "", nil, "", nil
	}
	d := r.draft(pkg)
	before := d.cost
	if err := d.add(in, r.keep); err != nil {
		// A wrong document spoils its package, not the catalog.
		d.addProblem(err)
	}
	return r.spend(pkg, d.cost-before)
}

// addName remembers the name of a package.
func (r *reader) addName(pkg string) error {
	if r.names[pkg] {
		return nil
	}
	r.names[pkg] = true
	if len(r.names) > maxPackages {
		return fmt.Errorf("%w: it has more than %d packages", ErrNotCatalog, maxPackages)
	}
	return r.spend(pkg, costPackage+len(pkg))
}

func (r *reader) draft(pkg string) *draft {
	d, ok := r.drafts[pkg]
	if !ok {
		d = &draft{pkg: &Package{Name: pkg, Channels: map[string]*Channel{}, Bundles: map[string]*Bundle{}},
			values: map[string]json.RawMessage{}}
		r.drafts[pkg] = d
	}
	return d
}

func (r *reader) assemble(name string) (*Package, error) {
	d, ok := r.drafts[name]
	if !ok {
		return nil, fmt.Errorf("%w %q: %s", ErrNoPackage, name, suggest(name, slices.Sorted(maps.Keys(r.names))))
	}
	if !d.declared {
		return nil, fmt.Errorf("%w %q: it has channels or bundles but no %s document", ErrInvalidPackage, name,
			schemaPackage)
	}
	d.applyDeprecations()
	if len(d.problems) > 0 {
		return nil, fmt.Errorf("%w %q: %w", ErrInvalidPackage, name, errors.Join(d.problems...))
	}
	if r.join && d.pkg.checkSize() == nil {
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

func (d *draft) add(in document, keep func(registryv1.Property, string) bool) error {
	switch in.Schema {
	case schemaPackage:
		return d.addPackage(in)
	case schemaChannel:
		return d.addChannel(in)
	case schemaBundle:
		return d.addBundle(in, keep)
	case SchemaBlocks:
		d.blocks = append(d.blocks, in.Blocks...)
		for _, b := range in.Blocks {
			d.cost += b.cost()
		}
		return nil
	default:
		return d.addDeprecations(in)
	}
}

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
		c.Entries = slices.Clone(c.Entries) // the decoder leaves room for more
	}
	d.cost += costChannel + len(in.Name)
	for _, e := range c.Entries {
		d.cost += e.cost()
	}
	d.pkg.Channels[in.Name] = c
	return nil
}

func (d *draft) addBundle(in document, keep func(registryv1.Property, string) bool) error {
	if in.Name == "" {
		return errors.New("a bundle has no name")
	}
	if d.pkg.Bundles[in.Name] != nil {
		return fmt.Errorf("bundle %q is declared twice", in.Name)
	}
	b := &Bundle{Name: in.Name, Image: in.Image, RelatedImages: in.RelatedImages}
	if err := b.identify(d.pkg.Name, in.Properties); err != nil {
		return fmt.Errorf("bundle %q: %w", in.Name, err)
	}
	if err := b.fill(in.Properties, keep); err != nil {
		return fmt.Errorf("bundle %q: %w", in.Name, err)
	}
	d.addGraph(b)
	return nil
}

// addGraph adds a bundle that is kept as it is.
func (d *draft) addGraph(b *Bundle) {
	for i, p := range b.Properties {
		if known, ok := d.values[string(p.Value)]; ok {
			b.Properties[i].Value = known
			d.cost -= len(p.Value)
			continue
		}
		if len(p.Value) <= maxShared {
			d.values[string(p.Value)] = p.Value
			d.cost += costProperty + len(p.Value)
		}
	}
	d.cost += b.cost()
	d.pkg.Bundles[b.Name] = b
}

// maxShared bounds the values that bundles share: larger ones differ from version to version.
const maxShared = 512

// addProblem remembers why the package is invalid.
func (d *draft) addProblem(err error) {
	if d.problems.add(err) {
		d.cost += costProblem + len(err.Error())
	}
}

// identify reads the bundle's version from its one olm.package property.
func (b *Bundle) identify(pkg string, properties []registryv1.Property) error {
	found := 0
	for _, p := range properties {
		if p.Type != registryv1.PropertyPackage {
			continue
		}
		var in struct {
			PackageName string `json:"packageName"`
			Version     string `json:"version"`
			Release     string `json:"release"`
		}
		if err := json.Unmarshal(p.Value, &in); err != nil {
			return fmt.Errorf("decode property %s: %w", registryv1.PropertyPackage, err)
		}
		if in.PackageName != pkg {
			return fmt.Errorf("its property %s names package %q", registryv1.PropertyPackage, in.PackageName)
		}
		version, err := semver.Parse(in.Version)
		if err != nil {
			return fmt.Errorf("its version %q is not semantic: %w", in.Version, err)
		}
		b.Version, b.Release = version, in.Release
		found++
	}
	if found != 1 {
		return fmt.Errorf("it has %d properties %s instead of one", found, registryv1.PropertyPackage)
	}
	return nil
}

func (b *Bundle) fill(properties []registryv1.Property, keep func(registryv1.Property, string) bool) error {
	for _, p := range properties {
		b.Inlined = b.Inlined || p.Type == registryv1.PropertyBundleObject
		switch {
		case !keep(p, b.Name):
		case p.Type == registryv1.PropertyBundleObject:
			object, err := decodeObject(p.Value)
			if err != nil {
				return err
			}
			b.Objects = append(b.Objects, object)
		default:
			value, err := canonical(p.Value)
			if err != nil {
				return fmt.Errorf("decode property %s: %w", p.Type, err)
			}
			b.Properties = append(b.Properties, registryv1.Property{Type: p.Type, Value: value})
		}
	}
	return nil
}

// canonical writes JSON without white space and with sorted keys. Property values end up in an annotation of the CSV,
// where every byte counts, and equal values should be equal bytes.
func canonical(value []byte) ([]byte, error) {
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

// decodeObject unwraps a manifest; those written as YAML become JSON, as operator-registry does it.
func decodeObject(value []byte) ([]byte, error) {
	data, err := objectData(value)
	if err != nil {
		return nil, fmt.Errorf("decode property %s: %w", registryv1.PropertyBundleObject, err)
	}
	if utilyaml.IsJSONBuffer(data) {
		// Whoever decodes the manifest must be able to rely on this.
		return data, untrusted.CheckJSON(data)
	}
	object, err := untrusted.ToJSON(data)
	if err != nil {
		return nil, fmt.Errorf("convert property %s: %w", registryv1.PropertyBundleObject, err)
	}
	return object, nil
}

type deprecationEntry struct {
	Reference deprecated `json:"reference"`
	Message   string     `json:"message"`
}

// deprecated is what a deprecation is about.
type deprecated struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
}

func (r deprecated) String() string {
	if r.Schema == schemaPackage {
		return "the package"
	}
	return fmt.Sprintf("%s %q", strings.TrimPrefix(r.Schema, "olm."), r.Name)
}

// addDeprecations refuses a second document, as opm does.
func (d *draft) addDeprecations(in document) error {
	if d.deprecates {
		return fmt.Errorf("it has two documents with the schema %s: keep one, with all deprecations", schemaDeprecation)
	}
	d.deprecates = true
	if len(in.Entries) == 0 {
		return nil
	}
	var notes []deprecationEntry
	if err := json.Unmarshal(in.Entries, &notes); err != nil {
		return fmt.Errorf("decode deprecations: %w", err)
	}
	d.notes = append(d.notes, notes...)
	for _, n := range notes {
		d.cost += n.cost()
	}
	return nil
}

// applyDeprecations refuses what opm refuses: deprecations of what does not exist, and of one thing twice.
func (d *draft) applyDeprecations() {
	seen := map[deprecated]bool{}
	for _, n := range d.notes {
		c, b := d.pkg.Channels[n.Reference.Name], d.pkg.Bundles[n.Reference.Name]
		switch {
		case seen[n.Reference]:
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
		seen[n.Reference] = true
	}
	d.notes = nil
}
