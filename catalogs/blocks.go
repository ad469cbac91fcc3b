// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"cmp"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// BlocksOf returns the blocks on a package, converted to the catalog's type.
func BlocksOf(blocks []v1alpha1.VersionBlock, pkg string) []Block {
	var out []Block
	for _, b := range blocks {
		if b.Package == pkg {
			out = append(out, Block{Version: b.Version, Reason: b.Reason, Expires: b.Expires,
				Instead: b.Instead})
		}
	}
	return out
}

// BlocksInForce returns all blocks on a package, without duplicate versions: those of the OperatorCatalog's spec, and
// those of the catalog itself. pkg is the package as it was read from the catalog; if pkg is nil, because it could
// not be read, the OperatorCatalog's status is used instead. If c is nil, no version is blocked.
func BlocksInForce(c *v1alpha1.OperatorCatalog, pkg *Package, name string) []v1alpha1.VersionBlock {
	if c == nil {
		return nil
	}
	byVersion := map[string]v1alpha1.VersionBlock{}
	for _, b := range listCatalogBlocks(c, pkg, name) {
		byVersion[b.Version] = b
	}
	for _, b := range c.Spec.Blocks {
		if b.Package == name {
			byVersion[b.Version] = b
		}
	}
	return sortBlocks(byVersion)
}

// listCatalogBlocks returns the blocks that the catalog itself contains, in the type of the API and within
// its limits.
func listCatalogBlocks(c *v1alpha1.OperatorCatalog, pkg *Package, name string) []v1alpha1.VersionBlock {
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
			continue // a bundle that left the catalog: the API identifies a block by its version
		}
		out = append(out, v1alpha1.VersionBlock{
			Package: name, Version: phrase.Truncate(b.Version, 128),
			Reason:  phrase.Truncate(cmp.Or(b.Reason, "the catalog does not say why"), 512),
			Expires: parseDay(b.Expires), Instead: phrase.Truncate(b.Instead, 128),
		})
	}
	return out
}

func sortBlocks(byVersion map[string]v1alpha1.VersionBlock) []v1alpha1.VersionBlock {
	var out []v1alpha1.VersionBlock
	for _, b := range byVersion {
		out = append(out, b)
	}
	slices.SortFunc(out, CompareBlocks)
	return out
}

// CompareBlocks orders blocks by package and version, as text.
func CompareBlocks(a, b v1alpha1.VersionBlock) int {
	return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Version, b.Version))
}

// MaxBlocksPerInstall is the API's limit for the blocks of an OperatorInstall.
const MaxBlocksPerInstall = 200

// BlocksForInstalls returns the blocks that the agents of an operator need: the blocks in force on its package and,
// if a version of the package depends on other packages, the spec's blocks on all other packages, because transitive
// dependencies are not known here. A package that could not be read (nil) counts as having dependencies. The blocks
// are sorted, without duplicates, and at most MaxBlocksPerInstall; if there are more, blocks on other packages are
// left out first. Expires is empty, because agents do not use it.
func BlocksForInstalls(c *v1alpha1.OperatorCatalog, pkg *Package, name string) []v1alpha1.VersionBlock {
	out := BlocksInForce(c, pkg, name)
	if c == nil {
		return out
	}
	if pkg == nil || hasDependencies(pkg) {
		out = append(out, slices.DeleteFunc(slices.Clone(c.Spec.Blocks),
			func(b v1alpha1.VersionBlock) bool { return b.Package == name })...)
	}
	// The blocks on other packages are at the end.
	out = out[:min(len(out), MaxBlocksPerInstall)]
	slices.SortFunc(out, CompareBlocks)
	for i := range out {
		out[i].Expires = ""
	}
	return out
}

// hasDependencies reports whether a version of a package needs other packages, or has requirements that cannot
// be decoded.
func hasDependencies(pkg *Package) bool {
	for _, b := range pkg.Bundles {
		if requirements, err := b.Requirements(); err != nil || len(requirements) > 0 {
			return true
		}
	}
	return false
}

// parseDay returns the day at the beginning of the text, such as 2026-12-31; empty if the text does not begin with a
// day. A catalog can contain any text, but the API accepts only days.
func parseDay(text string) string {
	if len(text) > len("2026-12-31") {
		text = text[:len("2026-12-31")]
	}
	for i, c := range text {
		isValid := '0' <= c && c <= '9'
		if i == 4 || i == 7 {
			isValid = c == '-'
		}
		if !isValid {
			return ""
		}
	}
	if len(text) < len("2026-12-31") {
		return ""
	}
	return text
}
