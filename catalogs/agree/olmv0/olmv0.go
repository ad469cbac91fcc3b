// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package olmv0 asks OLM v0's own resolver, run in-process, to which bundle it would upgrade a cluster.
//
// Its input is one channel of a package and what a cluster has installed. The answer is what OLM v0.46.0 would put into
// the next InstallPlan. Only the upgrade graph is judged: what a bundle requires of other packages is left out of the
// question, since its answer is in other packages. Nothing here talks to a cluster, logs, or looks at a clock, and nothing
// here decides: every decision is OLM's.
package olmv0

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver/cache"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver/solver"
	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/operator-framework/operator-registry/pkg/registry"
	"github.com/sirupsen/logrus"

	"github.com/bellwether-dev/bellwether/catalogs"
)

var (
	// ErrRefused says that OLM v0 cannot work with the channel: its resolver returns an error, and OLM stamps that on
	// every Subscription of the namespace.
	ErrRefused = errors.New("OLM v0 refuses the channel")
	// ErrNothing says that OLM v0 finds nothing that it could install.
	ErrNothing = errors.New("OLM v0 finds nothing to install")
)

const namespace = "operators"

var (
	catalogKey   = cache.SourceKey{Name: "catalog", Namespace: namespace}
	installedKey = cache.NewVirtualSourceKey(namespace)
)

// Channel is one channel as OLM v0 sees it. It answers one question at a time: it is not safe for concurrent use.
type Channel struct {
	pkg, name string
	world     *world
	resolver  *resolver.Resolver
}

// New prepares a channel (empty: the default channel) for many questions. The error wraps catalogs.ErrNoChannel.
func New(p *catalogs.Package, channel string) (*Channel, error) {
	c, err := p.Channel(channel)
	if err != nil {
		return nil, err
	}
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	w := &world{}
	for _, e := range c.Entries {
		if b := p.Bundles[e.Name]; b != nil {
			w.catalog = append(w.catalog, newEntry(p, c, e, b))
		}
	}
	return &Channel{pkg: p.Name, name: c.Name, world: w, resolver: resolver.NewDefaultResolver(w, quiet)}, nil
}

// Next returns the name of the bundle that OLM v0 would install over the installed one, or "" when it would leave the
// cluster as it is. An installed without a name is a cluster that has a Subscription and nothing installed yet. An
// installed version that is not known is 0.0.0, as it is to OLM.
//
// Errors wrap ErrRefused or ErrNothing; their text is the same for the same question.
func (c *Channel) Next(installed catalogs.Installed) (string, error) {
	sub := &operatorsv1alpha1.Subscription{Spec: &operatorsv1alpha1.SubscriptionSpec{
		CatalogSource: catalogKey.Name, CatalogSourceNamespace: catalogKey.Namespace, Package: c.pkg, Channel: c.name,
	}}
	sub.Namespace, sub.Name = namespace, c.pkg
	c.world.installed = nil
	if installed.Name != "" {
		version, _ := installed.SemVer()
		sub.Status.InstalledCSV = installed.Name
		c.world.installed = finder{{
			Name: installed.Name, Version: &version,
			SourceInfo: &cache.OperatorSourceInfo{Catalog: installedKey, Subscription: sub, Package: c.pkg},
		}}
	}
	found, err := c.resolver.Resolve([]string{namespace}, []*operatorsv1alpha1.Subscription{sub})
	if err != nil {
		return "", c.failure(err)
	}
	return c.only(found, installed)
}

// only returns the one bundle that was found. What is installed already is none: OLM makes no InstallPlan for it.
func (c *Channel) only(found []*cache.Entry, installed catalogs.Installed) (string, error) {
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		if found[0].Name == installed.Name {
			return "", nil
		}
		return found[0].Name, nil
	}
	names := make([]string, 0, len(found))
	for _, f := range found {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return "", fmt.Errorf("%w %q of package %q: it would install several bundles at once: %s", ErrRefused, c.name, c.pkg, strings.Join(names, ", "))
}

// failure keeps the resolver's words where they are always the same. Those of an unsolvable problem depend on the order
// in which the solver met the constraints.
func (c *Channel) failure(err error) error {
	var unsolvable solver.NotSatisfiable
	if errors.As(err, &unsolvable) {
		return fmt.Errorf("%w from channel %q of package %q", ErrNothing, c.name, c.pkg)
	}
	return fmt.Errorf("%w %q of package %q: %w", ErrRefused, c.name, c.pkg, err)
}

// newEntry is what OLM's catalog operator makes of a bundle that a catalog's registry API lists, short of what has no say
// in an upgrade: requirements, and the properties by which OLM keeps two providers of one package or API apart. The
// resolver would parse these again and again, and in a world of one package they forbid nothing that is not forbidden
// anyway. A test compares the answers with those to the whole question.
func newEntry(p *catalogs.Package, c *catalogs.Channel, e catalogs.Entry, b *catalogs.Bundle) *cache.Entry {
	entry := &cache.Entry{
		Name: e.Name, Replaces: e.Replaces, Skips: e.Skips, Version: &b.Version,
		SourceInfo: &cache.OperatorSourceInfo{
			Package: p.Name, Channel: c.Name, Catalog: catalogKey, DefaultChannel: c.Name == p.DefaultChannel,
		},
	}
	if r, err := semver.ParseRange(e.SkipRange); err == nil {
		entry.SkipRange = r
	}
	for _, property := range b.Properties {
		if property.Type == registry.DeprecatedType {
			entry.Properties = append(entry.Properties, &api.Property{Type: property.Type, Value: string(property.Value)})
		}
	}
	return entry
}

// world is all that the resolver can find: one catalog, and what is installed.
type world struct {
	catalog, installed finder
}

func (w *world) Namespaced(...string) cache.MultiCatalogOperatorFinder { return w }

func (w *world) Error() error { return nil }

func (w *world) Catalog(key cache.SourceKey) cache.OperatorFinder {
	switch {
	case key.Equal(catalogKey):
		return w.catalog
	case key.Equal(installedKey):
		return w.installed
	}
	return cache.EmptyOperatorFinder{}
}

// FindPreferred finds what is installed first, as OLM's cache does.
func (w *world) FindPreferred(_ *cache.SourceKey, _ string, p ...cache.Predicate) []*cache.Entry {
	return append(w.installed.Find(p...), w.catalog.Find(p...)...)
}

func (w *world) Find(p ...cache.Predicate) []*cache.Entry { return w.FindPreferred(nil, "", p...) }

type finder []*cache.Entry

func (f finder) Find(p ...cache.Predicate) []*cache.Entry { return cache.Filter(f, p...) }
