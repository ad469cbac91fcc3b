// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/catalogs"
)

// Back returns an older bundle as it has to be served to be installed over a newer one, and what that takes. Passed are
// the bundles between the two. All of them have their manifests, as far as these can be read.
type Back func(older, newer *catalogs.Bundle, passed []*catalogs.Bundle) (*catalogs.Bundle, registryv1.Rollback, error)

// back returns the package for a view that goes back from the installed bundle to Next, and what that takes. Both must
// be in the catalog.
func (l *Loader) back(ctx context.Context, r Request) (*catalogs.Package, registryv1.Rollback, error) {
	none := registryv1.Rollback{}
	graph, err := l.Package(ctx, r.Source, r.Digest, r.Package)
	if err != nil {
		return nil, none, err
	}
	older, newer := graph.Bundles[r.Next], graph.Bundles[r.Installed.Name]
	if older == nil || newer == nil {
		return nil, none, fmt.Errorf("%w: going back from %q to %q needs both bundles in the catalog",
			catalogs.ErrNoVersion, r.Installed.Name, r.Next)
	}
	passed := passed(graph, older, newer)
	names := append(slices.Clone(passed), r.Next, r.Installed.Name)
	p, err := l.Package(ctx, r.Source, r.Digest, r.Package, names...)
	if err != nil {
		return nil, none, err
	}
	for _, name := range names {
		if r.Source.Verification.Required() {
			if p, err = covered(p, name); err != nil {
				return nil, none, err
			}
		}
		p = l.withObjects(ctx, p, name, r.Source.Access)
	}
	history := make([]*catalogs.Bundle, 0, len(passed))
	for _, name := range passed {
		history = append(history, p.Bundles[name])
	}
	var served *catalogs.Bundle
	var way registryv1.Rollback
	err = l.Decode(ctx, r.Digest, func() (err error) {
		served, way, err = r.Back(p.Bundles[r.Next], p.Bundles[r.Installed.Name], history)
		return err
	})
	if err != nil {
		return nil, none, err
	}
	out := *p
	out.Bundles = maps.Clone(p.Bundles)
	out.Bundles[r.Next] = served
	return &out, way, nil
}

// passed are the names of the bundles between two of them: a cluster may have run each of them.
func passed(p *catalogs.Package, older, newer *catalogs.Bundle) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(p.Bundles)) {
		if b := p.Bundles[name]; b.Version.GT(older.Version) && b.Version.LT(newer.Version) {
			names = append(names, name)
		}
	}
	return names
}
