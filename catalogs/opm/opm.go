// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package opm refuses what `opm validate` refuses, by operator-registry's own code: what is compiled and published here
// must be a catalog for every other tool too.
//
// Its input is a package or a bundle as package catalogs reads it. It reads no files, and it does not judge upgrade
// paths.
package opm

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Check checks a package without the content of its bundles. The error wraps catalogs.ErrInvalidPackage.
//
// opm keeps the rest of a channel for each of its entries while it follows the chain of replacements, which for the
// largest channels takes gigabytes. So Package.Validate, which has the same rules, judges the chains, and opm gets
// channels whose first entry skips all others. TestChains compares the rules.
func Check(p *catalogs.Package) error {
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
		out.Bundles = append(out.Bundles, identity(p.Name, p.Bundles[name]))
	}
	return check(p.Name, out)
}

// CheckBundle checks a bundle of a package by itself: its images and properties. The error wraps
// catalogs.ErrInvalidPackage.
func CheckBundle(pkg string, b *catalogs.Bundle) error {
	document := identity(pkg, b)
	document.Image = b.Image
	if !b.Inlined && len(b.Objects) == 0 {
		document.Objects = nil
	}
	for _, p := range b.Properties {
		if p.Type != registryv1.PropertyPackage {
			document.Properties = append(document.Properties, property.Property{Type: p.Type, Value: p.Value})
		}
	}
	for _, r := range b.RelatedImages {
		document.RelatedImages = append(document.RelatedImages, declcfg.RelatedImage{Name: r.Name, Image: r.Image})
	}
	const channel = "channel"
	return check(pkg, declcfg.DeclarativeConfig{
		Packages: []declcfg.Package{{Schema: declcfg.SchemaPackage, Name: pkg, DefaultChannel: channel}},
		Channels: []declcfg.Channel{{Schema: declcfg.SchemaChannel, Package: pkg, Name: channel,
			Entries: []declcfg.ChannelEntry{{Name: b.Name}}}},
		Bundles: []declcfg.Bundle{document},
	})
}

// identity is a bundle of which only its version is known.
func identity(pkg string, b *catalogs.Bundle) declcfg.Bundle {
	value, err := json.Marshal(property.Package{PackageName: pkg, Version: b.Version.String(), Release: b.Release})
	if err != nil {
		panic(fmt.Sprintf("encode a version: %v", err)) // Strings always marshal.
	}
	return declcfg.Bundle{Schema: declcfg.SchemaBundle, Package: pkg, Name: b.Name,
		Properties: []property.Property{{Type: property.TypePackage, Value: value}},
		Objects:    []string{"{}"}, // opm demands an image where a bundle has no manifests
	}
}

func check(pkg string, c declcfg.DeclarativeConfig) error {
	if _, err := declcfg.ConvertToModel(c); err != nil {
		// The library draws a tree of the errors, over several lines.
		text := phrase.OneLine(strings.NewReplacer("├──", "", "└──", "", "│", "").Replace(err.Error()))
		return fmt.Errorf("%w %q: opm refuses it: %s", catalogs.ErrInvalidPackage, pkg, text)
	}
	return nil
}
