// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/agree"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

// Input is everything that a compiled package depends on.
type Input struct {
	Ladder *ladder.Ladder
	// Contents has each bundle that the ladder offers, and the retired bundles that are available.
	Contents Contents
	// Emit, if set, receives the olm.bundle documents, each without a line break. The result then does not contain
	// them; Result.WriteWithDocuments writes the whole package.
	Emit func(document []byte) error
	// Icon is the picture that the ladder names. Default: the icon of the newest bundle.
	Icon *catalogs.Icon
	// Previous is the package as it was published last; nil if it was never published. It only decides whether the
	// ladder compiles.
	Previous *catalogs.Package
	// Installed is what clusters run. It only decides whether the ladder compiles.
	Installed []catalogs.Installed
	// Now only decides whether a block has expired.
	Now time.Time
	// Cached, if set, is the result of Result.Cacheable for the same ladder, contents and icon. Contents are then not
	// used, and the caller must write the documents that were emitted earlier. Edges are always computed and checked.
	Cached *Cacheable
}

// Cacheable is the part of a result, besides the olm.bundle documents, that takes long to compute and depends only on
// the ladder, the contents and the icon.
type Cacheable struct {
	Description string         `json:"description,omitempty"`
	Icon        *catalogs.Icon `json:"icon,omitempty"`
	Notes       []string       `json:"notes,omitempty"`
	// Relations are ordered by version, like the documents.
	Relations []Relation `json:"relations,omitempty"`
}

// Relation is what a bundle provides to other bundles, and needs from them.
type Relation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Properties have the types olm.gvk, olm.gvk.required, olm.package.required and olm.constraint.
	Properties []bundles.Property `json:"properties,omitempty"`
}

// Contents returns the bundle of a version; false if it is not available. Compile calls Content once for each of
// Versions, in that order, and keeps only the parts of a bundle that it compares with later bundles.
type Contents interface {
	Content(version string) (Content, bool, error)
}

// ContentMap contains contents by version.
type ContentMap map[string]Content

// Content implements Contents.
func (m ContentMap) Content(version string) (Content, bool, error) {
	c, ok := m[version]
	return c, ok, nil
}

// Content is a bundle, and the place of its image.
type Content struct {
	Bundle *bundles.Bundle
	// Image is the bundle's image by digest. Default: the image in the ladder, if it names one.
	Image string
}

// Result is a compiled package.
type Result struct {
	// Config are the documents. Package has the same content in the type of package catalogs. With Input.Emit or
	// Input.Cached, Config lacks the bundles, and Package lacks their content.
	Config  declcfg.DeclarativeConfig
	Package *catalogs.Package
	// Waiting are versions without an upgrade path.
	Waiting []Waiting
	// Notes are remarks that need no action.
	Notes []string
	// Relations are what the bundles provide and need, ordered by version.
	Relations []Relation

	// bundles are the documents of the bundles, and bundleNotes the notes about them.
	bundles     [][]byte
	bundleNotes []string
}

// Cacheable returns the value for Input.Cached.
func (r Result) Cacheable() *Cacheable {
	return &Cacheable{Description: r.Package.Description, Icon: r.Package.Icon, Notes: r.bundleNotes,
		Relations: r.Relations}
}

// Compile computes the upgrade graph of a ladder, checks the graph, and adds the documents of the bundles, or their
// cached part if in.Cached is set. It returns an error if a block has expired, if something that in.Previous offers
// would be lost, or if OLM would not follow the graph. Errors wrap those of this package or ladder.ErrInvalid.
func Compile(in Input) (Result, error) {
	p, notes, err := buildGraph(in.Ladder)
	if err != nil {
		return Result{}, err
	}
	if err := checkExpired(in.Ladder, in.Now); err != nil {
		return Result{}, err
	}
	if in.Previous != nil {
		if err := CheckContinuity(in.Previous, in.Ladder); err != nil {
			return Result{}, err
		}
	}
	if err := agree.CheckWithOPM(p); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ladder.ErrInvalid, err)
	}
	pathNotes, err := checkPaths(p, in)
	if err != nil {
		return Result{}, err
	}
	waiting, err := WaitingVersions(in.Ladder)
	if err != nil {
		return Result{}, err
	}
	out := Result{Package: p, Waiting: waiting, Notes: append(notes, pathNotes...)}
	if in.Cached != nil {
		out.Relations, out.bundleNotes = in.Cached.Relations, in.Cached.Notes
		p.Description, p.Icon = in.Cached.Description, in.Cached.Icon
	} else if err := out.addBundles(in); err != nil {
		return Result{}, err
	}
	out.Notes = append(out.Notes, out.bundleNotes...)
	return out, out.addPackage(in.Ladder)
}

