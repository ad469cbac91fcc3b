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
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/agree"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
	"github.com/bellwether-dev/bellwether/catalogs/opm"
)

// Input is everything that a compiled package depends on.
type Input struct {
	Ladder *ladder.Ladder
	// Contents has each bundle that the ladder offers, and of the retired ones those that are known.
	Contents Contents
	// Emit, if set, receives the olm.bundle documents, each without a line break, and the result does not have them:
	// Result.WriteAround writes what belongs around them.
	Emit func(document []byte) error
	// Icon is the picture that the ladder names. Default: that of the newest bundle.
	Icon *catalogs.Icon
	// Previous is the package as it was published last; nil if it never was. It decides only whether the ladder
	// compiles.
	Previous *catalogs.Package
	// Installed is what clusters run. It decides only whether the ladder compiles.
	Installed []catalogs.Installed
	// Now decides whether a block has expired, and nothing else.
	Now time.Time
	// Cached, if set, is what Result.Cacheable returned for the same ladder,
	// contents and icon; Contents are not used then, and the documents that were
	// emitted are to be written again. Edges are computed and checked as always.
	Cached *Cacheable
}

// Cacheable is, besides the olm.bundle documents, the part of a result that takes long to compute and depends only on
// the ladder, the contents and the icon.
type Cacheable struct {
	Description string         `json:"description,omitempty"`
	Icon        *catalogs.Icon `json:"icon,omitempty"`
	Notes       []string       `json:"notes,omitempty"`
	// Relations are by version, as the documents are.
	Relations []Relation `json:"relations,omitempty"`
}

// Relation is what a bundle provides to others, and needs of them.
type Relation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Properties are those of the types olm.gvk, olm.gvk.required, olm.package.required and olm.constraint.
	Properties []registryv1.Property `json:"properties,omitempty"`
}

// Contents returns the bundle of a version; false if it is not known. Compile calls it once for each of Versions, in
// that order, and keeps nothing of a bundle but what it compares with later ones.
type Contents interface {
	Content(version string) (Content, bool, error)
}

// ContentMap are contents by version.
type ContentMap map[string]Content

// Content implements Contents.
func (m ContentMap) Content(version string) (Content, bool, error) {
	c, ok := m[version]
	return c, ok, nil
}

// Content is a bundle, and where its image is.
type Content struct {
	Bundle *bundles.Bundle
	// Image is the bundle's image by digest. Default: that of the ladder, if it names one.
	Image string
}

// Result is a compiled package.
type Result struct {
	// Config are the documents. Package is the same, as this project's other packages read it. With Input.Emit or
	// Input.Cached the first lacks the bundles, and the second what is in them.
	Config  declcfg.DeclarativeConfig
	Package *catalogs.Package
	// Waiting are versions without an upgrade path.
	Waiting []Waiting
	// Notes are remarks that need no action.
	Notes []string
	// Relations are what the bundles provide to others and need of them, by version.
	Relations []Relation

	// bundles are the documents of the bundles, and bundleNotes what is to say about them.
	bundles     [][]byte
	bundleNotes []string
}

// Cacheable returns what Input.Cached takes.
func (r Result) Cacheable() *Cacheable {
	return &Cacheable{Description: r.Package.Description, Icon: r.Package.Icon, Notes: r.bundleNotes,
		Relations: r.Relations}
}

// Compile compiles a package. Errors wrap those of this package or ladder.ErrInvalid.
func Compile(in Input) (Result, error) {
	p, notes, err := graph(in.Ladder)
	if err != nil {
		return Result{}, err
	}
	if err := checkExpired(in.Ladder, in.Now); err != nil {
		return Result{}, err
	}
	if in.Previous != nil {
		if err := Continuity(in.Previous, in.Ladder); err != nil {
			return Result{}, err
		}
	}
	if err := opm.Check(p); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ladder.ErrInvalid, err)
	}
	apart, err := checkPaths(p, in)
	if err != nil {
		return Result{}, err
	}
	waiting, err := WaitingVersions(in.Ladder)
	if err != nil {
		return Result{}, err
	}
	out := Result{Package: p, Waiting: waiting, Notes: append(notes, apart...)}
	if in.Cached != nil {
		out.Relations, out.bundleNotes = in.Cached.Relations, in.Cached.Notes
		p.Description, p.Icon = in.Cached.Description, in.Cached.Icon
	} else if err := out.addContents(in); err != nil {
		return Result{}, err
	}
	out.Notes = append(out.Notes, out.bundleNotes...)
	return out, out.addPackage(in.Ladder)
}

// encode is json.Marshal with characters of HTML as they are.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

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

