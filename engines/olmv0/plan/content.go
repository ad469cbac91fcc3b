// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/engines/olmv0/steps"
)

// Contents are the bundles that OLM may install from a view, by the names of their ClusterServiceVersions; nil for a
// bundle whose content OLM takes from its image.
type Contents map[string]*steps.Bundle

// readContents returns the contents of the bundles in a view.
func readContents(v view.View) (Contents, error) {
	packages := map[string]*catalogs.Package{}
	for _, p := range v.Packages {
		packages[p.Name] = p
	}
	out := Contents{}
	for _, served := range v.Bundles {
		switch served.Route {
		case view.Stub:
			// OLM does not install a stub
		case view.Unpack:
			out[served.Name] = nil
		case view.Inline:
			p := packages[served.Package]
			content, err := steps.NewBundle(p.Bundles[served.Name].Objects,
				findReplaced(p, served.Channel, served.Name))
			if err != nil {
				return nil, fmt.Errorf("%w: read bundle %q: %w", catalogs.ErrInvalidPackage, served.Name, err)
			}
			out[served.Name] = content
		}
	}
	return out, nil
}

// findReplaced returns the bundle that a bundle replaces in a channel; empty if there is none.
func findReplaced(p *catalogs.Package, channel, bundle string) string {
	c, err := p.Channel(channel)
	if err != nil {
		return ""
	}
	i := slices.IndexFunc(c.Entries, func(e catalogs.Entry) bool { return e.Name == bundle })
	if i < 0 {
		return ""
	}
	return c.Entries[i].Replaces
}

// FindDifference returns how a plan differs from the served bundles, as a clause about the plan; empty if no
// difference is known. It does not compare a bundle whose content OLM takes from an image.
func (c Contents) FindDifference(live *operatorsv1alpha1.InstallPlan, cluster Cluster) string {
	stepsByCSV := map[string][]*operatorsv1alpha1.Step{}
	for _, step := range live.Status.Plan {
		if step != nil {
			stepsByCSV[step.Resolving] = append(stepsByCSV[step.Resolving], step)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(stepsByCSV)) {
		if !slices.Contains(live.Spec.ClusterServiceVersionNames, name) {
			resource := stepsByCSV[name][0].Resource
			return fmt.Sprintf("its step %s %s is for %q, which it does not install", resource.Kind, resource.Name,
				name)
		}
	}
	for _, lookup := range live.Status.BundleLookups {
		if difference := c.compareLookup(lookup); difference != "" {
			return difference
		}
	}
	for _, name := range live.Spec.ClusterServiceVersionNames {
		if difference := c.compareBundle(live.Namespace, name, stepsByCSV[name], cluster); difference != "" {
			return difference
		}
	}
	return ""
}

// compareBundle returns how the steps of a plan for one bundle differ from the served bundle; empty if they do not. It
// accepts a bundle that is not served if its CSV already exists, because OLM changes no existing CSV.
func (c Contents) compareBundle(namespace, name string, csvSteps []*operatorsv1alpha1.Step, cluster Cluster) string {
	b, isServed := c[name]
	exists := slices.ContainsFunc(cluster.CSVs, func(c CSV) bool { return c.Name == name })
	switch {
	case b != nil:
		return b.FindDifference(steps.Plan{Namespace: namespace, Source: cluster.CatalogSource.Name, CSV: name,
			Installed: exists, Steps: csvSteps})
	case !isServed && !exists:
		return fmt.Sprintf("it installs %s, which is not served", name)
	default:
		return ""
	}
}

// compareLookup returns how a bundle that a plan takes from an image differs from the view; empty if the view also
// has the bundle by its image.
func (c Contents) compareLookup(l operatorsv1alpha1.BundleLookup) string {
	switch b, isServed := c[l.Identifier]; {
	case !isServed:
		return fmt.Sprintf("it takes %s, which is not served, from the image %s", l.Identifier, l.Path)
	case b != nil:
		return fmt.Sprintf("it takes %s from the image %s, and the view serves it", l.Identifier, l.Path)
	default:
		return ""
	}
}
