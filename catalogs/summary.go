// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/bellwether-dev/bellwether/bundles"
)

// Summary is what a catalog offers, by package, without the content of the bundles.
type Summary struct {
	// Packages are sorted by name.
	Packages []PackageSummary
}

// PackageSummary is what a package offers.
type PackageSummary struct {
	Name           string
	DefaultChannel string
	Deprecation    string
	// Channels are sorted by name.
	Channels []ChannelSummary
	// Versions are all versions of the package, the highest first.
	Versions []string
	// Provides are the APIs that the package's versions provide, sorted, without duplicates.
	Provides []GVK
	// Problem is why the package cannot be installed from this catalog; empty if it can.
	Problem string
}

// ChannelSummary is what a channel offers.
type ChannelSummary struct {
	Name        string
	Head        string
	HeadVersion string
	Deprecation string
	// Versions is the number of the channel's entries.
	Versions int
}

// Package returns the summary of one package. The error wraps ErrNoPackage.
func (s Summary) Package(name string) (PackageSummary, error) {
	names := make([]string, 0, len(s.Packages))
	for _, p := range s.Packages {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return PackageSummary{}, fmt.Errorf("%w %q: %s", ErrNoPackage, name, suggest(name, names))
}

// ReadSummary reads what a catalog offers. An invalid package does not affect other packages: its summary has the
// Problem. Errors wrap ErrNotCatalog or are errors of the files.
func ReadSummary(files Files) (Summary, error) { return DefaultBudget.ReadSummary(files) }

// ReadSummary is the function ReadSummary with the budget b.
func (b Budget) ReadSummary(files Files) (Summary, error) {
	r := newReader(b, func(string) bool { return true })
	r.summaryOnly = true
	r.keepsProperty = func(p bundles.Property, _ string) bool { return p.Type == bundles.PropertyGVK }
	if err := r.read(files); err != nil {
		return Summary{}, err
	}
	var s Summary
	for _, name := range slices.Sorted(maps.Keys(r.drafts)) {
		p, err := r.assemble(name)
		if err != nil {
			s.Packages = append(s.Packages, PackageSummary{Name: name, Problem: err.Error()})
			continue
		}
		s.Packages = append(s.Packages, p.Summary())
	}
	return s, nil
}

// Summary returns what a valid package offers.
func (p *Package) Summary() PackageSummary {
	s := PackageSummary{Name: p.Name, DefaultChannel: p.DefaultChannel, Deprecation: p.Deprecation}
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		c := p.Channels[name]
		channel := ChannelSummary{Name: name, Deprecation: c.Deprecation, Versions: len(c.Entries)}
		if head, err := c.Head(); err == nil {
			channel.Head = head
			channel.HeadVersion = p.describe(head)
		}
		s.Channels = append(s.Channels, channel)
	}
	provided := map[GVK]bool{}
	for _, b := range p.Bundles {
		for _, gvk := range b.Provides() {
			provided[gvk] = true
		}
	}
	s.Provides = slices.SortedFunc(maps.Keys(provided), GVK.Compare)
	bundles := slices.SortedFunc(maps.Values(p.Bundles), func(a, b *Bundle) int {
		return p.compareBundles(b.Name, a.Name)
	})
	for _, b := range bundles {
		s.Versions = append(s.Versions, b.VersionString())
	}
	return s
}

// Provides returns the APIs that the bundle's CSV owns. It ignores properties that cannot be decoded.
func (b *Bundle) Provides() []GVK {
	var out []GVK
	for _, p := range b.Properties {
		var gvk GVK
		if p.Type == bundles.PropertyGVK && json.Unmarshal(p.Value, &gvk) == nil {
			out = append(out, gvk)
		}
	}
	return out
}
