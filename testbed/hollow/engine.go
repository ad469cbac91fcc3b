// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/engines/adoption"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// engine is the engine for OLM v0 with everything that it reads and writes on a cluster replaced by operators. It
// decides as the real one does: by package plan. Blocks, rollbacks and drift are left out.
type engine struct {
	operator func(*v1alpha1.OperatorInstall) *operator
	forget   func(*v1alpha1.OperatorInstall)
	catalogs *load.Loader
	now      func() time.Time
}

var _ engines.Engine[*observation, plan.Action] = (*engine)(nil)

type observation struct {
	view    plan.View
	cluster plan.Cluster
	offer   plan.Offer
}

// Observe implements engines.Engine.
func (e *engine) Observe(ctx context.Context, install *v1alpha1.OperatorInstall) (*observation, error) {
	seen, o := &observation{}, e.operator(install)
	if !install.DeletionTimestamp.IsZero() || install.Spec.Admission == nil {
		seen.view, seen.cluster = o.seen()
		return seen, nil
	}
	release := install.Spec.Admission.Release
	pin := release.Catalog
	pkg, err := e.catalogs.Package(ctx, oci.NewSource(pin.Source), pin.Digest, release.Package)
	if err != nil {
		return nil, fmt.Errorf("read catalog: %w", err)
	}
	o.begin(pkg, release)
	seen.view, seen.cluster = o.seen()
	isOurs := func(s plan.Subscription) bool { return s.IsOwn }
	if adopts(release) && !slices.ContainsFunc(seen.cluster.Subscriptions, isOurs) {
		seen.cluster.Found = scanOf(release, seen.cluster)
	}
	seen.offer = offerFor(pkg, install.Spec.Admission, seen.cluster, e.now())
	return seen, nil
}

// adopts tells whether a release permits to adopt what others have installed.
func adopts(r v1alpha1.Release) bool { return r.Adopt != nil || r.AsInstalled }

// offerFor returns what the catalog view is to offer. A hop that OLM carries out keeps the view that led to it.
func offerFor(pkg *catalogs.Package, admission *v1alpha1.Admission, c plan.Cluster, now time.Time) plan.Offer {
	release := admission.Release
	offer := plan.Offer{Route: v1alpha1.RouteInline, Versions: map[string]string{}}
	for name, bundle := range pkg.Bundles {
		offer.Versions[name] = bundle.VersionString()
	}
	from, isThere := c.Installed()
	if adopts(release) {
		from, isThere = c.InstalledOrAdoptable(release.Package)
		known := adoption.Summarize("catalog", pkg)
		offer.Package = &known
	}
	if release.AsInstalled {
		if isThere {
			offer.ViewHash = digest(pkg.Name, from.Name, "")
		}
		return offer
	}
	canAdvance := c.MayAdvance(now, admission.Revision)
	if before, to, underWay := c.CurrentHop(now, admission.Revision); underWay && to.Name == release.Bundle {
		from, canAdvance = before, true
	}
	path, err := pkg.PathFrom(release.Channel, catalogs.Installed{Name: from.Name, Version: from.Version},
		release.Bundle)
	if err != nil {
		offer.Problem = &plan.Problem{Reason: load.ReasonFor(err), Message: err.Error()}
		return offer
	}
	offer.Path = path
	if len(path) > 0 && canAdvance {
		offer.Next, offer.Admitted = path[0], path[:1]
	}
	offer.ViewHash = digest(pkg.Name, from.Name, offer.Next)
	return offer
}

// Plan implements engines.Engine.
func (e *engine) Plan(install *v1alpha1.OperatorInstall, seen *observation, now time.Time) engines.Plan[plan.Action] {
	return plan.Next(plan.Input{Now: now, Install: install, Offer: seen.offer, View: seen.view, Cluster: seen.cluster})
}

// Apply implements engines.Engine.
func (e *engine) Apply(_ context.Context, install *v1alpha1.OperatorInstall, seen *observation,
	actions []plan.Action) error {
	o := e.operator(install)
	for _, a := range actions {
		o.apply(install, seen.offer, a)
		if a.Verb == plan.StopServing && !install.DeletionTimestamp.IsZero() {
			e.forget(install)
		}
	}
	return nil
}

// WhileFrozen implements engines.Engine.
func (e *engine) WhileFrozen(actions []plan.Action) []plan.Action {
	return slices.DeleteFunc(slices.Clone(actions), func(a plan.Action) bool { return a.Verb != plan.Serve })
}