// checkPaths compares the upgrade paths of both OLMs from every version that
// was ever published. It returns remarks about installed versions that are not
// in the ladder.
func checkPaths(p *catalogs.Package, in Input) ([]string, error) {
	all, err := members(in.Ladder)
	if err != nil {
		return nil, err
	}
	var everyone []catalogs.Installed
	ours := map[string]bool{}
	for _, m := range all {
		everyone = append(everyone, catalogs.Installed{Name: m.name, Version: m.version.String()})
		ours[m.name] = true
	}
	report, err := agree.Check(p, append(everyone, in.Installed...)...)
	if err != nil {
		return nil, fmt.Errorf("compile package %q: %w", p.Name, err)
	}
	if found := report.Disagreements(); len(found) > 0 {
		return nil, fmt.Errorf("%w: package %q: %w", ErrDisagreement, p.Name, report.Strict())
	}
	var notes []string
	for _, c := range report.Channels {
		for _, r := range c.Routes {
			waits := r.Verdict == agree.Waits || r.Verdict == agree.NotInChannel
			if waits && !ours[r.Installed.Name] {
				notes = append(notes, r.Text)
			}
		}
	}
	return notes, nil
}

func byVersion(p *catalogs.Package) []*catalogs.Bundle {
	return slices.SortedFunc(maps.Values(p.Bundles),
		func(a, b *catalogs.Bundle) int { return registryv1.CompareVersions(a.Version, b.Version) })
}

// checkBundle checks that a bundle is the one that the ladder names.
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

// predecessors are the lower versions that a channel upgrades to a version in
// one step. A rollback to a blocked version is useless, but one from a blocked
// version is not: it goes to the next lower version that is not blocked.
func predecessors(p *catalogs.Package, l *ladder.Ladder, to string, below []*bundles.Bundle) []*bundles.Bundle {
	var out []*bundles.Bundle
	for _, name := range l.Rungs() {
		c := p.Channels[name]
		if c == nil {
			continue
		}
		if _, ok := c.Entry(to); ok {
			out = append(out, predecessorsIn(p, c, l.Policy.Upgrades, below)...)
		}
	}
	slices.SortFunc(out, compareBundles)
	return slices.Compact(out)
}

func compareBundles(a, b *bundles.Bundle) int {
	return registryv1.CompareVersions(a.Version, b.Version)
}

func predecessorsIn(p *catalogs.Package, c *catalogs.Channel, upgrades ladder.Upgrades,
	below []*bundles.Bundle) []*bundles.Bundle {
	var out []*bundles.Bundle
	for _, from := range slices.Backward(below) {
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

// addPackage adds the documents besides the bundles.
func (r *Result) addPackage(l *ladder.Ladder) error {
	p := r.Package
	d := declcfg.Package{Schema: declcfg.SchemaPackage, Name: p.Name, DefaultChannel: p.DefaultChannel,
		Description: p.Description}
	if p.Icon != nil {
		d.Icon = &declcfg.Icon{Data: p.Icon.Data, MediaType: p.Icon.MediaType}
	}
	r.Config.Packages = []declcfg.Package{d}
	for _, name := range l.Rungs() {
		if c := p.Channels[name]; c != nil {
			r.Config.Channels = append(r.Config.Channels, channelDocument(p.Name, c))
		}
	}
	r.addDeprecations(l)
	return r.addBlocks(l)
}

func channelDocument(pkg string, c *catalogs.Channel) declcfg.Channel {
	out := declcfg.Channel{Schema: declcfg.SchemaChannel, Package: pkg, Name: c.Name}
	for _, e := range c.Entries {
		out.Entries = append(out.Entries, declcfg.ChannelEntry{Name: e.Name, Replaces: e.Replaces, Skips: e.Skips,
			SkipRange: e.SkipRange})
	}
	return out
}

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
	for _, name := range l.Rungs() {
		if c := p.Channels[name]; c != nil {
			add(declcfg.SchemaChannel, name, c.Deprecation)
		}
	}
	for _, b := range byVersion(p) {
		add(declcfg.SchemaBundle, b.Name, b.Deprecation)
	}
	if len(d.Entries) > 0 {
		r.Config.Deprecations = []declcfg.Deprecation{d}
	}
}

func (r *Result) addBlocks(l *ladder.Ladder) error {
	if len(r.Package.Blocks) == 0 {
		return nil
	}
	document := struct {
		Schema  string           `json:"schema"`
		Package string           `json:"package"`
		Blocks  []catalogs.Block `json:"blocks"`
	}{Schema: catalogs.SchemaBlocks, Package: l.Package}
	all, err := members(l)
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

// Write writes the documents, each on a line of its own, as JSON. The same result gives the same bytes.
func (r Result) Write(w io.Writer) error {
	return r.WriteAround(w, bytes.NewReader(bytes.Join(r.bundles, nil)))
}

// WriteAround is Write where the documents of the bundles were emitted, for the same result or the one that was cached:
// each on a line of its own, in the order in which they were.
func (r Result) WriteAround(w io.Writer, documents io.Reader) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	c := r.Config
	err := errors.Join(encodeAll(encoder, c.Packages), encodeAll(encoder, c.Channels))
	_, failed := io.Copy(w, documents)
	err = errors.Join(err, failed, encodeAll(encoder, c.Deprecations), encodeAll(encoder, c.Others))
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
