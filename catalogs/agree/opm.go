// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agree

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// CheckWithOPM checks a package without the content of its bundles. The error wraps catalogs.ErrInvalidPackage.
//
// opm keeps the rest of a channel for each of its entries while it follows the chain of replacements. That takes
// gigabytes for the largest channels. So Package.Validate, which has the same rules, checks the chains, and opm gets
// channels whose first entry skips all other entries. TestChains compares the rules.
func CheckWithOPM(p *catalogs.Package) error {
	if err := p.Validate(); err != nil {
		return err
	}
	out := declcfg.DeclarativeConfig{Packages: []declcfg.Package{{Schema: declcfg.SchemaPackage, Name: p.Name,
		DefaultChannel: p.DefaultChannel, Description: p.Description}}}
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		c := declcfg.Channel{Schema: declcfg.SchemaChannel, Package: p.Name, Name: name}
		for _, e := range p.Channels[name].Entries {
			c.Entries = append(c.Entries, declcfg.ChannelEntry{Name: e.Name, SkipRange: e.SkipRange})
		}
		for _, e := range c.Entries[1:] {
			c.Entries[0].Skips = append(c.Entries[0].Skips, e.Name)
		}
		out.Channels = append(out.Channels, c)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Bundles)) {
		out.Bundles = append(out.Bundles, newIdentityDocument(p.Name, p.Bundles[name]))
	}
	return checkModel(p.Name, out)
}

// CheckBundleWithOPM checks a single bundle of a package: its images and properties. The error
// wraps catalogs.ErrInvalidPackage.
func CheckBundleWithOPM(pkg string, b *catalogs.Bundle) error {
	document := newIdentityDocument(pkg, b)
	document.Image = b.Image
	if !b.Inlined && len(b.Objects) == 0 { // opm then requires an image
		document.Objects = nil
	}
	for _, p := range b.Properties {
		if p.Type != bundles.PropertyPackage {
			document.Properties = append(document.Properties, property.Property{Type: p.Type, Value: p.Value})
		}
	}
	for _, r := range b.RelatedImages {
		document.RelatedImages = append(document.RelatedImages, declcfg.RelatedImage{Name: r.Name, Image: r.Image})
	}
	const channel = "channel"
	return checkModel(pkg, declcfg.DeclarativeConfig{
		Packages: []declcfg.Package{{Schema: declcfg.SchemaPackage, Name: pkg, DefaultChannel: channel}},
		Channels: []declcfg.Channel{{Schema: declcfg.SchemaChannel, Package: pkg, Name: channel,
			Entries: []declcfg.ChannelEntry{{Name: b.Name}}}},
		Bundles: []declcfg.Bundle{document},
	})
}

// newIdentityDocument returns the document of a bundle with its name and version only.
func newIdentityDocument(pkg string, b *catalogs.Bundle) declcfg.Bundle {
	value, err := json.Marshal(property.Package{PackageName: pkg, Version: b.Version.String(), Release: b.Release})
	if err != nil {
		panic(fmt.Sprintf("encode a version: %v", err)) // Strings always marshal.
	}
	return declcfg.Bundle{Schema: declcfg.SchemaBundle, Package: pkg, Name: b.Name,
		Properties: []property.Property{{Type: property.TypePackage, Value: value}},
		Objects:    []string{"{}"}, // opm requires an image if a bundle has no manifests
	}
}

// checkModel returns an error that wraps catalogs.ErrInvalidPackage if opm refuses the documents of a package.
func checkModel(pkg string, c declcfg.DeclarativeConfig) error {
	if _, err := declcfg.ConvertToModel(c); err != nil {
		// The library draws a tree of the errors, over several lines.
		text := phrase.OneLine(strings.NewReplacer("├──", "", "└──", "", "│", "").Replace(err.Error()))
		return fmt.Errorf("%w %q: opm refuses it: %s", catalogs.ErrInvalidPackage, pkg, text)
	}
	return nil
}
