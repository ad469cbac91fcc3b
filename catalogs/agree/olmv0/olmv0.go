// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package olmv0 calls OLM v0's own resolver, in this process, to find the bundle to which it would upgrade a cluster.
//
// Its input is one channel of a package and the installed versions of clusters. The result is what OLM v0.46.0 would
// put into the next InstallPlan. The package considers the upgrade graph, and leaves out requirements of other
// packages. It does not access a cluster, a log or a clock, and it decides nothing itself: OLM makes every decision.
package olmv0

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
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
	// ErrRefused means that OLM v0 cannot use the channel: its resolver returns an error, and OLM reports the error on
	// every Subscription of the namespace.
	ErrRefused = errors.New("OLM v0 refuses the channel")
	// ErrNothing means that OLM v0 finds nothing to install.
	ErrNothing = errors.New("OLM v0 finds nothing to install")
)

const namespace = "operators"

var installedKey = cache.NewVirtualSourceKey(namespace)

// Channel is a channel in the form that OLM v0 reads.
type Channel struct {
	pkg, name string
	isDefault bool
	entries   []cache.Entry // without SourceInfo
	chain     chain
}

// Answer is the next upgrade of OLM v0.
type Answer struct {
	// Next is the name of the bundle that it would install; empty if it would change nothing.
	Next string
	// Err wraps ErrRefused or ErrNothing; its text is the same for the same input.
	Err error
}

// New prepares a channel (empty: the default channel) for queries. The error wraps catalogs.ErrNoChannel.
func New(p *catalogs.Package, channel string) (*Channel, error) {
	c, err := p.Channel(channel)
	if err != nil {
		return nil, err
	}
	out := &Channel{pkg: p.Name, name: c.Name, isDefault: c.Name == p.DefaultChannel}
	for _, e := range c.Entries {
		if b := p.Bundles[e.Name]; b != nil {
			out.entries = append(out.entries, newEntry(e, b))
		}
	}
	out.chain = newChain(out.entries)
	return out, nil
}

// Next is NextForAll for one installed version.
func (c *Channel) Next(installed catalogs.Installed) (string, error) {
	answer := c.NextForAll(installed)[0]
	return answer.Next, answer.Err
}

// NextForAll returns, for each of installed and in that order, the bundle that OLM v0 would install over it. An
// installed without a name is a cluster that has a Subscription and nothing installed yet. An unknown version is
// 0.0.0, as in OLM.
//
// The resolver is called once for many of them: each has its own Subscription and its own catalog with the deciding
// part of the channel. That takes half the time of single calls, which mostly create the solver.
func (c *Channel) NextForAll(installed ...catalogs.Installed) []Answer {
	answers := make([]Answer, 0, len(installed))
	for chunk := range slices.Chunk(installed, perCall) {
		answers = append(answers, c.resolve(chunk)...)
	}
	return answers
}

// perCall bounds how many queries the resolver answers in one call, which bounds its memory.
const perCall = 64

// resolve calls the resolver once for several installed versions. If that call fails, it calls the resolver once per
// version, to find the version that fails.
func (c *Channel) resolve(installed []catalogs.Installed) []Answer {
	queries := newQueries(c, installed)
	answers := make([]Answer, len(installed))
	found, err := resolver.NewDefaultResolver(queries, newDiscardLogger()).Resolve([]string{namespace},
		queries.subscriptions)
	switch {
	case err == nil:
		queries.readAnswers(found, answers)
	case len(installed) == 1:
		answers[0].Err = c.wrapError(err)
	default: // single calls show which query fails
		for i := range installed {
			answers[i] = c.resolve(installed[i : i+1])[0]
		}
	}
	return answers
}

func newDiscardLogger() logrus.FieldLogger {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return l
}

// wrapError keeps the resolver's message if it is deterministic. The message of an unsolvable problem depends on the
// order in which the solver handled the constraints.
func (c *Channel) wrapError(err error) error {
	var unsolvable solver.NotSatisfiable
	if errors.As(err, &unsolvable) {
		return fmt.Errorf("%w from channel %q of package %q", ErrNothing, c.name, c.pkg)
	}
	return fmt.Errorf("%w %q of package %q: %w", ErrRefused, c.name, c.pkg, err)
}

// newEntry returns the entry that OLM's catalog operator creates for a bundle of a catalog, without the parts that do
// not matter for an upgrade within one package: requirements, and the properties that OLM uses to exclude two
// providers of one package or API. The resolver would parse them repeatedly. A test compares the results with those for
// complete entries.
func newEntry(e catalogs.Entry, b *catalogs.Bundle) cache.Entry {
	entry := cache.Entry{
		Name: e.Name, Replaces: e.Replaces, Skips: e.Skips, Version: &b.Version,
	}
	if r, err := semver.ParseRange(e.SkipRange); err == nil {
		entry.SkipRange = r
	}
	for _, property := range b.Properties {
		if property.Type == registry.DeprecatedType {
			entry.Properties = append(entry.Properties,
				&api.Property{Type: property.Type, Value: string(property.Value)})
		}
	}
	return entry
}

