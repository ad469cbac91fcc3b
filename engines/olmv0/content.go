// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"fmt"
	"slices"
	"sync"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
	"github.com/bellwether-dev/bellwether/engines/olmv0/steps"
)

// contents are the bundles that a view serves with their manifests, by the names of their ClusterServiceVersions. OLM
// takes the content of others from their images.
type contents map[string]*steps.Bundle

func contentsOf(v view.View) (contents, error) {
	inline := map[string]bool{}
	for _, b := range v.Bundles {
		inline[b.Name] = b.Route == view.Inline
	}
	out := contents{}
	for _, p := range v.Packages {
		for _, c := range p.Channels {
			if err := out.add(p, c, inline); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (c contents) add(p *catalogs.Package, channel *catalogs.Channel, inline map[string]bool) error {
	for _, e := range channel.Entries {
		b := p.Bundles[e.Name]
		if b == nil || !inline[e.Name] {
			continue
		}
		var err error
		if c[e.Name], err = steps.Of(b.Objects, e.Replaces); err != nil {
			return fmt.Errorf("read bundle %q: %w", e.Name, err)
		}
	}
	return nil
}

// differs says how a plan differs from what was admitted; empty where it does not, or where that is not known.
func (c contents) differs(live *operatorsv1alpha1.InstallPlan, source string) string {
	of := map[string][]*operatorsv1alpha1.Step{}
	for _, step := range live.Status.Plan {
		if step == nil {
			continue
		}
		if !slices.Contains(live.Spec.ClusterServiceVersionNames, step.Resolving) {
			return fmt.Sprintf("its step %s %s is for %q, which it does not install", step.Resource.Kind,
				step.Resource.Name, step.Resolving)
		}
		of[step.Resolving] = append(of[step.Resolving], step)
	}
	for _, lookup := range live.Status.BundleLookups {
		if c[lookup.Identifier] != nil {
			return fmt.Sprintf("it takes %s from the image %s, and the view serves it", lookup.Identifier, lookup.Path)
		}
	}
	for _, name := range live.Spec.ClusterServiceVersionNames {
		if c[name] == nil {
			continue
		}
		if why := c[name].Differs(steps.Plan{Namespace: live.Namespace, Source: source, CSV: name,
			Steps: of[name]}); why != "" {
			return why
		}
	}
	return ""
}

// compared keeps how the pending InstallPlan of each install differs from the view. The cache has no manifests, so the
// plan is read from the API server, once for each of its resource versions.
type compared struct {
	mu   sync.Mutex
	last map[client.ObjectKey]verdict
}

type verdict struct {
	plan    plan.Object
	view    string
	differs string
}

func newCompared() *compared { return &compared{last: map[client.ObjectKey]verdict{}} }

// add adds to an observation how the plans differ that the agent may have OLM carry out.
func (c *compared) add(ctx context.Context, r *reader, install client.ObjectKey) error {
	o := r.observation
	if len(o.Offer.Content) == 0 || o.Cluster.CatalogSource == nil {
		return nil
	}
	for i := range o.Cluster.InstallPlans {
		p := &o.Cluster.InstallPlans[i]
		if !p.MayBeSetGoing() {
			continue
		}
		c.mu.Lock()
		last := c.last[install]
		c.mu.Unlock()
		if last.plan == p.Object && last.view == o.Offer.ViewHash {
			p.Differs = last.differs
			continue
		}
		live := &operatorsv1alpha1.InstallPlan{}
		if err := r.live.Get(ctx, client.ObjectKey{Namespace: r.data.Namespace, Name: p.Name}, live); err != nil {
			if client.IgnoreNotFound(err) == nil {
				continue // the cache will know soon
			}
			return fmt.Errorf("get InstallPlan: %w", err)
		}
		*p = installPlanOf(live)
		p.Differs = contents(o.Offer.Content).differs(live, o.Cluster.CatalogSource.Name)
		c.mu.Lock()
		c.last[install] = verdict{plan: p.Object, view: o.Offer.ViewHash, differs: p.Differs}
		c.mu.Unlock()
	}
	return nil
}

// forget drops what is known of an install.
func (c *compared) forget(install client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, install)
}
