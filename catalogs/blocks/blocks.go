// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package blocks returns the blocked versions of a package, to which no cluster may be upgraded: those that the
// OperatorCatalog's spec blocks, and those that the published catalog blocks itself. It is pure. Both the hub and the
// agents use it, so that their answers are the same.
package blocks

import (
	"cmp"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Of returns those of the blocks that are on a package, in the terms of the catalog.
func Of(blocks []v1alpha1.VersionBlock, pkg string) []catalogs.Block {
	var out []catalogs.Block
	for _, b := range blocks {
		if b.Package == pkg {
			out = append(out, catalogs.Block{Version: b.Version, Reason: b.Reason, Expires: b.Expires,
				Instead: b.Instead})
		}
	}
	return out
}

// InForce returns all blocks on a package by version, without duplicates: those of the OperatorCatalog's spec, and
// those of the catalog itself. pkg is the package as it was read from the catalog; where that could not be done (nil)
// the OperatorCatalog's status stands in for the catalog. An OperatorCatalog that does not exist (nil) blocks nothing.
func InForce(c *v1alpha1.OperatorCatalog, pkg *catalogs.Package, name string) []v1alpha1.VersionBlock {
	if c == nil {
		return nil
	}
	byVersion := map[string]v1alpha1.VersionBlock{}
	for _, b := range marked(c, pkg, name) {
		byVersion[b.Version] = b
	}
	for _, b := range c.Spec.Blocks {
		if b.Package == name {
			byVersion[b.Version] = b
		}
	}
	return sorted(byVersion)
}

func marked(c *v1alpha1.OperatorCatalog, pkg *catalogs.Package, name string) []v1alpha1.VersionBlock {
	var out []v1alpha1.VersionBlock
	if pkg == nil {
		for _, b := range c.Status.BlockedVersions {
			if b.Package == name && b.Origin == v1alpha1.BlockFromCatalog {
				out = append(out, b.VersionBlock)
			}
		}
		return out
	}
	for _, b := range pkg.Blocks {
		if b.Version == "" {
			continue // the block of a bundle that left the catalog without a version to know it by
		}
		out = append(out, v1alpha1.VersionBlock{
			Package: name, Version: phrase.Truncate(b.Version, 128),
			Reason:  phrase.Truncate(cmp.Or(b.Reason, "the catalog does not say why"), 512),
			Expires: day(b.Expires), Instead: phrase.Truncate(b.Instead, 128),
		})
	}
	return out
}

func sorted(byVersion map[string]v1alpha1.VersionBlock) []v1alpha1.VersionBlock {
	var out []v1alpha1.VersionBlock
	for _, b := range byVersion {
		out = append(out, b)
	}
	slices.SortFunc(out, Compare)
	return out
}

// Compare orders blocks by package and version, as text.
func Compare(a, b v1alpha1.VersionBlock) int {
	return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Version, b.Version))
}

// MaxPerInstall is the API's bound on the blocks of an OperatorInstall.
const MaxPerInstall = 200

// ForInstalls returns the blocks that the agents of an operator need: those in force on its package and, if a version
// of that depends on other packages, those of the spec on all others, since what those depend on in turn is not known
// here. A package that could not be read (nil) may depend on others. They are sorted, without duplicates, and at most
// MaxPerInstall; where there are more, those on other packages are left out first. They do not say when somebody has to
// look at them again, which agents do not use.
func ForInstalls(c *v1alpha1.OperatorCatalog, pkg *catalogs.Package, name string) []v1alpha1.VersionBlock {
	out := InForce(c, pkg, name)
	if c == nil {
		return out
	}
	if pkg == nil || hasDependencies(pkg) {
		out = append(out, slices.DeleteFunc(slices.Clone(c.Spec.Blocks),
			func(b v1alpha1.VersionBlock) bool { return b.Package == name })...)
	}
	out = out[:min(len(out), MaxPerInstall)]
	slices.SortFunc(out, Compare)
	for i := range out {
		out[i].Expires = ""
	}
	return out
}

// hasDependencies tells whether a version of a package needs others, or may do so because that cannot be read.
func hasDependencies(pkg *catalogs.Package) bool {
	for _, b := range pkg.Bundles {
		if needs, err := b.Requirements(); err != nil || len(needs) > 0 {
			return true
		}
	}
	return false
}

// day keeps what the API takes for a day; what a catalog says there is not ours to correct.
func day(text string) string {
	if len(text) > len("2026-12-31") {
		text = text[:len("2026-12-31")]
	}
	for i, c := range text {
		if dash := i == 4 || i == 7; dash != (c == '-') || !dash && (c < '0' || c > '9') {
			return ""
		}
	}
	if len(text) < len("2026-12-31") {
		return ""
	}
	return text
}
