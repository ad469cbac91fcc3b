// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
)

// Back returns an older bundle in the form in which it must be served to be installed over a newer bundle, and the
// requirements of that rollback. between are the bundles between the two. All bundles have their manifests, if these
// can be read.
type Back func(older, newer *catalogs.Bundle, between []*catalogs.Bundle) (*catalogs.Bundle, bundles.Rollback, error)

// loadRollback returns the package for a view that goes back from the installed bundle to Next, and the requirements
// of that rollback. Both bundles must be in the catalog.
func (l *Loader) loadRollback(ctx context.Context, r Request) (*catalogs.Package, bundles.Rollback, error) {
	noRollback := bundles.Rollback{}
	graph, err := l.Package(ctx, r.Source, r.Digest, r.Package)
	if err != nil {
		return nil, noRollback, err
	}
	older, newer := graph.Bundles[r.Next], graph.Bundles[r.Installed.Name]
	if older == nil || newer == nil {
		return nil, noRollback, fmt.Errorf("%w: going back from %q to %q needs both bundles in the catalog",
			catalogs.ErrNoVersion, r.Installed.Name, r.Next)
	}
	between := listBetween(graph, older, newer)
	names := append(slices.Clone(between), r.Next, r.Installed.Name)
	p, err := l.Package(ctx, r.Source, r.Digest, r.Package, names...)
	if err != nil {
		return nil, noRollback, err
	}
	for _, name := range names {
		if r.Source.Verification.Required() {
			if p, err = requireCovered(p, name); err != nil {
				return nil, noRollback, err
			}
		}
		p = l.addObjects(ctx, p, name, r.Source.Access)
	}
	history := make([]*catalogs.Bundle, 0, len(between))
	for _, name := range between {
		history = append(history, p.Bundles[name])
	}
	var served *catalogs.Bundle
	var rollback bundles.Rollback
	err = l.RunDecoding(ctx, r.Digest, func() (err error) {
		served, rollback, err = r.Back(p.Bundles[r.Next], p.Bundles[r.Installed.Name], history)
		return err
	})
	if err != nil {
		return nil, noRollback, err
	}
	out := *p
	out.Bundles = maps.Clone(p.Bundles)
	out.Bundles[r.Next] = served
	return &out, rollback, nil
}

// listBetween returns the names of the bundles between two bundles: a cluster might have run each of them.
func listBetween(p *catalogs.Package, older, newer *catalogs.Bundle) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(p.Bundles)) {
		if b := p.Bundles[name]; b.Version.GT(older.Version) && b.Version.LT(newer.Version) {
			names = append(names, name)
		}
	}
	return names
}
