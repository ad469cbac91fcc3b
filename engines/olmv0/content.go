// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
	"github.com/bellwether-dev/bellwether/engines/olmv0/steps"
)

// contents are the bundles that OLM may install from a view, by the names of their ClusterServiceVersions; nil for one
// whose content OLM takes from its image.
type contents map[string]*steps.Bundle

func contentsOf(v view.View) (contents, error) {
	packages := map[string]*catalogs.Package{}
	for _, p := range v.Packages {
		packages[p.Name] = p
	}
	out := contents{}
	for _, served := range v.Bundles {
		switch served.Route {
		case view.Stub:
		case view.Unpack:
			out[served.Name] = nil
		case view.Inline:
			p := packages[served.Package]
			content, err := steps.Of(p.Bundles[served.Name].Objects, replacedBy(p, served.Channel, served.Name))
			if err != nil {
				return nil, fmt.Errorf("%w: read bundle %q: %w", catalogs.ErrInvalidPackage, served.Name, err)
			}
			out[served.Name] = content
		}
	}
	return out, nil
}

func replacedBy(p *catalogs.Package, channel, bundle string) string {
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

// differs says how a plan differs from what was admitted; empty where it does not, or where that is not known.
func (c contents) differs(live *operatorsv1alpha1.InstallPlan, cluster plan.Cluster) string {
	of := map[string][]*operatorsv1alpha1.Step{}
	for _, step := range live.Status.Plan {
		if step != nil {
			of[step.Resolving] = append(of[step.Resolving], step)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if !slices.Contains(live.Spec.ClusterServiceVersionNames, name) {
			first := of[name][0].Resource
			return fmt.Sprintf("its step %s %s is for %q, which it does not install", first.Kind, first.Name, name)
		}
	}
	for _, lookup := range live.Status.BundleLookups {
		if why := c.lookupDiffers(lookup); why != "" {
			return why
		}
	}
	for _, name := range live.Spec.ClusterServiceVersionNames {
		if why := c.bundleDiffers(live.Namespace, name, of[name], cluster); why != "" {
			return why
		}
	}
	return ""
}

// bundleDiffers is about the part of a plan that installs one bundle.
func (c contents) bundleDiffers(namespace, name string, of []*operatorsv1alpha1.Step, cluster plan.Cluster) string {
	b, isServed := c[name]
	isThere := slices.ContainsFunc(cluster.CSVs, func(c plan.CSV) bool { return c.Name == name })
	switch {
	case b != nil:
		return b.Differs(steps.Plan{Namespace: namespace, Source: cluster.CatalogSource.Name, CSV: name,
			Installed: isThere, Steps: of})
	case !isServed && !isThere:
		return fmt.Sprintf("it installs %s, which is not served", name)
	default:
		return ""
	}
}

func (c contents) lookupDiffers(l operatorsv1alpha1.BundleLookup) string {
	switch b, isServed := c[l.Identifier]; {
	case !isServed:
		return fmt.Sprintf("it takes %s, which is not served, from the image %s", l.Identifier, l.Path)
	case b != nil:
		return fmt.Sprintf("it takes %s from the image %s, and the view serves it", l.Identifier, l.Path)
	default:
		return ""
	}
}

// compared keeps how InstallPlans differ from what is served, by install. The cache has no manifests, so a plan is read
// from the API server, once for each of its resource versions.
type compared struct {
	mu   sync.Mutex
	last map[client.ObjectKey]*verdicts
}

// verdicts are those of one install about the plans that are there, for one view.
type verdicts struct {
	view  string
	plans map[plan.Object]string
	// first is the first plan that differed.
	first types.UID
}

func newCompared() *compared { return &compared{last: map[client.ObjectKey]*verdicts{}} }

// add adds to an observation how the plans differ that the agent may have OLM carry out. An install is observed by one
// goroutine at a time.
func (c *compared) add(ctx context.Context, r *reader, install client.ObjectKey) error {
	o := r.observation
	if o.Offer.ViewHash == "" || o.Offer.Problem != nil || o.Cluster.CatalogSource == nil {
		return nil
	}
	c.mu.Lock()
	v := c.last[install]
	if v == nil || v.view != o.Offer.ViewHash {
		v = &verdicts{view: o.Offer.ViewHash}
		c.last[install] = v
	}
	c.mu.Unlock()
	before := v.plans
	v.plans = map[plan.Object]string{}
	for i := range o.Cluster.InstallPlans {
		p := &o.Cluster.InstallPlans[i]
		if !p.MayBeSetGoing() {
			continue
		}
		differs, known := before[p.Object]
		if !known {
			var err error
			if differs, known, err = r.compare(ctx, p); err != nil {
				return err
			}
		}
		if !known {
			continue
		}
		v.plans[p.Object] = differs
		p.Compared, p.Differs, p.Repeats = true, differs, v.isRepeated(p.UID, differs)
	}
	return nil
}

// compare reads a plan again and tells how it differs, and not where it has gone or goes on without the agent. The
// cache will know that soon.
func (r *reader) compare(ctx context.Context, p *plan.InstallPlan) (string, bool, error) {
	live := &operatorsv1alpha1.InstallPlan{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: r.data.Namespace, Name: p.Name}, live)
	switch {
	case apierrors.IsNotFound(err):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("get InstallPlan: %w", err)
	}
	if *p = installPlanOf(live); !p.MayBeSetGoing() {
		return "", false, nil
	}
	return contents(r.observation.Offer.Content).differs(live, r.observation.Cluster), true, nil
}

// isRepeated tells whether another plan differed before.
func (v *verdicts) isRepeated(uid types.UID, differs string) bool {
	if differs == "" {
		return false
	}
	v.first = cmp.Or(v.first, uid)
	return v.first != uid
}

// forget drops what is known of an install.
func (c *compared) forget(install client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, install)
}
