// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/bundles"
)

// Budget bounds the memory that one read of a catalog keeps, in bytes, as an estimate. Zero means DefaultBudget. In
// addition, a read needs the memory to decode the largest document.
type Budget int

// DefaultBudget is the budget of commands. The largest packages of public catalogs have 30 MiB of manifests.
const DefaultBudget Budget = 256 << 20

// unlimited is the budget of functions that keep a whole catalog.
const unlimited Budget = 1 << 40

// Estimates of the memory of kept objects, in bytes, besides their text. The estimates of the parts of an upgrade
// graph include the maps that Validate makes.
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

// spend counts the bytes that a document added to a package. It returns an error if the budget is exceeded.
func (r *reader) spend(pkg string, bytes int) error {
	if r.keptBytes += bytes; r.keptBytes > int(r.budget) {
		return fmt.Errorf("%w: with this document of package %q, what is needed of the catalog takes more than %d MiB "+
			"of memory: leave out versions, or name bundles by image instead of inlining them", ErrNotCatalog, pkg,
			int(r.budget)>>20)
	}
	return nil
}

func (e Entry) estimateCost() int {
	cost := costEntry + len(e.Name) + len(e.Replaces) + len(e.SkipRange)
	for _, s := range e.Skips {
		cost += costSkip + len(s)
	}
	return cost
}

func (b *Bundle) estimateCost() int {
	cost := costBundle + len(b.Name) + len(b.Release) + len(b.Image)
	for _, i := range b.RelatedImages {
		cost += costProperty + len(i.Name) + len(i.Image)
	}
	for _, o := range b.Objects {
		cost += costObject + len(o)
	}
	return cost + sumPropertyCosts(b.Properties)
}

func sumPropertyCosts(properties []bundles.Property) int {
	cost := 0
	for _, p := range properties {
		cost += costProperty + len(p.Type) + len(p.Value)
	}
	return cost
}

func (b Block) estimateCost() int {
	return costBundle + len(b.Bundle) + len(b.Version) + len(b.Reason) + len(b.Expires) + len(b.Instead)
}

func (n deprecationEntry) estimateCost() int {
	return costEntry + len(n.Reference.Schema) + len(n.Reference.Name) + len(n.Message)
}