// queries is everything that the resolver can find: the installed bundles, and a catalog for each query.
type queries struct {
	starts        []catalogs.Installed
	subscriptions []*operatorsv1alpha1.Subscription
	installed     finder
	catalogs      []finder
}

// newQueries returns a query for each of starts: a Subscription of the channel, a catalog, and the installed bundle if
// the start has a name.
func newQueries(c *Channel, starts []catalogs.Installed) *queries {
	w := &queries{starts: starts}
	for i, installed := range starts {
		key := newCatalogKey(i)
		sub := &operatorsv1alpha1.Subscription{Spec: &operatorsv1alpha1.SubscriptionSpec{
			CatalogSource: key.Name, CatalogSourceNamespace: key.Namespace, Package: c.pkg, Channel: c.name,
		}}
		sub.Namespace, sub.Name, sub.Status.InstalledCSV = namespace, key.Name, installed.Name
		w.subscriptions = append(w.subscriptions, sub)
		if installed.Name == "" {
			w.catalogs = append(w.catalogs, c.newCatalog(key, c.entries))
			continue
		}
		version, _ := installed.SemVer()
		w.catalogs = append(w.catalogs, c.newCatalog(key, c.selectDecidingEntries(installed.Name, version)))
		w.installed = append(w.installed, &cache.Entry{
			Name: installed.Name, Version: &version,
			SourceInfo: &cache.OperatorSourceInfo{Catalog: installedKey, Subscription: sub, Package: c.pkg},
		})
	}
	return w
}

// newCatalog returns a catalog of the channel with the available entries.
func (c *Channel) newCatalog(key cache.SourceKey, available []cache.Entry) finder {
	source := &cache.OperatorSourceInfo{Package: c.pkg, Channel: c.name, Catalog: key, DefaultChannel: c.isDefault}
	entries := slices.Clone(available)
	out := make(finder, len(entries))
	for i := range entries {
		entries[i].SourceInfo = source
		out[i] = &entries[i]
	}
	return out
}

// readAnswers assigns to each query the bundle that was found in its catalog. The installed bundle is not an answer,
// because OLM creates no InstallPlan for it.
func (w *queries) readAnswers(found []*cache.Entry, answers []Answer) {
	names := make([][]string, len(answers))
	for _, entry := range found {
		if i, ok := parseQueryIndex(entry.SourceInfo.Catalog); ok {
			names[i] = append(names[i], entry.Name)
		}
	}
	for i, n := range names {
		slices.Sort(n)
		switch { // without a case that applies, OLM changes nothing
		case len(n) > 1:
			answers[i].Err = fmt.Errorf("%w: it would install several bundles at once: %s", ErrRefused,
				strings.Join(n, ", "))
		case len(n) == 1 && n[0] != w.starts[i].Name:
			answers[i].Next = n[0]
		}
	}
}

// newCatalogKey returns the key of a query's catalog.
func newCatalogKey(query int) cache.SourceKey {
	return cache.SourceKey{Name: strconv.Itoa(query), Namespace: namespace}
}

func parseQueryIndex(key cache.SourceKey) (int, bool) {
	i, err := strconv.Atoi(key.Name)
	return i, err == nil && key.Namespace == namespace
}

func (w *queries) Namespaced(...string) cache.MultiCatalogOperatorFinder { return w }

func (w *queries) Error() error { return nil }

func (w *queries) Catalog(key cache.SourceKey) cache.OperatorFinder {
	if key.Equal(installedKey) {
		return w.installed
	}
	if i, ok := parseQueryIndex(key); ok && i < len(w.catalogs) {
		return w.catalogs[i]
	}
	return cache.EmptyOperatorFinder{}
}

// FindPreferred finds installed bundles first, as OLM's cache does. The resolver calls it only for requirements
// of bundles.
func (w *queries) FindPreferred(_ *cache.SourceKey, _ string, p ...cache.Predicate) []*cache.Entry {
	found := w.installed.Find(p...)
	for _, c := range w.catalogs {
		found = append(found, c.Find(p...)...)
	}
	return found
}

func (w *queries) Find(p ...cache.Predicate) []*cache.Entry { return w.FindPreferred(nil, "", p...) }

type finder []*cache.Entry

func (f finder) Find(p ...cache.Predicate) []*cache.Entry { return cache.Filter(f, p...) }
