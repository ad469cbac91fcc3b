// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
)

// Budget bounds what one read of a catalog keeps in memory, in bytes, by an estimate. Zero means DefaultBudget. Besides
// that a read takes what decoding the largest document takes.
type Budget int

// DefaultBudget is for commands. The largest packages of public catalogs have 30 MiB of manifests.
const DefaultBudget Budget = 256 << 20

// unlimited is for catalogs of which everything is wanted.
const unlimited Budget = 1 << 40

// Estimates of what is kept besides text. Those of what an upgrade graph consists of include the maps that are made
// to validate it.
const (
	costPackage  = 1000
	costChannel  = 500
	costBundle   = 600
	costEntry    = 350
	costSkip     = 150
	costProperty = 64
	costObject   = 48
	costProblem  = 200
)

// spend counts what a document has added to a package.
func (r *reader) spend(pkg string, bytes int) error {
	if r.kept += bytes; r.kept > int(r.budget) {
		return fmt.Errorf("%w: with this document of package %q, what is needed of the catalog takes more than %d MiB "+
			"of memory: leave out versions, or name bundles by image instead of inlining them", ErrNotCatalog, pkg,
			int(r.budget)>>20)
	}
	return nil
}

func (e Entry) cost() int {
	cost := costEntry + len(e.Name) + len(e.Replaces) + len(e.SkipRange)
	for _, s := range e.Skips {
		cost += costSkip + len(s)
	}
	return cost
}

func (b *Bundle) cost() int {
	cost := costBundle + len(b.Name) + len(b.Release) + len(b.Image)
	for _, i := range b.RelatedImages {
		cost += costProperty + len(i.Name) + len(i.Image)
	}
	for _, o := range b.Objects {
		cost += costObject + len(o)
	}
	return cost + costOf(b.Properties)
}

func costOf(properties []registryv1.Property) int {
	cost := 0
	for _, p := range properties {
		cost += costProperty + len(p.Type) + len(p.Value)
	}
	return cost
}

func (b Block) cost() int {
	return costBundle + len(b.Bundle) + len(b.Version) + len(b.Reason) + len(b.Expires) + len(b.Instead)
}

func (n deprecationEntry) cost() int {
	return costEntry + len(n.Reference.Schema) + len(n.Reference.Name) + len(n.Message)
}