// encodeJSON is json.Marshal without escaping of HTML characters.
func encodeJSON(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// checkExpired returns an error that wraps ErrExpired if a block of the ladder has expired.
func checkExpired(l *ladder.Ladder, now time.Time) error {
	var lines []string
	for _, b := range l.Expired(now) {
		lines = append(lines,
			fmt.Sprintf("the block of version %s (%s) expired on %s: unblock it, or block it until a later day",
				b.Version, b.Reason, b.Expires))
	}
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("%w in package %q: %s", ErrExpired, l.Package, strings.Join(lines, "; "))
}

// checkPaths compares the upgrade paths of OLM v0 and OLM v1 from every version of the ladder and every installed
// version. The error wraps ErrDisagreement if the paths differ. It returns a note for each installed version that is
// not in the ladder and cannot be upgraded; WaitingVersions lists such versions of the ladder.
func checkPaths(p *catalogs.Package, in Input) ([]string, error) {
	all, err := listMembers(in.Ladder)
	if err != nil {
		return nil, err
	}
	var installed []catalogs.Installed
	isMember := map[string]bool{}
	for _, m := range all {
		installed = append(installed, catalogs.Installed{Name: m.name, Version: m.version.String()})
		isMember[m.name] = true
	}
	report, err := agree.Check(p, append(installed, in.Installed...)...)
	if err != nil {
		return nil, fmt.Errorf("compile package %q: %w", p.Name, err)
	}
	if found := report.Disagreements(); len(found) > 0 {
		return nil, fmt.Errorf("%w: package %q: %w", ErrDisagreement, p.Name, report.Strict())
	}
	var notes []string
	for _, c := range report.Channels {
		for _, r := range c.Routes {
			hasToWait := r.Verdict == agree.Waits || r.Verdict == agree.NotInChannel
			if hasToWait && !isMember[r.Installed.Name] {
				notes = append(notes, r.Text)
			}
		}
	}
	return notes, nil
}

// sortBundles returns the bundles of a package, sorted by version.
func sortBundles(p *catalogs.Package) []*catalogs.Bundle {
	return slices.SortedFunc(maps.Values(p.Bundles),
		func(a, b *catalogs.Bundle) int { return bundles.CompareVersions(a.Version, b.Version) })
}

// checkBundle returns an error that wraps ErrContent if a bundle does not match the ladder.
func checkBundle(got *bundles.Bundle, pkg string, want *catalogs.Bundle) error {
	switch {
	case got == nil:
		return fmt.Errorf("%w: version %s: its bundle was not read", ErrContent, want.Version)
	case got.Package != pkg:
		return fmt.Errorf("%w: version %s: its bundle is of package %q", ErrContent, want.Version, got.Package)
	case got.Version.String() != want.Version.String():
		return fmt.Errorf("%w: version %s: its bundle has version %s", ErrContent, want.Version,
			got.Version)
	case got.Name != want.Name:
		return fmt.Errorf("%w: version %s: its bundle is called %s; write `name: %s` into the ladder", ErrContent,
			want.Version, got.Name, got.Name)
	}
	return nil
}

// listPredecessors returns the bundles among lowerBundles that any channel upgrades to the bundle `to` in one step,
// sorted by version and without duplicates. A rollback goes to one of these bundles. Blocked bundles are not
// predecessors, because a rollback to a blocked version is useless, but a blocked bundle `to` has predecessors.
func listPredecessors(p *catalogs.Package, l *ladder.Ladder, to string,
	lowerBundles []*bundles.Bundle) []*bundles.Bundle {
	var out []*bundles.Bundle
	for _, name := range l.ListChannels() {
		c := p.Channels[name]
		if c == nil {
			continue
		}
		if _, ok := c.Entry(to); ok {
			out = append(out, listChannelPredecessors(p, c, l.Policy.Upgrades, lowerBundles)...)
		}
	}
	slices.SortFunc(out, compareBundles)
	return slices.Compact(out)
}

func compareBundles(a, b *bundles.Bundle) int {
	return bundles.CompareVersions(a.Version, b.Version)
}

// listChannelPredecessors returns the bundles among lowerBundles that a channel upgrades to the next version in one
// step, the highest first: with the policy Direct all bundles that are not blocked, otherwise those down to the highest
// bundle that is not deprecated, where the skipRange of the next version begins.
func listChannelPredecessors(p *catalogs.Package, c *catalogs.Channel, upgrades ladder.Upgrades,
	lowerBundles []*bundles.Bundle) []*bundles.Bundle {
	var out []*bundles.Bundle
	for _, from := range slices.Backward(lowerBundles) {
		_, blocked := p.Blocked(from.Name)
		if _, ok := c.Entry(from.Name); !ok || blocked {
			continue
		}
		out = append(out, from)
		if upgrades != ladder.Direct && p.Bundles[from.Name].Deprecation == "" {
			break
		}
	}
	return out
}

// addPackage adds all documents except the bundles.
func (r *Result) addPackage(l *ladder.Ladder) error {
	p := r.Package
	d := declcfg.Package{Schema: declcfg.SchemaPackage, Name: p.Name, DefaultChannel: p.DefaultChannel,
		Description: p.Description}
	if p.Icon != nil {
		d.Icon = &declcfg.Icon{Data: p.Icon.Data, MediaType: p.Icon.MediaType}
	}
	r.Config.Packages = []declcfg.Package{d}
	for _, name := range l.ListChannels() {
		if c := p.Channels[name]; c != nil {
			r.Config.Channels = append(r.Config.Channels, buildChannelDocument(p.Name, c))
		}
	}
	r.addDeprecations(l)
	return r.addBlocks(l)
}

func buildChannelDocument(pkg string, c *catalogs.Channel) declcfg.Channel {
	out := declcfg.Channel{Schema: declcfg.SchemaChannel, Package: pkg, Name: c.Name}
	for _, e := range c.Entries {
		out.Entries = append(out.Entries, declcfg.ChannelEntry{Name: e.Name, Replaces: e.Replaces, Skips: e.Skips,
			SkipRange: e.SkipRange})
	}
	return out
}

// addDeprecations adds the olm.deprecations document, if the package, a channel or a bundle is deprecated.
func (r *Result) addDeprecations(l *ladder.Ladder) {
	p := r.Package
	d := declcfg.Deprecation{Schema: declcfg.SchemaDeprecation, Package: p.Name}
	add := func(schema, name, message string) {
		if message != "" {
			d.Entries = append(d.Entries,
				declcfg.DeprecationEntry{Reference: declcfg.PackageScopedReference{Schema: schema, Name: name},
					Message: message})
		}
	}
	add(declcfg.SchemaPackage, "", p.Deprecation)
	for _, name := range l.ListChannels() {
		if c := p.Channels[name]; c != nil {
			add(declcfg.SchemaChannel, name, c.Deprecation)
		}
	}
	for _, b := range sortBundles(p) {
		add(declcfg.SchemaBundle, b.Name, b.Deprecation)
	}
	if len(d.Entries) > 0 {
		r.Config.Deprecations = []declcfg.Deprecation{d}
	}
}

// addBlocks adds the document that lists the blocked versions, if there are any.
func (r *Result) addBlocks(l *ladder.Ladder) error {
	if len(r.Package.Blocks) == 0 {
		return nil
	}
	document := struct {
		Schema  string           `json:"schema"`
		Package string           `json:"package"`
		Blocks  []catalogs.Block `json:"blocks"`
	}{Schema: catalogs.SchemaBlocks, Package: l.Package}
	all, err := listMembers(l)
	if err != nil {
		return err
	}
	for _, m := range all {
		if b, ok := r.Package.Blocked(m.name); ok {
			document.Blocks = append(document.Blocks, b)
		}
	}
	blob, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("encode blocks: %w", err)
	}
	r.Config.Others = []declcfg.Meta{{Schema: document.Schema, Package: document.Package, Blob: blob}}
	return nil
}

// Write writes the documents as JSON, one per line. The same result gives the same bytes.
func (r Result) Write(w io.Writer) error {
	return r.WriteWithDocuments(w, bytes.NewReader(bytes.Join(r.bundles, nil)))
}

// WriteWithDocuments is like Write, but takes the documents of the bundles from emitted, one per line. They must be
// those that Input.Emit received, in the same order, when this result or its cached part was compiled.
func (r Result) WriteWithDocuments(w io.Writer, emitted io.Reader) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	c := r.Config
	err := errors.Join(encodeAll(encoder, c.Packages), encodeAll(encoder, c.Channels))
	_, copyErr := io.Copy(w, emitted)
	err = errors.Join(err, copyErr, encodeAll(encoder, c.Deprecations), encodeAll(encoder, c.Others))
	if err != nil {
		return fmt.Errorf("write package %q: %w", r.Package.Name, err)
	}
	return nil
}

func encodeAll[T any](encoder *json.Encoder, documents []T) error {
	for _, d := range documents {
		if err := encoder.Encode(d); err != nil {
			return err
		}
	}
	return nil
}
